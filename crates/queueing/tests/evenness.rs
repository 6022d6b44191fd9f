//! How even a server's answers are, with a gate and without, by playing the model: why a gate has nothing to
//! even out below capacity, and what it evens out beyond.
//!
//! The table of `docs/overload.md` is printed by `the_table_of_the_document`.

use staunch_queueing::batching::Reception;
use staunch_queueing::simulate::{Arrival, Measured, Scenario, run_with};
use staunch_queueing::{Host, OfferedLoad, Service};

const MU2_PER_S: f64 = 1800.0;
/// A gate keeps the line to 40 ms of work.
const LINE: usize = 72;
const SEEDS: u64 = 20;
const STEP_S: f64 = 0.1;

/// The counts of one run.
struct Played {
    measured: Measured,
    /// Requests served in each step, and how many waited at its end.
    steps: Vec<(f64, f64)>,
}

fn scenario(load: f64, seed: u64) -> Scenario {
    Scenario {
        host: Host {
            reception: Reception::constant(20_000.0),
            mu2_per_s: MU2_PER_S,
            places: 4097,
            patience_s: 1.0,
            retry_s: 0.0,
            service: Service::Exponential,
            gate: None,
        },
        load: OfferedLoad::requests(load * capacity()),
        handshake_s: 0.0,
        reception_places: 1 << 20,
        warm_up_s: 5.0,
        sending_s: 25.0,
        drain: false,
        seed,
    }
}

/// Requests a second at which reception and application take the whole processor.
fn capacity() -> f64 {
    1.0 / (1.0 / MU2_PER_S + 1.0 / 20_000.0)
}

/// Plays a run; the rule sees each arrival, so steps end with the first one behind their end.
fn played(load: f64, seed: u64, line: usize) -> Played {
    let (mut steps, mut end_s, mut before) = (Vec::new(), STEP_S, 0.0);
    let rule = |arrival: &Arrival| {
        if arrival.now_s >= end_s {
            end_s += STEP_S;
            let served = arrival.served as f64;
            steps.push((served - before, arrival.waiting as f64));
            before = served;
        }
        arrival.waiting < line
    };
    let measured = run_with(&scenario(load, seed), rule).expect("a possible scenario");
    Played { measured, steps }
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt())
}

/// Mean and deviation from run to run of a figure.
fn from_run_to_run(load: f64, line: usize, figure: impl Fn(&Measured) -> f64) -> (f64, f64) {
    let figures: Vec<f64> = (0..SEEDS).map(|seed| figure(&played(load, seed, line).measured)).collect();
    mean_and_deviation(&figures)
}

#[test]
fn below_capacity_a_gate_changes_no_answer_and_so_no_deviation() {
    for load in [0.5, 0.8] {
        for seed in 0..4 {
            let (bare, gated) = (played(load, seed, usize::MAX), played(load, seed, LINE));
            assert_eq!(bare.measured, gated.measured, "load {load}, seed {seed}");
            assert_eq!(bare.steps, gated.steps);
        }
    }
}

#[test]
fn what_is_served_in_a_step_is_what_came_less_what_waits_longer() {
    let steps = played(0.95, 1, usize::MAX).steps;
    let (_, of_one) = mean_and_deviation(&steps.iter().map(|(served, _)| *served).collect::<Vec<f64>>());
    // Over ten times as long a step nearly as many wait at both ends, so deviation is by arrivals alone.
    let long: Vec<f64> =
        steps.chunks_exact(10).map(|steps| steps.iter().map(|(served, _)| served).sum()).collect();
    let (mean, of_ten) = mean_and_deviation(&long);
    let by_chance = mean.sqrt();
    assert!((0.6..1.5).contains(&(of_ten / by_chance)), "{of_ten} of {mean}");
    assert!(of_one > 0.0);
}

#[test]
fn beyond_capacity_it_is_answers_in_time_that_a_gate_evens_out() {
    let deviation = |load, line| from_run_to_run(load, line, Measured::goodput_per_s).1;
    // The line without a gate comes to the patience of those who wait, in one run sooner than in another.
    for load in [1.05, 1.1] {
        let (bare, gated) = (deviation(load, usize::MAX), deviation(load, LINE));
        assert!(gated < bare / 4.0, "at {load}: {gated} with a gate, {bare} without");
    }
}

#[test]
fn the_table_of_the_document() {
    println!("| offered, of the capacity | served | deviation | in time | deviation |");
    println!("|---|---|---|---|---|");
    for load in [0.8, 0.95, 1.05, 1.1, 2.0] {
        for (name, line) in [("without", usize::MAX), ("with", LINE)] {
            let (served, of_served) = from_run_to_run(load, line, Measured::throughput_per_s);
            let (good, of_good) = from_run_to_run(load, line, Measured::goodput_per_s);
            println!("| {load}, {name} | {served:.0} | {of_served:.1} | {good:.0} | {of_good:.1} |");
        }
    }
}

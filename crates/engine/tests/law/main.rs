//! The law that finds an application's limit, on simulated applications and crowds.
//!
//! Time is simulated, so every run of a seed is the same to the last answer. `STAUNCH_SEEDS` says how many
//! seeds there are; `--nocapture` shows the table.
#![forbid(unsafe_code)]

mod application;
mod crowd;

use application::{
    Application, CHANGING, COLLECTOR, EIGHT_PLACES, MANY_PLACES, ONE_PLACE, SIXTEEN_PLACES, SLOW, THRASHING,
    TWO_KINDS,
};
use crowd::{Front, run};

/// Seconds of a run, and those at its beginning in which the limit is still looked for.
const SECONDS: usize = 40;
const FIRST: usize = 8;

fn seeds() -> u64 {
    std::env::var("STAUNCH_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

/// Good answers as part of what is possible: mean and least of all seeds.
fn of_peak(application: &Application, load: f64) -> (f64, f64) {
    let (mut sum, mut least, mut p99_s, mut lost, mut limits) = (0.0, f64::MAX, 0.0, 0.0, Vec::new());
    for seed in 0..seeds() {
        let offered = load * application.peak;
        let mut outcome = run(application, Front::Law, seed, offered, SECONDS, FIRST as f64);
        let part = outcome.rate(FIRST, SECONDS) / offered.min(application.peak);
        (sum, least) = (sum + part, least.min(part));
        p99_s += outcome.p99_s();
        lost += outcome.lost / outcome.came;
        limits.push(outcome.limit);
    }
    let count = seeds() as f64;
    println!(
        "{:30} x{load:<4} {:.3} of the peak, least {least:.3}, p99 {:4.0} ms, lost {:5.2} %, limits {:?}",
        application.name,
        sum / count,
        1e3 * p99_s / count,
        1e2 * lost / count,
        &limits[..limits.len().min(8)]
    );
    (sum / count, least)
}

/// The law, without a number to set, keeps the peak of each of them at twice and ten times the load.
#[test]
fn every_application_keeps_its_peak() {
    let kept = [
        (ONE_PLACE, 0.98, 0.99),
        (EIGHT_PLACES, 0.97, 0.97),
        (TWO_KINDS, 0.97, 0.96),
        (SIXTEEN_PLACES, 0.98, 0.98),
        (MANY_PLACES, 0.98, 0.98),
        (COLLECTOR, 0.97, 0.97),
        (THRASHING, 0.85, 0.85),
        // A request in work takes half the patience: whoever waits is late.
        (SLOW, 0.88, 0.88),
    ];
    for (application, twice, ten_times) in kept {
        for (load, wanted) in [(2.0, twice), (10.0, ten_times)] {
            let (mean, _) = of_peak(&application, load);
            assert!(mean >= wanted, "{} x{load}: {mean:.3} of the peak, wanted {wanted}", application.name);
        }
    }
}

/// Below its peak an application with the law loses hardly more than alone: refused or too late, in percent
/// of what came.
#[test]
fn below_the_peak_hardly_more_is_lost_than_without_a_law() {
    let lost = [
        (ONE_PLACE, 0.1),
        (EIGHT_PLACES, 0.5),
        (SIXTEEN_PLACES, 0.1),
        (MANY_PLACES, 0.1),
        (COLLECTOR, 0.5),
        // Where the limit was found too low by chance: three in a hundred more than alone.
        (TWO_KINDS, 4.0),
    ];
    for (application, more) in lost {
        let percent = |front| {
            let outcomes =
                (0..seeds()).map(|seed| run(&application, front, seed, 0.9 * application.peak, SECONDS, 8.0));
            let (lost, came) =
                outcomes.fold((0.0, 0.0), |(lost, came), one| (lost + one.lost, came + one.came));
            1e2 * lost / came
        };
        let (alone, with_law) = (percent(Front::Nothing), percent(Front::Law));
        println!("{:30} x0.9  lost {with_law:.2} %, alone {alone:.2} %", application.name);
        assert!(with_law <= alone + more, "{}: {with_law:.2} %, alone {alone:.2} %", application.name);
    }
}

/// Alone, each of these applications answers hardly any client in time: that is the purpose of the law.
#[test]
fn without_a_law_hardly_anybody_is_answered_in_time() {
    for application in [ONE_PLACE, EIGHT_PLACES, SIXTEEN_PLACES] {
        let outcome = run(&application, Front::Nothing, 1, 10.0 * application.peak, SECONDS, 8.0);
        assert!(outcome.rate(FIRST, SECONDS) < 0.05 * application.peak, "{}", application.name);
    }
}

/// Nine tenths of what is possible from some seconds after each change on: of all seeds together.
#[test]
fn a_server_that_changes_is_followed() {
    let mut parts = [0.0; 3];
    for seed in 0..seeds() {
        let outcome = run(&CHANGING, Front::Law, seed, 400.0, SECONDS, 8.0);
        let good: Vec<u32> = outcome.good.iter().map(|count| *count as u32).collect();
        println!("{}: {good:?}", CHANGING.name);
        for (part, (from, until, peak)) in
            parts.iter_mut().zip([(4, 10, 40.0), (14, 20, 10.0), (26, SECONDS, 80.0)])
        {
            *part += outcome.rate(from, until) / peak / seeds() as f64;
        }
    }
    assert!(parts.iter().all(|part| *part >= 0.9), "{parts:?}");
}

/// From 24 in work on the application does less: within some seconds it is given no more than it bears.
#[test]
fn a_server_that_thrashes_is_relieved() {
    let mut part = 0.0;
    for seed in 0..seeds() {
        let outcome = run(&THRASHING, Front::Law, seed, 8000.0, 30, 8.0);
        part += outcome.rate(10, 30) / THRASHING.peak / seeds() as f64;
    }
    println!("{:30} from the 10th second on {part:.3} of the peak", THRASHING.name);
    assert!(part >= 0.85, "{part:.3}");
}

//! Comparing as a whole: verdicts, the exit code, and what is refused.
use super::*;

/// Compares, single runs too.
fn compare(a: &Side, b: &Side, tolerance_percent: f64) -> Result<Comparison, Fault> {
    super::compare(a, b, tolerance_percent, Single::Judge)
}

use crate::report::made_up::{self, Numbers};

fn side(name: &str, runs: Vec<Document>) -> Side {
    Side { name: name.to_owned(), runs }
}

/// A quiet run, without a warning.
fn quiet(seed: u64, rate_per_s: f64) -> Document {
    let mut outcome = made_up::run(seed, rate_per_s, rate_per_s * 2.0, 30);
    outcome.warnings.clear();
    Document::new(&outcome)
}

/// A run of 200 steps whose rate and p99 vary around a mean without memory.
fn noisy(numbers: &mut Numbers, base: &Document, rate: f64, p99_ms: f64) -> Document {
    let mut run = base.clone();
    let steps = 200;
    let moments = &mut run.moments;
    run.seconds = steps as f64 / 10.0;
    moments.at_ms = (1..=steps).map(|step| step * 100).collect();
    let mut vary =
        |mean: f64| (0..steps).map(|_| mean * (0.1 * numbers.normal()).exp()).collect::<Vec<f64>>();
    let in_time: Vec<u64> = vary(rate / 10.0).into_iter().map(|count| count.round() as u64).collect();
    moments.latency_ms.p99 = vary(p99_ms).into_iter().map(Some).collect();
    moments.counts.insert("in_time".to_owned(), in_time);
    moments.counts.insert("late".to_owned(), vec![0; steps as usize]);
    let same = vec![Some(p99_ms / 2.0); steps as usize];
    moments.latency_ms.p50.clone_from(&same);
    moments.latency_ms.p90 = same;
    run
}

fn row<'a>(comparison: &'a Comparison, name: &str) -> &'a Row {
    comparison.rows.iter().find(|row| row.metric.starts_with(name)).unwrap()
}

#[test]
fn a_slower_group_is_worse_and_fails() {
    let runs = |rate: f64, seeds: std::ops::Range<u64>| seeds.map(|seed| quiet(seed, rate)).collect();
    let fast = side("fast", runs(1_000.0, 1..6));
    let slow = side("slow", runs(700.0, 6..11));
    let worse = compare(&fast, &slow, 3.0).unwrap();
    assert_eq!(row(&worse, "rate").verdict, Difference::Worse);
    assert!(worse.failed && row(&worse, "rate").failed);
    let rate = row(&worse, "rate");
    assert!(rate.low_percent < Some(-28.0) && rate.high_percent > Some(-32.0), "{rate:?}");
    let better = compare(&slow, &fast, 3.0).unwrap();
    assert_eq!(row(&better, "rate").verdict, Difference::Better);
    assert!(!row(&better, "rate").failed);
    // This change is tolerated when the tolerance is larger.
    let tolerant = compare(&fast, &slow, 40.0).unwrap();
    assert!(!tolerant.failed && row(&tolerant, "rate").verdict == Difference::Worse);
}

#[test]
fn batches_of_equal_runs_are_separated_5_times_of_100_and_shifted_ones_are_found() {
    let base = quiet(1, 500.0);
    let mut numbers = Numbers(11);
    let trials = 400;
    let mut separated = 0;
    for _ in 0..trials {
        let a = side("a", vec![noisy(&mut numbers, &base, 50_000.0, 10.0)]);
        let b = side("b", vec![noisy(&mut numbers, &base, 50_000.0, 10.0)]);
        let equal = compare(&a, &b, 0.0).unwrap();
        separated += usize::from(row(&equal, "p99").verdict != Difference::NotSeparable);
        separated += usize::from(row(&equal, "rate").verdict != Difference::NotSeparable);
    }
    let share = separated as f64 / (2 * trials) as f64;
    // Four times the deviation of the share itself, sqrt(0.05 * 0.95 / 800).
    assert!((share - 0.05).abs() < 0.031, "{share}");
    for _ in 0..50 {
        let a = side("a", vec![noisy(&mut numbers, &base, 50_000.0, 10.0)]);
        let b = side("b", vec![noisy(&mut numbers, &base, 45_000.0, 11.0)]);
        let shifted = compare(&a, &b, 3.0).unwrap();
        assert_eq!(row(&shifted, "p99").verdict, Difference::Worse);
        assert_eq!(row(&shifted, "rate").verdict, Difference::Worse);
        assert!(shifted.failed && shifted.method.contains("20 batches"));
    }
}

#[test]
fn batches_that_follow_each_other_are_said() {
    let mut numbers = Numbers(3);
    let base = quiet(1, 500.0);
    let mut drifting = noisy(&mut numbers, &base, 50_000.0, 10.0);
    let rising = (0..200).map(|step| 5_000 + step * 20).collect();
    drifting.moments.counts.insert("in_time".to_owned(), rising);
    let a = side("a", vec![noisy(&mut numbers, &base, 50_000.0, 10.0)]);
    let notes = compare(&a, &side("b", vec![drifting]), 3.0).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("Batches of rate follow each other")), "{notes:?}");
}

#[test]
fn what_cannot_be_compared_is_refused_or_noted() {
    let run = || quiet(1, 500.0);
    let words = |a: usize, b: usize| {
        let runs = |count: usize| (0..count).map(|_| run()).collect();
        compare(&side("a", runs(a)), &side("b", runs(b)), 3.0).unwrap_err().to_string()
    };
    assert_eq!(words(0, 1), "each side needs at least one run");
    assert!(words(1, 3).starts_with("one side has a single run, the other 3"));
    let short = Document::new(&made_up::run(1, 500.0, 1_000.0, 19));
    let fault = compare(&side("a.json", vec![short]), &side("b.json", vec![run()]), 3.0).unwrap_err();
    assert!(fault.to_string().starts_with("a.json has 19 steps of 100 ms"), "{fault}");
    let mut other = run();
    other.engine = "epoll".to_owned();
    other.warnings.push("too slow".to_owned());
    other.main.latency_ms.p99 = None;
    let notes = compare(&side("a", vec![run(), run()]), &side("b", vec![other, run()]), 3.0).unwrap().notes;
    let expected = [
        "The engines of the generator differ: `io_uring, 2 threads on processors 2 and 3` and `epoll`",
        "1 of 2 runs of b have warnings, the first: too slow",
        "p99 cannot be compared: it was not measured in every run",
    ];
    for note in expected {
        assert!(notes.iter().any(|found| found == note), "{note}: {notes:?}");
    }
}

#[test]
fn nothing_compared_is_a_failure() {
    let mut dead = quiet(1, 500.0);
    dead.main = crate::report::document::Figures::default();
    let dead = || side("dead", vec![dead.clone(), dead.clone()]);
    let comparison = compare(&dead(), &dead(), 3.0).unwrap();
    assert!(comparison.failed && comparison.rows.is_empty());
}

#[test]
fn the_table_and_the_json_say_the_same() {
    let runs = |rate: f64, seeds: std::ops::Range<u64>| seeds.map(|seed| quiet(seed, rate)).collect();
    let a = side("a\u{1b}[2J", runs(1_000.0, 1..4));
    let comparison = compare(&a, &side("b", runs(700.0, 4..7)), 3.0).unwrap();
    let table = text(&comparison, false, 80);
    assert!(!table.contains('\u{1b}'));
    let line = table.lines().find(|line| line.starts_with("rate /s")).unwrap();
    let rate = row(&comparison, "rate");
    assert!(
        line.contains(&format!("{:+.1} %", rate.difference_percent)) && line.ends_with("WORSE"),
        "{line}"
    );
    assert!(table.contains("FAILED: worse by more than 3.00 %"), "{table}");
    assert_eq!(console::strip_ansi_codes(&text(&comparison, true, 80)), table);
    let value: serde_json::Value = serde_json::from_str(&json(&comparison)).unwrap();
    assert_eq!(value["failed"], true);
    assert_eq!(value["rows"][0]["verdict"], "worse");
    assert_eq!(value["rows"][0]["difference_percent"], rate.difference_percent);
}

#[test]
fn a_single_run_a_side_is_shown_and_not_judged() {
    let short = |rate: f64| {
        let mut run = Document::new(&made_up::run(1, rate, 2.0 * rate, 3));
        run.warnings.clear();
        run
    };
    // So short that it cannot be cut into batches either.
    let (a, b) = (side("a", vec![short(1_000.0)]), side("b", vec![short(500.0)]));
    let shown = super::compare(&a, &b, 3.0, Single::Show).unwrap();
    assert!(!shown.judged && !shown.failed);
    let rate = row(&shown, "rate");
    assert!(rate.difference_percent < -40.0 && rate.low_percent.is_none() && !rate.failed, "{rate:?}");
    let table = text(&shown, false, 80);
    assert!(table.contains("Too few runs to tell: give at least 3 each"), "{table}");
    assert!(!table.contains("WORSE") && !table.contains("Passed"), "{table}");
    // As many requests take another time: that is the result, not a circumstance.
    let note = |found: &Comparison| found.notes.iter().any(|note| note.starts_with("The lengths differ"));
    let (mut a, mut b) = (short(1_000.0), short(1_000.0));
    (a.seconds, b.seconds) = (0.3, 0.5);
    let both = |a: Document, b: Document| {
        super::compare(&side("a", vec![a]), &side("b", vec![b]), 3.0, Single::Show).unwrap()
    };
    assert!(!note(&both(a.clone(), b.clone())));
    b.main.counts.offered += 1;
    assert!(note(&both(a, b)));
}

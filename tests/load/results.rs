//! Results in every form, thresholds, comparisons and sweeps.

use std::path::PathBuf;

use serde_json::Value;
use staunch_tests::tree::Tree;

use crate::generator::{count, document, load, measure, truth};

fn folder() -> (Tree, impl Fn(&str) -> String) {
    let tree = Tree::new().expect("a folder");
    let root: PathBuf = tree.root().to_owned();
    (tree, move |name| root.join(name).to_str().expect("a path").to_owned())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_form_is_written() {
    let (_tree, at) = folder();
    let truth = truth();
    let (json, html, csv) = (at("r.json"), at("r.html"), at("r.csv"));
    let (ndjson, hdr, svg) = (at("r.ndjson"), at("r.hdr"), at("r.svg"));
    let finished = load(&[
        &truth.url("/ok"),
        "--rate",
        "300/s",
        "-d",
        "1s",
        "--json",
        &json,
        "--html",
        &html,
        "--svg",
        &svg,
        "--csv",
        &csv,
        "--ndjson",
        &ndjson,
        "--hdr",
        &hdr,
        "--probe",
        "--quiet",
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("in time"), "the summary: {}", finished.stdout);
    assert_eq!(count(&document(&read(&json)), "in_time"), 300);
    let page = read(&html);
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg") && !page.contains("src=\"http"));
    assert!(read(&svg).starts_with("<svg xmlns=") && read(&svg).contains("open loop, 300/s"));
    assert!(read(&csv).lines().count() >= 10);
    let lines: Vec<Value> =
        read(&ndjson).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert!(lines.len() >= 10);
    assert!(read(&hdr).contains("HIST"), "an HdrHistogram log: {}", read(&hdr));
}

#[test]
fn a_process_that_is_not_there_cannot_be_probed_and_the_run_goes_on() {
    let truth = truth();
    let document = measure(&[&truth.url("/ok"), "-n", "5", "--probe", "4194304"]);
    assert_eq!(count(&document, "in_time"), 5);
    assert!(document["warnings"].to_string().contains("4194304"), "{document:#}");
}

#[test]
fn progress_is_a_line_a_second_where_there_is_no_terminal() {
    let truth = truth();
    let finished = load(&[&truth.url("/ok"), "-c", "2", "-d", "2500ms"]);
    assert_eq!(finished.stderr.lines().count(), 2, "{}", finished.stderr);
    assert!(!finished.stdout.contains('\u{1b}'), "no colour: {}", finished.stdout);
}

#[test]
fn thresholds_set_the_exit_code() {
    let truth = truth();
    let url = truth.url("/delay/20ms");
    for (expression, code) in [
        ("p50>5ms", 3),
        ("p50>3600s", 0),
        ("errors>0", 0),
        ("rate<1/s", 0),
        ("rate<1000000/s", 3),
        ("rate<1000000", 3),
        ("p99.9>=20ms", 3),
    ] {
        let finished = load(&[&url, "-n", "20", "-c", "2", "--fail-if", expression, "--quiet"]);
        assert_eq!(finished.status.code(), Some(code), "{expression}: {}", finished.stderr);
        assert_eq!(finished.stderr.contains(expression), code == 3, "{expression}: {}", finished.stderr);
    }
}

#[test]
fn runs_are_compared() {
    let (_tree, at) = folder();
    let truth = truth();
    let run = |path: &str, name: &str| {
        let json = at(name);
        let finished = load(&[&truth.url(path), "-c", "2", "-d", "4s", "--json", &json, "--quiet"]);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        json
    };
    let (fast, slow) = (run("/delay/5ms", "fast.json"), run("/delay/40ms", "slow.json"));
    let worse = load(&["compare", &fast, &slow, "--judge-single-runs"]);
    assert_eq!(worse.status.code(), Some(3), "{}{}", worse.stdout, worse.stderr);
    let better = load(&["compare", &slow, &fast, "--judge-single-runs"]);
    assert_eq!(better.status.code(), Some(0), "{}{}", better.stdout, better.stderr);
    let shown = load(&["compare", &fast, &slow]);
    assert_eq!(shown.status.code(), Some(0), "{}{}", shown.stdout, shown.stderr);
    assert!(shown.stdout.contains("Too few runs to tell: give at least 3 each"), "{}", shown.stdout);
    assert!(shown.stdout.contains("rate /s"), "the difference is shown: {}", shown.stdout);
    let json = load(&["compare", &slow, &fast, "--json"]);
    let comparison: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&comparison["judged"], &comparison["failed"]), (&false.into(), &false.into()));
    std::fs::write(at("other.json"), "{\"a\": 1}").expect("a file");
    let other = load(&["compare", &fast, &at("other.json")]);
    assert_eq!(other.status.code(), Some(1));
    assert!(other.stderr.contains("other.json"), "{}", other.stderr);
}

#[test]
fn a_sweep_goes_beyond_the_capacity() {
    use staunch_tests::truth::{Plan, Truth};
    use std::time::Duration;
    let (_tree, at) = folder();
    let plan = Plan { service_time: Duration::from_millis(5), workers: 1, ..Plan::default() };
    let truth = Truth::start(plan).expect("a truth server");
    let (json, html, csv) = (at("s.json"), at("s.html"), at("s.csv"));
    let finished = load(&[
        "sweep",
        &truth.url("/ok"),
        "--factors",
        "0.5,3",
        "--rounds",
        "2",
        "-d",
        "1s",
        "--rest",
        "300ms",
        // Less than the loop that finds the capacity keeps a connection waiting.
        "--patience",
        "100ms",
        "--json",
        &json,
        "--html",
        &html,
        "--csv",
        &csv,
        "--quiet",
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let sweep: Value = serde_json::from_str(&read(&json)).expect("JSON");
    let capacity = sweep["capacity_per_s"].as_f64().expect("a capacity");
    // 5 ms each: 200 a second at most.
    assert!(capacity > 20.0 && capacity <= 205.0, "{capacity}");
    assert_eq!(sweep["points"].as_array().map(Vec::len), Some(2));
    assert!(read(&html).contains("<svg"));
    assert!(read(&csv).lines().count() >= 3);
    let nobody = load(&["sweep", "http://127.0.0.1:1/", "-d", "200ms", "--quiet"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(nobody.stderr.contains("no capacity"), "{}", nobody.stderr);
}

/// Before, how long; at each point, which of how many, and what is left.
#[test]
fn sweeps_say_where_they_are() {
    let truth = truth();
    let words = ["--factors", "0.5,2", "--rounds", "1", "-d", "1s", "--rest", "100ms", "--capacity", "100"];
    let finished = load(&[&["sweep", &truth.url("/ok")], &words[..]].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let lines: Vec<&str> = finished.stderr.lines().take(3).collect();
    let expected = [
        "sweep: 2 loads, 1 round: about 3 s",
        "1 of 2: 0.5 times the capacity, 50.0/s, round 1; 3 s left",
        "2 of 2: 2 times the capacity, 200/s, round 1; 2 s left",
    ];
    assert_eq!(lines, expected);
}

/// A closed loop of 64 clients gets 320 a second out of a server that only delays; a schedule gets more.
#[test]
fn a_sweep_that_finds_more_than_the_capacity_looks_again() {
    let (_tree, at) = folder();
    let truth = truth();
    let json = at("again.json");
    let words = ["--factors", "1.5", "--rounds", "1", "-d", "1s", "--rest", "1ms", "--json", &json];
    let finished = load(&[&["sweep", &truth.url("/delay/200ms")], &words[..]].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let again = finished.stderr.matches("it is measured anew, and the sweep begins again").count();
    let sweep: Value = serde_json::from_str(&read(&json)).expect("JSON");
    let capacity = sweep["capacity_per_s"].as_f64().expect("a capacity");
    assert!(again >= 1 && capacity > 330.0, "{again}, {capacity}: {}", finished.stderr);
}

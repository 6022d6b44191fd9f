//! Predictions, beside the formulas of docs/overload.md.

use serde_json::Value;

use crate::command::{model, near, number, said};

/// M/M/1/K as equation (3) has it: those served a second.
fn served(lambda: f64, mu: f64, places: i32) -> f64 {
    let rho = lambda / mu;
    lambda * (1.0 - rho.powi(places) * (1.0 - rho) / (1.0 - rho.powi(places + 1)))
}

fn row(arguments: &[&str]) -> Value {
    said(&[&["predict"], arguments].concat())["rows"][0].clone()
}

#[test]
fn a_patient_crowd_is_served_as_equation_5_says() {
    // 4 may wait, so K is 5; reception takes 80/800 of the processor, so mu2r is 90.
    for (offered, mu2r) in [("40/s", 95.0), ("80/s", 90.0), ("240/s", 70.0)] {
        let lambda: f64 = offered.trim_end_matches("/s").parse().expect("a number");
        let host = ["--mu1", "800/s", "--mu2", "100/s", "--backlog", "4", "--patience", "off"];
        let row = row(&[&host[..], &["--service", "exponential", "--offered", offered]].concat());
        let expected = served(lambda, mu2r, 5);
        near(number(&row, "/without_gate/goodput_per_s"), expected, 1e-9);
        near(number(&row, "/without_gate/served_per_s"), expected, 1e-9);
        near(number(&row, "/without_gate/refused_per_s"), lambda - expected, 1e-9);
        near(number(&row, "/without_gate/reception_share"), lambda / 800.0, 1e-9);
    }
}

#[test]
fn a_flood_takes_the_applications_time_as_equation_7_says() {
    for (flood, left) in [("0/s", 0.75), ("50k/s", 0.5), ("75k/s", 0.375), ("200k/s", 0.0)] {
        // 50 000 requests a second take a quarter of what reception can do; the application is always busy.
        let host = ["--mu1", "200k/s", "--mu2", "1k/s", "--backlog", "10", "--offered", "50k/s"];
        let row = row(&[&host[..], &["--flood", flood]].concat());
        let served = number(&row, "/without_gate/served_per_s");
        assert!((served - 1_000.0 * left).abs() < 1e-6, "{flood}: {served}");
    }
}

#[test]
fn batches_make_reception_cheaper() {
    // c1 = 4 us, c0 = 6 us: at 100 000 SYN a second 10 us each without a window, and with one of 50 us, which
    // 5 more come in, 5 us each. All the processor, and half of it.
    let host = ["--mu1", "250k/s", "--mu2", "1k/s", "--offered", "1/s", "--flood", "99999/s"];
    let at_once = row(&[&host[..], &["--interrupt-cost", "6us"]].concat());
    near(number(&at_once, "/without_gate/reception_share"), 1.0, 1e-9);
    let batched = row(&[&host[..], &["--interrupt-cost", "6us", "--coalescing", "50us"]].concat());
    near(number(&batched, "/without_gate/reception_share"), 0.5, 1e-9);
}

#[test]
fn a_syn_at_a_full_line_costs_less() {
    // Half the processor for 50 000 SYN if all are answered. With phi = 0 equation (12) is
    // 1000 x^2 = 1000 (1 - 0.51 x): x = 0.7771.
    let host =
        ["--mu1", "100k/s", "--mu2", "1k/s", "--backlog", "128", "--offered", "1k/s", "--flood", "50k/s"];
    let served = |more: &[&str]| number(&row(&[&host[..], more].concat()), "/without_gate/served_per_s");
    near(served(&[]), 490.0, 1e-3);
    near(served(&["--full-cost", "100%"]), 490.0, 1e-3);
    near(served(&["--full-cost", "0.0001%"]), 1000.0 * 0.7771 * 0.7771, 1e-3);
    let refused = model(&["predict", "--mu2", "1k/s", "--full-cost", "101%"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
}

#[test]
fn who_tries_again_comes_late() {
    // 1000/s of 3 600/s are served: x^2 = 0.2778. By (13) y = 0.3241; 0.0442 of all who try come in when they
    // leave, and 0.0483 at 0.8 s: the line is 0.129 s long, so these are in time while T is above 0.93 s.
    let host = ["--mu1", "1000M/s", "--mu2", "1k/s", "--backlog", "128", "--offered", "3600/s"];
    let asked = |more: &[&str]| row(&[&host[..], more].concat());
    let all = asked(&["--retry", "200ms"]);
    let leaving = 0.0442 / 0.5270;
    near(number(&all, "/without_gate/goodput_per_s"), 1000.0 * (1.0 - leaving), 1e-3);
    near(number(&all, "/without_gate/p99_ms"), 929.0, 0.01);
    let impatient = asked(&["--retry", "200ms", "--patience", "900ms"]);
    let last = 0.0483 / 0.5270;
    near(number(&impatient, "/without_gate/goodput_per_s"), 1000.0 * (1.0 - last - leaving), 1e-3);
    near(number(&impatient, "/without_gate/served_per_s"), 1000.0, 1e-3);
    near(number(&asked(&[]), "/without_gate/p99_ms"), 129.0, 0.01);
    let run = model(&[&["predict"][..], &host, &["--retry", "200ms", "--sending", "5s"]].concat());
    assert_eq!(run.status.code(), Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("--sending off"), "{}", run.stderr);
}

#[test]
fn a_queue_longer_than_patience_answers_nobody_in_time() {
    let host = ["--mu2", "1800/s", "--backlog", "4096", "--offered", "6k/s"];
    let impatient = row(&host);
    assert_eq!(number(&impatient, "/without_gate/goodput_per_s").round(), 0.0);
    assert!(impatient["without_gate"]["p99_ms"].is_null());
    near(number(&impatient, "/without_gate/served_per_s"), 1800.0 * (1.0 - 0.03), 1e-3);
    let patient = row(&[&host[..], &["--patience", "3s"]].concat());
    near(number(&patient, "/without_gate/goodput_per_s"), 1800.0 * (1.0 - 0.03), 1e-3);
    // The gate lets 97 % of what is left in: 1/(1/1800 + 1/200 000) of 1 - 6000 x 0.6 us.
    let gate = 0.97 * (1.0 - 6_000.0 * 0.6e-6) / (1.0 / 1_800.0 + 1.0 / 200_000.0);
    near(number(&impatient, "/with_gate/goodput_per_s"), gate, 2e-3);
    assert!(number(&impatient, "/with_gate/p99_ms") < 100.0);
}

#[test]
fn a_measurement_that_ends_shows_more_than_the_long_run() {
    // 3600 come and 1746 are served a second (mu2r). The queue is as long as a second
    // after 1746/1854 of one.
    let host = ["--mu2", "1800/s", "--mu1", "120k/s", "--backlog", "9k", "--offered", "3600/s"];
    let row = row(&[&host[..], &["--sending", "4s"]].concat());
    near(number(&row, "/without_gate/goodput_per_s"), 3_600.0 * (1_746.0 / 1_854.0) / 4.0, 0.01);
}

#[test]
fn the_table_says_the_same_as_the_document() {
    let arguments = ["predict", "--mu2", "1800/s", "--offered", "100/s,2k/s", "--flood", "1k/s"];
    let table = model(&arguments);
    assert_eq!(table.status.code(), Some(0), "{}", table.stderr);
    let document = said(&arguments);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(
        lines[0].starts_with("mu1 200 000/s, mu2 1 800/s, K 4 097, T 1.00 s, deterministic"),
        "{lines:?}"
    );
    assert!(lines[2].ends_with("beside 1 000/s forged SYN"), "{lines:?}");
    let rows = &lines[lines.len() - 2..];
    for (row, line) in document["rows"].as_array().expect("rows").iter().zip(rows) {
        let figures: Vec<String> = line.split("  ").map(|cell| cell.trim().replace(' ', "")).collect();
        let figures: Vec<&String> = figures.iter().filter(|cell| !cell.is_empty()).collect();
        assert_eq!(*figures[0], format!("{:.0}", number(row, "/requests_per_s")));
        assert_eq!(*figures[1], format!("{:.0}", number(row, "/without_gate/goodput_per_s")));
        assert_eq!(*figures[6], format!("{:.0}", number(row, "/with_gate/goodput_per_s")));
    }
    let width = |line: &&str| line.chars().count();
    assert_eq!(width(&rows[0]), width(&rows[1]), "the columns stand below each other");
}

#[test]
fn without_a_list_the_loads_of_a_sweep_are_asked_for() {
    let document = said(&["predict", "--mu2", "1800/s"]);
    let capacity = number(&document, "/capacity_per_s");
    near(capacity, 1.0 / (1.0 / 1_800.0 + 1.0 / 200_000.0), 1e-9);
    let rows = document["rows"].as_array().expect("rows");
    near(number(&rows[0], "/requests_per_s"), capacity / 4.0, 1e-9);
    near(number(rows.last().expect("a row"), "/requests_per_s"), 20.0 * capacity, 1e-9);
}

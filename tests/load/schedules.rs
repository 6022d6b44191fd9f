//! Open loops: what is offered is what the schedule says, and times count from the intended start.

use std::time::Duration;

use serde_json::Value;
use staunch_tests::truth::{Plan, Stall, Truth};

use crate::generator::{WAYS, answers, count, ends, measure, truth};

#[test]
fn everything_on_the_schedule_is_offered() {
    let truth = truth();
    for io in WAYS {
        for words in [
            &["--rate", "500/s"][..],
            &["--rate", "500/s", "--no-keep-alive"],
            &["--rate", "500/s", "-t", "3"],
            &["--rate", "30000/m"],
            &["--rate", "250/s..750/s over 1s"],
            &["--rate", "200/s for 500ms, 800/s for 500ms"],
        ] {
            let url = truth.url("/ok");
            let run = [&[&url, "-d", "1s", "--io", io], words].concat();
            let document = measure(&run);
            let offered = count(&document, "offered");
            assert!((499..=501).contains(&offered), "{io} {words:?}: {offered}");
            assert_eq!(ends(&document), [("in_time", offered)], "{io} {words:?}");
        }
    }
}

#[test]
fn random_schedules_are_the_same_for_the_same_seed() {
    let truth = truth();
    for arrivals in ["poisson", "self-similar:0.8"] {
        let run = |seed: &str| {
            let url = truth.url("/ok");
            let document =
                measure(&[&url, "-d", "1s", "--rate", "500/s", "--arrivals", arrivals, "--seed", seed]);
            count(&document, "offered")
        };
        assert_eq!(run("7"), run("7"), "{arrivals}");
    }
}

#[test]
fn a_trace_is_followed() {
    let folder = staunch_tests::tree::Tree::new().expect("a folder");
    let path = folder.root().join("trace");
    std::fs::write(&path, "# three at once, one later\n0\n0\n0\n0.2\n").expect("a trace");
    let truth = truth();
    let document = measure(&[&truth.url("/ok"), "--trace", path.to_str().expect("a path")]);
    assert_eq!(ends(&document), [("in_time", 4)]);
    assert_eq!(truth.finish().requests_total(), 4);
}

/// A server that stops for half a second on purpose. A closed loop hardly notices: it asks less meanwhile. An
/// open loop has to show it in the times of all requests that were meant to start then.
#[test]
fn a_stall_is_not_omitted() {
    let stall = Stall { after: Duration::from_millis(700), length: Duration::from_millis(500) };
    for io in WAYS {
        let truth = Truth::start(Plan { stall: Some(stall), ..Plan::default() }).expect("a truth server");
        let document = measure(&[&truth.url("/ok"), "--rate", "400/s", "-d", "2s", "-t", "1", "--io", io]);
        assert_eq!(ends(&document), [("in_time", 800)], "{io}");
        assert!(!truth.finish().stalls.is_empty(), "{io}: it did not stall");
        // A quarter of the requests (500 of 2000 ms) waited, on average for half the stall.
        let (p90, max) = (latency_ms(&document, "p90"), latency_ms(&document, "max"));
        assert!(max >= 400.0 && p90 >= 150.0, "{io}: p90 {p90} ms, max {max} ms");
    }
}

/// A stall shows as well with a connection per request, which is begun whatever the server does.
#[test]
fn a_stall_with_a_connection_per_request() {
    let stall = Stall { after: Duration::from_millis(700), length: Duration::from_millis(500) };
    let truth = Truth::start(Plan { stall: Some(stall), ..Plan::default() }).expect("a truth server");
    let document = measure(&[&truth.url("/ok"), "--rate", "400/s", "-d", "2s", "--no-keep-alive"]);
    assert_eq!(ends(&document), [("in_time", 800)]);
    assert!(latency_ms(&document, "max") >= 400.0, "{document:#}");
}

/// A single server of known service time, offered three times what it can do: the answers in time are those
/// of the server, everything else is given up, and together they are what was offered.
#[test]
fn overload_adds_up() {
    for io in WAYS {
        for words in [&[][..], &["--no-keep-alive"]] {
            let plan = Plan { service_time: Duration::from_millis(5), workers: 1, ..Plan::default() };
            let truth = Truth::start(plan).expect("a truth server");
            let url = truth.url("/ok");
            let run =
                [&[&url, "--rate", "600/s", "-d", "2s", "--patience", "250ms", "--io", io], words].concat();
            let document = measure(&run);
            let (offered, in_time) = (count(&document, "offered"), count(&document, "in_time"));
            let timed_out = count(&document, "timed_out");
            // An answer that comes in the turn in which it would have been given up is late. A generator that
            // was held up for half of the patience does not send what it should have sent then.
            let (late, unsent) = (count(&document, "late"), count(&document, "unsent"));
            assert_eq!(offered, 1200, "{io} {words:?}");
            assert_eq!(in_time + late + timed_out + unsent, offered, "{io} {words:?}: {document:#}");
            assert!(in_time > 0 && timed_out > (offered - unsent) / 2, "{io} {words:?}: {document:#}");
            assert!(answers(&document, "200") <= truth.finish().answers_total(), "{io} {words:?}");
        }
    }
}

/// Kept connections run out: what cannot be begun is said, not queued.
#[test]
fn a_full_table_is_said_loudly() {
    let truth = truth();
    let document = measure(&[&truth.url("/delay/400ms"), "--rate", "200/s", "-d", "1s", "-c", "10"]);
    assert!(count(&document, "unsent") > 100, "{document:#}");
    assert!(document["warnings"].to_string().contains("SATURATED"), "{document:#}");
}

fn latency_ms(document: &Value, which: &str) -> f64 {
    document["latency_ms"][which].as_f64().unwrap_or_else(|| panic!("no {which} in {document:#}"))
}

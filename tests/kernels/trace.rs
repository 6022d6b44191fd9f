//! khttpd's trace points, and `staunch kernel trace` on kernels that have tracefs: what it shows, and what it
//! says where something is missing.

use std::path::PathBuf;

use serde_json::Value;

use crate::guest::{Guest, KHTTPD_MODES};
use crate::handover::process;
use crate::{is_possible, series_with_headers, series_with_modules};
use staunch_tests::process::{binary, is_installed};

/// Lines that `points.sh` must print in each mode. Three connections ask for three files each, one for a name
/// longer than an event has room for, and one is handed over.
const POINTS: [&str; 13] = [
    "off: 0",
    "accept: 5",
    "request: 10",
    "hit: 3",
    "miss: 7",
    "expire: 0",
    "close: 4",
    "leave: 1",
    "answers and wakes",
    "paths: 1 /0000000000000000000000000000000000000000000000 3 /a.txt 3 /big.bin 3 /no ",
    "one name",
    "off again: 0",
    "unloaded",
];

/// The JSON behind a word at the beginning of a line.
fn json(out: &str, word: &str) -> Value {
    let line = out.lines().find_map(|line| line.strip_prefix(word));
    let text = line.unwrap_or_else(|| panic!("no {word:?} in\n{out}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Asserts that a report names one thing as missing, which begins so, and has no function graph.
fn assert_missing(out: &str, word: &str, beginning: &str) {
    let report = json(out, word);
    let missing = report["missing"].as_array().expect("a list");
    assert!(
        missing.len() == 1 && missing[0].as_str().is_some_and(|what| what.starts_with(beginning)),
        "{word} {beginning}: {out}"
    );
    assert!(report["graph"].is_null(), "{out}");
}

/// Asserts that the report in mode `softirq` lacks nothing.
fn assert_whole(out: &str) {
    let report = json(out, "softirq: ");
    assert_eq!(
        (&report["mode"], &report["missing"]),
        (&"softirq".into(), &Value::Array(Vec::new())),
        "{out}"
    );
    assert!(count(&report["answered"]) > 0, "{out}");
    for event in ["accept", "wake", "request", "hit", "miss", "answer", "close"] {
        assert!(count(&report["events"][event]) > 0, "{event}: {out}");
    }
    let graph = &report["graph"];
    assert!(count(&graph["requests"]) > 0, "{out}");
    assert!(graph["typical"].as_array().is_some_and(|calls| calls.len() > 1), "{out}");
    let shares = graph["shares"].as_array().expect("shares");
    let whole: f64 = shares.iter().filter_map(|share| share[1].as_f64()).sum();
    assert!((whole - 1.0).abs() < 1e-6, "{shares:?}");
}

/// For `make soak`: reports for people about a module, which no server waits for.
mod in_depth {
    use super::*;

    #[test]
    fn trace_points_tell_what_khttpd_does() {
        if !is_possible() {
            return;
        }
        for series in series_with_modules("6.1") {
            let guest = Guest { series, modules: &["khttpd"], programs: &[process()], words: &[] };
            let said = guest.say(include_str!("points.sh"));
            for mode in KHTTPD_MODES {
                said.has_all(&format!("{mode} "), &POINTS);
            }
            said.has("expired: head");
            said.has("the instance is gone");
        }
    }

    #[test]
    fn requests_are_traced_under_each_kernel() {
        if !is_possible() || !is_installed("setpriv") {
            return;
        }
        for series in series_with_headers("6.12") {
            let programs = [binary(), PathBuf::from("/usr/bin/setpriv")];
            let guest = Guest { series, modules: &["khttpd"], programs: &programs, words: &[] };
            let said = guest.say(include_str!("trace.sh"));
            let out = said.out.as_str();
            said.has("told: 3 staunch: khttpd is not loaded: `staunch kernel load --root DIR` loads it");
            assert!(out.contains("told: 1 staunch: tracefs is not mounted: mount -t tracefs"), "{said}");
            // A user who may not read tracefs, and one who may read it and not write.
            assert_eq!(
                said.count("told: 77 staunch: tracefs is not for this user: try as root"),
                2,
                "{said}"
            );
            said.has_all("", &["1", "all is as before", "all is as before, again"]);
            assert_eq!((said.count("ended: 0"), said.count("unloaded")), (2, 2), "{said}");

            assert_whole(out);
            assert_missing(out, "signal: ", "the function graph: a signal came before it");
            assert_missing(out, "without: ", "khttpd was unloaded meanwhile");
            assert_missing(
                out,
                "kthread: ",
                "the function graph: somebody traces already (current_tracer is function",
            );
            assert_missing(
                out,
                "event: ",
                "the function graph: somebody traces already (set_event is khttpd:khttpd_hit",
            );
            let threads = json(out, "kthread: ")["threads"].clone();
            assert!(
                threads
                    .as_array()
                    .expect("threads")
                    .iter()
                    .any(|thread| { thread["name"] == "khttpd" && count(&thread["switches"]) > 0 }),
                "{out}"
            );
            assert!(out.contains("khttpd in mode kthread, watched for"), "{out}");
            let theirs =
                "missing: the function graph: somebody traces already (set_graph_function is khttpd_serve";
            assert!(out.contains(theirs), "{out}");
            said.has("khttpd_serve [khttpd]");
        }
    }
}

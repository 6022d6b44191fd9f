//! Runs the generator and reads what it says.
//!
//! It must never judge but what every run has to hold: the accounts add up.

use std::process::Command;

use serde_json::Value;
use staunch_tests::process::{Finished, binary, finish};
use staunch_tests::truth::{Plan, Truth};

/// Both ways to the network.
pub(crate) const WAYS: [&str; 2] = ["uring", "epoll"];

/// Every end a request can have.
const ENDS: [&str; 9] =
    ["in_time", "late", "refused", "reset", "wrong_answer", "timed_out", "failed", "unsent", "unfinished"];

/// A truth server on a free port.
pub(crate) fn truth() -> Truth {
    Truth::start(Plan::default()).expect("a truth server")
}

/// `staunch load` with these words.
pub(crate) fn load(arguments: &[&str]) -> Finished {
    finish(Command::new(binary()).arg("load").args(arguments))
}

/// A run that goes well, as the JSON it wrote.
pub(crate) fn measure(arguments: &[&str]) -> Value {
    measure_to(0, arguments)
}

/// A run that ends with this exit code, as the JSON it wrote.
pub(crate) fn measure_to(code: i32, arguments: &[&str]) -> Value {
    let finished = load(&[arguments, &["--json", "-", "--quiet"]].concat());
    assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.stderr);
    document(&finished.stdout)
}

/// The JSON of a run, whose accounts add up.
pub(crate) fn document(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let sum: u64 = ENDS.iter().map(|end| count(&document, end)).sum();
    assert_eq!(sum, count(&document, "offered"), "{document:#}");
    for lane in document["lanes"].as_array().expect("lanes") {
        let sum: u64 = ENDS.iter().map(|end| count(lane, end)).sum();
        assert_eq!(sum, count(lane, "offered"), "{lane:#}");
    }
    document
}

/// A count of a document or of a lane in it.
pub(crate) fn count(document: &Value, name: &str) -> u64 {
    document[name].as_u64().unwrap_or_else(|| panic!("no {name} in {document:#}"))
}

/// How many answers had this status.
pub(crate) fn answers(document: &Value, status: &str) -> u64 {
    document["statuses"][status].as_u64().unwrap_or(0)
}

/// The counts that are not 0, without those that say how much was begun.
pub(crate) fn ends(document: &Value) -> Vec<(&'static str, u64)> {
    ENDS.iter().map(|end| (*end, count(document, end))).filter(|end| end.1 > 0).collect()
}

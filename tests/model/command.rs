//! Runs the command and reads what it says; makes up what was measured.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use staunch_tests::process::{Finished, binary, finish};
use staunch_tests::tree::Tree;

/// `staunch model` with these words.
pub(crate) fn model(arguments: &[&str]) -> Finished {
    finish(Command::new(binary()).arg("model").args(arguments))
}

/// Runs `staunch model` with `--json`, and gives what it prints.
pub(crate) fn said(arguments: &[&str]) -> Value {
    let finished = model(&[arguments, &["--json"]].concat());
    assert_eq!(finished.status.code(), Some(0), "{arguments:?}: {}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stdout))
}

/// A number in a document.
pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {pointer} in {value:#}"))
}

/// Whether two figures are the same but for so small a part.
#[track_caller]
pub(crate) fn near(found: f64, expected: f64, part: f64) {
    assert!((found - expected).abs() <= part * expected.abs(), "{found}, not {expected}");
}

/// A folder of a test, with files.
pub(crate) struct Folder {
    tree: Tree,
}

impl Folder {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { tree: Tree::new().expect("a folder") }
    }

    /// The path of a file in it.
    pub(crate) fn at(&self, name: &str) -> String {
        let path: PathBuf = self.tree.root().join(name);
        path.to_str().expect("a path").to_owned()
    }

    /// Writes a file, and gives its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.at(name);
        fs::write(&path, content).expect("a file");
        path
    }

    /// Reads one.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// A host made up: short queue, patient clients, dear reception.
pub(crate) const HOST: [&str; 8] =
    ["--mu1", "20k/s", "--mu2", "1800/s", "--backlog", "128", "--patience", "1s"];

/// What the host shows, as a file of the gate's measurement: requests with and without the gate, and a flood.
pub(crate) fn made_up() -> String {
    let requests = "900/s,1440/s,1800/s,2160/s,2700/s,3600/s,5400/s,7200/s,9k/s";
    let rows = said(&[&["predict", "--offered", requests], &HOST[..]].concat());
    let side = |rows: &Value, gate: &str| -> Vec<Value> {
        let row = |row: &Value| {
            let shown = &row[gate];
            json!({
                "offered_per_s": row["requests_per_s"], "syn_per_s": row["syn_per_s"],
                "goodput_per_s": shown["goodput_per_s"], "p50_ms": shown["p50_ms"], "p99_ms": shown["p99_ms"],
            })
        };
        rows["rows"].as_array().expect("rows").iter().map(row).collect()
    };
    let floods = ["0/s", "2k/s", "4k/s", "8k/s", "16k/s"]
        .map(|flood| said(&[&["predict", "--offered", "1500/s", "--flood", flood], &HOST[..]].concat()));
    let flooded = |gate: &str| floods.iter().flat_map(|rows| side(rows, gate)).collect::<Vec<Value>>();
    json!({
        "servers": [{
            "name": "made up",
            "gate_off": side(&rows, "without_gate"), "gate_on": side(&rows, "with_gate"),
        }],
        "floods": [{
            "name": "made up", "gate_off": flooded("without_gate"), "gate_on": flooded("with_gate"),
        }],
    })
    .to_string()
}

//! REDbot, a linter of HTTP: no note of the level BAD on a file, an encoded file, a listing, a 404 or a
//! redirect.
//!
//! It is installed from PyPI into the target folder when it is not there.
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use staunch_tests::conversation::{Change, Content};
use staunch_tests::house::waiting::until;
use staunch_tests::tree::Tree;

use crate::outside::{is_installed, output_of, server_of};

/// The release that was looked at: another one may know other rules.
const RELEASE: &str = "redbot==2.7.1";

/// The program, installed on first use; `None` (or a failure in CI) when that is impossible.
fn redbot() -> Option<PathBuf> {
    if !is_installed("python3") {
        return None;
    }
    let test = std::env::current_exe().expect("the path of this test");
    let target = test.ancestors().nth(3).expect("the target folder");
    let folder = target.join("python");
    let program = folder.join("bin/redbot");
    if !program.exists() {
        let mut said = output_of(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let mut install = Command::new(folder.join("bin/pip"));
        if folder.join("bin/pip").exists() {
            said.push_str(&output_of(install.args(["install", "--quiet", RELEASE])));
        }
        if !program.exists() {
            assert!(
                !std::env::var("CI").is_ok_and(|value| value == "true"),
                "redbot cannot be installed: {said}"
            );
            println!("skipped: redbot cannot be installed: {said}");
            return None;
        }
    }
    Some(program)
}

/// All notes as (level, summary), subnotes included.
fn notes_in(value: &Value, notes: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            if let (Some(Value::String(level)), Some(summary)) = (fields.get("level"), fields.get("summary"))
            {
                notes.push((level.clone(), summary.to_string()));
            }
            fields.values().for_each(|value| notes_in(value, notes));
        }
        Value::Array(values) => values.iter().for_each(|value| notes_in(value, notes)),
        _ => {}
    }
}

fn check(program: &PathBuf, url: &str, status: u64) {
    let report = output_of(Command::new(program).args(["-o", "har", url]));
    let archive: Value =
        serde_json::from_str(&report).unwrap_or_else(|error| panic!("{url}: {error}: {report}"));
    assert_eq!(archive["log"]["entries"][0]["response"]["status"], status, "{url}: {report}");
    let mut notes = Vec::new();
    notes_in(&archive, &mut notes);
    assert!(!notes.is_empty(), "{url}: no notes at all: {report}");
    let bad: Vec<_> = notes.iter().filter(|(level, _)| level == "BAD").collect();
    assert!(bad.is_empty(), "{url}: {bad:#?}");
    for (level, summary) in notes.iter().filter(|(level, _)| level == "WARN") {
        println!("{url}: {level}: {summary}");
    }
}

#[test]
fn no_bad_note() {
    let Some(program) = redbot() else { return };
    let tree = Tree::with(&[]).expect("a tree");
    let content = Content::Repeat(2000, b"All rivers run into the sea; yet the sea is not full.\n".to_vec());
    tree.apply(&Change::File { path: "long.txt".to_owned(), content }).expect("written");
    let server = server_of(&tree, &["--listing", "on"]);
    let url = server.url();
    let address = server.address();
    until("the long text is prepared in gzip", || {
        let mut link = staunch_tests::body::SocketLink::connect(address).expect("a connection");
        link.send(b"GET /long.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
        crate::outside::receive(&mut link).expect("an answer").has("Content-Encoding")
    });
    for (path, status) in [
        ("/a.txt", 200),
        ("/", 200),
        ("/picture.png", 200),
        ("/long.txt", 200),
        ("/big.bin", 200),
        ("/bare/", 200),
        ("/nothing", 404),
        ("/sub", 301),
    ] {
        check(&program, &format!("{url}{path}"), status);
    }
}

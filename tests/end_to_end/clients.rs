//! Clients of other hands: curl, Python, Node and Perl fetch the same things, each in its own way.
use std::process::Command;

use staunch_tests::house::waiting::until;
use staunch_tests::tree::Tree;

use crate::outside::{ENGINES, is_installed, output_of, script, server_of};

/// What every client must have found right.
const CHECKS: [&str; 6] = ["html", "head", "range", "not_modified", "gzip", "reuse"];

fn run(program: &str, file: &str) {
    if !is_installed(program) {
        return;
    }
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io]);
        wait_for_gzip(&server.url());
        let mut command = Command::new(program);
        let text = output_of(command.arg(script(file)).arg(server.url()));
        let verdict =
            text.lines().rev().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let verdict = verdict.unwrap_or_else(|| panic!("{program} on {io} gave no verdict:\n{text}"));
        for check in CHECKS {
            assert_eq!(verdict[check], true, "{program} on {io}: {check} in {verdict}\n{text}");
        }
    }
}

/// Encodings are made in the background: waits until the page has its own.
fn wait_for_gzip(url: &str) {
    let address = url.trim_start_matches("http://").parse().expect("an address");
    until("the page is prepared in gzip", || {
        let mut link = staunch_tests::body::SocketLink::connect(address).expect("a connection");
        link.send(b"GET /page.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
        let response = crate::outside::receive(&mut link).expect("an answer");
        response.value("Content-Encoding").as_deref() == Some("gzip")
    });
}

#[test]
fn curl() {
    if is_installed("curl") {
        run("sh", "curl.sh");
    }
}

#[test]
fn python() {
    run("python3", "python.py");
}

#[test]
fn node() {
    run("node", "node.mjs");
}

#[test]
fn perl() {
    run("perl", "perl.pl");
}

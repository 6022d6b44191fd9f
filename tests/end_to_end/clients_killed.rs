//! Clients that are killed with signal 9 in every state: nothing of them stays, nobody else feels it.
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use staunch_tests::house::waiting::until;
use staunch_tests::process::Server;
use staunch_tests::tree::Tree;

use crate::outside::{ENGINES, get, is_installed, script, server_of, until_all_left};

const STATES: [&str; 8] = [
    "connected",
    "mid-head",
    "mid-body",
    "mid-chunk",
    "mid-response",
    "pipelined",
    "keep-alive",
    "half-closed",
];

/// A client process that has come to its state and stays there.
fn client_in(state: &str, server: &Server) -> Child {
    let mut client = Command::new("python3")
        .arg(script("stuck.py"))
        .args([state, &server.address().port().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut line = String::new();
    let stdout = client.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "ready", "the client in state {state}");
    client
}

#[test]
fn clients_are_killed_in_every_state() {
    if !is_installed("python3") {
        return;
    }
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let mut server = server_of(&tree, &["--io", io]);
        assert_eq!(get(server.address(), "/big.bin").expect("an answer").status, 200);
        until_all_left(&server, "a first client");
        let descriptors = server.descriptors();
        for state in STATES {
            let mut clients: Vec<Child> = (0..4).map(|_| client_in(state, &server)).collect();
            assert_eq!(
                get(server.address(), "/a.txt").expect("an answer").status,
                200,
                "{io}, beside {state}"
            );
            for client in &mut clients {
                client.kill().expect("our own child");
                client.wait().expect("our own child");
            }
            until_all_left(&server, &format!("{io}: clients killed in state {state}"));
            until(&format!("{io}: no descriptor is left of the clients killed in state {state}"), || {
                server.descriptors() <= descriptors
            });
            assert!(server.is_running(), "{io} after {state}");
            assert_eq!(
                get(server.address(), "/a.txt").expect("an answer").status,
                200,
                "{io}, after {state}"
            );
        }
    }
}

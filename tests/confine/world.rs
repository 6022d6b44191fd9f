//! What these tests need: a served folder with its surroundings, a server's own words, the kernel's about it.
//!
//! It must never hide what a kernel lacks: what is skipped says so.
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use staunch_tests::body::SocketLink;
use staunch_tests::process::Server;
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// The program that confines itself.
pub(crate) fn confined() -> PathBuf {
    env!("CARGO_BIN_EXE_confined").into()
}

/// The standard tree, in a folder of its own.
pub(crate) fn tree() -> Tree {
    Tree::with(&[]).expect("a tree")
}

/// Whether the kernel can do all that `--sandbox on` demands; if not, it is said.
pub(crate) fn is_whole() -> bool {
    let tree = tree();
    let log = tree.root().parent().expect("a folder").join("logs/log");
    std::fs::create_dir_all(log.parent().expect("a folder")).expect("a folder");
    let output = Command::new(confined()).args(["chain", "0", "-"]).args([tree.root(), &log]).output();
    let output = output.expect("our own program");
    if !output.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr).lines().nth(1).unwrap_or_default());
    }
    output.status.success()
}

/// Whether this is root, who alone can become another user; if not, it is said.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: only root can become another user");
    }
    root
}

/// A line of the kernel's status of each thread of a process, all of which must agree.
pub(crate) fn status(process: u32, name: &str) -> String {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    // Threads that end meanwhile have no status any more.
    let texts = threads.flatten().flat_map(|thread| std::fs::read_to_string(thread.path().join("status")));
    let mut values: Vec<String> = texts.map(|text| value_in(&text, name)).collect();
    values.dedup();
    assert_eq!(values.len(), 1, "threads differ in {name}: {values:?}");
    values.remove(0)
}

fn value_in(text: &str, name: &str) -> String {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = value.unwrap_or_else(|| panic!("no {name} in:\n{text}"));
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line of the start-up block by its first word, without it.
pub(crate) fn said(server: &Server, word: &str) -> String {
    let start = Instant::now();
    loop {
        for line in server.said() {
            if let Some(rest) = line.trim_start().strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
        assert!(start.elapsed() < PATIENCE, "no line `{word}` in the start-up block");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a GET on a connection of its own and gives status and body.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let mut link = SocketLink::connect(address).expect("a connection");
    link.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes());
    loop {
        if let Some((response, _)) = Response::read(link.received(), false).expect("an answer") {
            return (response.status, response.body);
        }
        assert!(link.fill(PATIENCE), "no answer for {path}");
    }
}

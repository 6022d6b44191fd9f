//! slowhttptest in its four modes, with honest requests beside it that must all be answered.

use std::process::{Command, Stdio};
use std::time::Duration;

use staunch_tests::tree::Tree;

use crate::outside::{ENGINES, get, is_installed, server_of, until_all_left};

fn attack(mode: &str, more: &[&str]) {
    if !is_installed("slowhttptest") {
        return;
    }
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let deadlines = ["--header-timeout", "2s", "--body-timeout", "2s", "--send-timeout", "2s"];
        let mut server = server_of(&tree, &[&["--io", io][..], &deadlines].concat());
        let mut attacker = Command::new("slowhttptest")
            .args([mode, "-c", "300", "-r", "300", "-i", "1", "-l", "4", "-p", "3"])
            .args(more)
            .args(["-u", &format!("{}/big.bin", server.url())])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("slowhttptest runs");
        staunch_tests::house::waiting::until(&format!("{io} {mode}: the attack begins"), || {
            !server.connections().is_empty() || attacker.try_wait().is_ok_and(|status| status.is_some())
        });
        while attacker.try_wait().expect("our own child").is_none() {
            let response =
                get(server.address(), "/a.txt").unwrap_or_else(|error| panic!("{io} {mode}: {error}"));
            assert_eq!(response.status, 200, "{io} {mode}");
            std::thread::sleep(Duration::from_millis(50));
        }
        until_all_left(&server, &format!("{io}, attack {mode}"));
        assert!(server.is_running(), "{io} {mode}");
    }
}

#[test]
fn slow_heads() {
    attack("-H", &[]);
}

#[test]
fn slow_bodies() {
    attack("-B", &["-s", "8192", "-t", "POST"]);
}

#[test]
fn many_ranges() {
    attack("-R", &["-a", "0", "-b", "3000"]);
}

#[test]
fn slow_readers() {
    attack("-X", &["-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"]);
}

//! Slow lanes, idle ones, and several at the same time.
use serde_json::Value;
use staunch_tests::process::Server;
use staunch_tests::tree::Tree;

use crate::generator::{WAYS, answers, count, load, measure, truth};

fn server(arguments: &[&str]) -> (Tree, Server) {
    let tree = Tree::with(&[]).expect("a tree");
    let server = Server::start(tree.root(), arguments).expect("a server");
    (tree, server)
}

/// A server with deadlines answers 408 to a head that never ends.
#[test]
fn slow_heads_are_ended_by_the_server() {
    for io in WAYS {
        let (_tree, server) = server(&["--header-timeout", "1s"]);
        let url = server.url();
        let document =
            measure(&[&url, "--slow", "headers", "-c", "6", "-d", "3s", "--interval", "50ms", "--io", io]);
        assert!(answers(&document, "408") >= 6, "{io}: {document:#}");
        assert!(count(&document, "connections_made") > 6, "{io}: they are replaced: {document:#}");
    }
}

#[test]
fn slow_bodies_are_sent_whole() {
    let truth = truth();
    for io in WAYS {
        let url = truth.url("/echo");
        let document =
            measure(&[&url, "--slow", "body", "-c", "3", "-d", "1s", "--interval", "10ms", "--io", io]);
        assert_eq!(count(&document, "unfinished"), 3, "{io}: {document:#}");
        assert!(document["sent_bytes"].as_u64() > Some(100), "{io}: {document:#}");
    }
}

#[test]
fn slow_readers_take_their_time() {
    let truth = truth();
    for io in WAYS {
        let url = truth.url("/ok?bytes=5000000");
        let document =
            measure(&[&url, "--slow", "reader", "-c", "3", "-d", "2s", "--interval", "100ms", "--io", io]);
        let received = document["received_bytes"].as_u64().unwrap_or(0);
        // Three readers, at most some twenty reads of one buffer each.
        assert!(received > 0 && received < 3 * 40 * 65536, "{io}: {document:#}");
        assert_eq!(count(&document, "unfinished"), 3, "{io}: {document:#}");
    }
}

#[test]
fn lanes_beside_each_other_have_accounts_of_their_own() {
    let truth = truth();
    let document = measure(&[
        &truth.url("/ok"),
        "--rate",
        "200",
        "-d",
        "1",
        "--with",
        "closed:2",
        "--with",
        "slow-headers:3",
        "--with",
        "hold:4",
    ]);
    let lanes: Vec<&str> = document["lanes"].as_array().expect("lanes").iter().map(name).collect();
    assert_eq!(lanes, ["main", "closed:2", "slow-headers:3", "hold:4"]);
    assert_eq!(count(&document["lanes"][0], "in_time"), 200);
    assert!(count(&document["lanes"][1], "in_time") > 0);
    assert_eq!(count(&document["lanes"][2], "unfinished"), 3);
    assert_eq!(count(&document["lanes"][3], "connections_made"), 4);
    assert_eq!(count(&document["lanes"][3], "held"), 4);
    assert!(document["lanes"][0]["held"].is_null(), "{document:#}");
    // The top of the file, and the steps, are the main lane's.
    assert_eq!((count(&document, "offered"), count(&document, "in_time")), (200, 200));
    let steps = document["moments"]["counts"]["offered"].as_array().expect("steps");
    assert_eq!(steps.iter().filter_map(Value::as_u64).sum::<u64>(), 200);
}

#[test]
fn a_run_is_over_when_the_requests_of_its_main_lane_are() {
    let truth = truth();
    for io in WAYS {
        let beside = ["--with", "hold:4", "--with", "slow-headers:2", "--fail-if", "errors>0"];
        let document = measure(
            &[&[&truth.url("/ok"), "-n", "50", "-c", "2", "-t", "2", "--io", io], &beside[..]].concat(),
        );
        assert_eq!(count(&document, "in_time"), 50, "{io}");
        let of_lane = |lane: usize| document["lanes"][lane]["seconds"].as_f64().expect("seconds");
        assert!(of_lane(0) <= of_lane(1), "{io}: the others stood at least as long: {document:#}");
    }
}

/// Patience is that of people who wait for an answer. A slow client and a held connection stay.
#[test]
fn patience_ends_no_slow_client_beside_the_main_lane() {
    let truth = truth();
    let url = truth.url("/ok");
    let beside = ["--patience", "200ms", "--with", "slow-headers:3", "--with", "slow-body:2"];
    let document = measure(&[&[url.as_str(), "-c", "1", "-d", "1s"], &beside[..]].concat());
    for (lane, clients) in [(1, 3), (2, 2)] {
        let lane = &document["lanes"][lane];
        assert_eq!((count(lane, "timed_out"), count(lane, "unfinished")), (0, clients), "{lane:#}");
    }
    let own = measure(&[&url, "--slow", "headers", "-c", "3", "-d", "1s", "--patience", "200ms"]);
    assert!(count(&own, "timed_out") >= 3, "its own lane is about it: {own:#}");
}

#[test]
fn the_summary_tells_lanes_apart() {
    let truth = truth();
    let finished = load(&[&truth.url("/ok"), "-n", "30", "-c", "1", "--with", "hold:3", "--quiet"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let line = |name: &str| finished.stdout.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    assert!(line("offered").is_some_and(|line| line.contains("30 ")), "{}", finished.stdout);
    let held = line("hold:3").unwrap_or_else(|| panic!("no lane in {}", finished.stdout));
    assert_eq!(held.split_whitespace().collect::<Vec<_>>(), ["hold:3", "0", "0", "0", "0", "3", "-", "-"]);
}

fn name(lane: &Value) -> &str {
    lane["name"].as_str().expect("a name")
}

#[test]
fn connections_are_held() {
    for io in WAYS {
        let (_tree, server) = server(&["--keep-alive", "1h", "--header-timeout", "1h"]);
        let url = server.url();
        for first in [&[][..], &["--request-first"]] {
            let finished = load(
                &[
                    &["hold", &url, "-c", "700", "--for", "300ms", "--io", io, "--json", "-", "--quiet"],
                    first,
                ]
                .concat(),
            );
            assert_eq!(finished.status.code(), Some(0), "{io}: {}", finished.stderr);
            let held: Value = serde_json::from_str(&finished.stdout).expect("JSON");
            assert_eq!((count(&held, "held"), count(&held, "ended")), (700, 0), "{io}: {held:#}");
        }
    }
}

/// The server answers 503 to connections that are too many and closes them, or closes idle ones for them.
/// They are made again, and however often that happens, no more are held than the server keeps.
#[test]
fn a_server_that_keeps_fewer_is_found_out() {
    for io in WAYS {
        let (_tree, server) =
            server(&["--keep-alive", "1h", "--header-timeout", "1h", "--max-connections", "50"]);
        let url = server.url();
        let hold = ["hold", &url, "-c", "200", "-d", "2s", "--request-first", "--io", io];
        let finished = load(&[&hold[..], &["--json", "-", "--quiet"]].concat());
        assert_eq!(finished.status.code(), Some(1), "{io}: {}", finished.stderr);
        let held: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        let count_held = count(&held, "held");
        // What the server has just closed may still be held here: twice what it keeps is no accident.
        assert!((1..100).contains(&count_held), "{io}: {held:#}");
        assert!(held["seconds"].is_null() && count(&held, "made") > 50, "{io}: {held:#}");
        let words = format!("only {count_held} of 200 connections were held at the end");
        assert!(finished.stderr.contains(&words), "{io}: {}", finished.stderr);
        let line = format!("held      {count_held} of 200 connections, never all; ");
        assert!(finished.stderr.contains(&line), "{io}: {}", finished.stderr);
    }
}

#[test]
fn classes_are_asked_for_by_weight() {
    let tree = Tree::new().expect("a folder");
    let folder = tree.root().to_str().expect("a path").to_owned();
    assert!(load(&["webstone-files", &folder]).status.success());
    let server = Server::start(tree.root(), &[]).expect("a server");
    let document = measure(&[&server.url(), "--webstone", "-n", "2000", "-c", "8"]);
    assert_eq!(count(&document, "in_time"), 2000);
}

/// A rate that says how long each step lasts needs no duration.
#[test]
fn steps_and_ramps_last_as_long_as_they_say() {
    let truth = truth();
    for (rate, offered) in [("100/s for 300ms, 50/s for 200ms", 40), ("40/s..80/s over 500ms", 30)] {
        let document = measure(&[&truth.url("/ok"), "--rate", rate]);
        assert_eq!(document["seconds"], 0.5, "{rate}");
        let more_or_fewer = count(&document, "offered").abs_diff(offered);
        assert!(more_or_fewer <= 1, "{rate}: {offered} and {more_or_fewer}");
    }
}

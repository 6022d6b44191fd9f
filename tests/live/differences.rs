//! Polled values as differences to those that clients have (RFC 9842).

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use staunch_dictionary::{Hash, apply};
use staunch_tests::house::waiting::until;
use staunch_tests::process::is_installed;
use staunch_tests::tree::Tree;

use crate::restart::metric;
use crate::store::{Store, end};
use crate::world::{ENGINES, Reply, World, ask_host, connect, publisher};

const TOPICS: &str = "live_topic = [{ match = \"told.>\", dictionary = true, ring = 4 }]";
const ORIGINS: &str = "live_origins = [\"https://page.example\"]";
const ACCEPT: &str = "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz\r\n";

/// A report of a match with so many lines, the last one first.
fn report(lines: usize) -> String {
    (0..lines)
        .rev()
        .map(|minute| format!("{minute}' A long pass drifts out with current {minute}.\n"))
        .collect()
}

/// Field lines of a client that has a value.
fn having(value: &str) -> String {
    format!("{ACCEPT}Available-Dictionary: {}\r\n", Hash::of(value.as_bytes()).to_field())
}

fn poll(world: &World, path: &str, lines: &str) -> Reply {
    ask_host("localhost", world.address(), "GET", path, lines, b"")
}

fn is_difference(reply: &Reply) -> bool {
    reply.field("content-encoding") == Some("dcz")
}

/// A poll that is answered by the difference to what the client has: also the first, which waits for it.
fn poll_difference(world: &World, path: &str, lines: &str) -> Reply {
    let reply = poll(world, path, lines);
    assert!(is_difference(&reply), "{path} {lines}: {reply:?}");
    reply
}

#[test]
fn a_poll_brings_what_is_new() {
    for io in ENGINES {
        let world = World::with_settings(io, &["--admin", "127.0.0.1:0"], TOPICS);
        let (before, now) = (report(150), report(151));
        world.put("told.a", &before);
        let first = poll(&world, "/live/told.a", ACCEPT);
        assert_eq!(first.field("use-as-dictionary"), Some("match=\"/live/told.a\""), "{io}");
        assert_eq!(first.field("vary"), Some("Accept-Encoding, Available-Dictionary"), "{io}");
        assert_eq!(first.field("cache-control"), Some("max-age=0, stale-while-revalidate=60"), "{io}");
        world.put("told.a", &now);
        let reply = poll_difference(&world, "/live/told.a", &having(&before));
        assert!(reply.body.len() < 150, "{io}: {} bytes", reply.body.len());
        let decoded = apply(before.as_bytes(), &reply.body, now.len()).expect("a difference");
        assert_eq!(String::from_utf8_lossy(&decoded), now, "{io}");
        assert_eq!(reply.field("use-as-dictionary"), first.field("use-as-dictionary"), "{io}");
        assert_eq!(reply.field("vary"), first.field("vary"), "{io}");
        let tag = reply.field("etag").expect("a tag").to_owned();
        // Conditions and HEAD as without.
        let known = format!("{}If-None-Match: {tag}\r\n", having(&before));
        let unchanged = poll(&world, "/live/told.a", &known);
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{io}");
        assert_eq!(unchanged.field("vary"), first.field("vary"), "{io}");
        let lines = having(&before);
        let head = ask_host("localhost", world.address(), "HEAD", "/live/told.a", &lines, b"");
        assert_eq!((head.status, head.body.len()), (200, 0), "{io}");
        assert!(is_difference(&head) && head.field("etag") == Some(&*tag), "{io}");
        // A poll that waits gets one as well.
        let waited = format!("/live/told.a?after={}", first.field("etag").expect("a tag").trim_matches('"'));
        assert!(is_difference(&poll(&world, &waited, &lines)), "{io}");
        // To who publishes, the tag of a difference names the version.
        let condition = format!("{}If-Match: {tag}\r\n", publisher("text/plain"));
        let taken = world.ask("PUT", "/topics/told.a", &condition, report(152).as_bytes());
        assert_eq!(taken.status, 200, "{io}: {taken:?}");
        let admin = world.server.admin_address();
        let count = |name: &str| metric(admin, &format!("staunch_dictionary_{name}_total{{kind=\"live\"}}"));
        assert!(count("asked") >= count("answered") && count("answered") >= 3, "{io}");
        assert_eq!(count("unknown"), 0, "{io}");
        assert!(count("saved_bytes") > 0, "{io}");
    }
}

/// Clients with any version of the ring get the value, and those with older ones as without.
#[test]
fn every_version_that_the_ring_holds_is_known() {
    for io in ENGINES {
        let world = World::with_settings(io, &["--admin", "127.0.0.1:0"], TOPICS);
        (100..106).for_each(|lines| world.put("told.a", &report(lines)));
        let now = report(105);
        for lines in 102..106 {
            let reply = poll_difference(&world, "/live/told.a", &having(&report(lines)));
            let decoded = apply(report(lines).as_bytes(), &reply.body, now.len());
            assert_eq!(decoded.as_deref(), Some(now.as_bytes()), "{io} {lines}");
        }
        let admin = world.server.admin_address();
        let unknown = || metric(admin, "staunch_dictionary_unknown_total{kind=\"live\"}");
        assert_eq!(unknown(), 0, "{io}");
        for value in [report(101), "never published".to_owned()] {
            let reply = poll(&world, "/live/told.a", &having(&value));
            assert!(!is_difference(&reply) && reply.status == 200, "{io}");
        }
        assert_eq!(unknown(), 2, "{io}");
    }
}

/// A poll does not wait for the difference of a long value: the first get it whole.
#[test]
fn a_long_value_is_told_as_a_difference_once_it_was_made() {
    for io in ENGINES {
        let settings = format!("{TOPICS}\nlive_value_size = \"4MiB\"");
        let world = World::with_settings(io, &[], &settings);
        let (before, now) = (report(2000), report(2001));
        [&before, &now].into_iter().for_each(|value| world.put("told.a", value));
        let whole = poll(&world, "/live/told.a", &having(&before));
        assert_eq!((whole.status, whole.body.len()), (200, now.len()), "{io}");
        let mut body = Vec::new();
        until("the difference", || {
            let reply = poll(&world, "/live/told.a", &having(&before));
            let is_there = is_difference(&reply);
            body = reply.body;
            is_there
        });
        assert_eq!(apply(before.as_bytes(), &body, now.len()).as_deref(), Some(now.as_bytes()), "{io}");
        // Longer than differences are made of, and shorter: it is not offered as a dictionary.
        for value in [report(40_000), "short".to_owned()] {
            world.put("told.a", &value);
            let reply = poll(&world, "/live/told.a", &having(&now));
            assert_eq!((reply.status, reply.field("use-as-dictionary")), (200, None), "{io}");
            assert!(!is_difference(&reply), "{io}");
        }
    }
}

/// Clients that may not have a difference get the answer of a request that says nothing of dictionaries.
#[test]
fn nobody_gets_a_difference_that_may_not_have_it() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], &format!("{TOPICS}\n{ORIGINS}"));
        let (before, now) = (report(150), report(151));
        for topic in ["told.a", "untold"] {
            [&before, &now].into_iter().for_each(|value| world.put(topic, value));
        }
        let own = having(&before);
        poll_difference(&world, "/live/told.a", &own);
        let hash = own.strip_prefix(ACCEPT).expect("behind it");
        let page = "Origin: https://page.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n";
        let other = page.replace("page.example", "other.example");
        for (host, path, lines) in [
            ("localhost", "/live/untold", own.clone()),
            ("example.org", "/live/told.a", own.clone()),
            ("localhost", "/live/told.a", hash.to_owned()),
            ("localhost", "/live/told.a", format!("Accept-Encoding: dcz;q=0, gzip\r\n{hash}")),
            ("localhost", "/live/told.a", format!("Accept-Encoding: *\r\n{hash}")),
            ("localhost", "/live/told.a", format!("Accept-Encoding: dcb\r\n{hash}")),
            ("localhost", "/live/told.a", format!("{own}{hash}")),
            ("localhost", "/live/told.a", format!("{ACCEPT}Available-Dictionary: :AAAA:\r\n")),
            (
                "localhost",
                "/live/told.a",
                format!("{own}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"),
            ),
            ("localhost", "/live/told.a", format!("{own}{other}")),
        ] {
            let reply = ask_host(host, world.address(), "GET", path, &lines, b"");
            assert_eq!(reply.status, 200, "{io} {host} {path} {lines}");
            assert!(!is_difference(&reply), "{io} {host} {path} {lines}");
        }
        // A page that may read the answer may have it as a difference.
        let reply = poll(&world, "/live/told.a", &format!("{own}{page}"));
        assert!(is_difference(&reply), "{io}: {reply:?}");
        // To HTTP/1.0 as to anybody.
        let mut stream = connect(world.address());
        let head = format!("GET /live/told.a HTTP/1.0\r\nHost: localhost\r\n{own}\r\n");
        stream.write_all(head.as_bytes()).expect("a server that reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        assert!(answer.windows(21).any(|part| part == b"Content-Encoding: dcz"), "{io}");
    }
}

/// A private value between public ones is told neither as a difference nor as what one leads from.
#[test]
fn what_is_private_is_no_dictionary() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], TOPICS);
        let (secret, now) = (report(150), report(151));
        let lines = publisher("application/json");
        let body = |value: &str, private: bool| {
            serde_json::json!({ "topic": "told.a", "data": value, "private": private }).to_string()
        };
        let token = publisher("text/plain");
        let publish = |value: &str, private: bool| {
            let taken = world.ask("POST", "/publish", &lines, body(value, private).as_bytes());
            assert_eq!(taken.status, 200, "{io}: {taken:?}");
            poll(&world, "/live/told.a", &token).text()
        };
        let (secret, held) = (publish(&secret, true), publish(&now, false));
        assert!(!is_difference(&poll(&world, "/live/told.a", &having(&secret))), "{io}");
        // Another that may be told is made behind it: what was asked before would be there.
        poll_difference(&world, "/live/told.a", &having(&held));
        assert!(!is_difference(&poll(&world, "/live/told.a", &having(&secret))), "{io}");
        publish(&report(152), true);
        for _ in 0..2 {
            let reply = poll(&world, "/live/told.a", &format!("{token}{}", having(&held)));
            assert_eq!((reply.status, reply.field("use-as-dictionary")), (200, None), "{io}");
            assert!(!is_difference(&reply), "{io}");
        }
    }
}

#[test]
fn after_a_restart_what_was_kept_is_known() {
    for io in ENGINES {
        for is_kept in [false, true] {
            let store = Store::new();
            let folder = store.path().to_str().expect("a name of ours");
            let state = ["--live-state", folder];
            let words: &[&str] = if is_kept { &state } else { &[] };
            let serve = || World::with_settings(io, words, TOPICS);
            let world = serve();
            let (before, now) = (report(150), report(151));
            world.put("told.a", &before);
            end(world, Signal::TERM);
            let world = serve();
            world.put("told.a", &now);
            match is_kept {
                true => drop(poll_difference(&world, "/live/told.a", &having(&before))),
                false => {
                    // Twice: what the client has is not known, however often it asks.
                    for _ in 0..2 {
                        let reply = poll(&world, "/live/told.a", &having(&before));
                        assert!(!is_difference(&reply) && reply.status == 200, "{io}");
                    }
                }
            }
        }
    }
}

/// A decoder of another hand: `zstd -D`.
#[test]
fn the_program_zstd_reads_a_difference() {
    if !is_installed("zstd") {
        return;
    }
    let world = World::with_settings(ENGINES[1], &[], TOPICS);
    let tree = Tree::with(&[]).expect("a folder");
    for (before, now) in [(150, 151), (20, 300), (300, 20)].map(|(before, now)| (report(before), report(now)))
    {
        [&before, &now].into_iter().for_each(|value| world.put("told.a", value));
        let reply = poll_difference(&world, "/live/told.a", &having(&before));
        let file = tree.root().join("before");
        std::fs::write(&file, &before).expect("a file of ours");
        let mut zstd = Command::new("zstd");
        zstd.args(["-d", "-c", "-D"]).arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = zstd.spawn().expect("zstd");
        child.stdin.take().expect("a pipe").write_all(&reply.body).expect("zstd reads");
        let output = child.wait_with_output().expect("zstd ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), now);
    }
}

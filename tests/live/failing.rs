//! What goes wrong: readers that stall, too many of them, publishers without a right, bodies that break off,
//! a server that dies, and one that ends.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::process::Command;

use rustix::process::Signal;
use staunch_tests::house::waiting::until;

use crate::world::{ENGINES, TOKEN, World, connect, publisher};

#[test]
fn a_reader_that_stalls_delays_nobody_and_is_closed() {
    for io in ENGINES {
        let world = World::new(io, &["--send-timeout", "1s", "--live-value-size", "1MiB"]);
        let stalled = world.read("topic=a", "").begin();
        let mut reading = world.read("topic=a&plain=1", "").begin();
        // Far more than the kernel takes for a reader that does not read.
        for number in 0..40 {
            let value = format!("{number} {}", "x".repeat(1_000_000));
            world.put("a", &value);
            let came = reading.data();
            assert!(came == value, "{io}: update {number}");
        }
        // The stalled reader is closed for want of progress: what the kernel took can be read, then it ends.
        until("one reader is left", || world.has_readers("a", 1));
        let mut stream = stalled.stream;
        let (mut total, mut piece) = (0, vec![0; 1 << 20]);
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            total += count;
        }
        assert!(total < 40_000_000, "{io}: {total} bytes were kept for a reader");
    }
}

#[test]
fn a_slow_reader_of_values_gets_the_last_one() {
    for io in ENGINES {
        let world = World::new(io, &["--live-value-size", "1MiB"]);
        let mut slow = world.read("topic=a&plain=1", "").begin();
        let updates = 60;
        for number in 0..updates {
            world.put("a", &format!("{number:03}{}", "x".repeat(200_000)));
        }
        let (mut came, mut last) = (0, -1);
        while last < updates - 1 {
            let number: i32 = slow.data()[..3].parse().expect("a number");
            assert!(number > last, "{io}: {number} after {last}");
            (came, last) = (came + 1, number);
        }
        assert!(came < updates, "{io}: outdated values are skipped, {came} came");
    }
}

#[test]
fn beyond_the_most_readers_a_newcomer_is_sent_away_and_files_are_served() {
    for io in ENGINES {
        let world = World::new(io, &["--live-connections", "4"]);
        let mut readers = Vec::new();
        let refused = loop {
            let events = world.read("topic=a", "");
            if events.status != 200 {
                break events;
            }
            readers.push(events);
            assert!(readers.len() <= 4, "{io}: more than allowed");
        };
        assert_eq!(refused.status, 503);
        let away = refused.head.lines().find_map(|line| line.strip_prefix("Retry-After: "));
        let away_s: u64 = away.and_then(|away| away.parse().ok()).expect("when to come back");
        assert!((1..=30).contains(&away_s));
        assert_eq!(world.ask("GET", "/a.txt", "", b"").status, 200);
        readers.clear();
        until("there is room again", || world.read("topic=a", "").status == 200);
    }
}

#[test]
fn a_body_that_breaks_off_publishes_nothing_of_its_last_line() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut feed = connect(world.address());
        let lines = publisher("application/x-ndjson");
        let head = format!("POST /publish HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n{lines}\r\n");
        let chunk = "{\"topic\":\"a\",\"data\":\"whole\"}\n{\"topic\":\"a\",\"data\":\"half\"";
        feed.write_all(format!("{head}{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes()).unwrap();
        let mut bytes = Vec::new();
        while !String::from_utf8_lossy(&bytes).contains("\"line\":1,") {
            let mut piece = [0; 1024];
            let count = feed.read(&mut piece).expect("an answer");
            assert!(count > 0, "{}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&piece[..count]);
        }
        feed.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        feed.read_to_end(&mut rest).unwrap();
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{io}: the answer is not told to be whole");
        assert_eq!(world.ask("GET", "/live/a", "", b"").text(), "whole");
    }
}

#[test]
fn a_feed_is_worked_off_as_it_comes() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut events = world.read("topic=a&plain=1", "").begin();
        let mut feed = connect(world.address());
        let lines = publisher("application/x-ndjson");
        let head = format!("POST /publish HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n{lines}\r\n");
        feed.write_all(head.as_bytes()).unwrap();
        for number in 0..50 {
            let line = format!("{{\"topic\":\"a\",\"data\":\"{number}\"}}\n");
            let (one, other) = line.split_at(number % line.len());
            for piece in [one, other].into_iter().filter(|piece| !piece.is_empty()) {
                feed.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).unwrap();
            }
            assert_eq!(events.data(), number.to_string(), "{io}");
        }
    }
}

#[test]
fn who_may_not_publish_changes_nothing() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let body = br#"{"topic":"a","data":1}"#;
        let json = "Content-Type: application/json\r\n";
        let wrong = TOKEN.replace('0', "1");
        for (lines, status) in [
            (json.to_owned(), 401),
            (format!("{json}Authorization: Bearer {wrong}\r\n"), 401),
            (format!("{json}Authorization: Bearer {TOKEN}x\r\n"), 401),
            (format!("{json}Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}\r\n"), 401),
        ] {
            assert_eq!(world.ask("POST", "/publish", &lines, body).status, status, "{lines}");
        }
        assert_eq!(world.ask("GET", "/live/a", "", b"").status, 404);
        world.publish(r#"{"topic":"a","data":1}"#);
    }
}

#[test]
fn readers_of_a_server_that_died_get_a_snapshot_of_its_successor() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("a", "before");
        let mut events = world.read("topic=a&plain=1", "");
        assert_eq!(events.data(), "before");
        let id = events.last_id().to_owned();
        world.signal(Signal::KILL);
        let mut piece = [0; 1024];
        assert!(matches!(events.stream.read(&mut piece), Ok(0) | Err(_)), "the stream is cut");
        let successor = World::new(io, &[]);
        successor.put("a", "after");
        let mut events = successor.read("topic=a&plain=1", &format!("Last-Event-ID: {id}\r\n"));
        assert_eq!(events.data(), "after", "{io}: a number of another epoch says nothing");
    }
}

#[test]
fn a_server_that_ends_ends_its_streams_in_an_orderly_way() {
    for io in ENGINES {
        let mut world = World::new(io, &["--drain-timeout", "20s"]);
        let mut readers: Vec<_> = (0..10).map(|_| world.read("topic=a", "").begin()).collect();
        world.signal(Signal::TERM);
        for reader in &mut readers {
            assert!(reader.next().is_none(), "{io}: the last chunk comes");
        }
        drop(readers);
        assert!(world.server.end().is_some_and(|status| status.success()), "{io}");
    }
}

#[test]
fn what_cannot_be_is_told_at_the_start() {
    for (arguments, told) in [
        (&["--publish-token", "short"][..], "--publish-token"),
        (&["--publish-token-file", "/nonexistent/token"], "publish_token_file: /nonexistent/token:"),
        (&["--live-connections", "2000000000"], "live_connections"),
        (&["--live-value-size", "1GiB"], "--live-value-size"),
    ] {
        let world = staunch_tests::tree::Tree::with(&[]).expect("a tree");
        let mut command = Command::new(staunch_tests::process::binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--live", "on"]).args(arguments).arg(world.root());
        let finished = staunch_tests::process::finish(&mut command);
        assert!(!finished.status.success() && finished.stderr.contains(told), "{told}: {}", finished.stderr);
    }
}

//! What readers get: snapshots, updates, what they lacked.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;

use staunch_tests::house::waiting::until;

use crate::world::{ENGINES, World, ask, publisher};

#[test]
fn a_reader_gets_the_value_and_then_each_update() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.publish(r#"{"topic":"a","data":{"n":1}}"#);
        let mut events = world.read("topic=a&topic=b.*", "").begin();
        assert!(events.head.contains("Content-Type: text/event-stream\r\n"), "{}", events.head);
        let retry_ms = events.retry_ms().expect("when to come back");
        assert!((1_000..5_000).contains(&retry_ms), "{retry_ms}");
        assert_eq!(events.data(), r#"{"topic":"a","data":{"n":1}}"#);
        world.put("b.c", "text \"quoted\"");
        assert_eq!(events.data(), r#"{"topic":"b.c","data":"text \"quoted\""}"#);
        world.publish(r#"{"topic":["a","b.x"],"data":2,"type":"score","id":"mine"}"#);
        let both = events.next().expect("an event");
        assert_eq!((both.kind.as_str(), both.last_id.as_str()), ("score", "mine"));
        assert_eq!(both.data, r#"{"topic":"a","data":2}"#);
        world.put("other", "unseen");
        let answer = world.ask("DELETE", "/topics/a", &publisher("text/plain"), b"");
        assert_eq!(answer.status, 200);
        assert_eq!(events.data(), r#"{"topic":"a","data":null,"deleted":true}"#, "several topics came once");
    }
}

#[test]
fn a_reader_is_counted_while_it_reads() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let readers = |expected: u64| {
            until("so many readers are counted", || {
                let lines = publisher("application/json");
                let answer = world.ask("POST", "/publish", &lines, br#"{"topic":"a","data":1}"#);
                answer.text().contains(&format!("\"readers\":{expected}}}"))
            });
        };
        readers(0);
        let first = world.read("topic=a", "").begin();
        let second = world.read("topic=*", "").begin();
        readers(2);
        drop(first);
        readers(1);
        drop(second);
        readers(0);
    }
}

#[test]
fn a_reader_that_comes_back_lacks_nothing_and_gets_nothing_twice() {
    let log = "live_topic = [{ match = \"l.*\", kind = \"log\", ring = 8 }]";
    for io in ENGINES {
        let world = World::with_settings(io, &[], log);
        let mut events = world.read("topic=l.*&plain=1", "").begin();
        world.put("l.a", "1");
        world.put("l.b", "2");
        assert_eq!([events.data(), events.data()], ["1", "2"]);
        let id = events.last_id().to_owned();
        drop(events);
        (3..=6).for_each(|number| world.put("l.a", &number.to_string()));
        let mut events = world.read("topic=l.*&plain=1", &format!("Last-Event-ID: {id}\r\n"));
        let came: Vec<String> = (3..=6).map(|_| events.data()).collect();
        assert_eq!(came, ["3", "4", "5", "6"]);
        // Its ring has eight: of twenty more it is told how many are gone.
        let id = events.last_id().to_owned();
        drop(events);
        (7..=26).for_each(|number| world.put("l.a", &number.to_string()));
        let id = id.replace('#', "%23");
        let mut events = world.read(&format!("topic=l.*&plain=1&last-event-id={id}"), "");
        let gap = events.next().expect("a mark");
        assert_eq!((gap.kind.as_str(), gap.data.as_str()), ("gap", r#"{"topic":"l.a","missed":12}"#));
        let came: Vec<String> = (19..=26).map(|_| events.data()).collect();
        assert_eq!(came, (19..=26).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn an_unknown_id_gets_a_snapshot_and_never_silence() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("a", "value");
        let long = "x".repeat(4096);
        for id in ["not-ours", "1f-7", &long, "#1-1"] {
            let mut events = world.read("topic=a&plain=1", &format!("Last-Event-ID: {id}\r\n"));
            assert_eq!(events.data(), "value");
        }
        let mut events = world.read("topic=a&plain=1&from=now", "").begin();
        world.put("a", "next");
        assert_eq!(events.data(), "next", "and no snapshot before it");
    }
}

#[test]
fn every_reader_of_both_workers_gets_every_update_of_a_log() {
    const READERS: usize = 60;
    const UPDATES: usize = 50;
    let log = "live_topic = [{ match = \"log\", kind = \"log\", ring = 1000 }]";
    for io in ENGINES {
        let world = World::with_settings(io, &[], log);
        let query =
            |number: usize| ["topic=log&plain=1", "topic=*&plain=1", "topic=log&topic=x&plain=1"][number % 3];
        let mut readers: Vec<_> = (0..READERS).map(|number| world.read(query(number), "").begin()).collect();
        let lines: String =
            (0..UPDATES).map(|number| format!("{{\"topic\":\"log\",\"data\":\"{number}\"}}\n")).collect();
        let answer = world.ask("POST", "/publish", &publisher("application/x-ndjson"), lines.as_bytes());
        assert_eq!(answer.text().lines().count(), UPDATES, "{}", answer.text());
        for reader in &mut readers {
            let came: Vec<String> = (0..UPDATES).map(|_| reader.data()).collect();
            assert_eq!(came, (0..UPDATES).map(|number| number.to_string()).collect::<Vec<_>>());
        }
    }
}

/// A reader is given the latest value whenever it has taken the one before: values ascend, and the last one
/// always comes.
#[test]
fn every_reader_gets_the_last_update_of_a_flood() {
    const READERS: usize = 40;
    const UPDATES: u32 = 3000;
    for io in ENGINES {
        let world = World::new(io, &[]);
        let query = |number: usize| ["topic=a&plain=1", "topic=*&plain=1", "topic=a"][number % 3];
        let mut readers: Vec<_> = (0..READERS).map(|number| world.read(query(number), "").begin()).collect();
        let lines: String =
            (1..=UPDATES).map(|number| format!("{{\"topic\":\"a\",\"data\":{number}}}\n")).collect();
        let answer =
            world.ask("POST", "/publish?quiet", &publisher("application/x-ndjson"), lines.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        for reader in &mut readers {
            let mut before = 0;
            while before < UPDATES {
                let data = reader.data();
                let digits = data.trim_start_matches("{\"topic\":\"a\",\"data\":").trim_end_matches('}');
                let number: u32 = digits.parse().unwrap_or_else(|_| panic!("{io}: {data}"));
                assert!(number > before, "{io}: {number} came after {before}");
                before = number;
            }
        }
        world.put("a", "again");
        readers.iter_mut().for_each(|reader| assert!(reader.data().contains("again"), "{io}"));
    }
}

#[test]
fn a_list_of_quotes_shows_each_change() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("quotes.b", "same");
        for number in 0..50 {
            world.put("quotes.a", &number.to_string());
            let expected = format!("var a=\"{number}\";\nvar b=\"same\";\nvar c=\"\";\n");
            // Workers hear of it one after the other.
            until("the list shows it", || {
                let text = world.ask("GET", "/list=a,b,c", "", b"").text();
                assert!(text.lines().count() == 3 && text.contains("var b=\"same\";\n"), "{io}: {text}");
                text == expected
            });
            let json = format!("{{\"a\":\"{number}\",\"b\":\"same\",\"c\":null}}\n");
            until("the quotes show it", || world.ask("GET", "/quotes?symbols=a,b,c", "", b"").text() == json);
        }
    }
}

#[test]
fn a_poll_finds_what_was_published_at_whichever_worker() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        for number in 0..200 {
            world.put("a", &number.to_string());
            let answer = world.ask("GET", "/live/a", "", b"");
            assert_eq!(answer.text(), number.to_string(), "{io}");
        }
    }
}

#[test]
fn a_long_poll_waits_for_the_next_update_or_its_time() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let version = world.publish(r#"{"topic":"a","data":"one"}"#);
        let old = world.ask("GET", "/live/a?after=1-0", "", b"");
        assert_eq!((old.status, old.text()), (200, "one".to_owned()), "of another epoch");
        let path = format!("/live/a?after={version}");
        let address = world.address();
        std::thread::scope(|scope| {
            let polls: Vec<_> =
                (0..20).map(|_| scope.spawn(|| ask(address, "GET", &path, "", b""))).collect();
            let lines = publisher("application/json");
            until("they wait", || {
                let answer = world.ask("POST", "/publish", &lines, br#"{"topic":"other","data":1}"#);
                assert_eq!(answer.status, 200);
                let answer = world.ask("POST", "/publish", &lines, br#"{"topic":"a","data":"two"}"#);
                answer.text().contains("\"readers\":") && !answer.text().contains("\"readers\":0}")
                    || polls.iter().all(|poll| poll.is_finished())
            });
            for poll in polls {
                let answer = poll.join().expect("a poll");
                assert_eq!((answer.status, answer.text()), (200, "two".to_owned()), "{io}");
            }
        });
        let version = world.publish(r#"{"topic":"a","data":"three"}"#);
        let answer = world.ask("GET", &format!("/live/a?after={version}&wait=1"), "", b"");
        assert_eq!(answer.status, 204, "{io}");
        let tag = answer.field("etag").expect("where it is").trim_matches('"').to_owned();
        world.publish(r#"{"topic":"a","data":"four"}"#);
        let answer = world.ask("GET", &format!("/live/a?after={tag}"), "", b"");
        assert_eq!(answer.text(), "four");
        assert_eq!(world.ask("GET", "/live/a?after=x&wait=y", "", b"").status, 400);
    }
}

#[test]
fn a_long_value_is_compressed_for_those_who_ask_again() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let value = "a line of a long value\n".repeat(400);
        world.put("a", &value);
        until("a coding was made", || {
            let answer = world.ask("GET", "/live/a", "Accept-Encoding: zstd\r\n", b"");
            let Some(coding) = answer.field("content-encoding") else { return false };
            assert_eq!(coding, "zstd");
            assert!(answer.field("etag").is_some_and(|tag| tag.ends_with("-zstd\"")), "{answer:?}");
            zstd::stream::decode_all(&answer.body[..]).expect("zstd") == value.as_bytes()
        });
        assert_eq!(world.ask("GET", "/live/a", "", b"").text(), value);
    }
}

#[test]
fn http_1_0_gets_events_without_chunks() {
    use std::io::{Read as _, Write as _};
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("a", "value");
        let mut stream = crate::world::connect(world.address());
        stream.write_all(b"GET /events?topic=a&plain=1 HTTP/1.0\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"data: value\n\n") {
            let mut piece = [0; 1024];
            let count = stream.read(&mut piece).expect("an event");
            assert!(count > 0, "{}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&piece[..count]);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains("Connection: close\r\n") && !text.contains("chunked"), "{text}");
    }
}

#[test]
fn updates_held_back_are_delivered_when_their_time_has_come() {
    let rules = "live_topic = [{ match = \"a\", every = \"200ms\" }]";
    for io in ENGINES {
        let world = World::with_settings(io, &[], rules);
        let mut events = world.read("topic=a&plain=1", "").begin();
        let lines = publisher("text/plain");
        for number in 0..20 {
            let status = world.ask("PUT", "/topics/a", &lines, number.to_string().as_bytes()).status;
            assert!(status == 200 || status == 202, "{status}");
        }
        let mut last = events.data();
        let mut count = 1;
        while last != "19" {
            last = events.data();
            count += 1;
        }
        assert!(count <= 20, "the latest wins, and always comes");
    }
}

/// What a reader sends behind its request is thrown away, so that its end is heard; 64 KiB of it and no more.
#[test]
fn what_a_reader_sends_is_thrown_away() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut events = world.read("topic=a&plain=1", "").begin();
        let mut sent = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        sent.resize(64 * 1024, b'x');
        events.stream.write_all(&sent).expect("a server that reads");
        world.put("a", "1");
        assert_eq!(events.data(), "1", "{io}");
        events.stream.write_all(b"x").expect("a server that reads");
        assert!(events.next().is_none(), "{io}: it was too much");
        assert_eq!(events.stream.read(&mut [0]).expect("an end"), 0, "{io}: no other answer follows");
        let mut events = world.read("topic=b&plain=1", "").begin();
        events.stream.write_all(&sent).expect("a server that reads");
        events.stream.shutdown(Shutdown::Write).expect("a connection");
        assert!(events.next().is_none(), "{io}: it is taken for gone");
    }
}

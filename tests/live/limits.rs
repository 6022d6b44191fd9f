//! Limits and odd requests: what is refused is told by its status and by the setting that it meets.

use std::io::{Read as _, Write as _};

use staunch_tests::house::waiting::until;
use staunch_tests::process::binary;

use crate::world::{ENGINES, TOKEN, World, connect, publisher};

#[test]
fn a_batch_is_bounded_in_lines_and_bytes() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let lines = publisher("application/x-ndjson");
        let batch = |count| "{\"topic\":\"a\"}\n".repeat(count);
        let most = world.ask("POST", "/publish?quiet", &lines, batch(10_000).as_bytes());
        assert_eq!(most.status, 200, "{io}: {most:?}");
        let more = world.ask("POST", "/publish?quiet", &lines, batch(10_001).as_bytes());
        assert_eq!(more.status, 413, "{io}: {more:?}");
        // Where the length is told, the answer comes before the body.
        let mut stream = connect(world.address());
        let head =
            format!("POST /publish?quiet HTTP/1.1\r\nHost: a\r\nContent-Length: 8388609\r\n{lines}\r\n");
        stream.write_all(head.as_bytes()).expect("a server that reads");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 413", "{io}");
    }
}

#[test]
fn names_and_expectations_that_cannot_be_are_refused() {
    let world = World::new("epoll", &[]);
    let put = |length| {
        let path = format!("/topics/{}", "x".repeat(length));
        world.ask("PUT", &path, &publisher("text/plain"), b"1")
    };
    assert_eq!(put(256).status, 200);
    let refused = put(257);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text().contains("a topic's name"), "{refused:?}");
    let lines = format!("{}Expect: something\r\n", publisher("application/json"));
    assert_eq!(world.ask("POST", "/publish", &lines, br#"{"topic":"a"}"#).status, 417);
}

#[test]
fn full_memory_is_named_and_what_is_there_goes_on() {
    for io in ENGINES {
        let world = World::new(io, &["--live-memory", "64KiB"]);
        let put = |topic: &str, count: usize| {
            let path = format!("/topics/{topic}");
            world.ask("PUT", &path, &publisher("text/plain"), &vec![b'x'; count])
        };
        let mut count = 0;
        let refused = loop {
            let answer = put(&format!("t{count}"), 8000);
            if answer.status != 200 {
                break answer;
            }
            count += 1;
        };
        assert!((4..9).contains(&count), "{io}: {count}");
        assert_eq!(refused.status, 503, "{io}: {refused:?}");
        assert!(refused.text().contains("values fill what `live_memory` allows"), "{refused:?}");
        assert_eq!(put("t0", 8000).status, 200, "{io}: no longer than the one before");
        let mut events = world.read("topic=t1&plain=1", "");
        assert_eq!(events.data().len(), 8000, "{io}");
    }
}

#[test]
fn a_file_that_an_endpoint_hides_is_named() {
    let world = World::of_file(&binary(), "epoll", &[], |root| {
        std::fs::write(format!("{root}/events"), "a file").expect("a file of ours");
        format!("root = \"{root}\"\nlive = true\npublish_token = \"{TOKEN}\"\n")
    });
    let world = world.unwrap_or_else(|fault| panic!("{fault}"));
    let mut said = Vec::new();
    until("it is said", || {
        said.extend(world.server.said());
        said.iter().any(|line| line.contains("/events is an endpoint, the file of that name is not served"))
    });
    assert_eq!(world.ask("GET", "/events", "", b"").status, 400, "the endpoint answers");
}

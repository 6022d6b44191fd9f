//! Limits and odd requests: what is refused is told by its status and by the setting that it meets.

use std::io::{Read as _, Write as _};

use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, write_program};

use crate::line::Line;
use crate::restart::metric;
use crate::store::Store;
use crate::world::{ENGINES, TOKEN, World, ask, connect, publisher};

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

#[test]
fn a_body_that_comes_too_slowly_publishes_nothing() {
    for io in ENGINES {
        let world = World::new(io, &["--body-timeout", "1s"]);
        let lines = publisher("application/json");
        for (method, path) in [("PUT", "/topics/a"), ("POST", "/publish")] {
            let mut stream = connect(world.address());
            let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n{lines}\r\n");
            stream.write_all(head.as_bytes()).expect("a server that reads");
            stream.write_all(br#"{"topic":"a"}"#).expect("a server that reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer, and an end");
            assert!(answer.starts_with("HTTP/1.1 408 "), "{io}: {answer}");
            assert_eq!(world.ask("GET", "/live/a", "", b"").status, 404, "{io}");
        }
    }
}

/// Publications wait while a new program has begun and does not serve; as many as the queue takes.
#[test]
fn a_full_queue_is_told_and_what_waits_in_it_is_published() {
    let folder = Store::new();
    let [program, begun, go, new] = ["server", "begun", "go", "new"].map(|name| folder.path().join(name));
    write_program(&program, &std::fs::read(binary()).expect("the program"), 0o755);
    // A busy machine may take longer to read so many lines than requests have patience.
    let arguments = ["--sandbox", "off", "--admin", "127.0.0.1:0", "--patience", "off"];
    let line = Line::begin(&program, "epoll", "memory", &arguments);
    let script = format!(
        "#!/bin/sh\n: > {}\nwhile [ ! -e {} ]; do sleep 0.01; done\nexit 7\n",
        begun.display(),
        go.display()
    );
    write_program(&new, script.as_bytes(), 0o755);
    std::fs::rename(&new, &program).expect("a replacement");
    line.signal();
    until("the program has begun", || begun.exists());
    let batch = "{\"topic\":\"a\"}\n".repeat(10_000);
    let (address, admin) = (line.world.address(), line.world.server.admin_address());
    let ask = |body: &str| {
        ask(address, "POST", "/publish?quiet", &publisher("application/x-ndjson"), body.as_bytes())
    };
    std::thread::scope(|scope| {
        let waiting = [(); 7].map(|()| scope.spawn(|| ask(&batch)));
        until("the queue is full", || metric(admin, "staunch_live_queue_updates") >= 65_536);
        let refused = ask(&batch);
        assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")), "{refused:?}");
        assert!(refused.text().contains("too many updates wait to be published"), "{refused:?}");
        std::fs::write(&go, "").expect("a file of ours");
        let published = waiting.map(|waiting| waiting.join().expect("an answer").status);
        assert_eq!(published, [200; 7]);
    });
}

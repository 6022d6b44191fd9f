//! Servers that are taken over by another process (USR2): the numbering goes on, and readers come back to
//! where they were.
//!
//! It must never leave a process behind.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use rustix::process::Signal;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, write_program};

use crate::channels::recover;
use crate::line::Line;
use crate::socket::TestSocket;
use crate::store::{Store, parts, value};
use crate::world::{ENGINES, Events, World, ask, publisher};

/// Publishes JSON after an upgrade, and gives the version. A connection may still come to the former process,
/// which answers 503: then it is sent again.
fn publish_to_successor(world: &World, body: &str) -> String {
    let mut version = None;
    until("the successor takes it", || {
        let answer = world.ask("POST", "/publish", &publisher("application/json"), body.as_bytes());
        assert!(matches!(answer.status, 200 | 503), "{body}: {answer:?}");
        version = answer
            .field("etag")
            .filter(|_| answer.status == 200)
            .map(|etag| etag.trim_matches('"').to_owned());
        version.is_some()
    });
    version.expect("a version")
}

#[test]
fn the_numbering_goes_on_and_readers_recover() {
    for io in ENGINES {
        for sync in ["always", "interval", "off", "memory"] {
            let line = Line::begin(&binary(), io, sync, &[]);
            let world = &line.world;
            let epoch = parts(&world.publish(r#"{"topic":"log.a","data":0}"#)).0;
            world.put("v", "kept");
            let mut number = 2;
            for round in 1..3 {
                let told = format!("{io} {sync}, round {round}");
                let mut events = world.read("topic=log.*&plain=1&from=now", "").begin();
                let mut socket = TestSocket::connect(world.address(), "/ws", "");
                let begun = socket.subscribe("log.a", "");
                assert_eq!(begun["epoch"], epoch, "{told}");
                world.publish(&format!("{{\"topic\":\"log.a\",\"data\":{round}}}"));
                number += 1;
                assert_eq!(events.data(), round.to_string(), "{told}");
                let (_, came) = socket.push();
                assert_eq!((&came["data"], &came["offset"]), (&round.into(), &number.into()), "{told}");
                line.upgrade();
                assert_eq!(value(world, "v"), ("kept".to_owned(), 2), "{told}");
                let next = publish_to_successor(world, r#"{"topic":"log.a","data":"meanwhile"}"#);
                let offset = number;
                number += 1;
                assert_eq!(parts(&next), (epoch.clone(), number), "{told}");
                // The former process sends its readers away.
                assert!(events.next().is_none(), "{told}");
                assert_eq!(socket.close_code(), Some(1001), "{told}");
                let resumed = format!("Last-Event-ID: {}\r\n", events.last_id());
                let mut events = world.read("topic=log.*&plain=1", &resumed);
                assert_eq!(events.data(), "meanwhile", "{told}");
                let mut socket = TestSocket::connect(world.address(), "/ws", "");
                assert!(recover(&mut socket, "log.a", &begun["epoch"], offset), "{told}");
                let (_, came) = socket.push();
                assert_eq!((&came["data"], &came["offset"]), (&"meanwhile".into(), &number.into()), "{told}");
            }
            assert!(!line.said().contains("cannot be kept"), "{io} {sync}: {}", line.said());
        }
    }
}

/// Publishes 1, 2, 3 and so on to a topic until `is_over`, the same number again after a 503. Gives the
/// version of each number; `count` is how many there are.
fn publish_until(address: SocketAddr, topic: &str, is_over: &AtomicBool, count: &AtomicUsize) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    while !is_over.load(Relaxed) {
        let body = (versions.len() + 1).to_string();
        let path = format!("/topics/{topic}");
        let lines = publisher("application/json");
        let answer = ask(address, "PUT", &path, &lines, body.as_bytes());
        match answer.status {
            200 => {
                versions.push(answer.field("etag").expect("a version").to_owned());
                count.store(versions.len(), Relaxed);
            }
            _ => assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")), "{answer:?}"),
        }
    }
    versions
}

/// Sets the flag that ends the publishers on drop, so also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_and_no_number_is_used_twice() {
    for (io, sync) in ENGINES.into_iter().flat_map(|io| [(io, "always"), (io, "memory")]) {
        let line = Line::begin(&binary(), io, sync, &[]);
        let epoch = parts(&line.world.publish(r#"{"topic":"a","data":0}"#)).0;
        let is_over = AtomicBool::new(false);
        let names = ["t0", "t1", "t2"];
        let counts = [const { AtomicUsize::new(0) }; 3];
        let published = thread::scope(|scope| {
            let (address, over) = (line.world.address(), Over(&is_over));
            let publishers: Vec<_> = names
                .iter()
                .zip(&counts)
                .map(|(name, count)| {
                    let is_over = over.0;
                    scope.spawn(move || publish_until(address, name, is_over, count))
                })
                .collect();
            for _ in 0..4 {
                let before = counts.each_ref().map(|count| count.load(Relaxed));
                line.upgrade();
                let goes_on = |(count, before): (&AtomicUsize, &usize)| count.load(Relaxed) > *before;
                until("each publisher goes on", || counts.iter().zip(&before).all(goes_on));
            }
            drop(over);
            let published = publishers.into_iter().map(|publisher| publisher.join().expect("a publisher"));
            published.collect::<Vec<_>>()
        });
        for (name, versions) in names.iter().zip(&published) {
            let last = parts(versions.last().expect("something was published")).1;
            assert_eq!(value(&line.world, name), (versions.len().to_string(), last), "{io}");
        }
        let all: Vec<_> = published.iter().flatten().map(|version| parts(version)).collect();
        assert!(all.iter().all(|(own, _)| *own == epoch), "{io}: one epoch");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{io}: each number once");
    }
}

/// The new program fails after a second: until then publications wait, those that `every` holds back too, and
/// then the former process publishes them.
#[test]
fn a_program_that_does_not_serve_gives_the_store_back() {
    for (io, sync) in ENGINES.into_iter().flat_map(|io| [(io, "always"), (io, "memory")]) {
        let folder = Store::new();
        let [program, begun, new] = ["server", "begun", "new"].map(|name| folder.path().join(name));
        write_program(&program, &std::fs::read(binary()).expect("the program"), 0o755);
        // The broken program is a shell script, and a confined server may not run the shell.
        let line = Line::begin(&program, io, sync, &["--sandbox", "off"]);
        let script = format!("#!/bin/sh\n: > {}\nsleep 1\nexit 7\n", begun.display());
        write_program(&new, script.as_bytes(), 0o755);
        std::fs::rename(&new, &program).expect("a replacement");
        let epoch = parts(&line.world.publish(r#"{"topic":"slow.a","data":1}"#)).0;
        let lines = publisher("application/json");
        let held = line.world.ask("PUT", "/topics/slow.a", &lines, b"2");
        assert_eq!(held.status, 202, "{held:?}");
        line.signal();
        until("the program has begun", || begun.exists());
        let waited = line.world.publish(r#"{"topic":"v","data":1}"#);
        assert_eq!(parts(&waited).0, epoch, "{io}");
        until("it failed", || line.said().contains("this process goes on"));
        until("what was held back is published", || value(&line.world, "slow.a").0 == "2");
        assert!(!line.said().contains("cannot be kept"), "{io}: {}", line.said());
        if sync == "memory" {
            assert_eq!(parts(&line.world.publish(r#"{"topic":"v","data":2}"#)), (epoch, 4), "{io}");
            continue;
        }
        let store = line.kill();
        let world = store.serve(io, "always");
        let next = world.publish(r#"{"topic":"v","data":2}"#);
        assert_eq!(parts(&next), (epoch, 4), "{io}");
        assert_eq!(value(&world, "slow.a").0, "2", "{io}");
    }
}

/// Reads a log until a value came, over as many servers as it takes: who is sent away comes back with the id
/// of its last event. Gives all values.
fn read_over_upgrades(address: SocketAddr, last: &str) -> Vec<String> {
    let read = |id: &str| {
        let resumed = if id.is_empty() { String::new() } else { format!("Last-Event-ID: {id}\r\n") };
        Events::open(address, "a", "/events?topic=long&plain=1", &resumed)
    };
    let (mut events, mut values) = (read(""), Vec::<String>::new());
    while values.last().is_none_or(|value| value != last) {
        match events.next() {
            Some(event) => values.push(event.data),
            None => events = read(events.last_id()),
        }
    }
    values
}

/// As `read_over_upgrades`, by WebSockets that recover.
fn listen_over_upgrades(address: SocketAddr, last: u64) -> Vec<u64> {
    let mut socket = TestSocket::connect(address, "/ws", "");
    let epoch = socket.subscribe("long", "")["epoch"].clone();
    let (mut values, mut offset) = (Vec::new(), 0);
    while values.last() != Some(&last) {
        let Some(came) = socket.next_push() else {
            socket = TestSocket::connect(address, "/ws", "");
            assert!(recover(&mut socket, "long", &epoch, offset), "after {offset}");
            continue;
        };
        values.push(came["data"].as_u64().expect("a number"));
        offset = came["offset"].as_u64().expect("an offset");
    }
    values
}

#[test]
fn readers_miss_nothing_over_upgrades_without_a_store() {
    for io in ENGINES {
        let settings = "live_topic = [{ match = \"long\", kind = \"log\", ring = 10000 }]";
        let line = Line::run(|_, own| World::run(&binary(), io, own, settings));
        let (address, rounds, count) = (line.world.address(), 3, 40);
        line.world.publish(r#"{"topic":"long","data":0}"#);
        let total: u64 = rounds * count;
        let expected: Vec<u64> = (0..=total).collect();
        let last = &total.to_string();
        thread::scope(|scope| {
            let streams = [(); 3].map(|()| scope.spawn(move || read_over_upgrades(address, last)));
            let sockets = [(); 3].map(|()| scope.spawn(move || listen_over_upgrades(address, total)));
            for round in 0..rounds {
                for number in 1..=count {
                    let body = format!("{{\"topic\":\"long\",\"data\":{}}}", round * count + number);
                    publish_to_successor(&line.world, &body);
                }
                line.upgrade();
            }
            for stream in streams {
                let values = stream.join().expect("a reader");
                let values: Vec<u64> = values.iter().map(|value| value.parse().expect("a number")).collect();
                assert_eq!(values, expected, "{io}");
            }
            for socket in sockets {
                let values = socket.join().expect("a reader");
                // A socket that subscribes late begins with the next update.
                assert!(expected.ends_with(&values) && values.len() > 1, "{io}: {values:?}");
            }
        });
    }
}

#[test]
fn ids_of_publishers_are_known_after_an_upgrade_without_a_store() {
    let line = Line::begin(&binary(), "epoll", "memory", &[]);
    line.world.publish(r#"{"topic":"log.a","data":1,"id":"urn:one"}"#);
    line.world.publish(r#"{"topic":"log.a","data":2,"id":"urn:two"}"#);
    line.upgrade();
    let mut events = line.world.read("topic=log.a&plain=1", "Last-Event-ID: urn:one\r\n");
    assert_eq!(events.data(), "2");
    assert_eq!(events.last_id(), "urn:two");
}

/// The former process is killed while it hands over more than a pair of sockets holds: the new one says so,
/// and does not serve a part.
#[test]
fn live_data_that_is_cut_off_is_not_served() {
    let folder = Store::new();
    let names = ["server", "real", "new", "begun", "go", "said"];
    let [program, real, new, begun, go, said] = names.map(|name| folder.path().join(name));
    for path in [&program, &real] {
        write_program(path, &std::fs::read(binary()).expect("the program"), 0o755);
    }
    let arguments = ["--sandbox", "off", "--live-value-size", "1MiB"];
    let line = Line::begin(&program, "epoll", "memory", &arguments);
    let script = format!(
        "#!/bin/sh\n: > {}\nwhile [ ! -e {} ]; do sleep 0.01; done\nexec {} \"$@\" 2> {}\n",
        begun.display(),
        go.display(),
        real.display(),
        said.display()
    );
    write_program(&new, script.as_bytes(), 0o755);
    std::fs::rename(&new, &program).expect("a replacement");
    ["a", "b", "c", "d"].iter().for_each(|topic| line.world.put(topic, &"x".repeat(1_000_000)));
    line.signal();
    until("the program has begun", || begun.exists());
    line.world.signal(Signal::KILL);
    std::fs::write(&go, "").expect("a file of ours");
    until("the new process says what happened", || {
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        said.contains("live data of the process before this one did not come as a whole")
    });
    until("nobody serves", || std::net::TcpStream::connect(line.world.address()).is_err());
}

//! Servers that are taken over by another process (USR2): the numbering goes on, and readers come back to
//! where they were.
//!
//! It must never leave a process behind.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, write_program};

use crate::channels::recover;
use crate::socket::TestSocket;
use crate::store::{Store, end, parts, value};
use crate::world::{ENGINES, World, ask, publisher};

/// A server with its store, and the processes that took over from it by upgrades; all are ended on drop.
pub(crate) struct Line {
    serving: Serving,
    pub(crate) world: World,
    pub(crate) store: Store,
}

/// The process that serves now, known by the file of its PID.
struct Serving {
    file: PathBuf,
    first: Pid,
}

impl Serving {
    fn process(&self) -> Option<Pid> {
        Pid::from_raw(std::fs::read_to_string(&self.file).ok()?.trim().parse().ok()?)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The first process is ended by `World`.
        if let Some(process) = self.process().filter(|process| *process != self.first) {
            let _ = kill_process(process, Signal::KILL);
            until("the successor is gone", || test_kill_process(process).is_err());
        }
    }
}

impl Line {
    pub(crate) fn begin(program: &Path, io: &str, sync: &str, arguments: &[&str]) -> Self {
        Self::run(|store, own| store.try_run(program, io, sync, &[own, arguments].concat()))
    }

    /// A server that is run with these arguments and maybe more.
    pub(crate) fn run(run: impl FnOnce(&Store, &[&str]) -> Result<World, String>) -> Self {
        let store = Store::new();
        let [file, log] = ["pid", "said"].map(|name| store.path().join(name));
        let names = [&file, &log].map(|path| path.to_str().expect("a name of ours"));
        let own = ["--pid-file", names[0], "--error-log", names[1], "--drain-timeout", "2s"];
        let world = run(&store, &own).unwrap_or_else(|fault| panic!("{fault}"));
        let number = i32::try_from(world.server.process_id()).expect("a number");
        let first = Pid::from_raw(number).expect("a process");
        Self { serving: Serving { file, first }, world, store }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.store.path().join("said")).unwrap_or_default()
    }

    fn signal(&self) -> Pid {
        let process = self.serving.process().expect("a process");
        kill_process(process, Signal::USR2).expect("a process of ours");
        process
    }

    pub(crate) fn upgrade(&self) {
        let before = self.signal();
        until("another process serves", || self.serving.process().is_some_and(|now| now != before));
    }
}

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
        for sync in ["always", "interval", "off"] {
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
/// version of each number.
fn publish_until(address: SocketAddr, topic: &str, is_over: &AtomicBool) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    while !is_over.load(Relaxed) {
        let body = (versions.len() + 1).to_string();
        let path = format!("/topics/{topic}");
        let lines = publisher("application/json");
        let answer = ask(address, "PUT", &path, &lines, body.as_bytes());
        match answer.status {
            200 => versions.push(answer.field("etag").expect("a version").to_owned()),
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
    for io in ENGINES {
        let line = Line::begin(&binary(), io, "always", &[]);
        let epoch = parts(&line.world.publish(r#"{"topic":"a","data":0}"#)).0;
        let is_over = AtomicBool::new(false);
        let names = ["t0", "t1", "t2"];
        let published = thread::scope(|scope| {
            let (address, over) = (line.world.address(), Over(&is_over));
            let publish = |name| {
                let is_over = over.0;
                scope.spawn(move || publish_until(address, name, is_over))
            };
            let publishers = names.map(publish);
            (0..4).for_each(|_| line.upgrade());
            drop(over);
            publishers.map(|publisher| publisher.join().expect("a publisher"))
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
    for io in ENGINES {
        let folder = Store::new();
        let [program, begun, new] = ["server", "begun", "new"].map(|name| folder.path().join(name));
        write_program(&program, &std::fs::read(binary()).expect("the program"), 0o755);
        // The broken program is a shell script, and a confined server may not run the shell.
        let line = Line::begin(&program, io, "always", &["--sandbox", "off"]);
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
        let Line { serving, world, store } = line;
        end(world, Signal::KILL);
        drop(serving);
        let world = store.serve(io, "always");
        let next = world.publish(r#"{"topic":"v","data":2}"#);
        assert_eq!(parts(&next), (epoch, 4), "{io}");
        assert_eq!(value(&world, "slow.a").0, "2", "{io}");
    }
}

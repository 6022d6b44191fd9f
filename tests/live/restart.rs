//! Servers that go on where one before them ended: after a restart, a kill, with a full disk.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use rustix::process::Signal;
use staunch_tests::house::skipping::skip;
use staunch_tests::house::waiting::until;

use crate::store::{Store, end, parts, value};
use crate::world::{ENGINES, World, ask_host, publisher};

#[test]
fn values_rings_and_the_numbering_survive() {
    for io in ENGINES {
        // `live_sync`, the signal that ends the server, and whether the numbering goes on after it.
        for (sync, signal, goes_on) in [
            ("always", Signal::KILL, true),
            ("interval", Signal::TERM, true),
            ("off", Signal::TERM, true),
            ("off", Signal::KILL, false),
        ] {
            let told = format!("{io} {sync} {signal:?}");
            let store = Store::new();
            let world = store.serve(io, sync);
            let first = world.publish(r#"{"topic":"log.a","data":0}"#);
            world.put("v", "kept");
            for number in 1..6 {
                world.publish(&format!("{{\"topic\":\"log.a\",\"data\":{number}}}"));
            }
            end(world, signal);
            let world = store.serve(io, sync);
            if !goes_on {
                let version = world.publish(r#"{"topic":"log.a","data":6}"#);
                assert_ne!(parts(&version).0, parts(&first).0, "{told}: a new epoch");
                continue;
            }
            assert_eq!(value(&world, "v"), ("kept".to_owned(), 2), "{told}");
            let resumed = format!("Last-Event-ID: #{first}\r\n");
            let mut events = world.read("topic=log.*&plain=1", &resumed);
            assert_eq!(events.data(), r#"{"topic":"log.a","missed":1,"at_least":true}"#, "{told}");
            for number in 3..6 {
                assert_eq!(events.data(), number.to_string(), "{told}");
            }
            let next = world.publish(r#"{"topic":"log.a","data":6}"#);
            assert_eq!(parts(&next), (parts(&first).0, 8), "{told}");
            assert_eq!(events.data(), "6", "{told}");
        }
    }
}

/// Has one publisher for each topic count up, and kills the server after `enough` publications. Each number
/// of `acknowledged` is the last one its publisher was told; publishers go on from there.
fn publish_until_it_is_killed(world: World, acknowledged: &[AtomicU64], enough: u64) {
    let address = world.address();
    let count = AtomicU64::new(0);
    thread::scope(|scope| {
        for (place, last) in acknowledged.iter().enumerate() {
            let count = &count;
            scope.spawn(move || {
                loop {
                    let next = last.load(Relaxed) + 1;
                    let path = format!("/topics/t{place}");
                    let put = std::panic::catch_unwind(|| {
                        let lines = publisher("application/json");
                        crate::world::ask(address, "PUT", &path, &lines, next.to_string().as_bytes()).status
                    });
                    match put {
                        Ok(200) => last.store(next, Relaxed),
                        _ => return,
                    }
                    count.fetch_add(1, Relaxed);
                }
            });
        }
        until("enough is published", || count.load(Relaxed) >= enough);
        end(world, Signal::KILL);
    });
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let seed: u64 = 27;
    let mut drawn = seed;
    for io in ENGINES {
        let store = Store::new();
        let acknowledged = [const { AtomicU64::new(0) }; 4];
        let mut numbers = 0;
        for round in 0..6 {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            publish_until_it_is_killed(store.serve(io, "always"), &acknowledged, 4 + (drawn >> 33) % 116);
            let world = store.serve(io, "always");
            for (place, last) in acknowledged.iter().enumerate() {
                let (text, number) = value(&world, &format!("t{place}"));
                let (kept, last_told) = (text.parse::<u64>().unwrap(), last.load(Relaxed));
                // A publication under way at the kill may be stored although its publisher was told nothing.
                let told = format!("{io}, seed {seed}, round {round}: told {last_told}, kept {kept}");
                assert!(kept == last_told || kept == last_told + 1, "{told}");
                last.store(kept, Relaxed);
                numbers = numbers.max(number);
            }
            let (_, next) = parts(&world.publish(r#"{"topic":"next","data":1}"#));
            assert!(next > numbers, "{io}: {next} after {numbers}");
            numbers = next;
            end(world, Signal::KILL);
        }
    }
}

/// What an operator sees of the store: batches that were kept, failures, and whether it fails now.
const STATE_METRICS: [&str; 3] =
    ["staunch_live_state_batches_total", "staunch_live_state_failures_total", "staunch_live_state_failing"];

/// The value of a metric at an admin address.
pub(crate) fn metric(admin: SocketAddr, name: &str) -> u64 {
    let text = ask_host(&admin.to_string(), admin, "GET", "/metrics", "", b"").text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    for io in ENGINES {
        let Some(store) = Store::mounted("size=4m") else { return };
        let ballast = store.path().join("ballast");
        std::fs::write(&ballast, vec![1; 1 << 20]).unwrap();
        let world = store.try_serve(io, "always", &["--admin", "127.0.0.1:0"]);
        let world = world.unwrap_or_else(|said| panic!("{said}"));
        let admin = world.server.admin_address();
        let state = || STATE_METRICS.map(|name| metric(admin, name));
        let mut acknowledged = Vec::new();
        let refused = loop {
            let topic = format!("t{}", acknowledged.len());
            let body = "x".repeat(20_000);
            let lines = publisher("text/plain");
            let answer = world.ask("PUT", &format!("/topics/{topic}"), &lines, body.as_bytes());
            match answer.status {
                200 => acknowledged.push(topic),
                _ => break answer,
            }
        };
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(refused.text().contains("cannot be kept"), "{refused:?}");
        let count = acknowledged.len();
        assert!(count > 5, "{io}: {count}");
        let [batches, failures, failing] = state();
        assert!(batches >= count as u64 && failures >= 1 && failing == 1, "{io}: {:?}", state());
        // Values can be read, but not the one that was refused.
        assert_eq!(value(&world, &acknowledged[count - 1]).1, count as u64);
        assert_eq!(world.ask("GET", &format!("/live/t{count}"), "", b"").status, 404);
        std::fs::remove_file(&ballast).unwrap();
        until("there is room again", || {
            let body = br#"{"topic":"after","data":1}"#;
            world.ask("POST", "/publish", &publisher("application/json"), body).status == 200
        });
        assert_eq!(state()[2], 0, "{io}");
        assert!(state()[0] > batches, "{io}");
        end(world, Signal::KILL);
        let world = store.serve(io, "always");
        for (place, topic) in acknowledged.iter().enumerate() {
            assert_eq!(value(&world, topic).1, place as u64 + 1, "{io}");
        }
        assert_eq!(value(&world, "after").0, "1");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_named() {
    let refused = |store: &Store, arguments: &[&str]| match store.try_serve("epoll", "always", arguments) {
        Ok(_) => panic!("it serves"),
        Err(said) => said,
    };
    let store = Store::new();
    let world = store.serve("epoll", "always");
    let said = refused(&store, &[]);
    assert!(said.contains("live.redb: another process has it open"), "{said}");
    end(world, Signal::TERM);
    std::fs::write(store.file(), vec![7; 9000]).unwrap();
    let world = store.serve("epoll", "always");
    world.publish(r#"{"topic":"a","data":1}"#);
    assert_eq!(std::fs::read(store.path().join("live.redb.damaged-1")).unwrap(), vec![7; 9000]);
    end(world, Signal::TERM);
    let missing = Store::new();
    std::fs::remove_dir(missing.path()).unwrap();
    let said = refused(&missing, &[]);
    assert!(said.contains("the folder has to exist"), "{said}");
    let served = Store::new();
    let root = served.path().parent().unwrap().to_str().unwrap();
    let said = refused(&served, &[root]);
    assert!(said.contains("which is served: name another folder"), "{said}");
    if let Some(fixed) = Store::mounted("size=1m,ro") {
        let said = refused(&fixed, &[]);
        assert!(said.contains("name a folder on a disk that can be written"), "{said}");
    }
    if rustix::process::geteuid().is_root() {
        let store = Store::new();
        let said = refused(&store, &["--user", "nobody"]);
        let remedy = format!("chown -R USER {}", store.path().display());
        assert!(said.contains(&remedy), "{said}");
    }
}

#[test]
fn a_confined_server_of_an_ordinary_user_keeps_its_state() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can become another user");
        return;
    }
    for io in ENGINES {
        let store = Store::new();
        std::os::unix::fs::chown(store.path(), Some(65534), Some(65534)).unwrap();
        let confined = ["--sandbox", "on", "--user", "nobody"];
        let world = match store.try_serve(io, "always", &confined) {
            Err(said) if said.contains("sandbox") => {
                skip(&said);
                return;
            }
            world => world.unwrap_or_else(|said| panic!("{said}")),
        };
        let first = world.publish(r#"{"topic":"a","data":1}"#);
        end(world, Signal::KILL);
        // Later a damaged file: the confined server must be able to rename it.
        let world = store.try_serve(io, "always", &confined).unwrap_or_else(|said| panic!("{said}"));
        assert_eq!(world.publish(r#"{"topic":"a","data":2}"#), first.replace("-1", "-2"));
        end(world, Signal::TERM);
        std::fs::write(store.file(), b"no store").unwrap();
        let world = store.try_serve(io, "always", &confined).unwrap_or_else(|said| panic!("{said}"));
        assert!(store.path().join("live.redb.damaged-1").exists());
        end(world, Signal::TERM);
    }
}

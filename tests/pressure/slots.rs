//! Slots run out: idle connections give way, then everyone is turned away, then new ones wait; and nobody who
//! is being served notices.

use std::process::Command;
use std::time::Duration;

use staunch_tests::process::{Server, binary};
use staunch_tests::tree::Tree;

use crate::client::{BEGINNING, Client, ENGINES, REQUEST, is_served, served, until, until_said};

/// With 16 connections the last 2 are reserved, and above 13 idle ones are closed.
const SIXTEEN: [&str; 2] = ["--max-connections", "16"];

#[test]
fn the_last_slots_turn_everyone_away_and_work_in_flight_goes_on() {
    for io in ENGINES {
        let (_tree, server) = served(&[&["--io", io], &SIXTEEN[..]].concat());
        let mut at_work: Vec<Client> = (0..14).map(|_| Client::with(server.address(), BEGINNING)).collect();
        until("14 connections are held", || server.connections().len() == 14);
        let mut turned_away = Client::with(server.address(), REQUEST);
        let refusal = turned_away.receive().unwrap_or_else(|error| panic!("{io}: {error}"));
        assert_eq!(refusal.status, 503, "{io}");
        assert_eq!(refusal.value("Retry-After").as_deref(), Some("1"));
        assert_eq!(refusal.value("Connection").as_deref(), Some("close"));
        until("the refused one is closed", || turned_away.is_closed());

        // A client that holds a slot is not turned away any more, but with the reserved ones taken it gets
        // its last answer.
        let mut reserved: Vec<Client> = (0..2).map(|_| Client::with(server.address(), BEGINNING)).collect();
        until("16 connections are held", || server.connections().len() >= 16);
        let first = &mut at_work[0];
        first.send(b"\r\n").expect("an open connection");
        let answer = first.receive().unwrap_or_else(|error| panic!("{io}: {error}"));
        assert_eq!(answer.status, 200, "{io}");
        assert_eq!(answer.value("Connection").as_deref(), Some("close"), "{io}");
        for client in &mut reserved {
            assert_eq!(client.receive().expect("a short deadline").status, 408, "{io}");
        }
        let last = at_work.last_mut().expect("fourteen");
        last.send(b"\r\n").expect("an open connection");
        assert_eq!(last.receive().unwrap_or_else(|error| panic!("{io}: {error}")).status, 200, "{io}");
        drop(at_work);
        until("new clients are served again", || is_served(server.address()));
    }
}

#[test]
fn idle_connections_give_way_to_new_ones() {
    for io in ENGINES {
        let (_tree, server) = served(&[&["--io", io], &SIXTEEN[..]].concat());
        let mut idle: Vec<Client> = Vec::new();
        for _ in 0..12 {
            let mut client = Client::with(server.address(), REQUEST);
            assert_eq!(client.receive().expect("an answer").status, 200);
            idle.push(client);
        }
        std::thread::sleep(Duration::from_millis(1_200));
        let mut at_work = Vec::new();
        for number in 0..12 {
            let mut client = Client::with(server.address(), REQUEST);
            let answer = client.receive().unwrap_or_else(|error| panic!("{io}: client {number}: {error}"));
            assert_eq!(answer.status, 200, "{io}: client {number}");
            client.send(BEGINNING).expect("an open connection");
            at_work.push(client);
        }
        until("idle ones are closed", || idle.iter().filter(|client| client.is_closed()).count() >= 8);
        for client in &mut at_work {
            client.send(b"\r\n").expect("an open connection");
            let answer = client.receive().unwrap_or_else(|error| panic!("{io}: cut off: {error}"));
            assert_eq!(answer.status, 200, "{io}");
        }
    }
}

#[test]
fn with_no_slot_left_new_ones_wait_and_the_operator_is_told_the_remedy() {
    for io in ENGINES {
        let tree = Tree::with(&[]).expect("a tree");
        let log = tree.root().with_extension(format!("{io}.log"));
        let mut server = logging(&tree, &log, &format!("--io {io} --max-connections 16"), "true");
        let held: Vec<Client> = (0..20).map(|_| Client::with(server.address(), BEGINNING)).collect();
        until("the operator is told", || {
            let said = std::fs::read_to_string(&log).expect("a log");
            said.contains("all its 16 connections are in use") && said.contains("raise --max-connections")
        });
        let before_ms = server.processor_time_ms();
        std::thread::sleep(Duration::from_millis(1_000));
        let spent_ms = server.processor_time_ms() - before_ms;
        assert!(spent_ms <= 300, "{io}: {spent_ms} ms of processor time while full");
        let said = std::fs::read_to_string(&log).expect("a log");
        assert!(said.lines().count() < 40, "{io}: more than a line a second:\n{said}");
        drop(held);
        until("new clients are served again", || is_served(server.address()));
        assert!(server.is_running());
        std::fs::remove_file(&log).expect("our own file");
    }
}

#[test]
fn without_descriptors_it_stays_up_says_so_and_recovers() {
    for io in ENGINES {
        let tree = Tree::with(&[]).expect("a tree");
        let log = tree.root().with_extension(format!("{io}.64.log"));
        let mut server = logging(&tree, &log, &format!("--io {io}"), "ulimit -n 64");
        until_said(&server, "64 file descriptors (ulimit -n)");
        let held: Vec<Client> = (0..600).map(|_| Client::with(server.address(), BEGINNING)).collect();
        until("the operator is told", || {
            std::fs::read_to_string(&log).is_ok_and(|said| said.contains("raise"))
        });
        assert!(server.is_running());
        drop(held);
        until("new clients are served again", || is_served(server.address()));
        std::fs::remove_file(&log).expect("our own file");
    }
}

/// A server whose complaints go to a file, after a line for the shell.
fn logging(tree: &Tree, log: &std::path::Path, arguments: &str, before: &str) -> Server {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!(
            "{before} && exec \"$0\" serve \"$1\" --listen 127.0.0.1:0 --workers 1 {arguments} 2>\"$2\""
        ),
    ]);
    command.arg(binary()).arg(tree.root()).arg(log);
    Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"))
}

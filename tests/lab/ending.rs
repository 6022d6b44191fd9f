//! SIGTERM in every state: the model ends, and leaves nothing behind.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;

use crate::model::{POOL, Running, tell, with_each};

/// Brings a model into a state by means of these clients.
type Clients = fn(&Running) -> Vec<TcpStream>;

/// The states, by name. Clients stay connected while the model ends.
const STATES: &[(&str, Clients)] = &[
    ("idle", |_| Vec::new()),
    ("after an answer", |running| {
        running.assert_serves();
        Vec::new()
    }),
    ("in read", |running| saying(running, 1, "")),
    ("in read of a half request", |running| saying(running, 1, "GET / HT")),
    ("with a busy pool", |running| saying(running, 3 * POOL, "40")),
    ("in write", |running| vec![not_reading(running)]),
    ("in write with a busy pool", |running| (0..POOL).map(|_| not_reading(running)).collect()),
];

fn saying(running: &Running, count: usize, text: &str) -> Vec<TcpStream> {
    let mut clients: Vec<TcpStream> = (0..count).map(|_| running.connect()).collect();
    for client in &mut clients {
        client.write_all(text.as_bytes()).expect("room");
    }
    clients
}

/// A client that has asked for more than the kernel holds, and takes only the beginning. The iterative
/// model serves one of them; the others ask in vain.
fn not_reading(running: &Running) -> TcpStream {
    let mut client = running.connect();
    client.write_all(running.request(16 * 1024 * 1024).as_bytes()).expect("room");
    client.set_read_timeout(Some(Duration::from_millis(500))).expect("a deadline");
    let _ = client.read_exact(&mut [0; 100]);
    client
}

#[test]
fn sigterm_ends_it_in_every_state() {
    with_each(|model| {
        for (state, bring) in STATES {
            let running = Running::start(model);
            let clients = bring(&running);
            running.end(state);
            drop(clients);
        }
    });
}

/// No child is left when the parent is gone without a word: the kernel tells the children.
#[test]
fn children_do_not_outlive_a_parent_that_is_killed() {
    with_each(|model| {
        let mut running = Running::start(model);
        let clients = saying(&running, POOL, "40");
        let children = running.children();
        tell(running.server.process_id(), Signal::KILL);
        assert!(running.server.end().is_some(), "{}", model.name);
        running.assert_gone(&children);
        drop(clients);
    });
}

//! The tracker: what becomes of connections, from their handshake until the server begins with them.
//!
//! It must never take a client who says nothing for one who waits.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use staunch_gate::layout::Flows;
use staunch_gate::observation::Orders;
use staunch_gate::program::{Program, Sizes};
use staunch_netio::clock::now_ns;

use crate::cable::Cable;
use crate::learning::{connect, everybody, gate, listen, until};
use crate::trial::HOUR_NS;

const CLIENT: &str = "10.0.0.2:0";
const SERVER: &str = "10.0.0.1:80";

/// A cable, a gate that lets all in, and a listener behind it. Dropped in this order, the gate sees the end.
fn world() -> Option<(TcpListener, Program, Cable)> {
    let cable = Cable::lay()?;
    let mut gate = gate(&cable, Sizes::default())?;
    let listener = listen(&cable, SERVER);
    everybody(&mut gate);
    Some((listener, gate, cable))
}

/// Silent ones, and those who wait.
fn counted(flows: &Flows) -> (u64, u64) {
    (flows.silent(), flows.waiting())
}

#[test]
fn who_has_sent_something_waits_until_it_is_read() {
    let Some((listener, gate, cable)) = world() else { return };
    let other = listen(&cable, "10.0.0.1:81");
    let mut client = connect(&cable, CLIENT, SERVER);
    let silent = connect(&cable, CLIENT, SERVER);
    let mut elsewhere = connect(&cable, CLIENT, "10.0.0.1:81");
    elsewhere.write_all(b"x").unwrap();
    let flows = until(&gate, "both are seen", |_, flows| flows.established == 2);
    assert_eq!((counted(&flows), flows.begun, flows.reads), ((2, 0), 0, 0));
    let (mut accepted, _) = listener.accept().unwrap();
    client.write_all(b"x").unwrap();
    let flows = until(&gate, "its first bytes", |_, flows| flows.asked == 1);
    assert_eq!((counted(&flows), flows.begun), ((1, 1), 0), "accepted, and not read from");
    for _ in 0..3 {
        accepted.read_exact(&mut [0]).unwrap();
        client.write_all(b"x").unwrap();
    }
    let flows = until(&gate, "it was read from", |_, flows| flows.reads == 3);
    assert_eq!((counted(&flows), flows.begun, flows.ages.iter().sum::<u64>()), ((1, 0), 1, 1));
    // A client that says only that it will send no more has said nothing.
    silent.shutdown(Shutdown::Write).unwrap();
    drop((client, accepted, silent));
    drop(listener);
    let flows = until(&gate, "both have ended", |_, flows| flows.ended == 2);
    assert_eq!(
        (counted(&flows), flows.left_silent, flows.left_waiting, flows.established),
        ((0, 0), 1, 0, 2)
    );
    drop(other);
}

#[test]
fn who_waits_and_goes_waits_no_longer() {
    let Some((listener, gate, cable)) = world() else { return };
    let mut client = connect(&cable, CLIENT, SERVER);
    client.write_all(b"x").unwrap();
    let flows = until(&gate, "its first bytes", |_, flows| flows.asked == 1);
    assert_eq!(counted(&flows), (0, 1));
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
    let flows = until(&gate, "its reset", |_, flows| flows.ended == 1);
    assert_eq!((counted(&flows), flows.left_waiting, flows.begun), ((0, 0), 1, 0));
    drop(listener);
}

/// Of a listener with TCP_DEFER_ACCEPT, as Apache's is, the handshake is completed by the first bytes.
#[test]
fn first_bytes_may_complete_the_handshake() {
    let Some((listener, gate, cable)) = world() else { return };
    staunch_netio::socket::defer_accept(&OwnedFd::from(listener.try_clone().unwrap())).unwrap();
    let mut client = connect(&cable, CLIENT, SERVER);
    client.write_all(b"x").unwrap();
    let flows = until(&gate, "both at once", |_, flows| flows.asked == 1);
    assert_eq!((counted(&flows), flows.established), ((0, 1), 1));
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.read_exact(&mut [0]).unwrap();
    let flows = until(&gate, "it was read from", |_, flows| flows.begun == 1);
    assert_eq!(counted(&flows), (0, 0));
}

/// A server that greets has begun when its greeting has come; who waits for one is silent, unless it is known
/// that the server speaks first.
#[test]
fn a_server_may_speak_first() {
    let Some((listener, mut gate, cable)) = world() else { return };
    let mut client = connect(&cable, CLIENT, SERVER);
    let flows = until(&gate, "it is silent", |_, flows| flows.established == 1);
    assert_eq!(counted(&flows), (1, 0));
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.write_all(b"220 ready\r\n").unwrap();
    client.read_exact(&mut [0; 11]).unwrap();
    client.write_all(b"HELO\r\n").unwrap();
    let flows = until(&gate, "it was greeted", |_, flows| flows.begun == 1);
    assert_eq!((counted(&flows), flows.spoken), ((0, 0), 1));
    let orders = Orders { speaks_first: true, ..Orders::default() };
    gate.give(&orders, now_ns() + HOUR_NS).unwrap();
    let second = connect(&cable, CLIENT, SERVER);
    let flows = until(&gate, "it waits", |_, flows| flows.established == 2);
    assert_eq!(counted(&flows), (0, 1));
    listener.accept().unwrap().0.write_all(b"220 ready\r\n").unwrap();
    let flows = until(&gate, "it was greeted", |_, flows| flows.spoken == 2);
    assert_eq!((counted(&flows), flows.begun), ((0, 0), 2));
    drop(second);
}

/// A server that answers whatever comes, and reads nothing, has served all the same.
#[test]
fn who_was_answered_without_being_read_was_served() {
    let Some((listener, gate, cable)) = world() else { return };
    let mut client = connect(&cable, CLIENT, SERVER);
    client.write_all(b"x").unwrap();
    until(&gate, "its first bytes", |_, flows| flows.asked == 1);
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.write_all(b"answer").unwrap();
    client.read_exact(&mut [0; 6]).unwrap();
    drop(accepted);
    drop(client);
    let flows = until(&gate, "its end", |_, flows| flows.ended == 1);
    assert_eq!((counted(&flows), flows.begun, flows.left_waiting), ((0, 0), 1, 0));
}

/// What a crowd left behind, and whoever else stands there, is known as what it is when the gate begins.
#[test]
fn connections_before_the_gate_are_taken_over() {
    let Some(cable) = Cable::lay() else { return };
    let listener = listen(&cable, SERVER);
    let other = listen(&cable, "10.0.0.1:81");
    let come = |to| connect(&cable, CLIENT, to);
    let [mut first, mut second, mut served] = [come(SERVER), come(SERVER), come(SERVER)];
    let (silent, closing) = (come(SERVER), come(SERVER));
    let mut elsewhere = come("10.0.0.1:81");
    for client in [&mut first, &mut second, &mut served, &mut elsewhere] {
        client.write_all(b"two").unwrap();
    }
    closing.shutdown(Shutdown::Write).unwrap();
    let mut accepted: Vec<TcpStream> = (0..5).map(|_| listener.accept().unwrap().0).collect();
    let mut theirs = |client: &TcpStream| {
        let address = client.local_addr().unwrap();
        let place = accepted.iter().position(|stream| stream.peer_addr().unwrap() == address).unwrap();
        accepted.swap_remove(place)
    };
    let [mut at_first, mut at_served] = [theirs(&first), theirs(&served)];
    at_served.read_exact(&mut [0]).unwrap();
    let Some(gate) = gate(&cable, Sizes::default()) else { return };
    let flows = gate.counters().unwrap().flows.unwrap();
    assert_eq!((counted(&flows), flows.established, flows.tracked), ((2, 2), 0, 4));
    at_first.read_exact(&mut [0]).unwrap();
    second.shutdown(Shutdown::Both).unwrap();
    drop((at_served, silent));
    let flows = until(&gate, "it was read from", |_, flows| flows.begun == 1);
    assert_eq!(counted(&flows), (2, 1));
    drop((at_first, accepted, closing, other));
    let flows = until(&gate, "all have ended", |_, flows| flows.waiting() == 0 && flows.silent() == 0);
    assert_eq!((flows.left_waiting, flows.left_silent), (1, 2));
}

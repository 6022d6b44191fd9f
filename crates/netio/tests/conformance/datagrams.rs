//! Watching what is no connection: datagrams wake the worker beside its connections.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use staunch_netio::Io;
use staunch_netio::datagram::{Datagrams, Readiness, Transmit, Udp, UdpPath, Watch};
use staunch_netio::uring::{UdpRing, probe};

use super::Make;
use super::harness::{Event, Harness, pattern_bytes};

fn udp() -> (Udp, SocketAddr) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    (Udp::new(socket.into()).unwrap(), address)
}

/// All that has come, one after the other.
fn take_all(udp: &mut impl Datagrams<Path = UdpPath>) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    while udp.receive_batch(4, &mut |datagram| taken.push(datagram.bytes.to_vec())).unwrap() == 4 {}
    taken
}

/// What is ready, but for reports without a cause.
fn next_datagrams<I: Io>(
    harness: &mut Harness<I>,
    watch: Watch,
    udp: &mut impl Datagrams<Path = UdpPath>,
) -> Vec<Vec<u8>> {
    loop {
        assert_eq!(harness.next(), Event::Ready(watch));
        let taken = take_all(udp);
        if !taken.is_empty() {
            return taken;
        }
    }
}

pub(crate) fn datagrams_wake_the_worker<I: Io>(make: Make<I>) {
    let (udp, address) = udp();
    wake(make, udp, address);
}

/// A ring of its own tells any backend.
pub(crate) fn a_ring_of_datagrams_wakes_the_worker<I: Io>(make: Make<I>) {
    let features = match probe() {
        Ok(features) => features,
        Err(refusal) => return eprintln!("not tested: {refusal}"),
    };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    wake(make, UdpRing::new(socket.into(), &features).unwrap(), address);
}

fn wake<I: Io>(make: Make<I>, mut udp: impl Datagrams<Path = UdpPath>, address: SocketAddr) {
    let mut harness = Harness::new(make, 4);
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    // A datagram that was there before the watch is told too.
    peer.send_to(b"early", address).unwrap();
    let watch = harness.io.watch(udp.readiness().unwrap()).unwrap();
    assert_eq!(next_datagrams(&mut harness, watch, &mut udp), [b"early"]);
    harness.settle();
    let (mut client, slot) = harness.connect();
    harness.io.receive(slot);
    for round in 0..50_u64 {
        let sent: Vec<Vec<u8>> = (0..=round % 20).map(|index| pattern_bytes(index, 30)).collect();
        for bytes in &sent {
            peer.send_to(bytes, address).unwrap();
        }
        let mut taken = Vec::new();
        while taken.len() < sent.len() {
            taken.extend(next_datagrams(&mut harness, watch, &mut udp));
        }
        assert_eq!(taken, sent);
        std::io::Write::write_all(&mut client, b"by the way").unwrap();
        harness.until(|event| *event == Event::Received(slot, b"by the way".to_vec()));
    }
    harness.settle();
    harness.expect_quiet();
}

/// Room to send is told once, and things to come go on being told.
pub(crate) fn room_is_told_once<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 4);
    let (mut udp, address) = udp();
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let watch = harness.io.watch(udp.readiness().unwrap()).unwrap();
    harness.expect_quiet();
    harness.io.watch_room(watch);
    harness.expect(&Event::Ready(watch));
    let path = UdpPath { peer: peer.local_addr().unwrap(), local: None };
    let transmit = Transmit { path, head: b"one ", bytes: b"word", segment_bytes: None, ecn: None };
    assert_eq!(udp.send_batch(&[transmit]).unwrap().done, 1);
    let mut bytes = [0; 20];
    assert_eq!(peer.recv(&mut bytes).unwrap(), 8);
    harness.settle();
    peer.send_to(b"answer", address).unwrap();
    assert_eq!(next_datagrams(&mut harness, watch, &mut udp), [b"answer"]);
    harness.settle();
    harness.expect_quiet();
}

/// Numbers are used again, and what is no longer watched is silent, also when others hold the same socket.
pub(crate) fn what_is_watched_comes_and_goes<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 4);
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (mut kept, kept_address) = udp();
    let kept_watch = harness.io.watch(kept.readiness().unwrap()).unwrap();
    for round in 0..20 {
        let (mut udp, address) = udp();
        let watch = harness.io.watch(udp.readiness().unwrap()).unwrap();
        assert!(watch != kept_watch && watch < 4, "round {round}: {watch}");
        if round % 3 > 0 {
            peer.send_to(b"seen", address).unwrap();
            assert_eq!(next_datagrams(&mut harness, watch, &mut udp), [b"seen"]);
        }
        if round % 3 == 2 {
            harness.io.watch_room(watch);
        }
        harness.io.unwatch(watch);
        harness.io.unwatch(watch);
        harness.settle();
        peer.send_to(b"unseen", address).unwrap();
        harness.expect_quiet();
        peer.send_to(b"kept", kept_address).unwrap();
        assert_eq!(next_datagrams(&mut harness, kept_watch, &mut kept), [b"kept"]);
    }
    let flag = Readiness::Flag(std::sync::Arc::default());
    assert_eq!(harness.io.watch(flag).unwrap_err().raw_os_error(), Some(95));
    assert_eq!(harness.next_within(Duration::ZERO), None);
}

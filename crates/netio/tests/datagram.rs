//! Datagrams: UDP by the kernel, and a simulated network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use staunch_netio::Io;
use staunch_netio::datagram::{BatchSent, Datagrams, Ecn, Network, NetworkFaults, Transmit, Udp, UdpPath};
use staunch_netio::simulated::{Faults, Simulated};
use staunch_netio::uring::{UdpRing, probe};
use staunch_netio::{Completion, Waker};

/// A datagram as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    path: UdpPath,
    bytes: Vec<u8>,
    ecn: Option<Ecn>,
}

fn bound(address: IpAddr) -> Option<(Udp, SocketAddr)> {
    let socket = UdpSocket::bind((address, 0)).ok()?;
    let address = socket.local_addr().unwrap();
    Some((Udp::new(socket.into()).unwrap(), address))
}

/// A bound socket with a ring to receive by; `None` where there is no address or no io_uring.
fn bound_ring(address: IpAddr) -> Option<(UdpRing, SocketAddr)> {
    let features = probe().inspect_err(|refusal| eprintln!("not tested: {refusal}")).ok()?;
    let socket = UdpSocket::bind((address, 0)).ok()?;
    let address = socket.local_addr().unwrap();
    Some((UdpRing::new(socket.into(), &features).unwrap(), address))
}

/// Waits until so many datagrams have come, what the kernel joined taken apart.
fn receive(udp: &mut impl Datagrams<Path = UdpPath>, count: usize) -> Vec<Seen> {
    let waker = Waker::new().unwrap();
    let mut io = staunch_netio::Epoll::new(Vec::new(), waker, 1).unwrap();
    let watch = io.watch(udp.readiness().unwrap()).unwrap();
    let mut seen = Vec::new();
    while seen.len() < count {
        io.submit_and_wait(Some(Duration::from_secs(20))).unwrap();
        match io.next_completion() {
            Some(Completion::Ready { watch: ready }) => assert_eq!(ready, watch),
            other => panic!("{other:?}"),
        }
        let take = &mut |datagram: staunch_netio::datagram::Datagram<'_, UdpPath>| {
            let (path, ecn, length) = (datagram.path, datagram.ecn, datagram.segment_bytes.max(1));
            if datagram.bytes.is_empty() {
                seen.push(Seen { path, bytes: Vec::new(), ecn });
            }
            seen.extend(datagram.bytes.chunks(length).map(|bytes| Seen { path, bytes: bytes.to_vec(), ecn }));
        };
        while udp.receive_batch(3, take).unwrap() == 3 {}
    }
    assert_eq!(seen.len(), count, "no datagram comes twice here");
    seen
}

fn to(path: UdpPath, bytes: &[u8]) -> Transmit<'_, UdpPath> {
    Transmit { path, head: &[], bytes, segment_bytes: None, ecn: None }
}

const FAMILIES: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

#[test]
fn bytes_congestion_bits_and_both_addresses_arrive() {
    for family in FAMILIES {
        let (Some((mut one, from)), Some((mut other, peer))) = (bound(family), bound(family)) else {
            eprintln!("not tested: there is no {family}");
            continue;
        };
        for local in [None, Some(family)] {
            for ecn in [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)] {
                let path = UdpPath { peer, local };
                let transmit = Transmit { ecn, head: b"he", ..to(path, b"llo") };
                let sent = one.send_batch(&[transmit]).unwrap();
                assert_eq!(sent, BatchSent { done: 1, refused: 0, errno: 0 });
                let seen = receive(&mut other, 1);
                let back = UdpPath { peer: from, local: Some(family) };
                assert_eq!(seen, [Seen { path: back, bytes: b"hello".to_vec(), ecn }]);
            }
        }
    }
}

/// A socket for all of IPv6 serves IPv4 too, and tells the address it was reached at.
#[test]
fn one_socket_for_both_families() {
    let Ok(socket) = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) else {
        return eprintln!("not tested: there is no IPv6");
    };
    let port = socket.local_addr().unwrap().port();
    let mut both = Udp::new(socket.into()).unwrap();
    let (mut four, from) = bound(FAMILIES[0]).unwrap();
    let path = UdpPath { peer: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), local: None };
    four.send_batch(&[Transmit { ecn: Some(Ecn::Ect0), ..to(path, b"over four") }]).unwrap();
    let seen = receive(&mut both, 1).remove(0);
    assert_eq!(seen.bytes, b"over four");
    assert_eq!(seen.path.peer.ip().to_canonical(), from.ip());
    assert_eq!(seen.path.local.map(|local| local.to_canonical()), Some(FAMILIES[0]));
    // The way back, by the same words.
    let answer = to(seen.path, b"back");
    assert_eq!(both.send_batch(&[answer]).unwrap(), BatchSent { done: 1, refused: 0, errno: 0 });
    assert_eq!(receive(&mut four, 1)[0].bytes, b"back");
}

/// A run of datagrams goes out in one call and arrives as many, whoever divides it.
#[test]
fn runs_of_datagrams_arrive_each() {
    let (mut one, _) = bound(FAMILIES[0]).unwrap();
    let (mut other, peer) = bound(FAMILIES[0]).unwrap();
    let bytes: Vec<u8> = (0..10_500_u32).map(|index| (index / 1000) as u8).collect();
    let transmit = Transmit { segment_bytes: Some(1000), ..to(UdpPath { peer, local: None }, &bytes) };
    for _ in 0..3 {
        assert_eq!(one.send_batch(&[transmit]).unwrap().done, 1);
        let seen = receive(&mut other, 11);
        for (index, seen) in seen.iter().enumerate() {
            assert_eq!(seen.bytes, vec![index as u8; if index < 10 { 1000 } else { 500 }]);
        }
    }
}

/// More than one call takes, empty ones among them, in order.
#[test]
fn batches_keep_their_order() {
    let (mut one, _) = bound(FAMILIES[0]).unwrap();
    let (mut other, peer) = bound(FAMILIES[0]).unwrap();
    let bytes: Vec<Vec<u8>> = (0..50_u8).map(|index| vec![index; usize::from(index)]).collect();
    let path = UdpPath { peer, local: None };
    let batch: Vec<_> = bytes.iter().map(|bytes| to(path, bytes)).collect();
    assert_eq!(one.send_batch(&batch).unwrap(), BatchSent { done: 50, refused: 0, errno: 0 });
    let seen = receive(&mut other, 50);
    assert!(seen.iter().map(|seen| &seen.bytes).eq(&bytes));
}

/// What is refused is lost and counted; what follows it is sent.
#[test]
fn one_that_is_refused_holds_back_no_other() {
    let (mut one, _) = bound(FAMILIES[0]).unwrap();
    let (mut other, peer) = bound(FAMILIES[0]).unwrap();
    let path = UdpPath { peer, local: None };
    let long = vec![0; 65_508];
    let batch = [to(path, b"first"), to(path, &long), to(path, b"last")];
    let sent = one.send_batch(&batch).unwrap();
    assert_eq!(sent, BatchSent { done: 3, refused: 1, errno: 90 });
    let seen = receive(&mut other, 2);
    assert_eq!((&seen[0].bytes[..], &seen[1].bytes[..]), (&b"first"[..], &b"last"[..]));
    // The receiver is gone: the kernel tells it later, for neither a send nor a receive to fail.
    drop(other);
    for _ in 0..3 {
        let sent = one.send_batch(&[to(path, b"to nobody")]).unwrap();
        assert_eq!(sent.done, 1);
        assert_eq!(one.receive_batch(1, &mut |_| panic!("nothing was sent")).unwrap(), 0);
    }
}

/// A ring tells the same of each datagram, in order, also when far more come than it has buffers at first.
#[test]
fn a_ring_receives_what_a_socket_does() {
    for family in FAMILIES {
        let Some((mut one, from)) = bound(family) else { continue };
        let Some((mut ring, peer)) = bound_ring(family) else { continue };
        let longest = vec![7; ring.limits().datagram_bytes_max];
        let too_long = vec![8; ring.limits().datagram_bytes_max + 1];
        for round in 0..5 {
            let bytes: Vec<Vec<u8>> = (0..100_u8).map(|index| vec![index; usize::from(index)]).collect();
            let path = UdpPath { peer, local: None };
            let ecn = [None, Some(Ecn::Ect0), Some(Ecn::Ce)][round % 3];
            let mut batch: Vec<_> = bytes.iter().map(|bytes| Transmit { ecn, ..to(path, bytes) }).collect();
            batch.insert(50, Transmit { ecn, ..to(path, &longest) });
            batch.insert(20, Transmit { ecn, ..to(path, &too_long) });
            assert_eq!(one.send_batch(&batch).unwrap(), BatchSent { done: 102, refused: 0, errno: 0 });
            let seen = receive(&mut ring, 101);
            let back = UdpPath { peer: from, local: Some(family) };
            batch.remove(20);
            for (seen, sent) in seen.iter().zip(&batch) {
                assert_eq!((seen.path, seen.ecn, &seen.bytes[..]), (back, ecn, sent.bytes));
            }
            // The way back, by the same words.
            assert_eq!(ring.send_batch(&[to(UdpPath { peer: from, local: None }, b"back")]).unwrap().done, 1);
            assert_eq!(receive(&mut one, 1)[0].bytes, b"back");
        }
        assert_eq!(ring.receive_batch(9, &mut |_| panic!("nothing was sent")).unwrap(), 0);
    }
}

/// A ring that is dropped while it receives leaves nothing behind, and the next one serves.
#[test]
fn rings_come_and_go() {
    for _ in 0..20 {
        let Some((mut ring, peer)) = bound_ring(FAMILIES[0]) else { return };
        let (mut one, _) = bound(FAMILIES[0]).unwrap();
        one.send_batch(&[to(UdpPath { peer, local: None }, b"one")]).unwrap();
        assert_eq!(receive(&mut ring, 1)[0].bytes, b"one");
        one.send_batch(&[to(UdpPath { peer, local: None }, b"never taken")]).unwrap();
    }
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 4000))
}

/// Sends numbered datagrams and tells which arrive, in order.
fn exchange(seed: u64, faults: NetworkFaults) -> (Vec<u8>, (u64, u64)) {
    let network = Network::new(seed, faults);
    let (mut one, mut other) = (network.end(address(1)), network.end(address(2)));
    let path = UdpPath { peer: address(2), local: None };
    for number in 0..100 {
        one.send_batch(&[Transmit { ecn: Some(Ecn::Ect0), ..to(path, &[number]) }]).unwrap();
        network.advance_to(u64::from(number));
    }
    let mut seen = Vec::new();
    while let Some(next_ms) = network.next_ms() {
        network.advance_to(next_ms);
    }
    let take = &mut |datagram: staunch_netio::datagram::Datagram<'_, UdpPath>| {
        assert_eq!(datagram.path, UdpPath { peer: address(1), local: Some(address(2).ip()) });
        assert_eq!(datagram.ecn, Some(if faults.congestion == 1000 { Ecn::Ce } else { Ecn::Ect0 }));
        seen.push(datagram.bytes[0]);
    };
    while other.receive_batch(7, take).unwrap() == 7 {}
    (seen, network.counts())
}

#[test]
fn a_network_loses_doubles_and_reorders_by_its_seed() {
    let all: Vec<u8> = (0..100).collect();
    assert_eq!(exchange(1, NetworkFaults::default()), (all.clone(), (100, 0)));
    assert_eq!(exchange(1, NetworkFaults { loss: 1000, ..Default::default() }), (vec![], (100, 100)));
    let (seen, _) = exchange(1, NetworkFaults { doubling: 1000, ..Default::default() });
    assert!(seen.chunks(2).map(|pair| pair[0]).eq(all.clone()) && seen.len() == 200);
    let late = NetworkFaults { reordering: 500, delay_ms_max: 20, ..Default::default() };
    let (mut seen, _) = exchange(1, late);
    assert!(!seen.is_sorted());
    seen.sort_unstable();
    assert_eq!(seen, all);
    exchange(1, NetworkFaults { congestion: 1000, ..Default::default() });
    let bad = NetworkFaults { loss: 200, doubling: 200, ..late };
    assert_eq!(exchange(7, bad), exchange(7, bad));
    assert_ne!(exchange(7, bad), exchange(8, bad));
    let (seen, (sent, lost)) = exchange(7, bad);
    let mut distinct = seen;
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len() as u64, sent - lost);
}

#[test]
fn a_partition_separates_its_sides_until_it_heals() {
    let network = Network::new(1, NetworkFaults::default());
    let mut ends = [1, 2, 3].map(|number| network.end(address(number)));
    let heard = |ends: &mut [staunch_netio::datagram::SimulatedDatagrams; 3], now_ms| {
        for number in [2, 3] {
            let path = UdpPath { peer: address(number), local: None };
            ends[0].send_batch(&[to(path, b"x")]).unwrap();
        }
        network.advance_to(now_ms);
        [1, 2].map(|index| ends[index].receive_batch(9, &mut |_| {}).unwrap())
    };
    assert_eq!(heard(&mut ends, 10), [1, 1]);
    network.separate(1, &[address(1)]);
    network.separate(2, &[address(2)]);
    assert_eq!(heard(&mut ends, 20), [0, 1]);
    network.heal();
    assert_eq!(heard(&mut ends, 30), [1, 1]);
    assert_eq!(network.counts(), (6, 1));
}

/// A simulated worker is told what has come, and runs of datagrams arrive each.
#[test]
fn a_simulated_worker_is_woken_by_datagrams() {
    let network = Network::new(1, NetworkFaults::default());
    let (mut one, mut other) = (network.end(address(1)), network.end(address(2)));
    let mut world = Simulated::new(1, Faults::NONE, 1);
    let watch = world.watch(other.readiness().unwrap()).unwrap();
    assert!(!world.is_restless());
    let path = UdpPath { peer: address(2), local: None };
    let transmit = Transmit { segment_bytes: Some(2), ..to(path, b"abcde") };
    one.send_batch(&[transmit]).unwrap();
    network.advance_to(1);
    assert!(world.is_restless());
    world.submit_and_wait(None).unwrap();
    assert!(matches!(world.next_completion(), Some(Completion::Ready { watch: ready }) if ready == watch));
    let mut seen = Vec::new();
    assert_eq!(other.receive_batch(9, &mut |datagram| seen.push(datagram.bytes.to_vec())).unwrap(), 3);
    assert_eq!(seen, [&b"ab"[..], b"cd", b"e"]);
    world.unwatch(watch);
    one.send_batch(&[transmit]).unwrap();
    network.advance_to(2);
    assert!(!world.is_restless());
}

//! Real segments through a cable between two namespaces, read at the other end, and what is refused.
//!
//! It must never send anything outside of namespaces it has made.

pub(crate) mod cable;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with, sockopt};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use staunch_netio::clock::pause;

use super::frame::tests::{Syn, read};
use super::frame::{Ends, Template};
use super::*;
use cable::{Cable, End, received};

fn plan(interface: &str, destination: &str) -> FloodPlan {
    FloodPlan {
        rate_per_s: Some(10_000.0),
        duration: Some(Duration::from_millis(300)),
        seed: 7,
        ..FloodPlan::new(interface, destination.parse().unwrap())
    }
}

/// Receives what comes by any interface of the calling thread's namespace, but nothing that goes.
fn capture(destination: SocketAddr) -> OwnedFd {
    let kind: u16 = if destination.is_ipv6() { 0x86dd } else { 0x0800 };
    let protocol = Protocol::from_raw(u32::from(kind.to_be()).try_into().unwrap());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(protocol)).unwrap();
    sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20).unwrap();
    socket
}

/// The SYN segments to this address among what was received. Those that seem to come from where they go to
/// only tried the cable.
fn syns(socket: &OwnedFd, destination: SocketAddr) -> Vec<Syn> {
    let mut found = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        match recv(socket, &mut buffer, RecvFlags::empty()) {
            Ok(_) if buffer[..6] == buffer[6..12] && buffer[..6] != [0; 6] => {}
            Ok((length, _)) => found.extend(read(&buffer[..length]).ok().filter(|syn| syn.to == destination)),
            Err(Errno::AGAIN) => return found,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The segments a flood of this plan consists of.
fn expected(plan: &FloodPlan, count: u64) -> Vec<Syn> {
    let template = Template::new(Ends::default(), plan.destination, plan.sources(), plan.seed);
    let mut frame = vec![0; template.bytes.len()];
    let write = |number| {
        template.write(number, &mut frame);
        read(&frame).unwrap()
    };
    (0..count).map(write).collect()
}

/// Runs the plan at one end, and reads what arrives at the other.
fn flood(cable: &Cable, (from, to): (End, End), plan: FloodPlan) -> FloodOutcome {
    let destination = plan.destination;
    let socket = cable.at(to, move || capture(destination));
    let running = plan.clone();
    let outcome = cable.at(from, move || start(running).map(Flood::wait)).unwrap();
    let mut arrived = syns(&socket, destination);
    // The last may be on their way to another processor.
    for _ in 0..1000 {
        if arrived.len() as u64 + outcome.dropped_by_ring >= outcome.sent {
            break;
        }
        pause(Duration::from_millis(5));
        arrived.extend(syns(&socket, destination));
    }
    let mut sent = expected(&plan, outcome.sent);
    if outcome.dropped_by_ring > 0 {
        sent.retain(|syn| arrived.contains(syn));
    }
    assert_eq!(arrived.len() as u64 + outcome.dropped_by_ring, outcome.sent, "{outcome:?}");
    assert!(arrived == sent, "not what was to be sent: {outcome:?}");
    outcome
}

/// A pace is never exceeded, and something is sent.
fn assert_paced(plan: &FloodPlan, outcome: &FloodOutcome) {
    let due = plan.rate_per_s.unwrap() * plan.duration.unwrap().as_secs_f64() + 1.0;
    assert!(outcome.sent > 1 && (outcome.sent + outcome.given_up) as f64 <= due, "{due} due: {outcome:?}");
    assert!(outcome.seconds > 0.0 && outcome.seconds <= plan.duration.unwrap().as_secs_f64());
}

#[test]
fn every_way_delivers_what_it_says() {
    let Some(cable) = Cable::lay() else { return };
    for destination in ["10.0.0.1:80", "[fd00::1]:80"] {
        for method in [Method::LiveFrames, Method::PacketSocket] {
            let plan = FloodPlan { method: Some(method), ..plan("vc", destination) };
            let outcome = flood(&cable, (End::Client, End::Server), plan.clone());
            assert_paced(&plan, &outcome);
            assert_eq!((outcome.method, &outcome.notes[..]), (method, &[][..]));
        }
    }
    for destination in ["127.0.0.1:80", "[::1]:80"] {
        let plan = plan("lo", destination);
        let outcome = flood(&cable, (End::Server, End::Server), plan.clone());
        assert_paced(&plan, &outcome);
        assert_eq!((outcome.method, &outcome.notes[..]), (Method::RawSocket, &[][..]));
    }
}

#[test]
fn the_kernel_of_the_server_takes_them_for_segments() {
    let Some(cable) = Cable::lay() else { return };
    let counts = || (counter("InSegs"), counter("InCsumErrors"), counter("OutRsts"));
    let before = cable.at(End::Server, counts);
    // As fast as it goes: here rings may run over.
    let plan = FloodPlan { rate_per_s: None, ..plan("vc", "10.0.0.1:80") };
    let outcome = cable.at(End::Client, move || start(plan).map(Flood::wait)).unwrap();
    assert_eq!(outcome.method, Method::LiveFrames);
    let delivered = outcome.sent - outcome.dropped_by_ring;
    let mut after = cable.at(End::Server, counts);
    for _ in 0..1000 {
        if after.0 - before.0 >= delivered {
            break;
        }
        pause(Duration::from_millis(5));
        after = cable.at(End::Server, counts);
    }
    assert_eq!(after.0 - before.0, delivered, "{outcome:?}");
    assert_eq!(after.1, before.1, "checksums that the kernel found wrong");
    assert!(after.2 > before.2, "nobody listens, so some are answered by a reset");
    assert!(cable.at(End::Server, || received("vs")) >= delivered);
}

/// A counter of TCP in the calling thread's namespace.
fn counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(at, _)| *at == name).unwrap().1.parse().unwrap()
}

#[test]
fn without_live_frames_a_socket_is_taken_and_said_so() {
    let Some(cable) = Cable::lay() else { return };
    cable.run(End::Server, "ethtool -K vs gro off");
    let outcome = flood(&cable, (End::Client, End::Server), plan("vc", "10.0.0.1:80"));
    assert_eq!(outcome.method, Method::PacketSocket);
    assert!(outcome.notes[0].contains("ethtool -K"), "{outcome:?}");
    let only = FloodPlan { method: Some(Method::LiveFrames), ..plan("vc", "10.0.0.1:80") };
    let fault = cable.at(End::Client, || start(only).err().unwrap());
    assert!(fault.to_string().contains("ethtool -K"), "{fault}");
}

#[test]
fn a_flood_goes_on_until_it_is_stopped() {
    let Some(cable) = Cable::lay() else { return };
    for method in [Method::LiveFrames, Method::PacketSocket] {
        let endless = FloodPlan { duration: None, method: Some(method), ..plan("vc", "10.0.0.1:80") };
        let other = endless.clone();
        let (seen, outcome) = cable.at(End::Client, move || {
            let flood = start(endless).unwrap();
            while flood.sent() < 500 {
                pause(Duration::from_millis(1));
            }
            (flood.sent(), flood.stop())
        });
        assert!(outcome.sent >= seen && outcome.seconds > 0.0, "{seen} seen: {outcome:?}");
        cable.at(End::Client, move || drop(start(other).unwrap()));
    }
}

#[test]
fn what_breaks_a_rule_is_refused_in_place() {
    let Some(cable) = Cable::lay() else { return };
    cable.run(End::Client, "ip route add 10.7.0.0/16 via 10.0.0.1");
    assert_eq!(cable.at(End::Client, || check(&plan("vc", "10.0.0.1:80"))), Ok(()));
    for (interface, destination, said) in [
        ("vc", "10.0.0.2:80", "not right behind"),
        ("vc", "10.0.0.255:80", "not right behind"),
        ("vc", "10.7.0.1:80", "not right behind"),
        ("vc", "192.0.2.1:80", "not right behind"),
        ("vc", "127.0.0.1:80", "not right behind"),
        ("lo", "10.0.0.1:80", "loopback addresses only"),
        ("nosuchlink", "10.0.0.1:80", "not in this network namespace"),
    ] {
        let plan = plan(interface, destination);
        let faults = cable.at(End::Client, move || [check(&plan).err(), start(plan).err()]);
        for fault in faults {
            let fault = fault.expect(said).to_string();
            assert!(fault.contains(said), "{interface} {destination}: {fault}");
        }
    }
    let away = FloodPlan { method: Some(Method::LiveFrames), ..plan("lo", "127.0.0.1:80") };
    assert!(check(&away).unwrap_err().to_string().contains("`lo` is no way for a flood by live frames"));
}

/// Sends nothing, wherever it runs: the rules are looked at before anything else.
#[test]
fn hardware_is_always_refused() {
    let hardware = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let hardware: Vec<_> = hardware.filter(|entry| entry.path().join("device").exists()).collect();
    if hardware.is_empty() {
        println!("skipped: this machine has no network hardware");
    }
    for entry in hardware {
        let name = entry.file_name().into_string().unwrap();
        let fault = check(&plan(&name, "192.0.2.1:80")).unwrap_err().to_string();
        assert!(fault.contains("hardware") && fault.contains(&name), "{fault}");
    }
}

#[test]
fn missing_privileges_are_named() {
    let Some(cable) = Cable::lay() else { return };
    for interface in [("vc", "10.0.0.1:80"), ("lo", "127.0.0.1:80")] {
        let faults = cable.at(End::Client, move || {
            keep_privileges(CapabilitySet::empty());
            [check(&plan(interface.0, interface.1)).err(), start(plan(interface.0, interface.1)).err()]
        });
        for fault in faults {
            let fault = fault.expect("refused").to_string();
            assert!(fault.contains("CAP_NET_RAW") && fault.contains("sudo"), "{fault}");
        }
    }
    let outcome = cable.at(End::Client, || {
        keep_privileges(CapabilitySet::NET_RAW);
        start(plan("vc", "10.0.0.1:80")).map(Flood::wait).unwrap()
    });
    assert_eq!(outcome.method, Method::PacketSocket);
    assert!(outcome.notes[0].contains("lacks CAP_BPF and CAP_NET_ADMIN"), "{outcome:?}");
}

/// Takes all others away from the calling thread, and from those it starts.
fn keep_privileges(kept: CapabilitySet) {
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).unwrap();
}

#[test]
fn a_host_that_is_not_there_is_a_fault() {
    let Some(cable) = Cable::lay() else { return };
    let fault = cable.at(End::Client, || start(plan("vc", "10.0.0.77:80")).err().unwrap().to_string());
    assert!(fault.contains("nobody at 10.0.0.77"), "{fault}");
}

#[test]
fn what_ends_a_flood_early_is_told() {
    let Some(cable) = Cable::lay() else { return };
    let nowhere = FloodPlan { cpu: Some(usize::MAX), ..plan("vc", "10.0.0.1:80") };
    let outcome = cable.at(End::Client, move || start(nowhere).unwrap().wait());
    assert!(outcome.notes[0].contains("ended early"), "{outcome:?}");
}

#[test]
fn numbers_without_a_meaning_are_refused() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let plan = FloodPlan { rate_per_s: Some(rate), ..plan("lo", "127.0.0.1:80") };
        assert!(check(&plan).unwrap_err().to_string().contains("above 0"), "{rate}");
    }
    let plan = FloodPlan { duration: Some(Duration::ZERO), ..plan("lo", "127.0.0.1:80") };
    assert!(check(&plan).unwrap_err().to_string().contains("above 0"));
}

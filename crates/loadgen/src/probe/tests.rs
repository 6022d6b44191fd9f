//! The probe on this very machine.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use staunch_netio::socket;

use super::*;

/// A listener that never accepts, and its port.
fn listener(backlog: i32) -> (std::os::fd::OwnedFd, SocketAddr) {
    let listener = socket::listen((Ipv4Addr::LOCALHOST, 0).into(), backlog).unwrap();
    let address = socket::local_address(&listener).unwrap();
    (listener, address)
}

/// Time passes by work, until something of it is to be seen.
fn sample_until(probe: &mut ServerProbe, mut seen: impl FnMut(&Sample) -> bool) -> Sample {
    loop {
        let sample = probe.sample(7);
        if seen(&sample) {
            return sample;
        }
    }
}

#[test]
fn everything_is_seen() {
    let (_listener, address) = listener(5);
    let plan = ProbePlan { pid: Some(std::process::id()), port: Some(address.port()) };
    let mut probe = ServerProbe::open(&plan).unwrap();
    assert_eq!(probe.take_faults(), []);
    let first = probe.sample(1000);
    assert_eq!((first.at_ns, first.span_ns), (1000, None));
    assert_eq!(probe.sample(1700).span_ns, Some(700));

    let waiting: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let is_full = |sample: &Sample| sample.accept_queue.unwrap().waiting == 3;
    let sample = sample_until(&mut probe, is_full);
    let queue = AcceptQueue { listeners: 1, waiting: 3, limit: 5, waiting_max: 3 };
    assert_eq!(sample.accept_queue, Some(queue));
    assert!(sample.sockets.unwrap().tcp_in_use >= 4, "{sample:?}");
    assert!(sample.net_rx_softirqs.is_some() && sample.softnet.is_some(), "{sample:?}");
    assert!(sample.process.unwrap().resident_bytes > 0);

    let sample = sample_until(&mut probe, |sample| sample.processors.is_some());
    let processors = sample.processors.unwrap();
    let Shares { user, system, softirq, irq, idle, steal } = processors.all;
    let sum = user + system + softirq + irq + idle + steal;
    assert!((sum - 1.0).abs() < 1e-9, "{processors:?}");
    assert_eq!(probe.take_faults(), []);
    drop(waiting);
}

/// What is lost is counted: a full queue, and the SYNs sent again because of it.
#[test]
fn overflows_are_seen() {
    let (_listener, address) = listener(1);
    let mut probe = ServerProbe::open(&ProbePlan { pid: None, port: Some(address.port()) }).unwrap();
    let _waiting: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
    sample_until(&mut probe, |sample| sample.accept_queue.unwrap().waiting == 2);
    TcpStream::connect_timeout(&address, Duration::from_millis(20)).unwrap_err();
    let mut seen = ListenEvents::default();
    sample_until(&mut probe, |sample| {
        let events = sample.listen_events.unwrap();
        seen.listen_overflows += events.listen_overflows;
        seen.listen_drops += events.listen_drops;
        seen.listen_overflows > 0
    });
    assert!(seen.listen_drops >= seen.listen_overflows, "{seen:?}");
}

#[test]
fn opened_and_lost_connections_are_counted() {
    let (listener, address) = listener(16);
    let mut probe = ServerProbe::open(&ProbePlan::default()).unwrap();
    let waiting: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
    // Closing a listener resets who waits there.
    drop(listener);
    let mut seen = Segments::default();
    sample_until(&mut probe, |sample| {
        let segments = sample.segments.unwrap();
        seen.passive_opens += segments.passive_opens;
        seen.resets_sent += segments.resets_sent;
        seen.passive_opens >= 4 && seen.resets_sent >= 4
    });
    drop(waiting);
}

#[test]
fn a_process_that_ends_is_left_out_and_the_rest_goes_on() {
    let mut child = Command::new("sleep").arg("3600").stdout(Stdio::null()).spawn().unwrap();
    let mut probe = ServerProbe::open(&ProbePlan { pid: Some(child.id()), port: None }).unwrap();
    assert!(probe.sample(1).process.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let sample = probe.sample(2);
    assert_eq!(sample.process, None);
    assert!(sample.sockets.is_some() && sample.segments.is_some(), "{sample:?}");
    let faults = probe.take_faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].to_string().contains("the process has ended"), "{faults:?}");
    assert_eq!(probe.sample(3).process, None);
    assert_eq!(probe.take_faults(), []);
}

#[test]
fn what_is_not_there_is_named_and_the_rest_goes_on() {
    let (gone, address) = listener(5);
    drop(gone);
    let plan = ProbePlan { pid: Some(u32::MAX), port: Some(address.port()) };
    let mut probe = ServerProbe::open(&plan).unwrap();
    let faults: Vec<String> = probe.take_faults().iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("4294967295"), "{faults:?}");
    assert!(faults[1].contains("nobody listens on TCP port"), "{faults:?}");
    let sample = probe.sample(1);
    assert_eq!(sample.accept_queue, Some(AcceptQueue::default()));
    assert!(sample.sockets.is_some());
}

/// A server in a namespace of its own, as in a test bed: its counters are seen, its listeners are not.
#[test]
fn another_network_namespace_is_noticed() {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sleep", "3600"]).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return skip("the program `unshare` is not there") };
    while !is_elsewhere(child.id()) {
        if child.try_wait().unwrap().is_some() {
            return skip("no namespace may be made");
        }
        std::thread::yield_now();
    }
    let mut probe = ServerProbe::open(&ProbePlan { pid: Some(child.id()), port: Some(80) }).unwrap();
    let sample = probe.sample(1);
    child.kill().unwrap();
    child.wait().unwrap();
    let faults = probe.take_faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].to_string().contains("another network namespace"), "{faults:?}");
    assert_eq!(sample.accept_queue, None);
    assert_eq!(sample.sockets.unwrap().tcp_in_use, 0);
}

fn skip(reason: &str) {
    assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "{reason}");
    eprintln!("skipped: {reason}");
}

#[test]
fn a_sample_is_written_as_json() {
    let mut probe = ServerProbe::open(&ProbePlan { pid: Some(std::process::id()), port: None }).unwrap();
    let has_processor = |sample: &Sample| sample.processors.as_ref().is_some_and(|all| !all.each.is_empty());
    let sample = sample_until(&mut probe, has_processor);
    let json = serde_json::to_value(&sample).unwrap();
    assert!(json["processors"]["each"][0]["cpu"].is_number(), "{json}");
    assert!(json["processors"]["each"][0]["softirq"].is_number(), "{json}");
    assert!(json["process"]["resident_bytes"].is_number(), "{json}");
    assert!(json["accept_queue"].is_null(), "{json}");
}

/// Prints what a sample costs; the figure stands in the probe's document.
#[test]
fn the_cost_of_a_sample() {
    const SAMPLES: u32 = 1000;
    let (_listener, address) = listener(5);
    let plan = ProbePlan { pid: Some(std::process::id()), port: Some(address.port()) };
    for (name, plan) in [("machine alone", ProbePlan::default()), ("with process and port", plan)] {
        let mut probe = ServerProbe::open(&plan).unwrap();
        let start = Instant::now();
        for number in 0..SAMPLES {
            assert!(probe.sample(number.into()).sockets.is_some());
        }
        println!("a sample, {name}: {:?}", start.elapsed() / SAMPLES);
    }
}

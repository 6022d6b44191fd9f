//! `staunch dostp stream`: what is sent by a schedule, and what the receiver counts of it.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::lan::{Lan, Node};
use crate::text;

const SEND: [&str; 4] = ["stream", "send", "10.88.0.1", "--json"];

fn receiver(lan: &Lan, arguments: &[&str]) -> Node {
    let mut command: Command = lan.command(1, &["stream", "receive", "--interface", "dv"]);
    let node = Node::spawn(command.args(arguments).stdout(Stdio::null()));
    node.await_line("are counted");
    node
}

fn send(lan: &Lan, arguments: &[&str]) -> Value {
    let output = lan.dostp(2, &[&SEND[..], arguments].concat());
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
}

fn count(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn every_message_of_a_stream_is_in_time_late_or_lost() {
    for way in [&["--backend", "ring"][..], &["--backend", "xdp-generic"], &["--backend", "udp"]] {
        let Some(lan) = Lan::new(2) else { return };
        let _receiver = receiver(&lan, way);
        for size in ["32", "5000"] {
            let plan = ["--count", "500", "--rate", "5k", "--size", size, "--deadline", "60s"];
            let report = send(&lan, &[way, &plan].concat());
            assert_eq!(count(&report, "sent"), 500, "{report}");
            assert_eq!((count(&report, "late"), &report["is_whole"]), (0, &Value::Bool(true)), "{report}");
            assert_eq!(count(&report, "in_time") + count(&report, "lost"), 500, "{report}");
            assert!(count(&report, "in_time") > 0 && report["jitter_us"].is_f64(), "{report}");
            // Both namespaces are of one kernel.
            assert!(report["one_way_us"]["least"].as_u64().is_some_and(|us| us > 0), "{report}");
        }
    }
}

#[test]
fn what_waits_for_a_receiver_that_stands_still_is_late() {
    let Some(lan) = Lan::new(2) else { return };
    let receiver = receiver(&lan, &["--count", "1"]);
    let plan = ["--interface", "dv", "--rate", "1k", "--deadline", "1ms", "--duration", "1h"];
    let mut sender = lan.command(2, &[&SEND[..], &plan].concat());
    let sender = sender.stdout(Stdio::piped()).spawn().expect("ip of iproute2");
    lan.await_frames(1, 200);
    receiver.signal(Signal::STOP);
    lan.await_frames(1, 200);
    receiver.signal(Signal::CONT);
    lan.await_frames(1, 200);
    let process = Pid::from_raw(sender.id().cast_signed()).expect("a process");
    kill_process(process, Signal::TERM).expect("our own process");
    let output = sender.wait_with_output().expect("our own process");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    // Messages of 200 ms wait until the receiver goes on: the first of them for nearly as long.
    assert!(count(&report, "late") > 100 && count(&report, "in_time") > 0, "{report}");
    assert!(count(&report, "held_us_most") > 100_000, "{report}");
    assert_eq!(receiver.end_by_itself(), Some(0));
}

#[test]
fn a_sender_that_is_gone_is_told_of_and_one_without_a_receiver_says_so() {
    let Some(lan) = Lan::new(2) else { return };
    let output = lan.dostp(2, &["stream", "send", "10.88.0.1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("10.88.0.1 is not on this LAN"), "{}", text(&output));
    let _node = lan.serve(1, &[]);
    let output = lan.dostp(2, &["stream", "send", "10.88.0.1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("no answer of `staunch dostp stream receive` there"), "{}", text(&output));
    for wrong in [&["--rate", "2m"][..], &["--size", "31"], &["--deadline", "61s"], &["--count", "0"]] {
        let output = lan.dostp(2, &[&SEND[..], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", text(&output));
    }
}

#[test]
fn streams_are_counted_with_keys_and_shown_in_a_line() {
    let Some(lan) = Lan::new(2) else { return };
    let key = lan.key("11");
    let keys = ["--key-file", &key, "--mode", "aead"];
    let mut command = lan.command(1, &["stream", "receive", "--interface", "dv", "--count", "1"]);
    let counting = command.args(keys).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let counting = counting.expect("ip of iproute2");
    let plan = ["stream", "send", "10.88.0.1", "--count", "20", "--rate", "1k"];
    let sent = (0..100).map(|_| lan.dostp(2, &[&plan[..], &keys].concat()));
    let output = sent.into_iter().find(|output| output.status.success()).expect("an answer");
    let told = counting.wait_with_output().expect("our own process");
    for output in [&output, &told] {
        let said = text(output);
        assert!(said.contains("20 sent, ") && said.contains("jitter "), "{said}");
    }
}

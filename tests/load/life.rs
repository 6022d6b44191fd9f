//! How a run ends that was not left to end by itself: by a signal, by a key, by a server that goes.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::process::binary;

use crate::generator::{WAYS, count, document, ends, measure, truth};

/// Time for a run to get going; nothing depends on how far it gets.
const WHILE: Duration = Duration::from_millis(800);

fn start(arguments: &[&str]) -> Child {
    Command::new(binary())
        .arg("load")
        .args(arguments)
        .args(["--json", "-", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the generator")
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a signal");
}

#[test]
fn a_signal_ends_it_with_its_summary() {
    let truth = truth();
    for io in WAYS {
        for (number, rate) in [(Signal::INT, "200/s"), (Signal::TERM, "200/s")] {
            let child = start(&[&truth.url("/ok"), "--rate", rate, "-d", "1h", "--io", io]);
            std::thread::sleep(WHILE);
            signal(&child, number);
            let output = child.wait_with_output().expect("its end");
            assert_eq!(output.status.code(), Some(0), "{io} {number:?}");
            let document = document(&String::from_utf8_lossy(&output.stdout));
            let offered = count(&document, "offered");
            assert!(offered > 0 && offered < 200 * 60, "{io}: {offered}");
            assert_eq!(ends(&document), [("in_time", offered)], "{io} {number:?}");
        }
    }
}

/// The first signal waits for answers that were promised; the second does not.
#[test]
fn a_second_signal_ends_it_at_once() {
    let truth = truth();
    let child = start(&[&truth.url("/stall"), "--rate", "100/s", "-d", "1h", "--patience", "1h"]);
    std::thread::sleep(WHILE);
    signal(&child, Signal::INT);
    std::thread::sleep(WHILE);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn a_server_that_goes_is_counted() {
    for io in WAYS {
        let truth = truth();
        let child = start(&[&truth.url("/delay/5ms"), "-c", "8", "-d", "2s", "--io", io]);
        std::thread::sleep(WHILE);
        drop(truth);
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(0), "{io}");
        let document = document(&String::from_utf8_lossy(&output.stdout));
        assert!(count(&document, "in_time") > 0 && count(&document, "refused") > 0, "{io}: {document:#}");
    }
}

#[test]
fn the_series_is_written_while_it_runs() {
    let truth = truth();
    let mut child = Command::new(binary())
        .args(["load", &truth.url("/ok"), "--rate", "100/s", "-d", "1h", "--ndjson", "-", "--quiet"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the generator");
    let mut first = [0; 64];
    child.stdout.as_mut().expect("its output").read_exact(&mut first).expect("a line");
    signal(&child, Signal::INT);
    assert!(child.wait().expect("its end").success());
    assert_eq!(first[0], b'{');
}

#[test]
fn closed_loops_leave_what_is_under_way() {
    let truth = truth();
    let document = measure(&[&truth.url("/stall"), "-c", "5", "-d", "300ms", "-t", "1"]);
    assert_eq!(ends(&document), [("unfinished", 5)]);
}

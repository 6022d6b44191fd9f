//! Clients that break off, requests that never end, and a server without descriptors.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use staunch_lab::{MODELS, Model};

use crate::model::{PATIENCE, POOL, Running, tell, with_each};

/// Closes with a reset.
fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("an option");
    drop(stream);
}

/// Descriptors that come without a client: threads that have just begun make their own.
const OWN_DESCRIPTORS_MAX: usize = 8;
/// Clients of each kind: enough that one lost for each would be seen.
const CLIENTS_COUNT: usize = 20;

/// Waits until the process that accepts holds no more descriptors than before.
fn assert_descriptors(running: &Running, before: usize) {
    let start = Instant::now();
    while running.server.descriptors() > before + OWN_DESCRIPTORS_MAX {
        assert!(start.elapsed() < PATIENCE, "{}: descriptors leak", running.model.name);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn clients_that_break_off_in_mid_answer() {
    with_each(|model| {
        let running = Running::start(model);
        running.assert_serves();
        let before = running.server.descriptors();
        for _ in 0..CLIENTS_COUNT {
            let mut stream = running.connect();
            stream.write_all(running.request(16 * 1024 * 1024).as_bytes()).expect("a peer that reads");
            stream.read_exact(&mut [0; 1000]).expect("an answer that begins");
            reset(stream);
        }
        running.assert_serves();
        assert_descriptors(&running, before);
        running.end("after resets");
    });
}

#[test]
fn requests_that_are_never_ended() {
    with_each(|model| {
        let running = Running::start(model);
        running.assert_serves();
        let before = running.server.descriptors();
        for start in ["", "40", "GET / HT", "GET / HTTP/1.1\r\nHost:"] {
            for number in 0..CLIENTS_COUNT {
                let mut stream = running.connect();
                stream.write_all(start.as_bytes()).expect("a peer that reads");
                if number % 2 == 0 { drop(stream) } else { reset(stream) }
            }
        }
        running.assert_serves();
        assert_descriptors(&running, before);
        running.end("after half requests");
    });
}

/// With one silent client fewer than the pool has places, or some where there is no pool, others are served.
/// All but the iterative one, whose lesson this is.
#[test]
fn silent_clients_keep_nobody_waiting() {
    with_each(|model| {
        let running = Running::start(model);
        let silent: Vec<TcpStream> = (1..POOL).map(|_| running.connect()).collect();
        if model.name != "iterative" {
            assert_eq!(running.ask(4000).ok(), Some(4000), "{}", model.name);
        }
        drop(silent);
        running.assert_serves();
        running.end("after silent clients");
    });
}

/// More clients than descriptors: some wait or are sent away, and when they are gone the next is served.
#[test]
fn descriptors_run_out() {
    with_each(|model| {
        let running = Running::start_with(model, "ulimit -n 40", &[]);
        running.assert_serves();
        let crowd: Vec<_> = (0..120).map(|_| running.try_connect()).collect();
        for refused in crowd.iter().filter_map(|client| client.as_ref().err()) {
            assert_eq!(refused.kind(), ErrorKind::ConnectionReset, "{}: {refused}", model.name);
        }
        drop(crowd);
        running.assert_serves();
        running.end("after a crowd without descriptors");
    });
}

fn sigio() -> &'static Model {
    Model::find(MODELS, "sigio").expect("a model")
}

/// A process that was told to stand still does so a moment later.
fn await_standstill(process: u32) {
    await_status(process, "it does not stand still", |key, value| key == "State" && value.starts_with('T'));
}

/// Waits until the process's queue of signals has run over: then SIGIO is pending, which the kernel sends in
/// place of a signal that finds no room. A busy kernel delivers packets a moment after they were sent.
fn await_overflow(process: u32) {
    await_status(process, "its queue of signals does not run over", |key, value| {
        let mask = || u64::from_str_radix(value, 16).expect("a mask of signals");
        ["SigPnd", "ShdPnd"].contains(&key) && mask() >> (Signal::IO.as_raw() - 1) & 1 == 1
    });
}

/// Waits for a line of `/proc/PID/status`.
fn await_status(process: u32, otherwise: &str, is_awaited: impl Fn(&str, &str) -> bool) {
    let start = Instant::now();
    let has_come = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
        status.lines().filter_map(|line| line.split_once(":\t")).any(|(key, value)| is_awaited(key, value))
    };
    while !has_come() {
        assert!(start.elapsed() < PATIENCE, "{otherwise}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Signals pile up while the process stands still: more than its queue holds. Nobody is forgotten for it.
#[test]
fn the_queue_of_signals_runs_over() {
    let said = std::env::temp_dir().join(format!("staunch-lab-sigio-{}", std::process::id()));
    let before = format!("prlimit --sigpending=8 --pid $$; exec 2>{}", said.display());
    let running = Running::start_with(sigio(), &before, &[]);
    let mut clients: Vec<TcpStream> = (0..50).map(|_| running.connect()).collect();
    running.assert_serves();
    tell(running.server.process_id(), Signal::STOP);
    await_standstill(running.server.process_id());
    for client in &mut clients {
        client.write_all(b"4000\n").expect("room");
    }
    await_overflow(running.server.process_id());
    tell(running.server.process_id(), Signal::CONT);
    for mut client in clients {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an answer");
        assert_eq!(answer.len(), 4000);
    }
    running.end("after its queue ran over");
    let text = std::fs::read_to_string(&said).expect("what it said");
    std::fs::remove_file(&said).expect("our file");
    assert!(text.contains("the queue of signals ran over"), "{text:?}");
}

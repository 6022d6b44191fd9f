//! Leaks that are told, and real ones that a shell leaves. Nothing here is a model.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

fn holding(threads: &[(i32, i32)], descriptors: &[((i32, i32), &str)]) -> UsageReading {
    let mut reading = UsageReading::default();
    reading.processes = threads.iter().map(|(process, _)| (*process, "model".to_owned())).collect();
    reading.threads = threads.iter().copied().collect();
    reading.descriptors = descriptors.iter().map(|(key, target)| (*key, (*target).to_owned())).collect();
    reading
}

#[test]
fn what_was_held_before_is_no_leak() {
    let before = holding(&[(1, 1), (2, 2)], &[((1, 0), "/dev/null"), ((2, 3), "socket:[7]")]);
    assert_eq!(after_load(&before, &before), [""; 0]);
    let fewer = holding(&[(1, 1), (2, 2)], &[((1, 0), "/dev/null")]);
    assert_eq!(after_load(&before, &fewer), [""; 0]);
    let another = holding(&[(1, 1), (2, 9)], &[((1, 0), "/dev/null"), ((2, 4), "socket:[8]")]);
    assert_eq!(after_load(&before, &another), [""; 0]);
}

#[test]
fn leaks_after_a_load_are_named() {
    let before = holding(&[(1, 1)], &[((1, 3), "socket:[7]")]);
    let thread = holding(&[(1, 1), (1, 5)], &[((1, 3), "socket:[7]")]);
    assert_eq!(
        after_load(&before, &thread),
        ["threads of process 1: 1 before the load, 2 after it (thread 5)"]
    );
    let descriptor = holding(&[(1, 1)], &[((1, 3), "socket:[7]"), ((1, 4), "socket:[9]")]);
    assert_eq!(
        after_load(&before, &descriptor),
        ["descriptors of process 1: 1 before the load, 2 after it (4 is socket:[9])"]
    );
    let process = holding(&[(1, 1), (6, 6)], &[((1, 3), "socket:[7]")]);
    assert_eq!(after_load(&before, &process), ["processes: 1 before the load, 2 after it (process 6)"]);
    let gone = holding(&[], &[]);
    assert_eq!(after_load(&before, &gone), ["processes: 1 before the load, 0 after it"]);
    let many: Vec<((i32, i32), &str)> = (3..20).map(|number| ((1, number), "socket:[7]")).collect();
    let told = after_load(&before, &holding(&[(1, 1)], &many));
    assert!(told.len() == 1 && told[0].ends_with("8 is socket:[7], and 11 more)"), "{told:?}");
}

/// A shell that leaves a child in its group when it has ended itself.
#[test]
fn a_process_that_is_left_is_found_and_ended() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 1000 & echo $!"]).process_group(0).stdout(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    let group = Pid::from_child(&shell);
    shell.wait().expect("a child of ours");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let told = after_end(group, address, false);
    assert!(told.len() == 1 && told[0].starts_with("a process is left: "), "{told:?}");
    while usage::members(group).iter().any(|stat| stat.state != 'Z') {
        staunch_netio::clock::pause(Duration::from_millis(1));
    }
}

#[test]
fn a_zombie_is_found_and_buried() {
    let mut shell = Command::new("true").process_group(0).spawn().expect("a program");
    let group = Pid::from_child(&shell);
    while usage::members(group).iter().any(|stat| stat.state != 'Z') {
        staunch_netio::clock::pause(Duration::from_millis(1));
    }
    let told = after_end(group, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false);
    assert!(told.len() == 1 && told[0].starts_with("a zombie is left: "), "{told:?}");
    assert!(usage::members(group).is_empty());
    assert!(shell.wait().is_err(), "it was buried");
}

#[test]
fn a_port_that_is_still_taken_is_found() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    // A group that has no members: it was that of a process of ours, which is gone.
    let mut gone = Command::new("true").process_group(0).spawn().expect("a program");
    gone.wait().expect("a child of ours");
    let group = Pid::from_child(&gone);
    let told = after_end(group, address, false);
    assert!(
        told.len() == 1 && told[0].starts_with(&format!("port {} is still taken", address.port())),
        "{told:?}"
    );
    drop(listener);
    // A program that another test is just starting has it as well, until it runs.
    let start = Instant::now();
    while !after_end(group, address, false).is_empty() {
        assert!(start.elapsed() < PATIENCE, "the port is never free");
        staunch_netio::clock::pause(Duration::from_millis(1));
    }
}

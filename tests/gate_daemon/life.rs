//! How it starts, what it obeys, how it ends, and what it says when it cannot start.

use std::process::Command;

use rustix::process::Signal;
use staunch_tests::process;

use crate::world::{Gate, INTERFACE, World};

#[test]
fn it_detaches_when_it_is_told_to_end() {
    let Some(world) = World::new() else { return };
    for signal in [Signal::TERM, Signal::INT] {
        let mut gate = world.gate(&[]);
        assert!(world.has_program(INTERFACE));
        assert_eq!(gate.end(signal).code(), Some(0));
        assert!(!world.has_program(INTERFACE));
        gate.await_line("the gate is taken away");
    }
}

#[test]
fn hup_changes_nothing() {
    let Some(world) = World::new() else { return };
    let mut gate = world.gate(&[]);
    let before = world.status();
    gate.signal(Signal::HUP);
    gate.await_line("the gate stays as it is");
    assert!(gate.is_running() && world.has_program(INTERFACE));
    assert_eq!(world.status()["process_id"], before["process_id"]);
}

#[test]
fn a_second_gate_is_refused_and_the_first_goes_on() {
    let Some(world) = World::new() else { return };
    let mut gate = world.gate(&[]);
    let second = world.no_gate(&["--interface", INTERFACE]);
    assert_eq!(second.status.code(), Some(1));
    assert!(second.stderr.contains("another gate protects vs"), "{}", second.stderr);
    assert!(gate.is_running() && world.has_program(INTERFACE));
    assert_eq!(world.status()["interfaces"][0]["state"], "attached");
}

#[test]
fn what_is_missing_is_named() {
    let Some(world) = World::new() else { return };
    let unknown = world.no_gate(&["--interface", "nosuchlink"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(unknown.stderr.contains("no interface 'nosuchlink'"), "{}", unknown.stderr);
    let nobody = process::finish(
        Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"])
            .arg(process::binary())
            .args(["gate", "--interface", "lo"]),
    );
    assert_eq!(nobody.status.code(), Some(1));
    assert!(nobody.stderr.contains("CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"), "{}", nobody.stderr);
    let none = process::finish(world.command(process::binary()).args(["gate", "status", "--once"]));
    assert_eq!(none.status.code(), Some(1));
    assert!(none.stderr.contains("is `staunch gate` running"), "{}", none.stderr);
}

#[test]
fn a_setting_that_loses_clients_is_named() {
    let Some(world) = World::new() else { return };
    world.at_server("sysctl -qw net.ipv4.tcp_syncookies=0");
    world.gate(&[]).await_line("net.ipv4.tcp_syncookies is 0");
}

#[test]
fn wrong_words_are_refused_with_the_nearest_right_one() {
    for (arguments, words) in [
        (&["gate"][..], "--interface <NAME,...>"),
        (&["gate", "--interfaces", "eth0"], "a similar argument exists: '--interface'"),
        (&["gate", "-i", "eth0", "--port", "0"], "0 is not in 1..=65535"),
        (&["gate", "-i", "eth0", "--target", "1ms"], "write a time from 5ms to 1s"),
        (&["gate", "-i", "eth0", "--coalescing", "2ms"], "write a time from 20us to 1ms, or 0"),
        (&["gate", "-i", "eth0", "--coalescing", "1ns"], "write a time from 20us to 1ms, or 0"),
        (&["gate", "-i", "eth0", "--coalescing", "1e300s"], "write a time from 20us to 1ms, or 0"),
        (&["gate", "-i", "eth0", "--mode", "rst"], "[possible values: drop, reset, cookie]"),
        (&["gate", "-i", "eth0", "--allow", "192.0.2.1/99"], "192.0.2.1/99"),
    ] {
        let finished = process::finish(Command::new(process::binary()).args(arguments));
        assert_eq!(finished.status.code(), Some(2), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(words), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn in_a_container_it_works_and_says_what_it_does_not_see() {
    let Some(world) = World::new() else { return };
    let mut command = world.command("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(process::binary());
    command.args(["gate", "--interface", INTERFACE]);
    let gate = Gate::spawn(&mut command);
    gate.await_line("the kernel's threads are not seen from this PID namespace");
    let status = world.await_status("a first look", |status| status["host"]["sockets"].is_u64());
    assert!(status["host"]["receive_share"].is_null(), "{status}");
    assert!(world.has_program(INTERFACE));
}

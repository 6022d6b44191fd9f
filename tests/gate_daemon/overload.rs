//! More than the server can do: what is shed, what is said about it, and what becomes of it when the daemon
//! dies.
use rustix::process::Signal;
use serde_json::Value;
use staunch_tests::house::waiting::until;

use crate::crowd::{Crowd, PORT, serve_slowly};
use crate::world::{INTERFACE, World};

fn count(status: &Value, of: &str) -> u64 {
    ["known", "verified", "unknown"]
        .map(|class| status["syn"][class][of].as_u64().expect("a count"))
        .iter()
        .sum()
}

#[test]
fn what_the_server_cannot_do_is_shed_and_each_change_is_said() {
    let Some(world) = World::new() else { return };
    serve_slowly(&world);
    let gate = world.gate(&["--port", PORT]);
    let crowd = Crowd::new(&world);
    let line = gate.await_line("open -> shedding");
    assert!(line.starts_with("staunch: gate: open -> shedding after "), "{line}");
    let status = world.await_status("shedding", |status| count(status, "shed_credit") > 0);
    assert_eq!(status["state"], "shedding");
    assert!(status["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{status}");
    assert_eq!(count(&status, "lease_over"), 0);
    let before = crowd.answered();
    until("answers while it sheds", || crowd.answered() > before + 100);
    drop(crowd);
    // Those who were shed came again a second later: that may have been a crowd of its own.
    let status = world.await_status("open", |status| status["state"] == "open");
    let changes = || gate.said().into_iter().filter(|line| line.contains(" -> ")).collect::<Vec<_>>();
    until("a line for each change", || Some(changes().len() as u64) == status["changes"].as_u64());
    let shed: u64 = changes().iter().filter_map(|line| shed_until_open(line)).sum();
    assert_eq!(shed, count(&status, "shed_credit") + count(&status, "shed_fair"), "{:#?}", gate.said());
}

/// `shedding -> open after 8.4 s and 9213 SYN shed: ...`
fn shed_until_open(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("shedding -> open after ")?;
    rest.split_once(" s and ")?.1.split_once(" SYN shed: ")?.0.parse().ok()
}

#[test]
fn a_dry_run_sheds_nothing() {
    let Some(world) = World::new() else { return };
    serve_slowly(&world);
    let gate = world.gate(&["--port", PORT, "--dry-run"]);
    let crowd = Crowd::new(&world);
    assert!(gate.await_line("open -> shedding").contains("dry run: nothing is shed"));
    let status =
        world.await_status("a count of what would be shed", |status| count(status, "shed_credit") > 0);
    assert_eq!(status["dry_run"], true);
    drop(crowd);
    let status = world.await_status("the end of it", |status| status["rates"]["offered_per_s"] == 0.0);
    assert_eq!(
        status["frames"]["dry"].as_u64(),
        Some(count(&status, "shed_credit") + count(&status, "shed_fair"))
    );
    // Every client that came was let in: the kernel completed as many handshakes as there were connections,
    // none was tried again.
    let retried =
        world.at_clients("nstat -az TcpRetransSegs TcpExtTCPSynRetrans | awk '/SynRetrans/ {print $2}'");
    assert_eq!(retried.trim(), "0");
}

#[test]
fn the_program_opens_when_the_daemon_is_killed() {
    let Some(world) = World::new() else { return };
    serve_slowly(&world);
    let mut gate = world.gate(&["--port", PORT]);
    let crowd = Crowd::new(&world);
    gate.await_line("open -> shedding");
    assert!(world.has_program(INTERFACE));
    gate.end(Signal::KILL);
    until("an interface without a program", || !world.has_program(INTERFACE));
    let before = crowd.answered();
    until("answers without a gate", || crowd.answered() > before + 100);
    // The socket it left is no hindrance for the next.
    let mut gate = world.gate(&["--port", PORT]);
    assert!(world.has_program(INTERFACE));
    assert_eq!(gate.end(Signal::INT).code(), Some(0));
}

#[test]
fn the_program_opens_while_the_daemon_hangs() {
    let Some(world) = World::new() else { return };
    serve_slowly(&world);
    let gate = world.gate(&["--port", PORT]);
    let crowd = Crowd::new(&world);
    gate.await_line("open -> shedding");
    gate.signal(Signal::STOP);
    let before = crowd.answered();
    // At 500 a second these are more than a second's answers, and the lease is shorter.
    until("answers while it hangs", || crowd.answered() > before + 1_000);
    gate.signal(Signal::CONT);
    world.await_status("what passed without orders", |status| count(status, "lease_over") > 0);
}

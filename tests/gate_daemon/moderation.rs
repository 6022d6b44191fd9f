//! How often packets are taken while too many come, and that it is as before afterwards, whatever happens.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use staunch_tests::process;

use crate::crowd::{Crowd, PORT, serve, serve_slowly};
use crate::world::{Gate, INTERFACE, SERVER, World};

const BEFORE: &str = "20000 0";
const BEGINS: &str = "packets of vs are taken every";
const ENDS: &str = "packets of vs are taken as often as before";

/// Too many from the clients' end, until it is dropped. While forged SYN come there is a server that stands
/// still and some who wait for it: a flood that hinders nobody is left to the kernel.
struct Flood {
    child: Child,
    _hindered: Option<(TcpListener, Vec<TcpStream>)>,
}

impl Flood {
    /// Forged SYN.
    fn begin(world: &World) -> Self {
        let to = format!("{SERVER}:80");
        let hindered = Some(hindered(world));
        let words = ["flood", "--interface", "vc", "--to", &to, "--rate", "100k/s", "-d", "60s"];
        Self::load(world, &words, hindered)
    }

    /// Clients that mean it.
    fn of_people(world: &World) -> Self {
        let url = format!("http://{SERVER}:{PORT}/");
        Self::load(world, &[&url, "--no-keep-alive", "--patience", "1s", "--rate", "5k/s", "-d", "60s"], None)
    }

    fn load(world: &World, arguments: &[&str], hindered: Option<(TcpListener, Vec<TcpStream>)>) -> Self {
        let mut command = world.client_command(process::binary());
        command.arg("load").args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().expect("our program"), _hindered: hindered }
    }
}

/// A listener from which nobody accepts, and clients that have sent something.
fn hindered(world: &World) -> (TcpListener, Vec<TcpStream>) {
    let listener = world.server(|| TcpListener::bind((SERVER, 80)).expect("a listener"));
    let listener = listener.join().expect("a server");
    let client = |_| {
        let mut client = TcpStream::connect((SERVER, 80)).expect("a connection");
        client.write_all(b"x").expect("a connection");
        client
    };
    let clients = world.client(move || (0..16).map(client).collect());
    (listener, clients.join().expect("clients"))
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `gro_flush_timeout` and `napi_defer_hard_irqs` of the server's interface, as its own namespace shows them.
fn settings(world: &World) -> String {
    let files = format!(
        "/sys/class/net/{INTERFACE}/gro_flush_timeout /sys/class/net/{INTERFACE}/napi_defer_hard_irqs"
    );
    let read = format!("unshare --mount sh -c 'mount -t sysfs sysfs /sys && cat {files}'");
    world.at_server(&read).split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// A flood of 100 000 SYN a second lets looks wait for 500 us, its bursts after a standstill for less.
fn are_put_off(world: &World) -> bool {
    let settings = settings(world);
    let (timeout_ns, deferred) = settings.split_once(' ').expect("two settings");
    (20_001..=500_000).contains(&timeout_ns.parse().expect("nanoseconds")) && deferred == "1"
}

fn world() -> Option<World> {
    let world = World::new()?;
    let set = format!("echo 20000 > /sys/class/net/{INTERFACE}/gro_flush_timeout");
    world.at_server(&format!("unshare --mount sh -c 'mount -t sysfs sysfs /sys && {set}'"));
    assert_eq!(settings(&world), BEFORE);
    Some(world)
}

#[test]
fn packets_are_taken_less_often_while_a_flood_comes() {
    let Some(world) = world() else { return };
    let mut gate = world.gate(&[]);
    assert_eq!(settings(&world), BEFORE);
    let flood = Flood::begin(&world);
    gate.await_line(BEGINS);
    assert!(are_put_off(&world), "{}", settings(&world));
    world.await_status("what is said of it", |status| {
        status["interfaces"][0]["coalescing_us"].as_u64() > Some(20)
    });
    drop(flood);
    gate.await_line(ENDS);
    assert_eq!(settings(&world), BEFORE);
    // A gate that ends under a flood leaves nothing behind.
    let _flood = Flood::begin(&world);
    gate.await_line(BEGINS);
    assert_eq!(gate.end(Signal::TERM).code(), Some(0));
    assert_eq!(settings(&world), BEFORE);
}

#[test]
fn packets_are_taken_less_often_while_a_large_crowd_is_shed_from() {
    let Some(world) = world() else { return };
    serve_slowly(&world);
    let gate = world.gate(&["--port", PORT]);
    let crowd = Flood::of_people(&world);
    gate.await_line(BEGINS);
    assert!(are_put_off(&world), "{}", settings(&world));
    drop(crowd);
    gate.await_line(ENDS);
    assert_eq!(settings(&world), BEFORE);
}

/// Clients who wait for the server wait no longer when their packets do, and nobody need be shed.
#[test]
fn packets_are_taken_less_often_where_people_wait_anyhow() {
    let Some(world) = world() else { return };
    serve(&world, Duration::from_micros(400));
    let gate = world.gate(&["--port", PORT]);
    let crowd = Crowd::of(&world, 40);
    gate.await_line(BEGINS);
    assert!(are_put_off(&world), "{}", settings(&world));
    drop(crowd);
    gate.await_line(ENDS);
    assert_eq!(settings(&world), BEFORE);
    assert!(!gate.said().iter().any(|line| line.contains("-> shedding")), "{:#?}", gate.said());
}

#[test]
fn what_a_killed_gate_left_is_put_back_by_the_next() {
    let Some(world) = world() else { return };
    for next in [&[][..], &["--coalescing", "0"]] {
        let mut gate = world.gate(&[]);
        let flood = Flood::begin(&world);
        gate.await_line(BEGINS);
        gate.end(Signal::KILL);
        assert!(are_put_off(&world), "{}", settings(&world));
        drop(flood);
        let mut gate = world.gate(next);
        assert_eq!(settings(&world), BEFORE);
        gate.end(Signal::TERM);
        assert_eq!(settings(&world), BEFORE);
    }
}

#[test]
fn what_was_left_of_another_interface_is_not_put_back() {
    let Some(world) = world() else { return };
    let mut gate = world.gate(&[]);
    let _flood = Flood::begin(&world);
    gate.await_line(BEGINS);
    gate.end(Signal::KILL);
    world.at_server(&format!("ip link del {INTERFACE}"));
    world.join(INTERFACE, "vc", 0);
    let _gate = world.gate(&[]);
    assert_eq!(settings(&world), "0 0");
}

#[test]
fn an_interface_of_the_same_name_is_another_one() {
    let Some(world) = world() else { return };
    let gate = world.gate(&[]);
    let flood = Flood::begin(&world);
    gate.await_line(BEGINS);
    world.at_server(&format!("ip link del {INTERFACE}"));
    gate.await_line("vs is gone");
    drop(flood);
    // On a busy machine it opens before it has looked whether the interface is there.
    if !gate.said().iter().any(|line| line.contains("shedding -> open")) {
        gate.await_line("shedding -> open");
    }
    world.join(INTERFACE, "vc", 0);
    gate.await_line("vs is back");
    assert_eq!(settings(&world), "0 0");
    let _flood = Flood::begin(&world);
    gate.await_line(BEGINS);
    assert!(are_put_off(&world), "{}", settings(&world));
}

#[test]
fn who_does_not_want_it_keeps_the_settings() {
    let Some(world) = world() else { return };
    for arguments in [["--coalescing", "0"].as_slice(), &["--dry-run"]] {
        let gate: Gate = world.gate(arguments);
        let _flood = Flood::begin(&world);
        world.await_status("a flood that lasts", |status| {
            status["verify"] == true && status["state_seconds"].as_f64().is_some_and(|seconds| seconds > 1.0)
        });
        assert_eq!(settings(&world), BEFORE);
        assert!(!gate.said().iter().any(|line| line.contains("packets of vs")), "{:#?}", gate.said());
    }
}

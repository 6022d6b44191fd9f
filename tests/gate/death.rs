//! The end of who gives the orders: killed, or hanging.
//!
//! It must never end a process it has not started.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use staunch_gate::interface::{find, program_on};
use staunch_gate::layout::Outcome;
use staunch_gate::program::{Attach, Program};
use staunch_netio::clock::{now_ns, pause};

use crate::cable::{Cable, End};
use crate::trial::{self, HOUR_NS, PORTS, permitted};

/// Tells the test that it is the process to be killed.
const VICTIM: &str = "STAUNCH_TEST_GATE_VICTIM";
const SERVER: &str = "10.0.0.1:80";
/// Shorter than the first repetition of a SYN, and longer than any handshake here.
const PATIENCE: Duration = Duration::from_millis(600);
/// How often it is looked for what another process does.
const LOOKS: u32 = 2_000;

fn attach() -> Attach<'static> {
    Attach { interface: "vs", ports: &PORTS, ..Attach::default() }
}

fn is_served(cable: &Cable, patience: Duration) -> bool {
    cable.at(End::Client, move || TcpStream::connect_timeout(&SERVER.parse().unwrap(), patience).is_ok())
}

/// The process that is killed: it sheds everything, for an hour.
fn be_the_victim() {
    let mut gate = Program::attach(&attach()).expect("a gate");
    gate.give(&trial::shed(), now_ns() + HOUR_NS).unwrap();
    loop {
        pause(Duration::from_secs(1));
    }
}

#[test]
fn when_it_is_killed_everybody_gets_in_at_once() {
    if std::env::var_os(VICTIM).is_some() {
        return be_the_victim();
    }
    let Some(cable) = Cable::lay() else { return };
    let Some(_) = cable.at(End::Server, || permitted(Program::attach(&attach())).map(drop)) else { return };
    let _listener = cable.at(End::Server, || TcpListener::bind(SERVER).unwrap());
    let on = || cable.at(End::Server, || program_on(find("vs").unwrap()).unwrap());
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &cable.namespace(End::Server)]);
    command.arg(std::env::current_exe().expect("the path of this test"));
    command.args(["--exact", "death::when_it_is_killed_everybody_gets_in_at_once", "--nocapture"]);
    let mut victim = command.env(VICTIM, "1").stdout(Stdio::null()).spawn().expect("ip");
    let is_there = (0..LOOKS).any(|_| {
        pause(Duration::from_millis(10));
        on().is_some()
    });
    assert!(is_there, "{:?}", victim.try_wait());
    let was_shed = (0..LOOKS).any(|_| !is_served(&cable, PATIENCE));
    // ip(8) has become the process itself.
    victim.kill().expect("a process");
    victim.wait().expect("its end");
    assert!(was_shed && is_served(&cable, Duration::from_secs(10)));
    assert_eq!(on(), None);
}

/// A daemon that hangs keeps the program where it is: the lease ends, and a client that repeats its SYN
/// after a second is let in.
#[test]
fn when_it_hangs_the_lease_ends() {
    let Some(cable) = Cable::lay() else { return };
    let gate = cable.at(End::Server, || {
        let gate = permitted(Program::attach(&attach()))?;
        Some((gate, TcpListener::bind(SERVER).unwrap()))
    });
    let Some((mut gate, _listener)) = gate else { return };
    gate.give(&trial::shed(), now_ns() + HOUR_NS).unwrap();
    assert!(!is_served(&cable, PATIENCE));
    gate.give(&trial::shed(), now_ns()).unwrap();
    assert!(is_served(&cable, Duration::from_secs(10)));
    assert!(gate.counters().unwrap().with(Outcome::LeaseOver) >= 1);
}

//! On an interface: beside others, without privilege, on several, and off again.
//!
//! It must never touch an interface of the machine itself.

use std::process::Command;
use std::time::Duration;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use staunch_gate::fault::GateError;
use staunch_gate::interface::{find, program_on};
use staunch_gate::observation::Orders;
use staunch_gate::program::{Attach, Buffers, Program, RECEPTION_COUNTS, ReceivedBuffers, Way};
use staunch_netio::clock::{now_ns, pause};
use staunch_tests::process;

use crate::cable::{Cable, End};
use crate::trial::{self, HOUR_NS, PORTS, permitted};

fn at(interface: &'static str) -> Attach<'static> {
    Attach { interface, ports: &PORTS, tracker: true, ..Attach::default() }
}

/// What is on an interface of the server's end.
fn on(cable: &Cable, interface: &'static str) -> Option<u32> {
    cable.at(End::Server, move || program_on(find(interface).unwrap()).unwrap())
}

fn attach(cable: &Cable, attach: Attach<'static>) -> Result<Program, GateError> {
    cable.at(End::Server, move || Program::attach(&attach))
}

/// Whether the program is gone from an interface soon: a process that another test is just starting may still
/// hold a copy of the descriptor for a moment.
pub(crate) fn comes_off(cable: &Cable, interface: &'static str) -> bool {
    (0..200).any(|_| {
        let is_off = on(cable, interface).is_none();
        if !is_off {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_off
    })
}

#[test]
fn it_comes_off_when_it_is_dropped() {
    let Some(cable) = Cable::lay() else { return };
    for (way, expected) in
        [(Way::Auto, Way::Native), (Way::Native, Way::Native), (Way::Generic, Way::Generic)]
    {
        let Some(gate) = permitted(attach(&cable, Attach { way, ..at("vs") })) else { return };
        assert_eq!(gate.way(), expected);
        assert!(on(&cable, "vs").is_some());
        drop(gate);
        assert!(comes_off(&cable, "vs"));
    }
}

#[test]
fn where_the_driver_cannot_the_generic_way_is_taken_and_said() {
    let Some(cable) = Cable::lay() else { return };
    let Some(gate) = permitted(attach(&cable, at("sink"))) else { return };
    assert_eq!(gate.way(), Way::Generic);
    assert!(gate.notes().iter().any(|note| note.contains("'sink'") && note.contains("generic")));
    drop(gate);
    assert!(comes_off(&cable, "sink"));
    let refused = attach(&cable, Attach { way: Way::Native, ..at("sink") }).err().unwrap();
    assert!(matches!(&refused, GateError::Kernel(why) if why.contains("'sink'")), "{refused}");
}

#[test]
fn another_program_is_left_alone_and_named() {
    let Some(cable) = Cable::lay() else { return };
    let Some(first) = permitted(attach(&cable, at("vs"))) else { return };
    let before = on(&cable, "vs");
    for way in [Way::Auto, Way::Native, Way::Generic] {
        let refused = attach(&cable, Attach { way, ..at("vs") }).err().expect("a refusal");
        let GateError::Busy { interface, id, name } = &refused else { panic!("{refused}") };
        assert_eq!((interface.as_str(), Some(*id), name.as_str()), ("vs", before, "staunch_gate"));
        assert_eq!(on(&cable, "vs"), before);
    }
    drop(first);
    assert!(comes_off(&cable, "vs"));
    assert!(attach(&cable, at("vs")).is_ok());
}

/// A program of somebody else, put there by ip(8).
#[test]
fn a_foreign_program_is_left_alone_and_named() {
    let Some(cable) = Cable::lay() else { return };
    let folder = staunch_tests::tree::Tree::new().expect("a folder");
    let object = folder.root().join("foreign.o");
    let source = "__attribute__((section(\"xdp\"), used)) int foreigner(void *c) { return 2; }\n\
                  char l[] __attribute__((section(\"license\"), used)) = \"GPL\";\n";
    let text = folder.root().join("foreign.c");
    std::fs::write(&text, source).unwrap();
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let built =
        Command::new(clang).args(["-target", "bpf", "-O2", "-c"]).arg(&text).arg("-o").arg(&object).status();
    assert!(built.expect("clang").success());
    let line = format!("ip link set dev vs xdp obj {} sec xdp 2>&1", object.display());
    cable.run(End::Server, &line);
    let before = on(&cable, "vs").expect("the foreign program");
    let Some(refused) = refused_or_skipped(attach(&cable, at("vs"))) else { return };
    let GateError::Busy { id, name, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*id, before);
    assert!(name == "foreigner" || name == "xdp", "{refused}");
    assert_eq!(on(&cable, "vs"), Some(before));
}

/// `None`, with the reason printed, where it is not allowed.
fn refused_or_skipped(result: Result<Program, GateError>) -> Option<GateError> {
    match result {
        Err(GateError::Privilege(missing)) => {
            let _: Option<()> = permitted(Err(GateError::Privilege(missing)));
            None
        }
        Err(error) => Some(error),
        Ok(_) => panic!("it was put on"),
    }
}

/// Capabilities belong to a thread, so one can be without while the others are not.
#[test]
fn without_privilege_it_says_what_is_missing() {
    let Some(cable) = Cable::lay() else { return };
    let all = CapabilitySet::all();
    for (dropped, named) in [
        (all, vec!["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"]),
        (CapabilitySet::NET_ADMIN, vec!["CAP_NET_ADMIN"]),
        (CapabilitySet::SYS_ADMIN | CapabilitySet::BPF, vec!["CAP_BPF"]),
        (CapabilitySet::SYS_ADMIN | CapabilitySet::PERFMON, vec!["CAP_PERFMON"]),
    ] {
        let refused = cable.at(End::Server, move || {
            let mut sets = capabilities(None).unwrap();
            sets.effective -= dropped;
            set_capabilities(None, sets).unwrap();
            Program::attach(&at("vs")).err().expect("a refusal")
        });
        assert!(matches!(&refused, GateError::Privilege(missing) if *missing == named), "{refused:?}");
        assert!(named.iter().all(|name| refused.to_string().contains(name)), "{refused}");
    }
    assert_eq!(on(&cable, "vs"), None);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let Some(cable) = Cable::lay() else { return };
    for (attach_, words) in [
        (Attach { ports: &[], ..at("vs") }, "a port from 1 to 65535"),
        (Attach { ports: &[80, 0], ..at("vs") }, "a port from 1 to 65535"),
        (at("nosuchlink"), "no interface 'nosuchlink'"),
    ] {
        let Some(refused) = refused_or_skipped(attach(&cable, attach_)) else { return };
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

#[test]
fn several_interfaces_share_their_counters() {
    let Some(cable) = Cable::lay() else { return };
    let Some(gate) = permitted(attach(&cable, at("vs"))) else { return };
    let gate = cable.at(End::Server, move || {
        let mut gate = gate;
        assert_eq!(gate.add("sink", Way::Auto).unwrap(), Way::Generic);
        assert!(matches!(gate.add("sink", Way::Auto), Err(GateError::Busy { .. })));
        assert!(matches!(gate.add("nosuchlink", Way::Auto), Err(GateError::NoInterface(_))));
        assert!(gate.lost().unwrap().is_empty());
        gate
    });
    assert_eq!(on(&cable, "vs"), on(&cable, "sink"));
    drop(gate);
    assert!(comes_off(&cable, "vs") && comes_off(&cable, "sink"));
}

#[test]
fn an_interface_that_is_removed_is_missed_and_one_that_is_renamed_is_not() {
    let Some(cable) = Cable::lay() else { return };
    let Some(mut gate) = permitted(attach(&cable, at("vs"))) else { return };
    gate.give(&trial::shed(), now_ns() + HOUR_NS).unwrap();
    cable.run(End::Server, "ip link set vs down && ip link set vs name vs2 && ip link set vs2 up");
    let mut gate = cable.at(End::Server, move || {
        assert!(gate.lost().unwrap().is_empty());
        gate
    });
    assert!(on(&cable, "vs2").is_some());
    cable.run(End::Server, "ip link del vs2");
    cable.at(End::Server, move || {
        assert_eq!(gate.lost().unwrap(), ["vs"]);
        assert!(gate.counters().is_ok() && gate.give(&Orders::default(), now_ns()).is_ok());
    });
}

/// Sends SYN by the wire for a second.
fn flood(cable: &Cable) {
    let namespace = cable.namespace(End::Client);
    let mut flood = Command::new("ip");
    flood.args(["netns", "exec", &namespace]).arg(process::binary());
    flood.args(["load", "flood", "--interface", "vc", "--to", "10.0.0.1:80", "--from", "10.9.0.0/16"]);
    let finished = process::finish(flood.args(["--rate", "5000/s", "-d", "1s"]));
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
}

#[test]
fn what_is_received_is_counted_by_size_and_by_pool() {
    let Some(cable) = Cable::lay() else { return };
    let Some(gate) = permitted(attach(&cable, at("vs"))) else { return };
    let reception =
        cable.at(End::Server, || ReceivedBuffers::watch("vs")).expect("a kernel that can be watched");
    let (before, seen) = (reception.counted().unwrap(), gate.counters().unwrap());
    flood(&cable);
    let (after, syn) = (reception.counted().unwrap(), gate.counters().unwrap().syn(2) - seen.syn(2));
    let sum = |start: &str| -> u64 {
        let counts = RECEPTION_COUNTS.iter().zip(after.iter().zip(before));
        counts.filter(|(name, _)| name.starts_with(start)).map(|(_, (after, before))| after - before).sum()
    };
    assert!(syn > 1_000 && sum("received small") >= syn, "{syn} SYN, {before:?}, {after:?}");
    // Frames of a flood are packets by themselves: none is many in one buffer.
    assert_eq!(sum("received"), sum("data"), "{before:?}, {after:?}");
    assert_eq!(sum("received"), sum("buffer"), "{before:?}, {after:?}");
}

/// Frames come from the wire, not out of a socket of this host: whoever lets one in has to take memory for
/// it.
#[test]
fn a_syn_that_is_shed_takes_no_buffer() {
    let Some(cable) = Cable::lay() else { return };
    let Some(mut gate) = permitted(attach(&cable, at("vs"))) else { return };
    let buffers = cable.at(End::Server, || Buffers::watch("vs"));
    let buffers = buffers.expect("a kernel that can be watched");
    for shed in [true, false] {
        let orders = if shed { trial::shed() } else { Orders::default() };
        gate.give(&orders, now_ns() + HOUR_NS).unwrap();
        pause(Duration::from_millis(20));
        let (before, seen) = (buffers.counted().unwrap(), gate.counters().unwrap());
        flood(&cable);
        let after = gate.counters().unwrap();
        let syn = after.syn(2) - seen.syn(2);
        let taken = buffers.counted().unwrap() - before;
        assert!(syn > 1_000, "{syn} SYN came");
        if shed {
            assert_eq!(after.shed() - seen.shed(), syn);
            // Others may come: neighbours that are looked for, multicast listeners that report.
            assert!(taken < 100, "{taken} buffers for {syn} SYN that were shed");
        } else {
            assert!(taken >= syn, "{taken} buffers for {syn} SYN that were let in");
        }
    }
}

//! Several ports: each has orders, credits, counters and connections of its own.
//!
//! It must never let a port pay for another.

use std::io::Write as _;

use staunch_gate::layout::{Counters, Outcome};
use staunch_gate::observation::Orders;
use staunch_gate::program::{Attach, Program, Sizes, Trial};
use staunch_netio::clock::now_ns;

use crate::cable::Cable;
use crate::learning::{connect, everybody, gate, listen};
use crate::packet::packet;
use crate::trial::{self, DROP, HOUR_NS, ONE_PLACE, PASS, PORTS, action, permitted};

const UNKNOWN: usize = 2;

fn syn(port: u16) -> Vec<u8> {
    packet(&format!("ipv4=192.0.2.7 tcp mss port={port}"))
}

fn give_line(trial: &mut Trial, line: usize, orders: &Orders) {
    trial.give_line(line, orders, now_ns() + HOUR_NS).expect("orders");
}

#[test]
fn each_port_has_its_orders_and_credits() {
    let Some(mut trial) = trial::plain() else { return };
    give_line(&mut trial, 0, &trial::ration([0, 0, 2]));
    give_line(&mut trial, 1, &Orders::default());
    let actions = |trial: &mut Trial, port| [0; 4].map(|_| action(trial, &syn(port)));
    assert_eq!(actions(&mut trial, 80), [PASS, PASS, DROP, DROP]);
    assert_eq!(actions(&mut trial, 443), [PASS; 4]);
    give_line(&mut trial, 1, &trial::ration([0, 0, 1]));
    assert_eq!(actions(&mut trial, 443), [PASS, DROP, DROP, DROP]);
    let lines = trial.line_counters().unwrap();
    assert_eq!([0, 1].map(|line: usize| lines[line].passed(UNKNOWN)), [2, 5]);
    assert_eq!([0, 1].map(|line: usize| lines[line].with(Outcome::Credit)), [2, 3]);
    assert_eq!(trial.counters().unwrap(), Counters::together(&lines));
    assert!(trial.give_line(2, &Orders::default(), now_ns()).is_err(), "there are two");
}

#[test]
fn each_port_has_its_shares_of_prefixes() {
    let Some(mut trial) = trial::plain() else { return };
    let fair = Orders { window: 1, prefix_limit: 2, ..trial::ration([0, 0, 100]) };
    trial::give(&mut trial, &fair);
    let actions = |trial: &mut Trial, port| [0; 3].map(|_| action(trial, &syn(port)));
    assert_eq!(actions(&mut trial, 80), [PASS, PASS, DROP]);
    assert_eq!(actions(&mut trial, 443), [PASS, PASS, DROP]);
    let lines = trial.line_counters().unwrap();
    assert_eq!(
        [0, 1].map(|line: usize| (lines[line].prefixes, lines[line].with(Outcome::Fair))),
        [(1, 1); 2]
    );
}

#[test]
fn a_lease_that_is_over_opens_that_port() {
    let Some(mut trial) = trial::plain() else { return };
    trial::give(&mut trial, &trial::shed());
    trial.give_line(1, &trial::shed(), 0).unwrap();
    assert_eq!([80, 443].map(|port| action(&mut trial, &syn(port))), [DROP, PASS]);
    assert_eq!(trial.line_counters().unwrap()[1].with(Outcome::LeaseOver), 1);
}

/// Where one port is protected the kernel leaves out what several lines take, when it verifies the program.
#[test]
fn one_port_costs_what_one_line_does() {
    let size = |ports: &[u16]| {
        let mut trial = trial::load(&Attach { ports, ..Attach::default() }, &ONE_PLACE)?;
        Some(trial.size().expect("a size"))
    };
    let (Some(one), Some(two)) = (size(&[80]), size(&PORTS)) else { return };
    println!("instructions and bytes: of one port {one:?}, of two {two:?}");
    assert!(one.0 < two.0, "{one:?} {two:?}");
}

#[test]
fn connections_are_counted_at_their_port() {
    let Some(cable) = Cable::lay() else { return };
    let Some(mut gate) = gate(&cable, Sizes::default()) else { return };
    let listeners = [listen(&cable, "10.0.0.1:80"), listen(&cable, "10.0.0.1:443")];
    everybody(&mut gate);
    let silent = connect(&cable, "10.0.0.2:0", "10.0.0.1:80");
    let mut asks = connect(&cable, "10.0.0.2:0", "10.0.0.1:443");
    asks.write_all(b"x").unwrap();
    let counted = |gate: &Program| {
        let lines = gate.line_counters().unwrap();
        [0, 1].map(|line: usize| {
            let flows = lines[line].flows.as_ref().expect("a tracker");
            (flows.silent(), flows.waiting(), flows.begun, flows.ended)
        })
    };
    let until = |gate: &Program, expected| {
        staunch_tests::house::waiting::until("the counts", || counted(gate) == expected);
    };
    until(&gate, [(1, 0, 0, 0), (0, 1, 0, 0)]);
    let (mut accepted, _) = listeners[1].accept().unwrap();
    std::io::Read::read_exact(&mut accepted, &mut [0]).unwrap();
    until(&gate, [(1, 0, 0, 0), (0, 0, 1, 0)]);
    drop((silent, asks, accepted, listeners));
    until(&gate, [(0, 0, 0, 1), (0, 0, 1, 1)]);
}

#[test]
fn ports_are_named_once_and_not_too_many() {
    let many: Vec<u16> = (1..=65).collect();
    for (ports, words) in [(&[80, 443, 80][..], "port 80 is named twice"), (&many, "it may be 64")] {
        match Trial::load(&Attach { ports, ..Attach::default() }, &ONE_PLACE) {
            Err(staunch_gate::fault::GateError::Privilege(missing)) => {
                let _: Option<()> = permitted(Err(staunch_gate::fault::GateError::Privilege(missing)));
            }
            Err(refused) => assert!(refused.to_string().contains(words), "{refused}"),
            Ok(_) => panic!("it was loaded"),
        }
    }
}

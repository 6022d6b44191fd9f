//! A host without the secret that passes on what others have said, from its own link address.
//!
//! It must never change a byte that a tag covers: what it could not do then is not tried here.

use staunch_dostp::{EVERYBODY, Fault, Kind, Link, Mode};

use super::world::{Faults, World};
use super::{secrets, seeds};

/// Nodes 1 and 2 with keys, and node 3 without.
fn world(seed: u64, mode: Mode) -> (World, [usize; 3]) {
    let mut world = World::new(seed, Faults::default());
    world.record = Some(Vec::new());
    world.secrets = secrets(1, mode);
    let (a, b) = (world.start(1, 1500), world.start(2, 1500));
    world.secrets = None;
    let relay = world.start(3, 1500);
    (world, [a, b, relay])
}

/// Passes frames of this kind that came to the relay from one node on to another; says how many.
fn pass_on(world: &mut World, relay: usize, kind: Kind, from: Link, to: Link) -> usize {
    let own = world.nodes[relay].link;
    let is_wanted = |(sender, receiver, frame): &&(Link, Link, Vec<u8>)| {
        *sender == from && [own, Link::EVERYBODY].contains(receiver) && frame[0] & 0x0f == kind as u8
    };
    let record = world.record.replace(Vec::new()).expect("all is kept");
    let frames: Vec<Vec<u8>> = record.iter().filter(is_wanted).map(|(_, _, frame)| frame.clone()).collect();
    for frame in &frames {
        world.transmit_as(relay, own, to, frame);
    }
    frames.len()
}

#[test]
fn greetings_that_are_passed_on_move_nobody() {
    for mode in [Mode::Mac, Mode::Aead] {
        seeds(20, |seed| {
            let (mut world, [a, b, relay]) = world(seed, mode);
            let [at_a, at_b] = [a, b].map(|place| world.nodes[place].link);
            // Before node 1 believes node 2 as well as afterwards.
            for _ in 0..20 {
                let hellos = pass_on(&mut world, relay, Kind::Hello, at_b, at_a);
                world.run(250);
                pass_on(&mut world, relay, Kind::Probe, at_a, at_b);
                world.run(1);
                pass_on(&mut world, relay, Kind::HelloReply, at_b, at_a);
                world.run(1);
                assert!(world.nodes[a].node.peers().link(2).is_none_or(|link| link == at_b));
                if hellos == 0 {
                    world.secrets = secrets(1, mode);
                    world.restart(b);
                }
            }
            world.run(3_000);
            assert_eq!(world.nodes[a].node.peers().link(2), Some(at_b));
            assert!(world.dropped(Fault::Relayed) > 0);
            let number = world.send(a, 2, 100).unwrap();
            world.run(10);
            assert_eq!(world.receivers(number), 1);
        });
    }
}

#[test]
fn a_message_that_is_passed_on_is_taken_once_and_moves_nobody() {
    seeds(20, |seed| {
        let (mut world, [a, b, relay]) = world(seed, Mode::Aead);
        let [at_a, at_b] = [a, b].map(|place| world.nodes[place].link);
        world.run(2_000);
        // The message to all does not reach node 1, for its link is down.
        world.nodes[a].up = false;
        let number = world.send(b, EVERYBODY, 100).unwrap();
        world.nodes[a].up = true;
        let record = world.record.take().unwrap();
        let (_, _, frame) = record.last().unwrap();
        let own = world.nodes[relay].link;
        for _ in 0..3 {
            world.transmit_as(relay, own, at_a, frame);
            world.run(1);
        }
        assert_eq!(world.receivers(number), 1);
        world.run(3_000);
        assert_eq!(world.nodes[a].node.peers().link(2), Some(at_b));
        assert!(world.dropped(Fault::Replay) > 0);
    });
}

/// What the relay returns of a node that starts, also with another link address in it, is that node's own.
#[test]
fn a_nodes_own_frames_do_not_take_its_address() {
    for with_keys in [true, false] {
        seeds(20, |seed| {
            let mut world = World::new(seed, Faults::default());
            world.record = Some(Vec::new());
            let relay = world.start(3, 1500);
            world.secrets = secrets(1, Mode::Mac).filter(|_| with_keys);
            let a = world.start(1, 1500);
            let at_a = world.nodes[a].link;
            // Above the link address of the node, and below it.
            let own = Link(if seed % 2 == 0 { [0xfe; 6] } else { [0; 6] });
            for _ in 0..40 {
                for (_, _, mut frame) in world.record.replace(Vec::new()).unwrap() {
                    if frame[2..4] == [0, 1] && !with_keys {
                        frame[42..48].copy_from_slice(&own.0);
                    }
                    world.transmit_as(relay, own, at_a, &frame);
                }
                world.run(20);
            }
            assert_eq!(world.nodes[a].node.peers().refused_by(), None);
            let fault = if with_keys { Fault::Relayed } else { Fault::Own };
            assert!(world.dropped(fault) > 0);
            assert_eq!(world.dropped(Fault::Conflict), 0);
        });
    }
}

//! Nodes on a simulated segment, by seed. A failure names the seed; `STAUNCH_SEEDS` gives their number.

mod relaying;
mod world;

use staunch_dostp::{EVERYBODY, Fault, Flags, Header, Kind, Link, Mode, Secrets, SendFault};
use world::{Canary, Faults, World};

/// Runs a scenario for so many seeds, and tells which failed.
fn seeds(default_count: u64, scenario: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let count = std::env::var("STAUNCH_SEEDS").ok().and_then(|count| count.parse().ok());
    for seed in 0..count.unwrap_or(default_count) {
        if let Err(fault) = std::panic::catch_unwind(|| scenario(seed)) {
            println!("seed {seed}");
            std::panic::resume_unwind(fault);
        }
    }
}

/// A few nodes speak to each other in messages of all sizes.
fn converse(seed: u64, faults: Faults, canary: Canary) -> World {
    converse_in(World::new(seed, faults), canary)
}

fn converse_in(mut world: World, canary: Canary) -> World {
    world.canary = canary;
    let count = 2 + world.random.below(5) as u16;
    for address in 1..=count {
        let mtu = [1500, 1500, 600, 9000][world.random.below(4) as usize];
        world.start(address, mtu);
        let pause_ms = world.random.below(50);
        world.run(pause_ms);
    }
    for _ in 0..300 {
        let from = world.random.below(u64::from(count)) as usize;
        let to = 1 + world.random.below(u64::from(count)) as u16;
        let length = match world.random.below(10) {
            0 => 20_000 + world.random.below(40_000),
            1..4 => world.random.below(5_000),
            _ => world.random.below(200),
        };
        let own = to as usize == from + 1;
        let sent = world.send(from, if own { EVERYBODY } else { to }, length as usize);
        assert_ne!(sent, Err(SendFault::Refused));
        let joined = world.random.below(8);
        if !own && (2..5).contains(&joined) {
            world.send_joined(from, to, joined);
        }
        let pause_ms = world.random.below(4);
        world.run(pause_ms);
    }
    world.run(3_000);
    world
}

#[test]
fn without_faults_everything_arrives_once() {
    seeds(30, |seed| {
        let world = converse(seed, Faults::default(), Canary::None);
        let (delivered, sent) = world.delivered();
        assert_eq!(delivered, sent);
        for fault in [Fault::Duplicate, Fault::Order, Fault::Orphan, Fault::Expired, Fault::Unresolved] {
            assert_eq!(world.dropped(fault), 0, "{fault:?}");
        }
    });
}

#[test]
fn what_waited_for_an_address_is_not_lost_where_there_is_no_room_for_it() {
    seeds(30, |seed| {
        let world = converse(seed, Faults { full: 700, ..Faults::default() }, Canary::None);
        let (delivered, sent) = world.delivered();
        assert_eq!(delivered, sent);
        assert_eq!(world.dropped(Fault::Unresolved), 0);
    });
}

fn secrets(byte: u8, mode: Mode) -> Option<Secrets> {
    Some(Secrets { slots: [Some([byte; 32]), None], sends_by: 0, mode })
}

#[test]
fn with_keys_everything_arrives_once() {
    for mode in [Mode::Mac, Mode::Aead] {
        seeds(10, |seed| {
            let mut world = World::new(seed, Faults::default());
            world.secrets = secrets(1, mode);
            let world = converse_in(world, Canary::None);
            let (delivered, sent) = world.delivered();
            assert_eq!(delivered, sent);
            for fault in [Fault::Auth, Fault::Replay, Fault::Duplicate, Fault::Order, Fault::Unresolved] {
                assert_eq!(world.dropped(fault), 0, "{fault:?}");
            }
        });
    }
}

/// An eavesdropper that plays back whatever was said, from the same link address and from another one, and a
/// node with another secret: nothing is handed on twice, nobody is moved, nobody is refused.
#[test]
fn with_keys_replayed_and_forged_frames_do_nothing() {
    seeds(20, |seed| {
        let mut world = World::new(seed, Faults::default());
        world.secrets = secrets(1, Mode::Mac);
        world.record = Some(Vec::new());
        let (a, b) = (world.start(1, 1500), world.start(2, 1500));
        world.secrets = secrets(2, Mode::Mac);
        let stranger = world.start(3, 1500);
        world.run(1_500);
        for _ in 0..50 {
            world.send(a, 2, 3_000).unwrap();
            world.send(b, 1, 100).unwrap();
            world.run(1);
        }
        // The peer restarts: what its former self said is void as well.
        world.secrets = secrets(1, Mode::Mac);
        world.restart(b);
        world.run(1_500);
        world.send(a, 2, 100).unwrap();
        world.run(10);
        let (delivered, sent) = world.delivered();
        assert_eq!((delivered, sent), (101, 101));
        let links = [a, b].map(|place| world.nodes[place].link);
        for (from, to, frame) in world.record.take().unwrap() {
            let from = if world.random.below(2) == 0 { from } else { Link([2, 0, 0, 0, 6, 6]) };
            world.transmit_as(stranger, from, to, &frame);
            world.run(1);
        }
        world.run(3_000);
        assert_eq!(world.nodes[a].node.peers().link(2), Some(links[1]));
        assert_eq!(world.nodes[b].node.peers().link(1), Some(links[0]));
        assert!(world.nodes[..2].iter().all(|place| place.node.peers().refused_by().is_none()));
        assert!(world.nodes[..2].iter().all(|place| place.node.peers().link(3).is_none()));
        assert!(world.dropped(Fault::Replay) > 0 && world.dropped(Fault::Auth) > 0);
        world.send(b, 1, 100).unwrap();
        world.send(a, 2, 100).unwrap();
        world.run(10);
        assert_eq!(world.delivered(), (103, 103));
    });
}

#[test]
fn with_faults_nothing_is_doubled_or_changed() {
    let faults = Faults { lost: 30, doubled: 100, delayed: 200, damaged: 10, full: 50 };
    let world = converse(1, faults, Canary::None);
    assert!(world.dropped(Fault::Duplicate) > 0 && world.dropped(Fault::Check) > 0);
    seeds(60, |seed| {
        let world = converse(seed, faults, Canary::None);
        let (delivered, sent) = world.delivered();
        assert!(delivered > sent / 2 && delivered < sent, "{delivered} of {sent}");
        assert!(world.nodes.iter().all(|place| place.node.under_way() == (0, 0)));
    });
}

#[test]
fn the_checks_see_a_node_that_doubles_and_one_that_loses() {
    let doubles = std::panic::catch_unwind(|| converse(1, Faults::default(), Canary::Doubles));
    assert!(doubles.is_err());
    let world = converse(1, Faults::default(), Canary::Loses);
    let (delivered, sent) = world.delivered();
    assert!(delivered < sent);
}

#[test]
fn a_broadcast_is_one_frame_and_reaches_all() {
    let mut world = World::new(5, Faults::default());
    for address in 1..=20 {
        world.start(address, 1500);
    }
    world.run(1_000);
    let before = world.frames_sent;
    let number = world.send(3, EVERYBODY, 100).unwrap();
    world.run(10);
    assert_eq!((world.frames_sent - before, world.receivers(number)), (1, 19));
}

/// 250 nodes: all know each other 1 s after the last start, and then are quiet.
#[test]
fn a_cluster_of_250_warms_up_and_is_quiet() {
    for (seed, spread_ms) in [(1, 0), (2, 20)] {
        let mut world = World::new(seed, Faults::default());
        for address in 1..=250 {
            world.start(address, 1500);
            let pause_ms = if spread_ms == 0 { 0 } else { world.random.below(spread_ms) };
            world.run(pause_ms);
        }
        world.run(1_000);
        for place in &world.nodes {
            assert_eq!(place.node.peers().list().count(), 249);
        }
        let warm = world.control_frames_sent;
        println!("seed {seed}: {warm} control frames to warm up 250 nodes");
        for _ in 0..4 {
            let before = world.control_frames_sent;
            world.run(450_000);
            let idle = world.control_frames_sent - before;
            assert!(idle <= 250, "{idle} control frames in 450 s");
        }
        // All are still known, so the first message goes at once.
        let before = world.frames_sent;
        for place in 0..250_u16 {
            world.send(usize::from(place), (place + 1) % 250 + 1, 64).unwrap();
        }
        assert_eq!(world.frames_sent - before, 250);
        world.run(10);
        let (delivered, sent) = world.delivered();
        assert_eq!(delivered, sent);
    }
}

/// The newcomer refuses, whoever it is, and the holder goes on.
#[test]
fn of_two_nodes_with_one_address_the_newcomer_refuses() {
    seeds(1_000, |seed| {
        let mut world = World::new(seed, Faults::default());
        let holder = world.start(7, 1500);
        let other = world.start(8, 1500);
        let head_start_ms = 1_000 + world.random.below(5_000);
        world.run(head_start_ms);
        let newcomer = world.start(7, 1500);
        world.run(1_500);
        let link = world.nodes[holder].link;
        assert_eq!(world.nodes[holder].node.peers().refused_by(), None);
        assert_eq!(world.nodes[newcomer].node.peers().refused_by(), Some(link));
        assert_eq!(world.send(newcomer, 8, 16), Err(SendFault::Refused));
        assert_eq!(world.nodes[other].node.peers().link(7), Some(link));
    });
}

#[test]
fn of_two_nodes_that_start_together_one_refuses() {
    seeds(300, |seed| {
        let mut world = World::new(seed, Faults::default());
        let first = world.start(7, 1500);
        let apart_ms = world.random.below(900);
        world.run(apart_ms);
        let second = world.start(7, 1500);
        world.run(2_000);
        let refused = [first, second].map(|place| world.nodes[place].node.peers().refused_by().is_some());
        assert_eq!(refused.iter().filter(|refused| **refused).count(), 1, "{refused:?}");
    });
}

/// A node whose link address changes is reached again within little more than a second.
#[test]
fn a_node_that_moves_is_found_again() {
    seeds(50, |seed| {
        let mut world = World::new(seed, Faults::default());
        let a = world.start(1, 1500);
        let b = world.start(2, 1500);
        world.run(2_000);
        world.send(a, 2, 16).unwrap();
        world.nodes[b].link = Link([2, 0, 0, 0, 9, 9]);
        world.restart(b);
        // What it says from there is heard, but not believed before the former link address was asked.
        world.run(1_200);
        assert_eq!(world.nodes[a].node.peers().link(2), Some(Link([2, 0, 0, 0, 9, 9])));
        let number = world.send(a, 2, 16).unwrap();
        world.run(10);
        assert_eq!(world.receivers(number), 1);
    });
}

/// Whatever an intruder says in a living node's name, nobody is moved and nothing of it is handed on.
#[test]
fn an_intruder_moves_nobody_who_lives() {
    seeds(50, |seed| {
        let mut world = World::new(seed, Faults::default());
        let a = world.start(1, 1500);
        let b = world.start(2, 1500);
        let intruder = world.start(3, 1500);
        world.run(2_000);
        let link = world.nodes[b].link;
        let messages = world.nodes[a].node.passed().messages_received;
        for turn in 0..100 {
            let kind = Kind::ALL[world.random.below(9) as usize];
            let frame = forge(&mut world, kind);
            let target = world.nodes[a].link;
            world.transmit_as(intruder, FORGED, target, &frame);
            world.run(turn % 7 * 20);
            assert_eq!(world.nodes[a].node.peers().link(2), Some(link));
        }
        assert_eq!(world.nodes[a].node.passed().messages_received, messages);
        assert!(world.dropped(Fault::Impostor) > 0);
    });
}

/// Where forged frames come from.
const FORGED: Link = Link([2, 0, 0, 0, 6, 6]);

/// A frame in the name of node 2, for node 1.
fn forge(world: &mut World, kind: Kind) -> Vec<u8> {
    let mut payload = vec![0; if kind.is_control() { 32 } else { 0 }];
    for byte in payload.iter_mut().take(24) {
        *byte = world.random.below(256) as u8;
    }
    if kind.is_control() {
        payload[24] = 5;
        payload[26..].copy_from_slice(&FORGED.0);
    }
    let port = if kind.is_control() { 0 } else { 2000 };
    let to_all = matches!(kind, Kind::Hello | Kind::Bye);
    let header = Header {
        kind,
        flags: Flags::WHOLE,
        source: 2,
        destination: if to_all { EVERYBODY } else { 1 },
        source_port: port,
        destination_port: port,
        message_id: 0,
        length: payload.len() as u16,
        sequence: 0,
    };
    [&header.encode(0)[..], &payload].concat()
}

#[test]
fn a_partition_that_heals_and_nodes_that_restart_do_no_harm() {
    seeds(40, |seed| {
        let mut world = World::new(seed, Faults { lost: 10, doubled: 20, delayed: 50, damaged: 0, full: 0 });
        for address in 1..=6 {
            world.start(address, 1500);
        }
        world.run(1_500);
        for _ in 0..200 {
            let place = world.random.below(6) as usize;
            match world.random.below(40) {
                0 => world.nodes[place].part ^= 1,
                1 => world.restart(place),
                2 => world.nodes[place].up ^= true,
                3 => {
                    let pause_ms = world.random.below(500_000);
                    world.run(pause_ms);
                }
                _ => {
                    let to = 1 + world.random.below(6) as u16;
                    world.send(place, to, 2_000).ok();
                    let pause_ms = world.random.below(10);
                    world.run(pause_ms);
                }
            }
        }
        for place in &mut world.nodes {
            (place.up, place.part) = (true, 0);
        }
        world.faults = Faults::default();
        world.run(5_000);
        let now: Vec<u64> = (0..6_u16)
            .filter_map(|from| world.send(usize::from(from), (from + 1) % 6 + 1, 16).ok())
            .collect();
        world.run(3_000);
        let second: Vec<u64> = (0..6_u16)
            .filter_map(|from| world.send(usize::from(from), (from + 1) % 6 + 1, 16).ok())
            .collect();
        world.run(10);
        assert_eq!(second.iter().filter(|number| world.receivers(**number) == 1).count(), 6, "after {now:?}");
    });
}

#[test]
fn large_frames_are_used_only_where_they_pass() {
    let mut world = World::new(9, Faults::default());
    let (a, b) = (world.start(1, 9000), world.start(2, 9000));
    world.run(1_000);
    // Already the first message to a node never spoken to costs what the later ones do.
    for _ in 0..2 {
        let before = world.frames_sent;
        world.send(a, 2, 40_000).unwrap();
        assert_eq!(world.frames_sent - before, 5);
        world.run(100);
    }
    world.run(10);
    world.send(b, 1, 16).unwrap();
    world.run(10);
    let (delivered, sent) = world.delivered();
    assert_eq!(delivered, sent);
}

#[test]
fn an_address_nobody_has_is_unreachable_and_counted() {
    let mut world = World::new(9, Faults::default());
    let a = world.start(1, 1500);
    world.run(2_000);
    for _ in 0..16 {
        world.send(a, 99, 16).unwrap();
    }
    assert_eq!(world.send(a, 99, 16), Err(SendFault::NoRoom));
    world.run(1_000);
    assert_eq!(world.send(a, 99, 16), Err(SendFault::Unreachable));
    assert_eq!(world.dropped(Fault::Unresolved), 16);
    world.run(1_500);
    assert!(world.send(a, 99, 16).is_ok());
    world.start(99, 1500);
    world.run(500);
    let (delivered, _) = world.delivered();
    assert_eq!(delivered, 1);
}

//! The simulator under a tiny echo server, and the violations it must catch.

#[path = "simulated/beside.rs"]
mod beside;

use std::collections::HashMap;
use std::net::SocketAddr;

use staunch_netio::simulated::{End, Faults, PeerId, Simulated, Step};
use staunch_netio::{Address, Capacity, Completion, Io, Outgoing, Target, Tuning};

/// Echoes until every peer is done, or the turns are used up.
fn echo(world: &mut Simulated) {
    world.accept(0);
    let mut waiting: Vec<Vec<u8>> = Vec::new();
    let mut sending: Vec<bool> = Vec::new();
    let mut stopped = false;
    for _ in 0..20_000 {
        if world.finished() {
            return;
        }
        world.submit_and_wait(Some(std::time::Duration::from_millis(50))).unwrap();
        let mut idle = true;
        while let Some(completion) = world.next_completion() {
            idle &= matches!(completion, Completion::Woken);
            match completion {
                Completion::Accepted { slot, .. } => {
                    let size = waiting.len().max(slot as usize + 1);
                    waiting.resize(size, Vec::new());
                    sending.resize(size, false);
                    waiting[slot as usize].clear();
                    sending[slot as usize] = false;
                    world.receive(slot);
                }
                Completion::Received { slot, input } => {
                    waiting[slot as usize].extend_from_slice(world.input(&input));
                    world.release(input);
                    send(world, slot, &mut waiting, &mut sending);
                }
                Completion::Sent { slot, errno: 0, .. } => {
                    sending[slot as usize] = false;
                    send(world, slot, &mut waiting, &mut sending);
                }
                Completion::Ended { slot, .. } | Completion::Sent { slot, .. } => world.close(slot),
                Completion::AcceptStopped { .. } => stopped = true,
                Completion::Progress { .. } | Completion::Closed { .. } | Completion::Woken => {}
                Completion::Connected { .. } | Completion::Inspected { .. } => panic!("nobody connects"),
                Completion::Ready { .. } => panic!("nothing is watched"),
            }
        }
        if idle && std::mem::take(&mut stopped) {
            world.accept(0);
        }
    }
    panic!("the peers were not done in 20 000 turns");
}

fn send(world: &mut Simulated, slot: u32, waiting: &mut [Vec<u8>], sending: &mut [bool]) {
    let index = slot as usize;
    if !sending[index] && !waiting[index].is_empty() {
        let mut outgoing = Box::<Outgoing>::default();
        outgoing.bytes().append(&mut waiting[index]);
        sending[index] = true;
        world.send(slot, outgoing, false);
    }
}

fn talk(world: &mut Simulated, text: &[u8]) -> PeerId {
    let half = text.len() / 2;
    world.peer(vec![
        Step::Send(text[..half].to_vec()),
        Step::Wait(5),
        Step::Send(text[half..].to_vec()),
        Step::UntilReceived(text.len()),
        Step::Close,
    ])
}

#[test]
fn echoes_exactly_without_loss_however_cut() {
    for seed in 0..200 {
        for faults in [Faults::NONE, Faults::GENTLE] {
            let mut world = Simulated::new(seed, faults, 3);
            let texts: Vec<Vec<u8>> =
                (0..8u8).map(|peer| vec![b'a' + peer; 100 * peer as usize + 7]).collect();
            let peers: Vec<PeerId> = texts.iter().map(|text| talk(&mut world, text)).collect();
            echo(&mut world);
            world.check_empty();
            for (peer, text) in peers.into_iter().zip(&texts) {
                assert_eq!(&world.transcript(peer).received, text, "seed {seed}");
            }
        }
    }
}

#[test]
fn a_hostile_world_gives_prefixes_only() {
    for seed in 0..200 {
        let mut world = Simulated::new(seed, Faults::HOSTILE, 3);
        let peers: Vec<PeerId> = (0..8).map(|_| talk(&mut world, &[b'x'; 500])).collect();
        echo(&mut world);
        world.check_empty();
        for peer in peers {
            let transcript = world.transcript(peer);
            assert!(transcript.received.len() <= 500 && transcript.received.iter().all(|&byte| byte == b'x'));
            assert!(transcript.ended.is_some());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut world = Simulated::new(seed, Faults::HOSTILE, 2);
        let peers: Vec<PeerId> = (0..5).map(|_| talk(&mut world, &[b'y'; 300])).collect();
        echo(&mut world);
        let seen: Vec<_> = peers.iter().map(|&peer| world.transcript(peer).received.len()).collect();
        (seen, world.turns())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn closing_on_unread_bytes_is_a_reset() {
    let mut world = Simulated::new(1, Faults::NONE, 1);
    let peer = world.peer(vec![Step::Send(b"unread".to_vec()), Step::UntilReceived(1)]);
    world.accept(0);
    while !world.finished() {
        world.submit_and_wait(None).unwrap();
        while let Some(completion) = world.next_completion() {
            if let Completion::Accepted { slot, .. } = completion {
                world.close(slot);
            }
        }
    }
    assert_eq!(world.transcript(peer).ended, Some(End::Reset));
}

#[test]
#[should_panic(expected = "seed 5: turn 0: an operation on a free slot")]
fn an_operation_on_a_free_slot_is_caught() {
    Simulated::new(5, Faults::NONE, 1).receive(0);
}

#[test]
#[should_panic(expected = "accept while accepting")]
fn accepting_twice_is_caught() {
    let mut world = Simulated::new(5, Faults::NONE, 1);
    world.accept(0);
    world.accept(0);
}

#[test]
fn received_bytes_are_changed_where_they_stand() {
    let mut world = Simulated::new(1, Faults::NONE, 1);
    world.peer(vec![Step::Send(b"sealed".to_vec()), Step::Close]);
    world.accept(0);
    let mut seen = Vec::new();
    while !world.finished() {
        world.submit_and_wait(None).unwrap();
        while let Some(completion) = world.next_completion() {
            match completion {
                Completion::Accepted { slot, .. } => world.receive(slot),
                Completion::Received { input, .. } => {
                    world.input_mut(&input)[..2].copy_from_slice(b"he");
                    seen.extend_from_slice(world.input(&input));
                    world.release(input);
                }
                Completion::Ended { slot, .. } => world.close(slot),
                _ => {}
            }
        }
    }
    assert_eq!(seen, b"healed");
}

#[test]
fn what_is_set_on_a_connection_is_seen() {
    let mut world = Simulated::new(1, Faults::NONE, 1);
    world.peer(vec![Step::Close]);
    world.accept(0);
    world.submit_and_wait(None).unwrap();
    let Some(Completion::Accepted { slot, .. }) = world.next_completion() else { panic!("nobody came") };
    assert_eq!(world.tunings(slot), []);
    world.tune(slot, Tuning::Unsent(16_384));
    world.tune(slot, Tuning::UserTimeout(90_000));
    assert_eq!(world.tunings(slot), [Tuning::Unsent(16_384), Tuning::UserTimeout(90_000)]);
}

const ECONNREFUSED: i32 = 111;

/// Connects to every peer, sends a text, reads it back if the peer echoes it, closes. Returns the outcomes of
/// connecting, in the order they came.
fn connect_all(world: &mut Simulated, peers: usize, text: &[u8]) -> Vec<i32> {
    let target = Target::new(Address::Unix("anywhere".into()));
    let mut outcomes = Vec::new();
    let mut by_slot = HashMap::new();
    let mut begun = 0;
    let mut closed = 0;
    while closed < peers {
        while begun < peers && world.connect(&target).is_ok() {
            begun += 1;
        }
        world.submit_and_wait(None).unwrap();
        while let Some(completion) = world.next_completion() {
            match completion {
                Completion::Connected { slot, errno } => {
                    outcomes.push(errno);
                    by_slot.insert(slot, errno);
                    world.inspect(slot);
                    if errno != 0 {
                        world.close(slot);
                        continue;
                    }
                    let mut outgoing = Box::<Outgoing>::default();
                    outgoing.bytes().extend_from_slice(text);
                    world.receive(slot);
                    world.send(slot, outgoing, false);
                }
                Completion::Inspected { slot, retransmitted, .. } => {
                    let silent = by_slot.get(&slot) == Some(&110);
                    assert_eq!(retransmitted, if silent { 6 } else { 0 });
                }
                Completion::Received { input, .. } => world.release(input),
                Completion::Ended { slot, .. } => world.close(slot),
                Completion::Closed { .. } => closed += 1,
                Completion::Sent { .. } | Completion::Progress { .. } | Completion::Woken => {}
                other => panic!("{other:?}"),
            }
        }
    }
    outcomes
}

#[test]
fn peers_are_connected_to_and_follow_their_scripts() {
    for seed in 0..100 {
        for faults in [Faults::NONE, Faults::GENTLE] {
            let mut world = Simulated::new(seed, faults, Capacity::connecting(3));
            let script =
                || vec![Step::Wait(7), Step::Send(b"hello".to_vec()), Step::UntilReceived(9), Step::Close];
            let peers: Vec<PeerId> = (0..8).map(|_| world.listener(script())).collect();
            assert_eq!(connect_all(&mut world, 8, b"nine byte"), [0; 8]);
            world.check_empty();
            assert!(world.finished());
            for peer in peers {
                assert_eq!(world.transcript(peer).received, b"nine byte", "seed {seed}");
            }
        }
    }
}

#[test]
fn connecting_fails_in_every_way_and_without_peers_it_is_refused() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let mut world = Simulated::new(seed, Faults::HOSTILE, Capacity::connecting(4));
        for _ in 0..10 {
            world.listener(vec![Step::UntilReceived(4), Step::Close]);
        }
        seen.extend(connect_all(&mut world, 10, b"word"));
        world.check_empty();
        assert!(world.finished(), "seed {seed}");
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 104, 110, ECONNREFUSED]);
    let mut empty = Simulated::new(1, Faults::NONE, Capacity::connecting(4));
    assert_eq!(connect_all(&mut empty, 3, b""), [ECONNREFUSED; 3]);
}

#[test]
fn an_attempt_can_be_abandoned() {
    let faults = Faults { unanswered: 1000, ..Faults::NONE };
    let mut world = Simulated::new(3, faults, Capacity::connecting(1));
    let peer = world.listener(vec![Step::Send(b"never".to_vec())]);
    let target = Target::new(Address::Unix("anywhere".into()));
    let slot = world.connect(&target).unwrap();
    assert_eq!(world.connect(&target).unwrap_err().raw_os_error(), Some(23));
    world.submit_and_wait(Some(std::time::Duration::from_millis(3_500))).unwrap();
    world.inspect(slot);
    assert!(matches!(world.next_completion(), Some(Completion::Inspected { retransmitted: 2, .. })));
    world.close(slot);
    world.submit_and_wait(None).unwrap();
    assert!(matches!(world.next_completion(), Some(Completion::Closed { slot: 0 })));
    world.check_empty();
    assert!(world.finished() && !world.transcript(peer).accepted);
}

#[test]
#[should_panic(expected = "an operation before the connection is there")]
fn sending_before_the_connection_is_caught() {
    let mut world = Simulated::new(5, Faults::NONE, Capacity::connecting(1));
    let slot = world.connect(&Target::new(Address::Unix("anywhere".into()))).unwrap();
    world.send(slot, Box::default(), false);
}

#[test]
fn where_a_peer_comes_from_is_told_when_it_is_asked_for() {
    let home = SocketAddr::from(([198, 51, 100, 7], 4711));
    for learns in [false, true] {
        let mut world = Simulated::new(1, Faults::NONE, 4);
        world.peer_from(home, vec![Step::Send(b"x".to_vec()), Step::Close]);
        world.peer(vec![Step::Close]);
        if learns {
            world.learn_peers();
        }
        world.accept(0);
        let mut seen = Vec::new();
        for _ in 0..10 {
            world.submit_and_wait(Some(std::time::Duration::from_millis(1))).unwrap();
            while let Some(completion) = world.next_completion() {
                if let Completion::Accepted { slot, .. } = completion {
                    seen.push(world.peer_address(slot));
                    assert_eq!(world.peer_address(slot + 1), None);
                    world.close(slot);
                }
            }
        }
        assert_eq!(seen.len(), 2);
        assert_eq!(seen.contains(&Some(home)), learns);
        assert_eq!(seen.iter().all(Option::is_some), learns);
    }
}

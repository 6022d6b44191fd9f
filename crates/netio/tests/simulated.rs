//! The simulator under a tiny echo server, and the violations it must catch.

use staunch_netio::simulated::{End, Faults, PeerId, Simulated, Step};
use staunch_netio::{Completion, Io, Outgoing};

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

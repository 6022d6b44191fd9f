//! Nodes that lie: nothing they send may panic, nor make a node hold or do more than its bounds allow.

use proptest::prelude::*;
use staunch_dostp::Kind;
use staunch_dostp::fabric::{Became, Fabric, HeardMessage, Now, Outgoing, Stamp, limits};
use staunch_dostp::kinds::publish::Publisher;

use crate::world::{Faults, Handle, PORT, World};

fn forged(epoch: u32, version: u64) -> Vec<u8> {
    let mut payload = Publisher::new(epoch).publish(0, b"");
    payload[16..24].copy_from_slice(&version.to_be_bytes());
    payload
}

pub(crate) fn data(from: u16, payload: &[u8]) -> HeardMessage<'_> {
    HeardMessage { from: (from, PORT), kind: Kind::Data, message_id: 0, payload }
}

pub(crate) fn record(stamp: Stamp, topic: &str) -> Vec<u8> {
    record_of(stamp, &[topic])
}

fn record_of(stamp: Stamp, topics: &[&str]) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend_from_slice(&stamp.ms.to_be_bytes());
    record.extend_from_slice(&stamp.node.to_be_bytes());
    record.extend_from_slice(&stamp.sequence.to_be_bytes());
    record.extend_from_slice(&[0, 0, topics.len() as u8]);
    for topic in topics {
        record.extend_from_slice(&(topic.len() as u16).to_be_bytes());
        record.extend_from_slice(topic.as_bytes());
    }
    record.extend_from_slice(b"forged");
    [&(record.len() as u32).to_be_bytes()[..], &record].concat()
}

#[test]
fn forged_versions_start_no_storm() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &[""]);
    world.start(2, &[""]);
    world.publish(0, 0, &["a"], Some(b"1"));
    world.run(3_000);
    let before = world.nodes[1].requests;
    for round in 0..20_000_u64 {
        let version = [0, u64::MAX, u64::MAX - 1, round, 1 << 40][world.random.below(5) as usize];
        let epoch = world.random.below(3) as u32;
        world.deliver(1, &data(1, &forged(epoch, version)));
        // Thousands of nodes that are not there are neither known nor asked without end.
        let from = world.random.below(60_000) as u16;
        world.deliver(1, &data(from, &forged(epoch, version)));
        if round % 10 == 0 {
            world.run(1);
        }
    }
    let (requests, nodes) = (world.nodes[1].requests - before, world.nodes[1].fabric.nodes(world.now(1)));
    assert!(requests < 3 * u64::from(limits::QUESTIONS_PER_SECOND_MAX), "{requests} questions in 2 s");
    assert!(nodes.len() <= limits::NODES_MAX);
    world.publish(0, 0, &["b"], Some(b"2"));
    world.run(30_000);
    assert_eq!(world.values(1, 0).len(), 2, "the true node is heard as before");
}

#[test]
fn a_stamp_far_ahead_poisons_no_topic() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &[""]);
    for ms in [u64::MAX, u64::MAX - 1, world.now(0).wall_ms + limits::AHEAD_MS_MAX + 1] {
        let payload = Publisher::new(1).publish(0, &record(Stamp { ms, node: 9, sequence: 0 }, "a"));
        world.deliver(0, &data(9, &payload));
    }
    world.run(10);
    assert!(world.values(0, 0).is_empty());
    let notice = world.nodes[0].fabric.poll_notice().unwrap();
    assert_eq!((notice.node, notice.refused, world.nodes[0].fabric.counts().ahead), (9, 1, 3));
    assert_eq!(world.nodes[0].fabric.poll_notice(), None, "it is told once a minute");
    // Within the bound it counts, and the next own publication goes beyond it.
    let ms = world.now(0).wall_ms + limits::AHEAD_MS_MAX - 100;
    let payload = Publisher::new(2).publish(0, &record(Stamp { ms, node: 9, sequence: 0 }, "a"));
    world.deliver(0, &data(9, &payload));
    world.run(1);
    assert_eq!(world.values(0, 0)["a"], b"forged");
    world.publish(0, 0, &["a"], Some(b"own"));
    assert_eq!(world.values(0, 0)["a"], b"own");
}

#[test]
fn a_topic_that_is_named_twice_is_one() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &[""]);
    let stamp = Stamp { ms: world.now(0).wall_ms, node: 9, sequence: 0 };
    let payload = Publisher::new(1).publish(0, &record_of(stamp, &["a", "b", "a"]));
    // The world sees to it that none comes twice.
    world.deliver(0, &data(9, &payload));
    world.run(1);
    assert_eq!(world.values(0, 0).len(), 2);
}

/// Answers each question with an empty page that says where the next one begins.
fn page_on(world: &mut World, cursor: impl Fn(usize) -> String) {
    world.deliver(0, &data(9, &forged(1, 1)));
    for page in 0..3_000 {
        world.run(1);
        // Node 9 is heard all the time, so it does not count as silent.
        world.deliver(0, &data(9, &forged(1, 1)));
        for Outgoing { message_id, payload, .. } in std::mem::take(&mut world.unheard) {
            let cursor = cursor(page);
            let reply = [&payload[..8], &[1, 0, cursor.len() as u8], cursor.as_bytes()].concat();
            let message_id = message_id.unwrap();
            let heard = HeardMessage { from: (9, PORT), kind: Kind::Reply, message_id, payload: &reply };
            world.deliver(0, &heard);
        }
    }
}

#[test]
fn who_pages_without_end_holds_nobody_up() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &[""]);
    world.start(2, &[""]);
    world.publish(1, 0, &["a"], Some(b"1"));
    page_on(&mut world, |page| format!("{page:09}"));
    let asked = world.nodes[0].requests;
    assert!(asked > 100 && asked <= 4 * u64::from(limits::QUESTIONS_PER_SECOND_MAX), "{asked}");
    assert_eq!(world.values(0, 0)["a"], b"1");
    assert_eq!(world.nodes[0].fabric.counts().malformed, 0);
}

#[test]
fn pages_that_do_not_go_forward_are_none() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &[""]);
    page_on(&mut world, |_| "a".to_owned());
    let (asked, malformed) = (world.nodes[0].requests, world.nodes[0].fabric.counts().malformed);
    assert!(malformed > 1 && asked < 20, "{asked} questions, {malformed} pages that were none");
}

#[test]
fn one_question_over_and_over_makes_no_flood_of_answers() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &[""]);
    world.publish(0, 0, &["a"], Some(&[b'x'; 100_000]));
    let question = [&[0; 8][..], &[1, 0, 0, 0], &[0; 4 * limits::BUCKETS]].concat();
    let node = &mut world.nodes[0].fabric;
    let (mut bytes, mut answers) = (0, 0);
    for number in 0..1_000 {
        let now = Now { ms: 1_000 + number, wall_ms: 1 };
        let heard = HeardMessage { from: (9, PORT), kind: Kind::Request, message_id: 0, payload: &question };
        node.heard(&heard, now, &mut |_| Became::Taken);
        while let Some(message) = node.poll_outgoing() {
            if message.kind == Kind::Reply {
                (bytes, answers) = (bytes + message.payload.len(), answers + 1);
            }
        }
    }
    assert!(answers > 300 && bytes <= limits::ANSWERED_BYTES_PER_SECOND_MAX as usize + 110_000, "{bytes}");
    assert!(node.counts().unanswered_here > 600);
}

/// What a test of bytes hears: a world would be slow.
fn fabric() -> Fabric<Handle> {
    let mut world = World::new(3, Faults::default());
    world.start(1, &["", "b"]);
    for topic in 0..50 {
        world.publish(0, 0, &[&topic.to_string()], Some(b"value"));
    }
    world.nodes.remove(0).fabric
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::Data, Kind::Request, Kind::Reply, Kind::Ack])
}

proptest! {
    /// Whatever bytes come, in whatever order.
    #[test]
    fn no_bytes_panic(
        messages in prop::collection::vec(
            (any::<u16>(), kinds(), 0_u8..4, prop::collection::vec(any::<u8>(), 0..1_400)), 1..60),
        wall_ms in any::<u64>(),
    ) {
        let mut fabric = fabric();
        for (place, (from, kind, head, mut payload)) in messages.into_iter().enumerate() {
            // Most begin as a message does, so that more of it is read.
            let heads: [&[u8]; 4] = [
                &[],
                &[1, 1, 0, 0, 0, 0, 0, 1, 1],
                &[2, 1, 0, 0, 0, 0, 0, 1],
                &[0, 0, 0, 0, 0, 0, 0, 1, 1, 0],
            ];
            let head = heads[usize::from(head)];
            let length = head.len().min(payload.len());
            payload[..length].copy_from_slice(&head[..length]);
            if head.first() == Some(&2) && payload.len() > 24 {
                payload[8..16].fill(0);
            }
            let now = Now { ms: 400 * place as u64, wall_ms };
            let heard = HeardMessage { from: (from, PORT), kind, message_id: 0, payload: &payload };
            fabric.heard(&heard, now, &mut |_| Became::Taken);
            fabric.tick(now);
        }
        let now = Now { ms: 0, wall_ms };
        prop_assert!(fabric.nodes(now).len() <= limits::NODES_MAX);
    }

    /// Messages of the format, changed in some places.
    #[test]
    fn no_changed_message_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut sender = fabric();
        sender.tick(Now { ms: 1, wall_ms: 1 });
        let mut receiver = fabric();
        while let Some(message) = sender.poll_outgoing() {
            let mut payload = message.payload;
            for (place, byte) in &changes {
                let place = place.index(payload.len());
                payload[place] = *byte;
            }
            payload.truncate(cut.index(payload.len()) + 1);
            let now = Now { ms: 5, wall_ms: 5 };
            let kind = message.kind;
            let heard = HeardMessage { from: (2, PORT), kind, message_id: 0, payload: &payload };
            receiver.heard(&heard, now, &mut |_| Became::Taken);
        }
    }
}

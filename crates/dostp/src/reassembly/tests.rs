//! Reassembly against a plain model, its bounds, and a canary.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::header::Kind;

fn fragment(source: u16, id: u16, sequence: u8, last: bool) -> Header {
    let first = if sequence == 0 { Flags::FIRST } else { Flags::default() };
    Header {
        kind: Kind::Data,
        flags: if last { first.with(Flags::FINAL) } else { first },
        source,
        destination: 8,
        source_port: 1,
        destination_port: 2,
        message_id: id,
        length: 0,
        sequence,
    }
}

#[test]
fn fragments_in_order_make_a_message() {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 0), Drops::default());
    assert_eq!(reassembly.add(&fragment(7, 1, 0, false), b"ab", 0, &mut drops), Added::Stored);
    assert_eq!(reassembly.add(&fragment(9, 1, 0, false), b"AB", 0, &mut drops), Added::Stored);
    assert_eq!(reassembly.add(&fragment(7, 1, 1, false), b"cd", 0, &mut drops), Added::Stored);
    assert_eq!(
        reassembly.add(&fragment(7, 1, 2, true), b"", 0, &mut drops),
        Added::Message(b"abcd".to_vec())
    );
    assert_eq!(reassembly.messages(), 1);
    assert_eq!(drops.total(), 0);
    reassembly.forget(9);
    assert_eq!((reassembly.messages(), reassembly.bytes()), (0, 0));
}

#[test]
fn anything_else_drops_the_message_and_is_counted() {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 0), Drops::default());
    let mut add = |header: Header| reassembly.add(&header, b"x", 0, &mut drops);
    assert_eq!(add(fragment(7, 1, 1, false)), Added::Dropped(Fault::Orphan));
    add(fragment(7, 2, 0, false));
    assert_eq!(add(fragment(7, 2, 2, false)), Added::Dropped(Fault::Order));
    assert_eq!(add(fragment(7, 2, 1, true)), Added::Dropped(Fault::Orphan));
    add(fragment(7, 3, 0, false));
    add(fragment(7, 3, 1, false));
    assert_eq!(add(fragment(7, 3, 1, false)), Added::Dropped(Fault::Order));
    // A first fragment always begins anew.
    add(fragment(7, 4, 0, false));
    assert_eq!(add(fragment(7, 4, 0, false)), Added::Stored);
    assert_eq!(add(fragment(7, 4, 1, true)), Added::Message(b"xx".to_vec()));
    assert_eq!((drops.of(Fault::Orphan), drops.of(Fault::Order)), (2, 3));
}

#[test]
fn a_message_has_256_fragments_and_a_size() {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 0), Drops::default());
    for sequence in 0..=254 {
        let added = reassembly.add(&fragment(7, 1, sequence, false), b"x", 0, &mut drops);
        assert_eq!(added, Added::Stored);
    }
    let added = reassembly.add(&fragment(7, 1, 255, true), b"x", 0, &mut drops);
    assert_eq!(added, Added::Message(vec![b'x'; 256]));
    let bounds = Bounds { message_bytes_max: 3, ..Bounds::default() };
    let mut reassembly = Reassembly::new(bounds, 0);
    reassembly.add(&fragment(7, 1, 0, false), b"xx", 0, &mut drops);
    let added = reassembly.add(&fragment(7, 1, 1, true), b"xx", 0, &mut drops);
    assert_eq!(added, Added::Dropped(Fault::Size));
    let added = reassembly.add(&fragment(7, 2, 0, false), b"xxxx", 0, &mut drops);
    assert_eq!(added, Added::Dropped(Fault::Size));
    assert_eq!((reassembly.messages(), reassembly.bytes(), drops.of(Fault::Size)), (0, 0, 2));
}

/// What is held for a message is never more than a message may have, so a source can always send one.
#[test]
fn the_longest_message_passes() {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 0), Drops::default());
    let piece = [7; 1_484];
    for sequence in 0..176_u8 {
        let added = reassembly.add(&fragment(7, 1, sequence, false), &piece, 0, &mut drops);
        assert_eq!(added, Added::Stored, "{sequence}");
    }
    let last = &piece[..(256 << 10) - 176 * 1_484];
    let added = reassembly.add(&fragment(7, 1, 176, true), last, 0, &mut drops);
    assert_eq!(added, Added::Message(vec![7; 256 << 10]));
}

#[test]
fn a_message_ends_after_its_time() {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 0), Drops::default());
    reassembly.add(&fragment(7, 1, 0, false), b"x", 100, &mut drops);
    reassembly.add(&fragment(7, 1, 1, false), b"x", 900, &mut drops);
    assert_eq!((reassembly.expire(1_099), reassembly.expiry_ms()), (0, Some(1_100)));
    assert_eq!((reassembly.expire(1_100), reassembly.expiry_ms()), (1, None));
    let added = reassembly.add(&fragment(7, 1, 2, true), b"x", 1_100, &mut drops);
    assert_eq!(added, Added::Dropped(Fault::Orphan));
}

#[test]
fn a_source_gives_up_its_own_oldest_and_all_give_up_the_oldest() {
    let bounds = Bounds { source_messages_max: 2, node_messages_max: 3, ..Bounds::default() };
    let (mut reassembly, mut drops) = (Reassembly::new(bounds, 0), Drops::default());
    for id in 1..=3 {
        reassembly.add(&fragment(7, id, 0, false), b"x", 0, &mut drops);
    }
    let last = |reassembly: &mut Reassembly, source, id, drops: &mut Drops| {
        matches!(reassembly.add(&fragment(source, id, 1, true), b"x", 0, drops), Added::Message(_))
    };
    assert!(!last(&mut reassembly, 7, 1, &mut drops) && last(&mut reassembly, 7, 2, &mut drops));
    for source in 10..14 {
        reassembly.add(&fragment(source, 1, 0, false), b"x", 0, &mut drops);
    }
    assert!(!last(&mut reassembly, 7, 3, &mut drops), "the oldest of all made room");
    assert!(!last(&mut reassembly, 10, 1, &mut drops) && last(&mut reassembly, 11, 1, &mut drops));
    assert_eq!((drops.of(Fault::Room), drops.of(Fault::Orphan)), (3, 3));
}

#[test]
fn a_message_too_large_for_its_source_is_counted_once() {
    let bounds = Bounds { source_bytes_max: 100, ..Bounds::default() };
    let (mut reassembly, mut drops) = (Reassembly::new(bounds, 0), Drops::default());
    reassembly.add(&fragment(7, 1, 0, false), &[0; 90], 0, &mut drops);
    let added = reassembly.add(&fragment(7, 1, 1, false), &[0; 90], 0, &mut drops);
    assert_eq!((added, drops.of(Fault::Room)), (Added::Dropped(Fault::Room), 1));
    assert_eq!((reassembly.messages(), reassembly.bytes()), (0, 0));
}

/// A model without bounds: fragments in order are appended, anything else drops the message.
#[derive(Default)]
struct Model(BTreeMap<(u16, u16), (u8, Vec<u8>)>);

impl Model {
    fn add(&mut self, header: &Header, payload: &[u8]) -> Option<Vec<u8>> {
        let key = (header.source, header.message_id);
        if header.flags.has(Flags::FIRST) {
            self.0.insert(key, (1, payload.to_vec()));
            return None;
        }
        let (next, mut bytes) = self.0.remove(&key)?;
        if next != header.sequence {
            return None;
        }
        bytes.extend_from_slice(payload);
        if header.flags.has(Flags::FINAL) {
            return Some(bytes);
        }
        self.0.insert(key, (next + 1, bytes));
        None
    }
}

/// Feeds the same fragments to both; says whether they agree at every step.
fn agrees(steps: &[(u16, u16, u8, bool, u8)], forget_order: bool) -> bool {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 0), Drops::default());
    let mut model = Model::default();
    steps.iter().all(|&(source, id, sequence, last, byte)| {
        let mut header = fragment(source, id, sequence, last && sequence > 0);
        let expected = model.add(&header, &[byte]);
        if forget_order && sequence == 2 {
            header.sequence = 1;
        }
        let added = reassembly.add(&header, &[byte], 0, &mut drops);
        let bytes: usize = model.0.values().map(|(_, bytes)| bytes.len()).sum();
        let message = if let Added::Message(message) = added { Some(message) } else { None };
        message == expected && reassembly.messages() == model.0.len() && reassembly.bytes() >= bytes
    })
}

#[test]
fn the_comparison_finds_a_body_that_forgets_the_order() {
    let steps = [(1, 1, 0, false, 0), (1, 1, 2, false, 0)];
    assert!(agrees(&steps, false) && !agrees(&steps, true));
}

proptest! {
    #[test]
    fn it_agrees_with_the_model(
        steps in prop::collection::vec((1_u16..4, 0_u16..3, 0_u8..5, any::<bool>(), any::<u8>()), 0..300),
    ) {
        prop_assert!(agrees(&steps, false));
    }

    /// However fragments come, the bounds hold and every account ends at zero.
    #[test]
    fn bounds_hold(
        steps in prop::collection::vec(
            (1_u16..40, 0_u16..30, 0_u8..3, any::<bool>(), 1_usize..1_400), 0..2_000,
        ),
    ) {
        let bounds = Bounds {
            message_bytes_max: 3_000, source_bytes_max: 5_000, source_messages_max: 3,
            node_bytes_max: 20_000, node_messages_max: 12,
        };
        let (mut reassembly, mut drops) = (Reassembly::new(bounds, 1), Drops::default());
        for (now_ms, (source, id, sequence, last, length)) in steps.into_iter().enumerate() {
            let now_ms = now_ms as u64;
            reassembly.expire(now_ms);
            let header = fragment(source, id, sequence, last && sequence > 0);
            reassembly.add(&header, &vec![0; length], now_ms, &mut drops);
            prop_assert!(reassembly.bytes() <= 20_000 && reassembly.messages() <= 12);
            prop_assert!(reassembly.arrivals.len() <= 2 * 12 + 65);
        }
        reassembly.expire(1_000_000);
        prop_assert_eq!((reassembly.bytes(), reassembly.messages(), reassembly.sources.len()), (0, 0, 0));
    }
}

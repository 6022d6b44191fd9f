//! Joined frames, as they should be and as they should not.

use proptest::prelude::*;

use super::*;
use crate::frame::sum;
use crate::header::{EVERYBODY, Kind};

const DATA: Header = Header {
    kind: Kind::Data,
    flags: Flags::WHOLE,
    source: 7,
    destination: 8,
    source_port: 1000,
    destination_port: 2000,
    message_id: 1,
    length: 0,
    sequence: 0,
};

/// A frame, with MORE or without.
fn frame(header: Header, more: bool, payload: &[u8]) -> Vec<u8> {
    let flags = if more { header.flags.with(Flags::MORE) } else { header.flags };
    let head = Header { flags, length: payload.len() as u16, ..header }.encode(3);
    let trailer: &[u8] = if flags.has(Flags::SUM) { &sum(&head, payload) } else { &[] };
    [&head[..], payload, trailer].concat()
}

/// The payload of each frame, or the fault that ends the walk.
fn walk(mut bytes: Vec<u8>) -> Vec<Result<Vec<u8>, Fault>> {
    let mut joined = JoinedFrames::new(&mut bytes);
    let mut found = Vec::new();
    while let Some(next) = joined.next_frame(3) {
        found.push(next.map(|(header, bytes)| Frame::of(header, bytes).payload.to_vec()));
    }
    assert!(joined.next_frame(3).is_none(), "it ends once");
    found
}

fn holds(payload: &[u8]) -> Result<Vec<u8>, Fault> {
    Ok(payload.to_vec())
}

#[test]
fn frames_come_in_order_and_padding_ends_them() {
    let frames = [frame(DATA, true, b"one"), frame(DATA, true, b""), frame(DATA, false, b"three")].concat();
    let all = [holds(b"one"), holds(b""), holds(b"three")];
    assert_eq!(walk(frames.clone()), all);
    let padding = frame(DATA, false, b"never looked at");
    assert_eq!(walk([frames, padding].concat()), all);
    assert_eq!(walk(Vec::new()), [Err(Fault::Short)]);
}

#[test]
fn nothing_behind_a_frame_with_a_fault_is_looked_at() {
    let (first, last) = (frame(DATA, true, b"first"), frame(DATA, false, b"last"));
    let mut damaged = frame(DATA, true, b"second");
    damaged[3] ^= 1;
    let longer = frame(Header { flags: Flags::WHOLE.with(Flags::SUM), ..DATA }, true, b"1234");
    for (rest, fault) in [
        (Vec::new(), Fault::Short),
        (last[..15].to_vec(), Fault::Short),
        (last[..19].to_vec(), Fault::Length),
        (longer[..23].to_vec(), Fault::Length),
        ([damaged, last].concat(), Fault::Check),
        (vec![0; 1_400], Fault::Version),
    ] {
        assert_eq!(walk([&first[..], &rest].concat()), [holds(b"first"), Err(fault)]);
    }
}

#[test]
fn only_whole_datagrams_to_a_node_are_joined() {
    let whole = Flags::WHOLE;
    let unfit = [
        Header { destination: EVERYBODY, ..DATA },
        Header { flags: Flags::FIRST, ..DATA },
        Header { flags: Flags::FINAL, sequence: 1, ..DATA },
        Header { kind: Kind::Request, ..DATA },
        Header { kind: Kind::Reply, ..DATA },
        Header { kind: Kind::Probe, source_port: 0, destination_port: 0, message_id: 0, ..DATA },
    ];
    for header in unfit {
        let payload = [1; 32];
        assert_eq!(walk(frame(header, true, &payload)), [Err(Fault::Flags)], "{header:?}");
        let behind = [frame(DATA, true, b"a"), frame(header, false, &payload), frame(DATA, false, b"b")];
        assert_eq!(walk(behind.concat()), [holds(b"a"), Err(Fault::Flags)], "{header:?}");
    }
    let marked = Header { flags: whole.with(Flags::PRIORITY).with(Flags::SUM), message_id: 9, ..DATA };
    let fit = [frame(marked, true, b"a"), frame(DATA, false, b"b")].concat();
    assert_eq!(walk(fit), [holds(b"a"), holds(b"b")]);
}

#[test]
fn joined_frames_go_between_the_same_ports_of_the_same_nodes() {
    for other in [
        Header { source: 6, ..DATA },
        Header { destination: 9, ..DATA },
        Header { source_port: 1001, ..DATA },
        Header { destination_port: 2001, ..DATA },
    ] {
        let frames = [frame(DATA, true, b"a"), frame(other, true, b"b"), frame(other, false, b"c")];
        assert_eq!(walk(frames.concat()), [holds(b"a"), Err(Fault::Flags)], "{other:?}");
    }
}

#[test]
fn as_many_come_as_there_is_room_for() {
    let bytes = frame(DATA, true, b"").repeat(1_500 / 16);
    let found = walk(bytes);
    assert_eq!(found.len(), 94);
    assert_eq!(found[93], Err(Fault::Short));
}

proptest! {
    /// The first frame is what it is without those behind it, whatever these are.
    #[test]
    fn whatever_comes_ends(
        starts in prop::collection::vec((0_usize..6, any::<u16>()), 0..40),
        behind in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let kinds = [
            frame(DATA, true, b"abc"),
            frame(DATA, false, b""),
            frame(Header { flags: Flags::WHOLE.with(Flags::SUM), ..DATA }, true, b"sum"),
            frame(Header { destination_port: 9, ..DATA }, true, b"x"),
            vec![0; 3],
            frame(DATA, true, b"long payload"),
        ];
        let mut bytes: Vec<u8> = starts.iter().flat_map(|(kind, _)| kinds[*kind].clone()).collect();
        for (_, place) in starts.iter().take(2).filter(|(_, place)| place % 3 == 0) {
            let place = usize::from(*place) % bytes.len();
            bytes[place] ^= 1;
        }
        bytes.extend(behind);
        let alone = Frame::decode(&bytes, 3).map(|frame| frame.payload.to_vec());
        let found = walk(bytes.clone());
        prop_assert_eq!(&found[0], &alone);
        prop_assert!(found.len() <= bytes.len() / HEADER_BYTES + 1);
        prop_assert!(found.iter().rev().skip(1).all(Result::is_ok), "a fault is the last");
    }
}

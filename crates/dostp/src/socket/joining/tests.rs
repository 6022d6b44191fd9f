//! Messages joined by one node and taken apart by another.

use proptest::prelude::*;

use super::*;
use crate::header::{EVERYBODY, Kind};
use crate::joined::JoinedFrames;
use crate::keys::{Mode, Secrets};
use crate::node::{Node, Sending, Settings};
use crate::outgoing::Outbound;
use crate::peers::Own;

const BOOT: u64 = 5;
const PORTS: [u16; 2] = [2000, 2001];

/// The trailer behind the payload.
#[derive(Debug, Clone, Copy)]
enum Trailer {
    None,
    Sum,
    Keys(Mode),
}

fn link(address: u16) -> Link {
    Link([2, 0, 0, 0, 0, address as u8])
}

/// A node that knows the other one.
fn node(address: u16, other: u16, trailer: Trailer) -> Node {
    let secrets = match trailer {
        Trailer::Keys(mode) => Some(Secrets { slots: [Some([1; 32]), None], sends_by: 0, mode }),
        Trailer::None | Trailer::Sum => None,
    };
    let own = Own { address, link: link(address), boot: BOOT, mtu: 1500 };
    let sum = matches!(trailer, Trailer::Sum);
    let mut node = Node::new(Settings { sum, secrets, ..Settings::new(own, [1; 16]) });
    node.peers_mut().believe(other, link(other), BOOT, 0);
    PORTS.iter().for_each(|port| node.ports_mut().open(*port));
    node
}

/// Where a message goes, and its bytes.
type Sent = (u16, u16, Vec<u8>);

fn small(count: usize, bytes: usize) -> Vec<Sent> {
    vec![(8, PORTS[0], vec![7; bytes]); count]
}

/// The datagrams of these messages.
fn datagrams(sender: &mut Node, messages: &[Sent]) -> Vec<Vec<u8>> {
    let mut group = FrameGroup::default();
    for (message_id, (destination, destination_port, payload)) in
        (65_530_u16..=u16::MAX).chain(0..).zip(messages)
    {
        let outbound = Outbound {
            kind: Kind::Data,
            destination: *destination,
            source_port: 1,
            destination_port: *destination_port,
            message_id,
            priority: false,
        };
        let Ok(Sending::Frames { link, frames }) = sender.send(&outbound, payload, 0) else {
            panic!("no way")
        };
        group.add(link, frames);
    }
    let write = |(_, frames): (Link, &[FrameOut<'_>])| {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| sender.write(frame, 0, &mut bytes));
        bytes
    };
    group.datagrams().map(write).collect()
}

#[test]
fn small_messages_fill_a_frame() {
    for (trailer, beside) in [(Trailer::None, 16), (Trailer::Sum, 20), (Trailer::Keys(Mode::Aead), 40)] {
        let mut sender = node(7, 8, trailer);
        let fitting = 1_500 / (64 + beside);
        assert_eq!(datagrams(&mut sender, &small(fitting, 64)).len(), 1);
        assert_eq!(datagrams(&mut sender, &small(fitting + 1, 64)).len(), 2);
        assert_eq!(datagrams(&mut sender, &small(3, 1_500 - beside)).len(), 3);
    }
    let mut sender = node(7, 8, Trailer::None);
    let empty = datagrams(&mut sender, &small(JOINED_FRAMES_MAX + 1, 0));
    assert_eq!(empty.iter().map(Vec::len).collect::<Vec<_>>(), [JOINED_FRAMES_MAX * 16, 16]);
}

#[test]
fn only_neighbours_with_one_way_are_joined() {
    let mut sender = node(7, 8, Trailer::None);
    let message = |destination, port, bytes| (destination, port, vec![1; bytes]);
    let other_ports = [message(8, 2000, 1), message(8, 2001, 1), message(8, 2000, 1)];
    assert_eq!(datagrams(&mut sender, &other_ports).len(), 3);
    let to_all = [message(EVERYBODY, 2000, 1), message(EVERYBODY, 2000, 1), message(8, 2000, 1)];
    assert_eq!(datagrams(&mut sender, &to_all).len(), 3);
    // The second one has two fragments.
    let fragments = [message(8, 2000, 1), message(8, 2000, 1_485), message(8, 2000, 1)];
    assert_eq!(datagrams(&mut sender, &fragments).len(), 4);
}

fn trailers() -> impl Strategy<Value = Trailer> {
    prop_oneof![
        Just(Trailer::None),
        Just(Trailer::Sum),
        Just(Trailer::Keys(Mode::Mac)),
        Just(Trailer::Keys(Mode::Aead)),
    ]
}

fn messages() -> impl Strategy<Value = Vec<Sent>> {
    let bytes = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..100),
        1 => prop::collection::vec(any::<u8>(), 1_300..3_100),
    ];
    let message = (0_usize..40, bytes).prop_map(|(way, payload)| match way {
        0 => (EVERYBODY, PORTS[0], payload),
        1..4 => (8, PORTS[1], payload),
        _ => (8, PORTS[0], payload),
    });
    prop::collection::vec(message, 0..80)
}

proptest! {
    /// All comes, in order and to the byte, in frames that fit.
    #[test]
    fn what_was_joined_comes_apart(trailer in trailers(), messages in messages()) {
        let (mut sender, mut receiver) = (node(7, 8, trailer), node(8, 7, trailer));
        let mut received = Vec::new();
        for mut datagram in datagrams(&mut sender, &messages) {
            prop_assert!(datagram.len() <= 1_500);
            let mut joined = JoinedFrames::new(&mut datagram);
            while let Some(message) = receiver.receive(link(7), &mut joined, 0) {
                received.push((message.destination, message.destination_port, message.payload.into_owned()));
            }
        }
        prop_assert_eq!(receiver.drops().total(), 0);
        prop_assert_eq!(receiver.passed().messages_received, messages.len() as u64);
        prop_assert_eq!(received, messages);
    }

    /// A bit that was turned costs that frame, or those behind it as well, and never what came before.
    #[test]
    fn a_damaged_frame_costs_none_before_it(
        trailer in trailers(), place: prop::sample::Index, bit in 0_u8..8,
    ) {
        let (mut sender, mut receiver) = (node(7, 8, trailer), node(8, 7, trailer));
        let messages: Vec<Sent> = (0..10).map(|number| (8, PORTS[0], vec![number; 50])).collect();
        let mut datagram = datagrams(&mut sender, &messages).remove(0);
        let each = datagram.len() / 10;
        let place = place.index(datagram.len());
        datagram[place] ^= 1 << bit;
        let mut joined = JoinedFrames::new(&mut datagram);
        let mut received = Vec::new();
        while let Some(message) = receiver.receive(link(7), &mut joined, 0) {
            received.push((8, PORTS[0], message.payload.into_owned()));
        }
        let before = place / each;
        prop_assert!(received.len() >= before);
        prop_assert_eq!(&received[..before], &messages[..before]);
        let is_seen = !matches!(trailer, Trailer::None) || place % each < HEADER_BYTES;
        prop_assert_eq!(received.len() < 10, is_seen);
        // With keys the trailer tells its own length, and so where the next frame is looked for.
        let drops = receiver.drops().total();
        prop_assert!(if is_seen { drops == 1 || drops == 2 } else { drops == 0 }, "{}", drops);
    }
}

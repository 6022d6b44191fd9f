//! A node and what is thrown at it.

use proptest::prelude::*;

use super::*;
use crate::joined::JoinedFrames;

fn node() -> Node {
    let own = Own { address: 8, link: Link([8; 6]), boot: 1, mtu: 1500 };
    Node::new(Settings::new(own, [1; 16]))
}

#[test]
fn a_long_message_is_refused_before_it_is_sent() {
    let mut node = node();
    let outbound = Outbound {
        kind: Kind::Data,
        destination: EVERYBODY,
        source_port: 1,
        destination_port: 2,
        message_id: 3,
        priority: true,
    };
    let payload = vec![0; (256 << 10) + 1];
    assert_eq!(node.send(&outbound, &payload, 0).unwrap_err(), SendFault::TooLong);
    let Ok(Sending::Frames { link, frames }) = node.send(&outbound, &payload[1..], 0) else { panic!() };
    assert_eq!((link, frames.count()), (Link::EVERYBODY, 177));
}

#[test]
fn transactions_are_for_ports_that_take_them() {
    let mut node = node();
    node.ports_mut().open_for_transactions(9);
    node.ports_mut().open(10);
    let header = |port| Header {
        kind: Kind::Request,
        flags: Flags::WHOLE,
        source: 7,
        destination: 8,
        source_port: 1,
        destination_port: port,
        message_id: 1,
        length: 0,
        sequence: 0,
    };
    // A repetition is handed on as well: whoever serves the transaction knows it.
    for _ in 0..2 {
        assert!(node.receive(Link([7; 6]), &mut JoinedFrames::new(&mut header(9).encode(0)), 0).is_some());
    }
    assert!(node.receive(Link([7; 6]), &mut JoinedFrames::new(&mut header(10).encode(0)), 0).is_none());
    node.ports_mut().close(9);
    assert!(node.receive(Link([7; 6]), &mut JoinedFrames::new(&mut header(9).encode(0)), 0).is_none());
    assert_eq!((node.drops().of(Fault::Kind), node.drops().of(Fault::Closed)), (1, 1));
}

proptest! {
    /// Every frame is counted once: taken, stored, or dropped.
    #[test]
    fn whatever_comes_is_accounted_for(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..40),
    ) {
        let mut node = node();
        node.ports_mut().open(7);
        let count = frames.len() as u64;
        for mut frame in frames {
            node.receive(Link([7; 6]), &mut JoinedFrames::new(&mut frame), 0);
        }
        prop_assert_eq!(node.passed().frames_received, count);
        prop_assert!(node.drops().total() <= count);
    }
}

//! Messages that waited for their address, on their way.
//!
//! A message must never be lost here without being counted.

use super::Node;
use crate::fault::Fault;
use crate::greeting::Link;
use crate::outgoing::{Frames, Outbound};
use crate::peers::Route;

impl Node {
    /// The next message that waited for its address and may go now: for [`Node::send_parked`].
    pub fn poll_parked(&mut self, now_ms: u64) -> Option<(Outbound, Vec<u8>)> {
        self.digest_events();
        self.parked.next(now_ms)
    }

    /// Sends a message of [`Node::poll_parked`]. `transmit` is told where the frames go, and says whether all
    /// of them found room; a message that finds none is tried again. A message that cannot be sent any more
    /// is counted as unresolved.
    ///
    /// # Errors
    /// Those of `transmit`; the message is given up.
    pub fn send_parked<E>(
        &mut self,
        outbound: Outbound,
        payload: Vec<u8>,
        now_ms: u64,
        transmit: impl FnOnce(&mut Self, Link, Frames<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let way = match self.peers.route(outbound.destination, now_ms) {
            Route::To { link, mtu } => self.frames(&outbound, &payload, mtu).map(|frames| (link, frames)),
            Route::Wait => {
                // The peer is gone since, for instance because a full table made room.
                self.parked.ask_again(outbound, payload);
                return Ok(());
            }
            Route::Unreachable => None,
        };
        let Some((link, frames)) = way else {
            self.give_up_parked();
            return Ok(());
        };
        let sent = transmit(self, link, frames);
        match sent {
            Ok(true) => {
                self.parked.done();
                self.passed.messages_sent += 1;
            }
            Ok(false) if self.parked.hold(outbound, payload, now_ms) => {}
            Ok(false) | Err(_) => self.give_up_parked(),
        }
        sent.map(|_| ())
    }

    fn give_up_parked(&mut self) {
        self.parked.done();
        self.drops.count(Fault::Unresolved);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::greeting::Greeting;
    use crate::header::{EVERYBODY, Flags, Header, Kind};
    use crate::joined::JoinedFrames;
    use crate::limits::{PARKED_AGAIN_MS_MIN, PARKED_PATIENCE_MS};
    use crate::node::{SendFault, Sending, Settings};
    use crate::peers::Own;

    fn node(peers_max: usize) -> Node {
        let own = Own { address: 8, link: Link([8; 6]), boot: 1, mtu: 1500 };
        Node::new(Settings { peers_max, ..Settings::new(own, [1; 16]) })
    }

    fn outbound(destination: u16, message_id: u16) -> Outbound {
        Outbound {
            kind: Kind::Data,
            destination,
            source_port: 1,
            destination_port: 2,
            message_id,
            priority: false,
        }
    }

    /// Sends message `id`; says whether it waits.
    fn send(node: &mut Node, destination: u16, id: u16, now_ms: u64) -> Result<bool, SendFault> {
        let sending = node.send(&outbound(destination, id), b"x", now_ms);
        sending.map(|sending| matches!(sending, Sending::Parked))
    }

    /// Sends what is due, and what waited and may go now, through a way that has room or not; says which
    /// messages were tried.
    fn flush(node: &mut Node, now_ms: u64, has_room: bool) -> Vec<u16> {
        while node.poll_control(now_ms, &mut Vec::new()).is_some() {}
        let mut tried = Vec::new();
        while let Some((outbound, payload)) = node.poll_parked(now_ms) {
            let sent = node.send_parked(outbound, payload, now_ms, |_, _, frames| {
                tried.extend(frames.map(|frame| frame.header.message_id));
                Ok::<bool, Infallible>(has_room)
            });
            assert_eq!(sent, Ok(()));
            assert!(tried.len() < 100, "a message goes round and round");
        }
        tried
    }

    /// A frame without payload comes from a node, which makes it known.
    fn hear(node: &mut Node, source: u16, now_ms: u64) {
        let header = Header {
            kind: Kind::Data,
            flags: Flags::WHOLE,
            source,
            destination: 8,
            source_port: 1,
            destination_port: 9,
            message_id: 1,
            length: 0,
            sequence: 0,
        };
        node.receive(Link([source as u8; 6]), &mut JoinedFrames::new(&mut header.encode(0)), now_ms);
    }

    /// A node says that it leaves: it is stale from then on.
    fn hear_bye(node: &mut Node, source: u16, now_ms: u64) {
        let link = Link([source as u8; 6]);
        let greeting = Greeting { boot: 7, challenge: 0, echo: 0, mtu: 1500, link }.encode();
        let header = Header {
            kind: Kind::Bye,
            flags: Flags::WHOLE,
            source,
            destination: EVERYBODY,
            source_port: 0,
            destination_port: 0,
            message_id: 0,
            length: greeting.len() as u16,
            sequence: 0,
        };
        let mut frame = [&header.encode(0)[..], &greeting].concat();
        node.receive(link, &mut JoinedFrames::new(&mut frame), now_ms);
        node.tick(now_ms);
    }

    #[test]
    fn what_finds_no_room_once_its_address_is_found_goes_later_and_in_order() {
        let mut node = node(9);
        assert_eq!([1, 2].map(|id| send(&mut node, 7, id, 0)), [Ok(true); 2]);
        assert_eq!(flush(&mut node, 0, true), []);
        hear(&mut node, 7, 10);
        assert_eq!(flush(&mut node, 10, false), [1]);
        // A later message passes none that waits, though its address is known.
        assert_eq!(send(&mut node, 7, 3, 10), Ok(true));
        assert_eq!(node.due_ms(), Some(10 + PARKED_AGAIN_MS_MIN));
        assert_eq!(flush(&mut node, 10, true), []);
        assert_eq!(flush(&mut node, 10 + PARKED_AGAIN_MS_MIN, true), [1, 2, 3]);
        assert_eq!(send(&mut node, 7, 4, 12), Ok(false));
        assert_eq!((node.passed().messages_sent, node.drops().of(Fault::Unresolved)), (4, 0));
    }

    #[test]
    fn what_never_finds_room_is_given_up_and_counted() {
        let mut node = node(9);
        assert_eq!([1, 2].map(|id| send(&mut node, 7, id, 0)), [Ok(true); 2]);
        hear(&mut node, 7, 0);
        let mut now_ms = 0;
        while now_ms < PARKED_PATIENCE_MS {
            assert_eq!(flush(&mut node, now_ms, false), [1], "at {now_ms}");
            now_ms = node.parked.due_ms().unwrap();
        }
        assert_eq!(now_ms, PARKED_PATIENCE_MS);
        assert_eq!(flush(&mut node, now_ms, false), [1, 2]);
        assert_eq!(node.drops().of(Fault::Unresolved), 1);
        assert_eq!(flush(&mut node, PARKED_PATIENCE_MS + PARKED_AGAIN_MS_MIN, true), [2]);
    }

    /// A way out that takes ten frames of a message and then no more.
    #[test]
    fn a_message_of_many_frames_sends_its_first_part_seldom() {
        let mut node = node(9);
        let outbound = outbound(7, 1);
        assert!(matches!(node.send(&outbound, &[0; 60_000], 0), Ok(Sending::Parked)));
        hear(&mut node, 7, 0);
        let (mut tries, mut frames_sent, mut now_ms) = (Vec::new(), 0, 0);
        while let Some((outbound, payload)) = node.poll_parked(now_ms) {
            let part = |_: &mut Node, _, frames: Frames<'_>| {
                frames_sent += frames.take(10).count();
                Ok::<bool, Infallible>(false)
            };
            node.send_parked(outbound, payload, now_ms, part).unwrap();
            tries.push(now_ms);
            now_ms = node.parked.due_ms().unwrap();
        }
        assert_eq!(node.drops().of(Fault::Unresolved), 1);
        assert_eq!(tries[..8], [0, 1, 3, 7, 15, 31, 47, 63]);
        assert_eq!((tries.last(), frames_sent), (Some(&PARKED_PATIENCE_MS), 670));
    }

    #[test]
    fn what_is_refused_is_counted_and_holds_back_no_other() {
        let mut node = node(9);
        assert_eq!([1, 2].map(|id| send(&mut node, 7, id, 0)), [Ok(true); 2]);
        hear(&mut node, 7, 0);
        let (outbound, payload) = node.poll_parked(0).unwrap();
        assert_eq!(node.send_parked(outbound, payload, 0, |_, _, _| Err("refused")), Err("refused"));
        assert_eq!(node.drops().of(Fault::Unresolved), 1);
        assert_eq!(flush(&mut node, 0, true), [2]);
    }

    #[test]
    fn an_answer_that_finds_the_table_full_ends_no_question() {
        let mut node = node(1);
        hear(&mut node, 9, 0);
        assert_eq!([1, 2].map(|id| send(&mut node, 7, id, 0)), [Ok(true); 2]);
        hear(&mut node, 7, 0);
        assert_eq!((node.drops().of(Fault::Unknown), flush(&mut node, 0, true)), (1, vec![]));
        while let Some(due_ms) = node.due_ms().filter(|due_ms| *due_ms <= 1_000) {
            node.tick(due_ms);
            assert_eq!(flush(&mut node, due_ms, true), []);
        }
        assert_eq!(node.drops().of(Fault::Unresolved), 2);
        assert_eq!(send(&mut node, 7, 3, 1_000), Err(SendFault::Unreachable));
    }

    #[test]
    fn a_peer_that_is_gone_before_its_messages_went_is_asked_for_again() {
        let mut node = node(1);
        assert_eq!([1, 2].map(|id| send(&mut node, 7, id, 0)), [Ok(true); 2]);
        hear(&mut node, 7, 0);
        hear_bye(&mut node, 7, 0);
        // The table has one place, and who is stale makes room.
        hear(&mut node, 9, 0);
        assert_eq!(node.peers().link(7), None);
        assert_eq!(flush(&mut node, 0, true), []);
        hear_bye(&mut node, 9, 1);
        hear(&mut node, 7, 1);
        assert_eq!(flush(&mut node, 1, true), [1, 2]);
    }
}

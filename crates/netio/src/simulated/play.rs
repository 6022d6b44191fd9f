//! What happens to one connection in one round of the world: taking, delivering, ending.
//!
//! It must never change the owner's wishes, nor let time pass.

use super::Simulated;
use super::faults::{ECANCELED, ECONNRESET};
use super::peer::{End, PeerId};
use crate::{Completion, Input, Slot};

impl Simulated {
    pub(super) fn play_slot(&mut self, slot: Slot) {
        let Some(connection) = &self.slots[slot as usize] else { return };
        let Some(peer) = connection.peer_connected() else { return self.play_connect(slot) };
        if self.random.chance(self.faults.resets) && !self.peers[peer].reset {
            self.peers[peer].reset = true;
            self.peers[peer].end(End::Own, self.now_ms);
        }
        self.play_send(slot, peer);
        self.play_receive(slot, peer);
        self.play_close(slot, peer);
    }

    fn play_connect(&mut self, slot: Slot) {
        let connection = self.slots[slot as usize].as_mut().expect("played only while open");
        if connection.closing {
            connection.gone = true;
            self.ready.push_back(Completion::Closed { slot });
        } else if connection.over_ms().is_some_and(|ms| ms <= self.now_ms) {
            let errno = connection.settle();
            if let Some(peer) = connection.peer_connected() {
                self.peers[peer].connected();
            }
            self.ready.push_back(Completion::Connected { slot, errno });
        }
    }

    fn play_send(&mut self, slot: Slot, peer: PeerId) {
        let short = self.random.chance(self.faults.short_writes);
        let part = self.random.bits() as usize;
        let connection = self.slots[slot as usize].as_mut().expect("played only while open");
        let Some(mut flight) = connection.flight.take() else { return };
        let peer = &mut self.peers[peer];
        if connection.closing && !flight.last || peer.reset {
            let errno = if peer.reset { ECONNRESET } else { ECANCELED };
            self.ready.push_back(Completion::Sent { slot, outgoing: flight.outgoing, errno });
            return;
        }
        let gone = peer.transcript.ended.is_some();
        let left = (flight.bytes.len() - flight.taken).min(peer.room_bytes());
        if left == 0 {
            connection.flight = Some(flight);
            return;
        }
        let taken = if short { 1 + part % left } else { left };
        if !gone {
            peer.hand_over(&flight.bytes[flight.taken..flight.taken + taken]);
        }
        flight.taken += taken;
        if flight.taken < flight.bytes.len() {
            connection.flight = Some(flight);
            self.ready.push_back(Completion::Progress { slot, bytes: taken as u32 });
        } else {
            connection.closing |= flight.last;
            self.ready.push_back(Completion::Sent { slot, outgoing: flight.outgoing, errno: 0 });
        }
    }

    fn play_receive(&mut self, slot: Slot, peer: PeerId) {
        let short = self.random.chance(self.faults.short_reads);
        let starved = self.random.chance(self.faults.empty_buffers);
        let piece = 1 + self.random.below(40);
        let connection = self.slots[slot as usize].as_mut().expect("played only while open");
        let peer = &mut self.peers[peer];
        if !connection.receiving || connection.closing {
            return;
        }
        if peer.reset {
            connection.receiving = false;
            connection.ended = true;
            self.ready.push_back(Completion::Ended { slot, errno: ECONNRESET });
        } else if !peer.unread.is_empty() {
            let Some(buffer) = self.buffers.iter().position(Option::is_none).filter(|_| !starved) else {
                return;
            };
            let length = peer.unread.len().min(if short { piece } else { 4096 });
            self.buffers[buffer] = Some(peer.unread.drain(..length).collect());
            let input = Input { buffer: buffer as u32, length: length as u32 };
            self.ready.push_back(Completion::Received { slot, input });
        } else if peer.half_closed {
            connection.receiving = false;
            connection.ended = true;
            self.ready.push_back(Completion::Ended { slot, errno: 0 });
        }
    }

    /// Half-closing and closing take effect once what was sent before is taken.
    fn play_close(&mut self, slot: Slot, peer: PeerId) {
        let connection = self.slots[slot as usize].as_ref().expect("played only while open");
        if connection.flight.is_some() {
            return;
        }
        let (closing, shut) = (connection.closing, connection.shut);
        let peer = &mut self.peers[peer];
        if closing {
            let end = if peer.unread.is_empty() { End::Orderly } else { End::Reset };
            peer.end(end, self.now_ms);
            self.slots[slot as usize].as_mut().expect("played only while open").gone = true;
            self.ready.push_back(Completion::Closed { slot });
        } else if shut && peer.outlasts {
            peer.sees_end = true;
            peer.half_closed |= peer.echoes;
        } else if shut && peer.transcript.ended.is_none() {
            peer.end(End::Orderly, self.now_ms);
            peer.half_closed |= !self.random.chance(self.faults.delays) || peer.echoes;
        }
    }
}

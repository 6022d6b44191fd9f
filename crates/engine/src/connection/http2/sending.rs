//! Answers that wait for a window, or for their turn.
//!
//! Which of them goes on is the session's to say (RFC 9218). It must never hand over more than is granted.

use staunch_protocol::http1::BodyOut;

use super::round::Round;
use crate::exchange::Life;
use crate::exchange::http2::Http2;
use crate::exchange::open::Ended;
use crate::exchange::streams::Stream;
use crate::handler::Handler;
use crate::limits::OUTGOING_BYTES_MAX;

impl<H: Handler> Round<'_, '_, H> {
    /// Hands over what waited for a window, as long as nothing is in flight: what is urgent then overtakes
    /// it. Whether anything moved.
    pub(super) fn send_waiting(&mut self) -> bool {
        let mut moved = false;
        while !self.is_sending && self.has_room() {
            let Some(number) = self.pen.http2.session.next_to_send(self.outgoing.bytes()) else { break };
            if !self.send(number) {
                debug_assert!(false, "a stream waits that is not held");
                break;
            }
            moved = true;
        }
        moved
    }

    fn has_room(&self) -> bool {
        self.outgoing.length_bytes() < OUTGOING_BYTES_MAX
            && self.outgoing.written_bytes() < self.turn.written_bytes_max
    }

    /// Hands over as much of what is left of an answer as is granted now. Whether anything moved.
    pub(super) fn send(&mut self, number: u32) -> bool {
        let Http2 { session, streams, container } = &mut *self.pen.http2;
        let Some(stream) = streams.find_mut(number) else { return false };
        // That it is over may not have been told yet.
        if !session.awaits_answer(number) {
            return false;
        }
        let (wanted_bytes, is_whole) = (stream.rest.length_bytes(), is_whole(stream));
        let (now_ms, out) = (self.turn.now_ms, self.outgoing.bytes());
        let granted_bytes = session.begin_data(number, wanted_bytes, is_whole, now_ms, out);
        stream.rest.take(granted_bytes, self.outgoing);
        stream.is_blocked = granted_bytes < wanted_bytes;
        let is_over = is_whole && !stream.is_blocked;
        if granted_bytes > 0 || is_over {
            stream.container = *container;
        }
        if is_over {
            match stream.exchange.as_mut().map(|exchange| &mut exchange.life) {
                Some(Life::Open(state)) => state.concluded = true,
                _ => _ = streams.remove(number),
            }
        }
        granted_bytes > 0 || is_over
    }
}

/// Whether nothing follows what is left of the answer.
fn is_whole(stream: &Stream) -> bool {
    match stream.exchange.as_ref().map(|exchange| &exchange.life) {
        None => true,
        Some(Life::Open(state)) => {
            state.end == Some(Ended::Complete) && !matches!(state.body, BodyOut::Length(1..))
        }
        Some(Life::Waiting | Life::Collecting { .. }) => false,
    }
}

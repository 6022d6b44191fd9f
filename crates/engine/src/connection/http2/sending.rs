//! Answers that wait for a window, or for their turn.
//!
//! Which of them goes on is the session's to say (RFC 9218). It must never hand over more than is granted.

use staunch_protocol::Fields;
use staunch_protocol::http1::BodyOut;

use super::port::StreamPort;
use crate::exchange::http2::Http2;
use crate::exchange::http2_pen::Http2Pen;
use crate::exchange::open::{Ended, OpenState};
use crate::exchange::streams::Stream;
use crate::limits::OUTGOING_BYTES_MAX;

impl StreamPort<'_> {
    /// Hands over what waited for a window, as long as nothing is in flight: what is urgent then overtakes
    /// it. Whether anything moved.
    pub(super) fn send_waiting(&mut self) -> bool {
        let mut moved = false;
        while !self.is_sending && self.has_place() {
            let Some(number) = self.pen.http2.session.next_to_send(self.outgoing.bytes()) else { break };
            if !self.send(number) {
                debug_assert!(false, "a stream waits that is not held");
                break;
            }
            moved = true;
        }
        moved
    }

    fn has_place(&self) -> bool {
        self.outgoing.length_bytes() < OUTGOING_BYTES_MAX
            && self.outgoing.written_bytes() < self.written_bytes_max
    }

    /// Hands over as much of what is left of an answer as is granted now. Whether anything moved.
    pub(super) fn send(&mut self, number: u32) -> bool {
        let Http2Pen { http2, now_ms, .. } = &mut *self.pen;
        let Http2 { session, streams, container } = &mut **http2;
        let Some(stream) = streams.find_mut(number) else { return false };
        // That it is over may not have been told yet.
        if !session.awaits_answer(number) {
            return false;
        }
        let (wanted_bytes, is_whole) = (stream.rest.length_bytes(), is_whole(stream));
        let ends_with_data = is_whole && stream.trailers.is_empty();
        let granted_bytes = match wanted_bytes {
            0 if !ends_with_data => 0,
            _ => session.begin_data(number, wanted_bytes, ends_with_data, *now_ms, self.outgoing.bytes()),
        };
        stream.rest.take(granted_bytes, self.outgoing);
        stream.is_blocked = granted_bytes < wanted_bytes;
        let is_over = is_whole && !stream.is_blocked;
        if is_over && !ends_with_data {
            session.end_with(number, Fields::new(&stream.trailers), *now_ms, self.outgoing.bytes());
        }
        if granted_bytes > 0 || is_over {
            stream.container = *container;
        }
        if is_over {
            match stream.under_way.open() {
                Some(state) => stream.under_way.set_open(OpenState { concluded: true, ..state }),
                None => _ = streams.remove(number),
            }
        }
        granted_bytes > 0 || is_over
    }
}

/// Whether nothing follows what is left of the answer.
fn is_whole(stream: &Stream) -> bool {
    match stream.under_way.open() {
        Some(state) => state.end == Some(Ended::Complete) && !matches!(state.body, BodyOut::Length(1..)),
        None => stream.under_way.is_nothing(),
    }
}

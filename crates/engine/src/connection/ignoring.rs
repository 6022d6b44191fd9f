//! What a peer sends that is only to listen: it is read, so that the peer's end is heard, and thrown away.
//!
//! It must never take bytes of a body that somebody wants.

use super::{Connection, Phase};
use crate::exchange::open::Ended;
use crate::limits::IGNORED_BYTES_MAX;

impl Connection {
    /// Throws away what came behind a request, if its answer goes on and nothing else is listened to. Whether
    /// that was too much, so that the answer ends.
    pub(super) fn ignore(&mut self, input: &mut &[u8]) -> bool {
        if input.is_empty() || self.session.is_reading() {
            return false;
        }
        let Some(mut state) = self.under_way.open() else { return false };
        let Some(ignored_bytes) = &mut state.ignored_bytes else { return false };
        *ignored_bytes += input.len() as u64;
        *input = &[];
        let is_too_much = *ignored_bytes > IGNORED_BYTES_MAX && state.end.is_none();
        if is_too_much {
            state.end = Some(Ended::Complete);
        }
        self.under_way.set_open(state);
        is_too_much
    }

    /// The answer is over behind whose request something was thrown away: where the next request begins is
    /// not known.
    pub(super) fn end_ignoring(&mut self) {
        self.session.break_off();
        self.phase = Phase::Ending { linger: !self.has_ended() };
    }
}

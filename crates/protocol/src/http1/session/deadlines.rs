//! Which deadline of a session runs, and what follows when it has passed.
//!
//! It must never ask the time.

use super::{BodyReader, Phase, Refusal, SelfAnswered, Session, refuse};
use crate::status::Status;
use crate::timer::{Deadline, Timeouts};

impl Session {
    /// When and which deadline ends, in milliseconds on the clock of `now_ms`; `None` while waiting for an
    /// answer or after `Close` (sending and lingering are the caller's).
    #[inline]
    pub fn poll_timeout(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let deadline = match self.phase {
            Phase::First | Phase::Head => Deadline::Header,
            Phase::Idle => Deadline::KeepAlive,
            Phase::Discarding => Deadline::Body,
            Phase::Reading | Phase::Streaming if self.awaits_body() => Deadline::Body,
            Phase::Answering | Phase::Reading | Phase::Streaming => return None,
            Phase::Answered | Phase::Closed { .. } => return None,
        };
        let mut length_ms = u64::from(timeouts.length_ms(deadline));
        if deadline == Deadline::Body
            && let Some(allowance_ms) = timeouts.body_allowance_ms(self.taken_bytes())
        {
            length_ms = length_ms.min(allowance_ms.saturating_sub(u64::from(self.body_ms)));
        }
        Some((self.since_ms + length_ms, deadline))
    }

    /// Whether the peer owes the rest of a body that is wanted.
    fn awaits_body(&self) -> bool {
        let reader = self.held.as_ref().and_then(|held| held.reader.as_ref());
        reader.is_some_and(|reader| !reader.is_endless())
    }

    /// How much of the body under way was taken.
    fn taken_bytes(&self) -> u64 {
        let reader = self.held.as_ref().and_then(|held| held.reader.as_ref());
        reader.map_or(u64::from(self.discard.taken_bytes()), BodyReader::taken_bytes)
    }

    /// Since when nothing of a request has come and nothing is owed to the peer: between two requests, or
    /// before the first byte.
    pub fn idle_since_ms(&self) -> Option<u64> {
        let before_head = matches!(self.phase, Phase::First | Phase::Head);
        let silent = before_head && self.search.is_new() && self.kept_bytes() == 0;
        (silent || self.phase == Phase::Idle).then_some(self.since_ms)
    }

    /// The deadline has passed. A partial head, or a partial body that is wanted and has no response yet,
    /// gets 408; a silent or idle connection nothing; another partial body nothing more than the response it
    /// already has. Then `Close`.
    pub fn handle_timeout(&mut self, date: &[u8; 29], out: &mut Vec<u8>) -> Option<SelfAnswered> {
        let (linger, answered) = match self.phase {
            Phase::First | Phase::Head if !self.search.is_new() => {
                let refusal = Refusal::new(Status::REQUEST_TIMEOUT, "the head of the request took too long");
                let omit_body = self.held.as_ref().is_some_and(|held| held.input.starts_with(b"HEAD "));
                (true, Some(refuse(refusal, omit_body, date, out)))
            }
            Phase::First | Phase::Head | Phase::Idle => (false, None),
            Phase::Discarding => (true, None),
            Phase::Reading if self.is_reading() => {
                let refusal = Refusal::new(Status::REQUEST_TIMEOUT, "the body of the request took too long");
                (true, Some(refuse(refusal, self.omit_body, date, out)))
            }
            Phase::Streaming if self.is_reading() => (true, None),
            Phase::Answering | Phase::Reading | Phase::Streaming => return None,
            Phase::Answered | Phase::Closed { .. } => return None,
        };
        self.held = None;
        self.close(linger, None);
        answered
    }

    /// Something of a body has come: its deadline begins anew.
    pub(super) fn note_progress(&mut self, now_ms: u64) {
        let since_ms = std::mem::replace(&mut self.since_ms, now_ms);
        let passed_ms = u32::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(u32::MAX);
        self.body_ms = self.body_ms.saturating_add(passed_ms);
    }
}

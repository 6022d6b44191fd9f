//! An answer that goes on and holds nothing beside the slot of its connection.
//!
//! It owns what has to be known of the answer until its end. It must never point to anything: a million of
//! them are to cost what as many idle connections do.

use staunch_protocol::Status;
use staunch_protocol::http1::BodyOut;

use super::open::{Ended, OpenState};
use super::owner::Owner;
use crate::limits::IGNORED_BYTES_MAX;

/// An answer of HTTP/1.1 without its request.
#[derive(Debug)]
pub(crate) struct Resting {
    /// The length of the body so far; above [`BODY_BITS`], how many KiB the handler holds.
    lengths: u64,
    ignored_bytes: u16,
    owner: Owner,
    status: Status,
    marks: u8,
    end: Option<Ended>,
}

/// The body is chunked; else it ends with the connection.
const CHUNKED: u8 = 1;
const WANTS_ROOM: u8 = 2;
const CONCLUDED: u8 = 4;
const TUNED: u8 = 8;
/// Bytes of the peer go to the handler; [`HELD`]: the handler wants none at present.
const HEARS: u8 = 32;
const HELD: u8 = 64;
/// The seventeenth bit of the count of ignored bytes.
const IGNORED_MUCH: u8 = 16;

/// A body of more than 256 TiB is told as one of so much.
const BODY_BITS: u32 = 48;
const BODY_BYTES_MAX: u64 = (1 << BODY_BITS) - 1;

/// More than may come ends the answer, so that it needs not be counted exactly.
const IGNORED_COUNTED_MAX: u64 = (1 << 17) - 1;
const _: () = assert!(IGNORED_BYTES_MAX < IGNORED_COUNTED_MAX);

impl Resting {
    /// Whether an answer can begin to rest: its body has no length of its own, and nothing is held.
    pub(crate) fn can_be(state: &OpenState) -> bool {
        Self::can_stay(state) && state.handler_bytes == 0
    }

    /// Whether an answer may go on resting, although the handler holds something for it now.
    fn can_stay(state: &OpenState) -> bool {
        matches!(state.body, BodyOut::Chunked | BodyOut::UntilClose)
    }

    /// An answer that rests from now on.
    pub(crate) fn new(state: &OpenState, status: Status, owner: Owner) -> Self {
        let mut resting = Self { lengths: 0, ignored_bytes: 0, owner, status, marks: 0, end: None };
        resting.set(state);
        resting
    }

    /// Notes how far the answer has come.
    pub(crate) fn set(&mut self, state: &OpenState) {
        debug_assert!(Self::can_stay(state), "something is held for an answer at rest: {state:?}");
        let ignored_bytes = state.ignored_bytes.unwrap_or(0).min(IGNORED_COUNTED_MAX);
        let marks = [
            (state.body == BodyOut::Chunked, CHUNKED),
            (state.wants_room, WANTS_ROOM),
            (state.concluded, CONCLUDED),
            (state.is_tuned, TUNED),
            (ignored_bytes >> 16 != 0, IGNORED_MUCH),
            (state.ignored_bytes.is_none(), HEARS),
            (state.held, HELD),
        ];
        self.marks = marks.into_iter().map(|(is_set, mark)| u8::from(is_set) * mark).sum();
        let held_kib = state.handler_bytes.div_ceil(1024).min(usize::from(u16::MAX)) as u64;
        self.lengths = state.body_bytes.min(BODY_BYTES_MAX) | held_kib << BODY_BITS;
        self.ignored_bytes = ignored_bytes as u16;
        self.end = state.end;
    }

    /// The answer's state, as it was noted.
    pub(crate) fn state(&self) -> OpenState {
        let has = |mark| self.marks & mark != 0;
        OpenState {
            body: if has(CHUNKED) { BodyOut::Chunked } else { BodyOut::UntilClose },
            wants_room: has(WANTS_ROOM),
            held: has(HELD),
            end: self.end,
            concluded: has(CONCLUDED),
            body_bytes: self.lengths & BODY_BYTES_MAX,
            handler_bytes: self.held_bytes(),
            ignored_bytes: (!has(HEARS))
                .then(|| u64::from(has(IGNORED_MUCH)) << 16 | u64::from(self.ignored_bytes)),
            is_tuned: has(TUNED),
            releases_request: false,
        }
    }

    /// Whether the handler wants what the peer sends.
    pub(crate) fn takes_body(&self) -> bool {
        self.marks & (HEARS | HELD) == HEARS && self.end.is_none()
    }

    /// Bytes that the handler holds for the answer, in whole KiB.
    pub(crate) fn held_bytes(&self) -> usize {
        (self.lengths >> BODY_BITS) as usize * 1024
    }

    /// The status it was answered with.
    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// The part of the handler to which it belongs.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_kept_that_counts() {
        let ends = [None, Some(Ended::Complete), Some(Ended::Overrun)];
        for (number, end) in ends.into_iter().enumerate() {
            let body = if number == 1 { BodyOut::UntilClose } else { BodyOut::Chunked };
            let state = OpenState {
                wants_room: number != 1,
                end,
                concluded: end.is_some(),
                body_bytes: BODY_BYTES_MAX - number as u64,
                handler_bytes: number * 1024,
                ignored_bytes: Some([7, IGNORED_BYTES_MAX, IGNORED_BYTES_MAX + 7][number]),
                is_tuned: number == 2,
                held: number == 2,
                ..OpenState::new(body)
            };
            assert_eq!(Resting::can_be(&state), number == 0);
            let resting = Resting::new(&state, Status::OK, Owner(number as u16));
            assert_eq!(resting.state(), state);
            assert_eq!((resting.status(), resting.owner()), (Status::OK, Owner(number as u16)));
        }
    }

    #[test]
    fn what_is_held_for_it_is_counted_in_whole_kib() {
        for (bytes, counted) in [(0, 0), (1, 1024), (5000, 5120), (usize::MAX, 65_535 * 1024)] {
            let state = OpenState {
                handler_bytes: bytes,
                ignored_bytes: Some(0),
                body_bytes: 7,
                ..OpenState::new(BodyOut::Chunked)
            };
            let resting = Resting::new(&state, Status::OK, Owner(0));
            assert_eq!((resting.held_bytes(), resting.state().body_bytes), (counted, 7));
        }
    }

    #[test]
    fn an_answer_at_rest_may_hear_its_peer() {
        let hears = OpenState::new(BodyOut::UntilClose);
        let others = [
            OpenState { ignored_bytes: Some(0), ..hears },
            OpenState { held: true, ..hears },
            OpenState { end: Some(Ended::Complete), ..hears },
        ];
        let takes = |state: &OpenState| Resting::new(state, Status::OK, Owner(0)).takes_body();
        assert!(takes(&hears) && !others.iter().any(takes));
    }

    #[test]
    fn what_holds_something_cannot_rest() {
        let state = OpenState { ignored_bytes: Some(0), ..OpenState::new(BodyOut::Chunked) };
        assert!(Resting::can_be(&state));
        let others = [
            OpenState { handler_bytes: 1, ..state },
            OpenState { body: BodyOut::Length(1), ..state },
            OpenState { body: BodyOut::Nothing, ..state },
        ];
        assert!(!others.iter().any(Resting::can_be));
    }
}

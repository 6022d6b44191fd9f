//! A stream, for as long as something of it waits.
//!
//! It owns what is known of a request that was not answered at once: windows, what is left of its body, how
//! urgent it is. It must never hold a byte of head or body.

use super::priority::Priority;
use crate::limits::WINDOW_BYTES;
use crate::message::BodyIn;
use crate::timer::{Deadline, Timeouts};

/// The state of a stream in its session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) number: u32,
    /// How much of the answer the peer takes now; below zero after it has made its windows smaller.
    pub(super) send_window: i32,
    /// How much of the body the peer may send now.
    pub(super) receive_left: u32,
    /// How much of it was taken and not yet told.
    pub(super) owed: u32,
    /// How much was given to the caller and not yet taken.
    pub(super) untaken: u32,
    /// Bytes that were taken of the answer since it began to wait.
    pub(super) taken_bytes: u32,
    /// Bytes left of an announced body.
    pub(super) announced_left: Option<u64>,
    /// When something of the body came last, or its peer could send on again.
    pub(super) body_ms: u64,
    /// How long its peer was waited for until then.
    body_waited_ms: u32,
    /// What has come of the body.
    body_bytes: u32,
    /// Since when the answer waits for a window.
    pub(super) blocked_ms: u64,
    flags: u16,
    pub(super) priority: Priority,
}

const _: () = assert!(size_of::<Stream>() <= 72);

/// What is true of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Mark {
    /// The peer has not ended its request.
    RequestOpen = 1,
    /// The body is thrown away.
    Discarding = 1 << 1,
    /// The response has begun.
    Begun = 1 << 2,
    /// The response has no body: the request was HEAD.
    OmitBody = 1 << 3,
    /// The peer waits for 100 before it sends the body.
    Expects = 1 << 4,
    /// More of the answer is there to be sent.
    Wants = 1 << 5,
    /// The end of the body is to be told.
    EndDue = 1 << 6,
    /// That the stream was reset here is to be told.
    ResetDue = 1 << 7,
    /// The response is complete and the request is not: some of its body is still taken, and thrown away.
    Late = 1 << 10,
    /// That no more of it is wanted is to be said now.
    ResetOwed = 1 << 11,
    /// Its body is wanted: its window is a large one.
    LargeWindow = 1 << 9,
    /// The stream is over: what still comes of it is thrown away.
    Over = 1 << 8,
    /// The request asks for another protocol on the stream (RFC 8441): its data are no body, and may come
    /// when they like.
    Tunnel = 1 << 12,
}

impl Stream {
    /// Of a request that has just come.
    pub(super) fn new(number: u32, send_window: u32, priority: Priority, now_ms: u64) -> Self {
        Self {
            number,
            send_window: send_window as i32,
            receive_left: WINDOW_BYTES,
            owed: 0,
            untaken: 0,
            taken_bytes: 0,
            announced_left: None,
            body_ms: now_ms,
            body_waited_ms: 0,
            body_bytes: 0,
            blocked_ms: now_ms,
            flags: 0,
            priority,
        }
    }

    /// A body follows.
    pub(super) fn expect_body(&mut self, content: BodyIn) {
        self.set(Mark::RequestOpen, true);
        self.announced_left = match content {
            BodyIn::None => Some(0),
            BodyIn::Length(bytes) => Some(bytes),
            BodyIn::Open => None,
        };
    }

    #[inline]
    pub(super) fn is(&self, mark: Mark) -> bool {
        self.flags & mark as u16 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, mark: Mark, value: bool) {
        if value {
            self.flags |= mark as u16;
        } else {
            self.flags &= !(mark as u16);
        }
    }

    /// Whether the request still waits for its answer, or for a part of it.
    #[inline]
    pub(super) fn is_live(&self) -> bool {
        !self.is(Mark::Over)
    }

    /// Whether the caller has something to hear.
    pub(super) fn has_news(&self) -> bool {
        self.is(Mark::EndDue) || self.is(Mark::ResetDue)
    }

    /// Some of the body has come.
    pub(super) fn note_body(&mut self, bytes: u32, now_ms: u64) {
        if self.awaits_body() {
            let waited_ms = u32::try_from(now_ms.saturating_sub(self.body_ms)).unwrap_or(u32::MAX);
            self.body_waited_ms = self.body_waited_ms.saturating_add(waited_ms);
        }
        self.body_bytes = self.body_bytes.saturating_add(bytes);
        self.body_ms = now_ms;
    }

    /// Until when more of the body has to come: after a silence, or at the end of what a body as slow as may
    /// be would take.
    pub(super) fn body_due_ms(&self, timeouts: &Timeouts) -> u64 {
        let silence_ms = u64::from(timeouts.length_ms(Deadline::Body));
        let allowance_ms = timeouts.body_allowance_ms(u64::from(self.body_bytes));
        let left_ms = allowance_ms.map(|ms| ms.saturating_sub(u64::from(self.body_waited_ms)));
        self.body_ms + left_ms.map_or(silence_ms, |left_ms| left_ms.min(silence_ms))
    }

    /// The response is complete before the request: from now on its body is late.
    pub(super) fn begin_late(&mut self, now_ms: u64) {
        self.set(Mark::Over, true);
        self.set(Mark::Late, true);
        [Mark::Wants, Mark::EndDue].into_iter().for_each(|mark| self.set(mark, false));
        (self.body_ms, self.body_bytes) = (now_ms, 0);
    }

    /// Some of a late body has come, of which no more than this is taken. Whether that is enough.
    pub(super) fn note_late(&mut self, bytes: u32, bytes_max: u32) -> bool {
        self.body_bytes = self.body_bytes.saturating_add(bytes);
        self.body_bytes >= bytes_max
    }

    /// Whether the peer has to send on: not one that waits for 100, nor if nobody wants the body,
    /// nor in a tunnel, where silence means nothing.
    pub(super) fn awaits_body(&self) -> bool {
        let withheld = self.is(Mark::Discarding) || self.is(Mark::Expects) || self.is(Mark::Tunnel);
        let open = self.is(Mark::RequestOpen) && !withheld;
        self.is_live() && open && self.untaken == 0
    }
}

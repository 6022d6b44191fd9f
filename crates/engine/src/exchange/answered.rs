//! What became of a request: proof of its answer, and what follows.
//!
//! It must never be made but by a pen.

use staunch_protocol::Status;
use staunch_protocol::http1::BodyOut;

use super::owner::Owner;

/// Proof that a request was answered, or will be. Only an [`crate::Answer`] makes one.
#[derive(Debug)]
#[must_use]
pub struct Answered {
    next: Next,
    status: Status,
    owner: Owner,
    /// Length of a complete answer's body, of a body that goes on, the most to be collected, what was not
    /// taken of a piece, or what the handler holds meanwhile.
    detail: u64,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing: the answer is complete.
    Complete,
    Later,
    Collect,
    Read,
    Hold,
    OpenWithoutBody,
    OpenOfLength,
    OpenInChunks,
    OpenUntilClose,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// The request is answered.
    Complete,
    /// The answer comes by mail; the handler holds so much for it meanwhile.
    Later { handler_bytes: usize },
    /// So much of its body is collected first.
    Collect { limit_bytes: usize },
    /// The handler gets its body, as it comes or not at present; so much of the last piece it has left.
    Read { left_bytes: usize, is_held: bool },
    /// The answer goes on.
    Open(BodyOut),
}

impl Answered {
    #[inline]
    pub(super) fn complete(status: Status, body_bytes: u64) -> Self {
        Self { next: Next::Complete, status, owner: Owner(0), detail: body_bytes }
    }

    pub(super) fn later(handler_bytes: usize) -> Self {
        let detail = handler_bytes as u64;
        Self { next: Next::Later, status: Status::OK, owner: Owner(0), detail }
    }

    pub(super) fn collect(limit_bytes: usize) -> Self {
        let detail = limit_bytes as u64;
        Self { next: Next::Collect, status: Status::OK, owner: Owner(0), detail }
    }

    pub(super) fn reading(left_bytes: usize, is_held: bool) -> Self {
        let next = if is_held { Next::Hold } else { Next::Read };
        Self { next, status: Status::OK, owner: Owner(0), detail: left_bytes as u64 }
    }

    pub(super) fn open(status: Status, body: BodyOut) -> Self {
        let (next, detail) = match body {
            BodyOut::Nothing => (Next::OpenWithoutBody, 0),
            BodyOut::Length(length_bytes) => (Next::OpenOfLength, length_bytes),
            BodyOut::Chunked => (Next::OpenInChunks, 0),
            BodyOut::UntilClose => (Next::OpenUntilClose, 0),
        };
        Self { next, status, owner: Owner(0), detail }
    }

    /// The exchange, if it is not over, belongs to this part of the handler from now on.
    pub fn owned_by(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// The part of the handler to which the exchange belongs from now on; 0 if that was not said.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// The status answered with. Of no meaning when the answer comes later.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Length of the body handed over for sending: 0 where there is none, as for HEAD, or where it follows.
    pub fn body_bytes(&self) -> u64 {
        if self.is_complete() { self.detail } else { 0 }
    }

    /// Whether the answer is complete. Else it comes later by mail, or when the request's body is there or is
    /// read, or it goes on and [`crate::Handler::finished`] is told of its end.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.next == Next::Complete
    }

    /// Whether the answer comes later, by mail.
    #[inline]
    pub fn is_later(&self) -> bool {
        self.next == Next::Later
    }

    pub(crate) fn outcome(&self) -> Course {
        match self.next {
            Next::Complete => Course::Complete,
            Next::Later => Course::Later { handler_bytes: self.detail as usize },
            Next::Collect => Course::Collect { limit_bytes: self.detail as usize },
            Next::Read | Next::Hold => {
                Course::Read { left_bytes: self.detail as usize, is_held: self.next == Next::Hold }
            }
            Next::OpenWithoutBody => Course::Open(BodyOut::Nothing),
            Next::OpenOfLength => Course::Open(BodyOut::Length(self.detail)),
            Next::OpenInChunks => Course::Open(BodyOut::Chunked),
            Next::OpenUntilClose => Course::Open(BodyOut::UntilClose),
        }
    }
}

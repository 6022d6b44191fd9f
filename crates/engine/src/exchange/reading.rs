//! A request that is read before it is answered, as its handler sees it.
//!
//! `Reading` owns the replies that a handler may give to one piece of the body. The engine must never lend
//! one for a request whose peer awaits no answer any more.

use staunch_protocol::{Fields, Request, Status};

use super::address::Address;
use super::answer::Answer;
use super::answered::Answered;
use super::outbox::Outbox;
use super::owner::Owner;

/// A request that is read before it is answered. Lent to the handler for one event, which each of
/// [`Reading::go_on`], [`Reading::hold`], [`Reading::take`] and [`Reading::answer`] ends. Trailer fields
/// behind the body are thrown away (RFC 9110, section 6.5.1).
#[derive(Debug)]
pub struct Reading<'a> {
    answer: Answer<'a>,
    /// Length of the piece that is given now.
    piece_bytes: usize,
}

impl<'a> Reading<'a> {
    /// A request that is read, with a piece of its body of this length, or 0.
    pub fn new(answer: Answer<'a>, piece_bytes: usize) -> Self {
        Self { answer, piece_bytes }
    }

    /// Names the exchange, for mail and for [`Outbox::wake`].
    pub fn address(&self) -> Address {
        self.answer.address()
    }

    /// The part of the handler to which the exchange belongs.
    pub fn owner(&self) -> Owner {
        self.answer.owner()
    }

    /// When this turn of the worker began, in milliseconds since 1970.
    pub fn unix_ms(&self) -> u64 {
        self.answer.unix_ms()
    }

    /// Requests of the handler to its worker: to wake an exchange, to connect to an upstream.
    pub fn outbox(&self) -> &Outbox {
        self.answer.outbox()
    }

    /// The pen of the answer, to be asked what it knows.
    pub fn pen(&self) -> &Answer<'a> {
        &self.answer
    }

    /// The piece was taken, and the next may come. Behind the end of the body the handler is asked again
    /// when it is woken.
    pub fn go_on(self) -> Answered {
        Answered::reading(0, false)
    }

    /// The piece was taken, and no more may come until the exchange is woken ([`Outbox::wake`]): the peer
    /// feels it through its window.
    pub fn hold(self) -> Answered {
        Answered::reading(0, true)
    }

    /// The first `bytes` of the piece were taken. The others come again when the exchange is woken, and no
    /// more until then.
    pub fn take(self, bytes: usize) -> Answered {
        let left_bytes = self.piece_bytes.saturating_sub(bytes);
        Answered::reading(left_bytes, left_bytes > 0)
    }

    /// See [`Answer::interim`].
    pub fn interim<'f>(
        &mut self,
        request: &Request<'_>,
        status: Status,
        fields: impl Into<Fields<'f>>,
    ) -> bool {
        self.answer.interim(request, status, fields)
    }

    /// The request is answered now, whether or not its body has ended. The piece counts as taken. With
    /// [`Answer::open`] what is left of the body may come to [`crate::Handler::body`]; its end is not told
    /// twice. With every other answer what is left is thrown away, up to a bound, or the connection ends.
    pub fn answer(self) -> Answer<'a> {
        self.answer
    }
}

//! The one trait of an application: requests in, answers out.
//!
//! A handler is one value per worker, so it may keep mutable state without a lock. It must never block: what
//! needs a disk or much time is given to another thread, and the answer comes by mail.

use std::net::IpAddr;

use staunch_protocol::{Request, Status};
use staunch_tls::ClientIdentity;

use crate::exchange::Finished;
use crate::exchange::address::Address;
use crate::exchange::answer::Answer;
use crate::exchange::answered::Answered;
use crate::exchange::open::Open;
use crate::exchange::outbox::Outbox;
use crate::exchange::owner::Owner;
use crate::exchange::reading::Reading;
use crate::upstream::{Upstream, UpstreamEvent};

/// What comes of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// The next bytes, at least one.
    Piece(&'a [u8]),
    /// All of it has come.
    End,
}

/// How a peer leaves that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// The peer sends no more; the answer is sent all the same.
    SendsNoMore,
    /// Its connection is gone, and with it the answer.
    Gone,
}

/// The application behind the connections of one worker.
///
/// A handler with several parts says once to which of them an exchange belongs ([`Answered::owned_by`]).
/// Every later event names it: [`Answer::owner`], [`Open::owner`], [`Finished::owner`], or an argument.
pub trait Handler {
    /// What another thread sends, to answer a request that was told to wait or to tell the worker something.
    type Mail: Send + 'static;

    /// Answers a request now, or begins to: see the methods of [`Answer`]. Who says `answer.later()` sees to
    /// it that mail is sent to `answer.address()`.
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered;

    /// Whether a request gives way to others. Asked of one alone that has waited for a quarter of the
    /// patience before it was looked at: it is told to come back then.
    fn gives_way(&self, _request: &Request<'_>) -> bool {
        false
    }

    /// Mail came for a request that waits. It is answered now, or told to wait again.
    fn resume(&mut self, mail: Self::Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered;

    /// A request that waits was woken ([`Outbox::wake`]). It is answered now, or waits on.
    fn woken(&mut self, _request: &Request<'_>, answer: Answer<'_>) -> Answered {
        answer.later()
    }

    /// The body of a request is there that was to be collected.
    fn collected(&mut self, _body: Vec<u8>, _request: &Request<'_>, answer: Answer<'_>) -> Answered {
        answer.bytes(Status::INTERNAL_SERVER_ERROR, b"Content-Length: 0\r\n", b"")
    }

    /// Some of the body of a request has come, or its end, before there is an answer ([`Answer::read`]).
    /// `None`: it was woken ([`Outbox::wake`]), and nothing of the body is left from before. It is answered
    /// now, or read on. It costs no memory of the worker while its handler takes what comes.
    fn reading(&mut self, _body: Option<Body<'_>>, _request: &Request<'_>, reading: Reading<'_>) -> Answered {
        reading.answer().bytes(Status::INTERNAL_SERVER_ERROR, b"Content-Length: 0\r\n", b"")
    }

    /// Some of the body has come of a request whose answer goes on and that asked for it.
    fn body(&mut self, _body: Body<'_>, _open: &mut Open<'_>) {}

    /// An answer that goes on has just begun, or has room again, or was woken ([`Outbox::wake`]).
    fn ready(&mut self, _open: &mut Open<'_>) {}

    /// Mail came for a part of the handler, or for an exchange of it that is read or whose answer goes on.
    fn mail(&mut self, _owner: Owner, _mail: Self::Mail, _outbox: &Outbox) {}

    /// How many connections the worker may make for its handler at a time: [`Outbox::upstreams`]. They come
    /// on top of those that are accepted. Asked once, before the worker begins.
    fn upstreams_max(&self) -> u32 {
        0
    }

    /// Something has happened on a connection that the handler has made. If it serves an exchange whose
    /// answer goes on, that is lent too.
    fn upstream(
        &mut self,
        _upstream: Upstream,
        _event: UpstreamEvent<'_>,
        _open: Option<&mut Open<'_>>,
        _outbox: &Outbox,
    ) {
    }

    /// An exchange whose answer went on is over: told once for each, when its last byte was sent or when it
    /// broke.
    fn finished(&mut self, _finished: &Finished<'_>) {}

    /// The peer of a request that waits for mail or is read has left: for those who would do work for it. A
    /// request that is read is [`Departure::Gone`] too when its body is broken or comes too slowly.
    fn left(&mut self, _owner: Owner, _address: Address, _departure: Departure, _outbox: &Outbox) {}

    /// The session or the engine itself has answered, and no handler is asked. For those who keep account,
    /// and for the owner of an exchange that waited for its handler or its body: it is over.
    fn refused(&mut self, _refused: &Refused<'_>) {}
}

/// An answer that no handler gave.
#[derive(Debug)]
pub struct Refused<'a> {
    /// Where the answer goes: the exchange, if one had begun.
    pub address: Address,
    /// The part of the handler to which the exchange belonged, if one had begun. Not that of a request that
    /// was read, which hears by [`Handler::left`] that it is over.
    pub owner: Option<Owner>,
    /// What was answered.
    pub status: Status,
    /// Length of the answer's body.
    pub body_bytes: u64,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What was asked, if it ever became a request.
    pub request: Option<&'a Request<'a>>,
    /// The client's address, if peers are told apart.
    pub peer: Option<IpAddr>,
    /// The identity of the client, if it showed a certificate.
    pub identity: Option<&'a ClientIdentity>,
}

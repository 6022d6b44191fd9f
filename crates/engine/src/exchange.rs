//! A request and its answer, where they are not over at once.
//!
//! It owns the request's own head and where the exchange stands in its life. It must never be made for a
//! request that is answered at once: on the prepared path an exchange is nothing but the session's phase.

pub(crate) mod address;
pub(crate) mod answer;
pub(crate) mod answered;
pub(crate) mod context;
pub(crate) mod exchanges;
pub(crate) mod http2;
pub(crate) mod http2_pen;
pub(crate) mod http2_shared;
pub(crate) mod life;
pub(crate) mod open;
pub(crate) mod outbox;
pub(crate) mod outlet;
pub(crate) mod owner;
pub(crate) mod pen;
pub(crate) mod piece;
pub(crate) mod pieces;
pub(crate) mod port;
pub(crate) mod reading;
pub(crate) mod reading_state;
pub(crate) mod rendered;
pub(crate) mod resting;
pub(crate) mod spelled;
pub(crate) mod streams;
pub(crate) mod turn;
pub(crate) mod under_way;

use std::net::IpAddr;

use staunch_protocol::{KeptRequest, Request, Status};
use staunch_tls::ClientIdentity;

use self::address::Address;
use self::open::{Ended, OpenState};
use self::owner::Owner;
use self::reading_state::ReadingState;

/// An exchange that is not over at once.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) request: KeptRequest,
    pub(crate) life: Life,
    /// Since when the request waits, or has waited; when it came if it did not.
    pub(crate) since_ms: u64,
    /// The status of an answer that goes on.
    pub(crate) status: Status,
    /// The part of the handler to which it belongs.
    pub(crate) owner: Owner,
}

/// Where an exchange stands.
#[derive(Debug)]
pub(crate) enum Life {
    /// The answer comes by mail; the handler holds so much for it.
    Waiting { handler_bytes: usize },
    /// The body of the request is collected up to a limit.
    Collecting { limit_bytes: usize, body: Vec<u8> },
    /// The body of the request is given to the handler, which answers when it knows the answer.
    Reading(ReadingState),
    /// The answer goes on.
    Open(OpenState),
}

impl Exchange {
    /// Whether the body of its request may come now, if any is left.
    pub(crate) fn takes_body(&self) -> bool {
        match &self.life {
            Life::Waiting { .. } => false,
            Life::Collecting { .. } => true,
            Life::Reading(state) => state.takes_body(),
            Life::Open(state) => !state.held && state.end.is_none(),
        }
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let body_bytes = match &self.life {
            Life::Collecting { body, .. } => body.capacity(),
            Life::Reading(state) => state.rest.held_bytes(),
            Life::Open(state) => state.handler_bytes,
            Life::Waiting { handler_bytes } => *handler_bytes,
        };
        size_of::<Self>() + self.request.held_bytes() + body_bytes
    }
}

/// How an exchange whose answer went on has ended. For those who keep account.
#[derive(Debug)]
pub struct Finished<'a> {
    /// Which one.
    pub address: Address,
    /// The part of the handler to which it belonged.
    pub owner: Owner,
    /// The request; nothing where that was given back ([`crate::Open::release_request`]).
    pub request: Option<&'a Request<'a>>,
    /// What was answered.
    pub status: Status,
    /// Bytes of the answer's body that were handed over for sending.
    pub body_bytes: u64,
    /// When it ended, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The client's address, if peers are told apart; the nearest proxy's, where the request was given back.
    pub peer: Option<IpAddr>,
    /// The identity of the client, if it showed a certificate.
    pub identity: Option<&'a ClientIdentity>,
    /// Why it ended.
    pub why: Ended,
}

//! What is under way on a connection and not over at once.
//!
//! It owns 16 bytes of a slot, and what they point to. Nearly always there is nothing: it must cost a request
//! that is answered at once no more than one look.

use staunch_protocol::{KeptRequest, Status};

use super::http2::Http2;
use super::open::OpenState;
use super::owner::Owner;
use super::resting::Resting;
use super::{Exchange, Life};

/// The exchanges of a connection that are not over at once.
#[derive(Debug, Default)]
pub(crate) enum UnderWay {
    #[default]
    Nothing,
    /// A connection of HTTP/2, with any number of exchanges.
    Http2(Box<Http2>),
    /// An exchange of HTTP/1.1.
    Exchange(Box<Exchange>),
    /// An answer of HTTP/1.1 that goes on, and has given back its request.
    Resting(Resting),
}

const _: () = assert!(size_of::<UnderWay>() == 16);

impl UnderWay {
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    #[inline]
    pub(crate) fn http2(&self) -> Option<&Http2> {
        match self {
            Self::Http2(http2) => Some(http2),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn http2_mut(&mut self) -> Option<&mut Http2> {
        match self {
            Self::Http2(http2) => Some(http2),
            _ => None,
        }
    }

    pub(crate) fn take_http2(&mut self) -> Option<Box<Http2>> {
        match std::mem::take(self) {
            Self::Http2(http2) => Some(http2),
            other => {
                *self = other;
                None
            }
        }
    }

    pub(crate) fn take_exchange(&mut self) -> Option<Box<Exchange>> {
        match std::mem::take(self) {
            Self::Exchange(exchange) => Some(exchange),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Whether a request of HTTP/1.1 waits for mail.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Self::Exchange(exchange) if matches!(exchange.life, Life::Waiting))
    }

    /// Whether an answer of HTTP/1.1 goes on.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Exchange(exchange) => matches!(exchange.life, Life::Open(_)),
            Self::Resting(_) => true,
            Self::Nothing | Self::Http2(_) => false,
        }
    }

    /// Whether the body of a request of HTTP/1.1 may come now, if any is left.
    pub(crate) fn takes_body(&self) -> bool {
        matches!(self, Self::Exchange(exchange) if exchange.takes_body())
    }

    /// What is known of an answer of HTTP/1.1 that goes on.
    pub(crate) fn open(&self) -> Option<OpenState> {
        match self {
            Self::Exchange(exchange) => match exchange.life {
                Life::Open(state) => Some(state),
                Life::Waiting | Life::Collecting { .. } => None,
            },
            Self::Resting(resting) => Some(resting.state()),
            Self::Nothing | Self::Http2(_) => None,
        }
    }

    /// What has become of an answer that goes on.
    pub(crate) fn set_open(&mut self, state: OpenState) {
        match self {
            Self::Exchange(exchange) => exchange.life = Life::Open(state),
            Self::Resting(resting) => resting.set(&state),
            Self::Nothing | Self::Http2(_) => {}
        }
    }

    /// An answer that goes on gives back its request, if it can rest.
    pub(crate) fn rest(&mut self) {
        if let Self::Exchange(exchange) = self
            && let Life::Open(state) = &exchange.life
            && Resting::can_be(state)
        {
            *self = Self::Resting(Resting::new(state, exchange.status, exchange.owner));
        }
    }

    /// The request whose answer goes on, if it was kept, the status of the answer, and its owner.
    pub(crate) fn asked(&self) -> Option<(Option<&KeptRequest>, Status, Owner)> {
        match self {
            Self::Exchange(exchange) => Some((Some(&exchange.request), exchange.status, exchange.owner)),
            Self::Resting(resting) => Some((None, resting.status(), resting.owner())),
            Self::Nothing | Self::Http2(_) => None,
        }
    }

    /// The part of the handler to which the exchange of HTTP/1.1 belongs, if there is one.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            Self::Exchange(exchange) => Some(exchange.owner),
            Self::Resting(resting) => Some(resting.owner()),
            Self::Nothing | Self::Http2(_) => None,
        }
    }

    /// Memory that it takes beside itself, in bytes.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Nothing | Self::Resting(_) => 0,
            Self::Http2(http2) => http2.held_bytes(),
            Self::Exchange(exchange) => exchange.held_bytes(),
        }
    }
}

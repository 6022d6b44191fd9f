//! An exchange that is not over at once, or nothing.
//!
//! Nearly always there is nothing: that must cost no byte beside the slot or the stream it stands in.

use staunch_protocol::{KeptRequest, Status};

use super::open::OpenState;
use super::owner::Owner;
use super::reading_state::ReadingState;
use super::resting::Resting;
use super::{Exchange, Life};

/// Where one exchange of a connection stands.
#[derive(Debug, Default)]
pub(crate) enum UnderWay {
    #[default]
    Nothing,
    /// An exchange that waits, collects, is read or goes on.
    Exchange(Box<Exchange>),
    /// An answer that goes on, and has given back its request.
    Resting(Resting),
}

const _: () = assert!(size_of::<UnderWay>() == 16);

impl UnderWay {
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
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

    /// Whether the request waits for mail.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Self::Exchange(exchange) if matches!(exchange.life, Life::Waiting { .. }))
    }

    /// Whether the request is read.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self, Self::Exchange(exchange) if matches!(exchange.life, Life::Reading(_)))
    }

    /// Whether the answer goes on.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Exchange(exchange) => matches!(exchange.life, Life::Open(_)),
            Self::Resting(_) => true,
            Self::Nothing => false,
        }
    }

    /// Whether the body of the request may come now, if any is left.
    pub(crate) fn takes_body(&self) -> bool {
        match self {
            Self::Exchange(exchange) => exchange.takes_body(),
            Self::Resting(resting) => resting.takes_body(),
            Self::Nothing => false,
        }
    }

    /// The most that is collected of the request's body, and what was, if it is to be.
    pub(crate) fn collecting(&mut self) -> Option<(usize, &mut Vec<u8>)> {
        let Self::Exchange(exchange) = self else { return None };
        match &mut exchange.life {
            Life::Collecting { limit_bytes, body } => Some((*limit_bytes, body)),
            Life::Waiting { .. } | Life::Reading(_) | Life::Open(_) => None,
        }
    }

    /// The state of an exchange whose request is read.
    pub(crate) fn reading(&mut self) -> Option<&mut ReadingState> {
        let Self::Exchange(exchange) = self else { return None };
        match &mut exchange.life {
            Life::Reading(state) => Some(state),
            Life::Waiting { .. } | Life::Collecting { .. } | Life::Open(_) => None,
        }
    }

    /// The state of an answer that goes on.
    pub(crate) fn open(&self) -> Option<OpenState> {
        match self {
            Self::Exchange(exchange) => match exchange.life {
                Life::Open(state) => Some(state),
                Life::Waiting { .. } | Life::Collecting { .. } | Life::Reading(_) => None,
            },
            Self::Resting(resting) => Some(resting.state()),
            Self::Nothing => None,
        }
    }

    /// What has become of an answer that goes on.
    pub(crate) fn set_open(&mut self, state: OpenState) {
        match self {
            Self::Exchange(exchange) => exchange.life = Life::Open(state),
            Self::Resting(resting) => resting.set(&state),
            Self::Nothing => {}
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
            Self::Nothing => None,
        }
    }

    /// The part of the handler to which the exchange belongs, if there is one.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            Self::Exchange(exchange) => Some(exchange.owner),
            Self::Resting(resting) => Some(resting.owner()),
            Self::Nothing => None,
        }
    }

    /// Memory that it takes beside itself, in bytes.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Resting(resting) => resting.held_bytes(),
            Self::Exchange(exchange) => exchange.held_bytes(),
        }
    }
}

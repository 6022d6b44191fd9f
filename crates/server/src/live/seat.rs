//! The exchanges of one worker that live data has something to do with.
//!
//! It owns what belongs to one beside the exchange itself: a reader and the slices it is about to get, a
//! wish that waits for a form, a feed, a WebSocket. It must never hold more for a reader than the slices of
//! one delivery, which are shared.

use staunch_live::Reader;

use super::events::{StreamHead, Wish};
use super::feed::Feed;
use super::pending::Pending;
use super::socket::Socket;

/// What an exchange is to live data.
#[derive(Debug)]
pub(crate) enum Seat {
    /// A stream of events, or a WebSocket that reads something.
    Reader(ReaderSeat),
    /// A wish that becomes a reader when its form was made.
    Joining(Box<JoiningSeat>),
    /// Lines to publish, as far as the publisher may.
    Feed(u32, Box<Feed>),
    /// A WebSocket that reads nothing at present.
    Socket(u32, Box<Socket>),
}

/// A stream of events, or a WebSocket that reads something.
#[derive(Debug)]
pub(crate) struct ReaderSeat {
    pub(crate) reader: Reader,
    /// What the stream begins with, if it has not begun.
    pub(crate) opening: Option<StreamHead>,
    /// The exchange is to end when everything was sent.
    pub(crate) is_leaving: bool,
    pub(crate) pending: Pending,
    /// What it is besides, if it is a WebSocket.
    pub(crate) socket: Option<Box<Socket>>,
}

/// A wish that waits for a form.
#[derive(Debug)]
pub(crate) struct JoiningSeat {
    pub(crate) wish: Wish,
    pub(crate) generation: u32,
    pub(crate) opening: Option<StreamHead>,
    /// There is no room for it: its stream ends.
    pub(crate) is_refused: bool,
    /// What it is besides, if it is a WebSocket.
    pub(crate) socket: Option<Box<Socket>>,
}

impl Seat {
    /// A reader to whom nothing is to be handed over.
    pub(super) fn of_reader(reader: Reader) -> Self {
        let (opening, is_leaving, pending, socket) = (None, false, Pending::Nothing, None);
        Self::Reader(ReaderSeat { reader, opening, is_leaving, pending, socket })
    }

    /// The reader, if it is nothing else.
    pub(super) fn at_rest(&self) -> Option<Reader> {
        match self {
            Self::Reader(ReaderSeat {
                reader,
                opening: None,
                is_leaving: false,
                pending: Pending::Nothing,
                socket: None,
            }) => Some(*reader),
            _ => None,
        }
    }

    /// Whether it waits to become a reader.
    pub(super) fn is_waiting(seat: &&mut Self) -> bool {
        matches!(seat, Self::Joining(seat) if !seat.is_refused)
    }

    /// Which use of the slot it is of.
    pub(crate) fn generation(&self) -> u32 {
        match self {
            Self::Reader(seat) => seat.reader.generation,
            Self::Joining(seat) => seat.generation,
            Self::Feed(generation, _) | Self::Socket(generation, _) => *generation,
        }
    }

    /// The WebSocket, if it is one.
    pub(crate) fn socket(&mut self) -> Option<&mut Socket> {
        match self {
            Self::Reader(seat) => seat.socket.as_deref_mut(),
            Self::Joining(seat) => seat.socket.as_deref_mut(),
            Self::Socket(_, socket) => Some(socket),
            Self::Feed(..) => None,
        }
    }

    /// Whether it reads, or may, and nothing has told it to end.
    pub(super) fn is_staying(&mut self) -> bool {
        match (self.socket().map(|socket| socket.closing), self) {
            (Some(closing), _) => closing.is_none(),
            (None, Self::Reader(seat)) => !seat.is_leaving,
            (None, _) => false,
        }
    }

    /// The WebSocket alone, if it is one.
    pub(crate) fn into_socket(self) -> Option<Box<Socket>> {
        match self {
            Self::Reader(seat) => seat.socket,
            Self::Joining(seat) => seat.socket,
            Self::Socket(_, socket) => Some(socket),
            Self::Feed(..) => None,
        }
    }
}

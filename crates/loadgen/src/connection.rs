//! A connection of the generator, and the requests under way on it.
//!
//! It must never call the network or count: the lane does both.

use std::collections::VecDeque;

use staunch_protocol::answer::AnswerReader;

use crate::check::CheckState;
use crate::links::Links;
use crate::secured::ClientWall;

/// A request under way.
#[derive(Debug)]
pub(crate) struct Flight {
    /// When it was meant to start.
    pub(crate) intended_ns: u64,
    /// Which entry of the lane's mix it is.
    pub(crate) entry: u32,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ConnectionState {
    /// The slot has no connection.
    #[default]
    Free,
    /// Not made yet.
    Connecting,
    /// Made, but for the handshake of TLS.
    Securing,
    /// Requests may be sent.
    Open,
    /// All answers are there and the server is about to close.
    Leaving,
    /// Asked to be closed.
    Closing,
}

/// A connection, by slot of the backend.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection {
    /// The lane it belongs to.
    pub(crate) lane: u16,
    pub(crate) state: ConnectionState,
    /// A container of ours is with the kernel.
    pub(crate) sending: bool,
    /// Counted by its dialer as being made.
    pub(crate) dialing: bool,
    /// Takes nothing until it is due again.
    pub(crate) resting: bool,
    /// Close when the kernel has told about retransmissions.
    pub(crate) close_when_inspected: bool,
    /// Counted by its lane as held.
    pub(crate) held: bool,
    /// The first byte of the oldest flight's answer has come.
    pub(crate) answering: bool,
    /// How many of the flights, the last ones, have not been sent.
    pub(crate) unsent: u32,
    /// Requests asked on it so far.
    pub(crate) asked: u32,
    /// When connecting began; tells one user of the slot from another.
    pub(crate) begun_ns: u64,
    /// Bytes dripped so far by a slow lane.
    pub(crate) dripped_bytes: u64,
    /// Requests under way, oldest first.
    pub(crate) flights: VecDeque<Flight>,
    /// TLS, once the connection is made; `None`: without.
    pub(crate) wall: Option<Box<ClientWall>>,
    pub(crate) reader: AnswerReader,
    pub(crate) check: CheckState,
    /// Its place among the connections that wait for an answer.
    pub(crate) links: Links,
}

impl ClientConnection {
    /// Makes the slot ready for a new connection. Keeps the memory of the flights.
    pub(crate) fn begin(&mut self, lane: u16, now_ns: u64) {
        let mut flights = std::mem::take(&mut self.flights);
        flights.clear();
        *self = Self {
            lane,
            state: ConnectionState::Connecting,
            dialing: true,
            begun_ns: now_ns,
            flights,
            ..Self::default()
        };
    }

    /// When its oldest request was meant to start.
    #[inline]
    pub(crate) fn waits_since_ns(&self) -> u64 {
        self.flights.front().map_or(0, |flight| flight.intended_ns)
    }

    /// Whether there is a connection that was not given up.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, ConnectionState::Connecting | ConnectionState::Securing | ConnectionState::Open)
    }
}

//! The side of a simulated connection that is the backend's owner's.

use std::os::fd::AsFd;

use super::connecting::Attempt;
use super::peer::{Peer, PeerId};
use crate::{FilePart, Outgoing, Part, Tuning};

/// A slot in use.
#[derive(Debug)]
pub(super) struct Connection {
    /// Whom it is with; nobody if none listened where it tries to connect to.
    peer: Option<PeerId>,
    /// How it came to be, if it was by connecting.
    attempt: Option<Attempt>,
    /// The outcome of the attempt was reported.
    settled: bool,
    pub(super) receiving: bool,
    pub(super) ended: bool,
    pub(super) shut: bool,
    pub(super) closing: bool,
    pub(super) last: bool,
    /// Closed, and the report of it is under way.
    pub(super) gone: bool,
    pub(super) flight: Option<Flight>,
    pub(super) tunings: Vec<Tuning>,
}

impl Connection {
    /// A connection that was accepted.
    pub(super) fn accepted(peer: PeerId) -> Self {
        Self::new(Some(peer), None)
    }

    /// A connection that is being made, and may fail.
    pub(super) fn connecting(peer: Option<PeerId>, attempt: Attempt) -> Self {
        Self::new(peer, Some(attempt))
    }

    fn new(peer: Option<PeerId>, attempt: Option<Attempt>) -> Self {
        let (receiving, ended, shut, closing, last, gone) = (false, false, false, false, false, false);
        let settled = attempt.is_none();
        let (flight, tunings) = (None, Vec::new());
        Self { peer, attempt, settled, receiving, ended, shut, closing, last, gone, flight, tunings }
    }

    /// The peer, if bytes may go both ways.
    pub(super) fn peer_connected(&self) -> Option<PeerId> {
        let failed = self.attempt.is_some_and(|attempt| attempt.errno != 0);
        self.peer.filter(|_| self.settled && !failed)
    }

    /// Whether something can happen to it without time passing.
    pub(super) fn can_act(&self, peers: &[Peer], now_ms: u64) -> bool {
        let Some(peer) = self.peer_connected() else {
            return self.closing || self.over_ms().is_some_and(|ms| ms <= now_ms);
        };
        let peer = &peers[peer];
        let receivable = !peer.unread.is_empty() || peer.half_closed || peer.reset;
        let sendable = self.flight.is_some() && peer.room_bytes() > 0;
        self.closing || sendable || self.receiving && receivable
    }

    /// When the attempt to connect is over, if its outcome was not reported yet and still matters.
    pub(super) fn over_ms(&self) -> Option<u64> {
        self.attempt.filter(|_| !self.settled && !self.closing).map(|attempt| attempt.over_ms)
    }

    /// The outcome is to be reported: 0 if connected.
    pub(super) fn settle(&mut self) -> i32 {
        self.settled = true;
        self.attempt.map_or(0, |attempt| attempt.errno)
    }

    /// How often the SYN was sent again until now; nothing else ever is.
    pub(super) fn retransmitted(&self, now_ms: u64) -> u32 {
        self.attempt.map_or(0, |attempt| attempt.retransmitted(now_ms))
    }
}

/// A send under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) outgoing: Box<Outgoing>,
    pub(super) bytes: Vec<u8>,
    pub(super) taken: usize,
    pub(super) last: bool,
}

impl Flight {
    /// Everything the container holds, in order; gives the container back with an errno if a file cannot be
    /// read.
    pub(super) fn new(mut outgoing: Box<Outgoing>, last: bool) -> Result<Self, (Box<Outgoing>, i32)> {
        let flat = flatten(&outgoing);
        outgoing.clear(0);
        match flat {
            Ok(bytes) => Ok(Self { outgoing, bytes, taken: 0, last }),
            Err(errno) => Err((outgoing, errno)),
        }
    }
}

fn flatten(outgoing: &Outgoing) -> Result<Vec<u8>, i32> {
    let (mut own, parts) = outgoing.contents();
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Own(length) => {
                let (taken, rest) = own.split_at(*length);
                bytes.extend_from_slice(taken);
                own = rest;
            }
            Part::Shared(slice) => bytes.extend_from_slice(slice.as_bytes()),
            Part::File(part) => read_file(part, &mut bytes)?,
        }
    }
    bytes.extend_from_slice(own);
    Ok(bytes)
}

fn read_file(part: &FilePart, bytes: &mut Vec<u8>) -> Result<(), i32> {
    let start = bytes.len();
    bytes.resize(start + part.length_bytes as usize, 0);
    let read = rustix::io::pread(part.file.as_fd(), &mut bytes[start..], part.offset_bytes);
    match read {
        Ok(read) if read as u64 == part.length_bytes => Ok(()),
        Ok(_) => Err(rustix::io::Errno::STALE.raw_os_error()),
        Err(error) => Err(error.raw_os_error()),
    }
}

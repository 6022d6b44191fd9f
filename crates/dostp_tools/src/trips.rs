//! Round trips: their times and how many were lost.
//!
//! It must never decide what is compared with what.

use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::time::Duration;

use staunch_dostp::Socket;
use staunch_netio::clock;

use super::ping::time;

/// How long an answer is waited for; beyond, it is lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Round trips of one way and one size.
#[derive(Default)]
pub(super) struct Trips {
    times_ns: Vec<u64>,
    pub(super) lost: u32,
}

impl Trips {
    /// Makes so many; ends early where nobody answers.
    ///
    /// # Errors
    /// What is no silence.
    pub(super) fn run(&mut self, count: u32, mut trip: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        for _ in 0..count {
            let begun_ns = clock::now_ns();
            match trip() {
                Ok(()) => self.times_ns.push(clock::now_ns() - begun_ns),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) =>
                {
                    self.lost += 1;
                    // No peer is there: the rest of the round would only take its time.
                    if self.times_ns.is_empty() {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The value below which so many of a hundred are.
    pub(super) fn quantile(&mut self, percent: usize) -> Option<u64> {
        self.times_ns.sort_unstable();
        let rank = (self.times_ns.len() * percent).div_ceil(100);
        self.times_ns.get(rank.saturating_sub(1)).copied()
    }

    /// Whether nobody has answered.
    pub(super) fn is_empty(&self) -> bool {
        self.times_ns.is_empty()
    }
}

/// A time, or a dash where there is none.
pub(super) fn shown(length_ns: Option<u64>) -> String {
    length_ns.map_or_else(|| "-".to_owned(), time)
}

/// What went wrong by DOSTP on the way to this node, in words.
pub(super) fn said(error: &io::Error, address: Ipv4Addr) -> String {
    match error.kind() {
        ErrorKind::HostUnreachable => format!("DOSTP: {address} is not on this LAN"),
        _ => format!("DOSTP: {error}"),
    }
}

/// A round trip by a socket that is connected to a node which sends back what it gets.
pub(super) fn by_dostp(socket: &Socket, payload: &[u8]) -> io::Result<()> {
    socket.send(payload)?;
    socket.receive().map(|_| ())
}

//! What a flood is to do, and what it has done.
//!
//! It must never send, or look at the machine.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use staunch_netio::host::route::HardwareAddress;

use super::source::Prefix;
use crate::Fault;

/// What is to be sent, where and how fast.
#[derive(Debug, Clone)]
pub struct FloodPlan {
    /// The interface to send by: `lo`, or one end of a veth pair.
    pub interface: String,
    /// Whom to flood.
    pub destination: SocketAddr,
    /// The destination's hardware address; `None`: the kernel is asked, and asks in turn (ARP).
    pub destination_mac: Option<HardwareAddress>,
    /// Where the segments seem to come from; `None`: [`Prefix::usual`].
    pub source_prefix: Option<Prefix>,
    /// Segments a second; `None`: as many as possible.
    pub rate_per_s: Option<f64>,
    /// How long; `None`: until stopped.
    pub duration: Option<Duration>,
    /// Seed of the forged sources and of their order.
    pub seed: u64,
    /// The processor to send from; `None`: any.
    pub cpu: Option<usize>,
    /// The only way to take; `None`: the best that works.
    pub method: Option<Method>,
}

impl FloodPlan {
    /// As fast as possible, until stopped, the best way, from the usual sources.
    pub fn new(interface: &str, destination: SocketAddr) -> Self {
        Self {
            interface: interface.to_owned(),
            destination,
            destination_mac: None,
            source_prefix: None,
            rate_per_s: None,
            duration: None,
            seed: 0,
            cpu: None,
            method: None,
        }
    }

    /// Where the segments seem to come from.
    pub fn sources(&self) -> Prefix {
        self.source_prefix.unwrap_or_else(|| Prefix::usual(self.destination.ip()))
    }

    /// Whether the numbers have a meaning.
    ///
    /// # Errors
    /// Which has none.
    pub(super) fn check_numbers(&self) -> Result<(), Fault> {
        if let Some(rate) = self.rate_per_s
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(Fault::new(format!("a rate of {rate} a second: it must be above 0")));
        }
        if self.duration.is_some_and(|duration| duration.is_zero()) {
            return Err(Fault::new("a flood of 0 s: its length must be above 0"));
        }
        Ok(())
    }
}

/// A way to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Made and sent inside the kernel by a BPF program.
    LiveFrames,
    /// Frames by a packet socket, past the queueing discipline.
    PacketSocket,
    /// Datagrams by a raw socket: the only way by `lo`.
    RawSocket,
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::LiveFrames => "live frames",
            Self::PacketSocket => "packet socket",
            Self::RawSocket => "raw socket",
        })
    }
}

impl fmt::Display for FloodOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} SYN sent in {:.1} s, {:.0}/s, by {}; {} lost at the interface, {} not sent for want of time",
            self.sent, self.seconds, self.rate_per_s, self.method, self.dropped_by_ring, self.given_up
        )
    }
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FloodOutcome {
    /// Segments handed to the interface.
    pub sent: u64,
    /// Of these, thrown away because the interface had no room: the receiver was slower. Counted by the
    /// interface, so what others lost there in the same time is among them.
    pub dropped_by_ring: u64,
    /// Segments that were not sent because the thread was more than 100 ms behind its pace.
    pub given_up: u64,
    /// How long it was sent, in seconds.
    pub seconds: f64,
    /// `sent` by `seconds`.
    pub rate_per_s: f64,
    /// The way taken.
    pub method: Method,
    /// What the reader has to know before believing the figures. Each is a sentence.
    pub notes: Vec<String>,
}

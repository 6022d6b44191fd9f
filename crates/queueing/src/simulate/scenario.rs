//! What is played, and what a rule of admission is told.
//!
//! It must never count.

use crate::host::{Host, OfferedLoad};

/// What is played.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The host. Its reception is served like its application: exponential or always the same.
    pub host: Host,
    /// What is offered, Poisson.
    pub load: OfferedLoad,
    /// Seconds from the reception of a request's SYN that finds a place before S2 to the last packet of its
    /// handshake, which must find one as well; 0 if one packet is all.
    pub handshake_s: f64,
    /// l1: packets that may wait for S1, those in work included; others are lost, equation (2).
    pub reception_places: u32,
    /// Seconds before counting begins; what comes earlier is played, not counted.
    pub warm_up_s: f64,
    /// Seconds of sending in all.
    pub sending_s: f64,
    /// Whether counting goes on after the last arrival, until all are served or the last client has left.
    pub drain: bool,
    /// Same seed, same run.
    pub seed: u64,
}

/// What a gate's rule knows when a packet comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// Seconds since the run began.
    pub now_s: f64,
    /// Requests before and in S2.
    pub waiting: usize,
    /// Requests S2 has served since the run began.
    pub served: u64,
    /// Whether it is a request; otherwise it is of the flood.
    pub is_request: bool,
    /// A number from 0 up to 1, evenly spread, for rules that choose at random.
    pub chance: f64,
}

//! Every deadline of a connection, in one place.

/// Which deadline is running. A connection has exactly one at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// When to give up on a head that is not complete: absolute, from accept or from the first byte of the
    /// next request; bytes that trickle in do not move it. Covers connections that never send a byte.
    Header,
    /// When to close an idle connection between two requests.
    KeepAlive,
    /// When to give up on a request body of which nothing more has come, or too little on the whole.
    Body,
    /// When to give up on a peer that takes nothing of what is sent to it, or too little on the whole.
    Send,
    /// When to stop waiting for the peer's own close after the last response, or on a stream of HTTP/2 for
    /// the end of a request that is answered.
    Linger,
}

/// A peer is given this long, in milliseconds, before a minimum rate is asked of it: a phone that changes
/// from one cell to the next is silent for seconds.
pub const RATE_GRACE_MS: u32 = 10_000;

/// How long each deadline is, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// See [`Deadline::Header`].
    pub header_ms: u32,
    /// See [`Deadline::KeepAlive`].
    pub keep_alive_ms: u32,
    /// See [`Deadline::Body`].
    pub body_ms: u32,
    /// See [`Deadline::Send`].
    pub send_ms: u32,
    /// See [`Deadline::Linger`].
    pub linger_ms: u32,
    /// Bytes a second a request body has to bring on the mean, after the first `body_ms` (at least
    /// [`RATE_GRACE_MS`]); 0 asks for none.
    pub body_rate_min: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            header_ms: 15_000,
            keep_alive_ms: 15_000,
            body_ms: 15_000,
            send_ms: 30_000,
            linger_ms: 2_000,
            body_rate_min: 0,
        }
    }
}

impl Timeouts {
    /// Length of one deadline.
    pub fn length_ms(&self, deadline: Deadline) -> u32 {
        match deadline {
            Deadline::Header => self.header_ms,
            Deadline::KeepAlive => self.keep_alive_ms,
            Deadline::Body => self.body_ms,
            Deadline::Send => self.send_ms,
            Deadline::Linger => self.linger_ms,
        }
    }

    /// How long after its beginning a body of which so much came is waited for at the longest, in
    /// milliseconds; `None` while no rate is asked for.
    pub fn body_allowance_ms(&self, bytes: u64) -> Option<u64> {
        let earned_ms = bytes.saturating_mul(1000).checked_div(u64::from(self.body_rate_min))?;
        Some(earned_ms.saturating_add(u64::from(self.body_ms.max(RATE_GRACE_MS))))
    }
}

//! Every deadline of a connection, in one place.

/// Which deadline is running. A connection has exactly one at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// When to give up on a head that is not complete: absolute, from accept or from the first byte of the
    /// next request; bytes that trickle in do not move it. Covers connections that never send a byte.
    Header,
    /// When to close an idle connection between two requests.
    KeepAlive,
    /// When to give up on a request body of which nothing more has come.
    Body,
    /// When to give up on a peer that takes nothing of what is sent to it.
    Send,
    /// When to stop waiting for the peer's own close after the last response.
    Linger,
}

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
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { header_ms: 15_000, keep_alive_ms: 15_000, body_ms: 15_000, send_ms: 30_000, linger_ms: 2_000 }
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
}

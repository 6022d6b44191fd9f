//! What a conversation is held with: the bare session, the engine on a simulated network, or a
//! real server on a socket.
//!
//! It owns how bytes reach a body and come back. It must never judge them.  Order of calls on a link: `send`
//! and `fill` in any order, `half_close` once, drop.

mod application;
mod session;
mod simulator;
mod socket;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

pub use application::{Application, SocketApplication};
pub use session::SessionBody;
use session::SessionLink;
pub use simulator::{SIMULATED_APPLICATION, SimulatedApplication, SimulatorBody, SimulatorLink};
pub use socket::SocketLink;

/// A body to speak with.
#[derive(Debug)]
pub enum Body {
    /// The session with the site behind it, in this thread, on a clock of its own.
    Session(Box<SessionBody>),
    /// A worker with the site behind it, on a simulated network.
    Simulator(SimulatorBody),
    /// A server process that listens here.
    Server(SocketAddr),
}

impl Body {
    /// Opens a connection.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(&mut self) -> Result<Link, String> {
        match self {
            Self::Session(body) => Ok(Link::Session(Box::new(body.connect()))),
            Self::Simulator(body) => Ok(Link::Simulator(body.connect())),
            Self::Server(address) => {
                SocketLink::connect(*address).map(Link::Socket).map_err(|e| e.to_string())
            }
        }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The peer closed its side after all it had sent.
    Orderly,
    /// The connection failed with this error number.
    Failed(i32),
}

impl End {
    /// Whether nothing can have been lost.
    pub fn is_orderly(self) -> bool {
        self == Self::Orderly
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orderly => formatter.write_str("the connection was closed"),
            Self::Failed(errno) => {
                write!(formatter, "the connection failed: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

/// A connection to a body.
#[derive(Debug)]
pub enum Link {
    /// To the bare session.
    Session(Box<SessionLink>),
    /// To a simulated worker.
    Simulator(SimulatorLink),
    /// Over a socket.
    Socket(SocketLink),
}

impl Link {
    /// Sends bytes; what comes back meanwhile is kept. A broken connection shows itself at the next `fill`.
    pub fn send(&mut self, bytes: &[u8]) {
        match self {
            Self::Session(link) => link.send(bytes),
            Self::Simulator(link) => link.send(bytes),
            Self::Socket(link) => link.send(bytes),
        }
    }

    /// Gives the body a chance to see the last piece alone.
    pub fn pause_between_pieces(&mut self) {
        match self {
            Self::Session(_) => {}
            Self::Simulator(link) => link.settle(),
            Self::Socket(link) => link.pause_between_pieces(),
        }
    }

    /// Sends no more.
    pub fn half_close(&mut self) {
        match self {
            Self::Session(link) => link.half_close(),
            Self::Simulator(link) => link.half_close(),
            Self::Socket(link) => link.half_close(),
        }
    }

    /// Breaks the connection off with a reset.
    pub fn reset(self) {
        match self {
            Self::Session(_) => {}
            Self::Simulator(link) => link.reset(),
            Self::Socket(link) => link.reset(),
        }
    }

    /// Lets time pass.
    pub fn wait(&mut self, ms: u64) {
        match self {
            Self::Session(link) => link.pass(ms),
            Self::Simulator(link) => link.pass(ms),
            Self::Socket(_) => std::thread::sleep(Duration::from_millis(ms)),
        }
    }

    /// Waits until something comes, bytes or the end; `false` if nothing did.
    pub fn fill(&mut self, patience: Duration) -> bool {
        match self {
            Self::Session(link) => link.fill(patience),
            Self::Simulator(link) => link.fill(patience),
            Self::Socket(link) => link.fill(patience),
        }
    }

    /// The bytes that came and were not taken.
    pub fn received(&self) -> &[u8] {
        match self {
            Self::Session(link) => link.received(),
            Self::Simulator(link) => link.received(),
            Self::Socket(link) => link.received(),
        }
    }

    /// Takes bytes from the front.
    pub fn take(&mut self, bytes: usize) {
        match self {
            Self::Session(link) => link.take(bytes),
            Self::Simulator(link) => link.take(bytes),
            Self::Socket(link) => link.take(bytes),
        }
    }

    /// The end of the connection, if it came.
    pub fn end(&self) -> Option<End> {
        match self {
            Self::Session(link) => link.end(),
            Self::Simulator(link) => link.end(),
            Self::Socket(link) => link.end(),
        }
    }
}

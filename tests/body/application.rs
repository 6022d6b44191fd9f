//! The application of a conversation: where the server's own connections come to.
//!
//! It owns which of them were accepted. It must never say anything that the conversation does not.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::{Link, SimulatedApplication, SocketLink};

/// An application that a conversation plays.
#[derive(Debug)]
pub enum Application {
    /// Behind a simulated worker.
    Simulator(SimulatedApplication),
    /// An application that listens on this machine.
    Socket(SocketApplication),
}

impl Application {
    /// Waits for the next connection that the server opens.
    ///
    /// # Errors
    /// None has come, or what the system says.
    pub fn accept(&mut self, patience: Duration) -> Result<Link, String> {
        let link = match self {
            Self::Simulator(application) => application.accept(patience).map(Link::Simulator),
            Self::Socket(application) => application.accept(patience)?.map(Link::Socket),
        };
        link.ok_or_else(|| format!("no connection within {patience:?}"))
    }

    /// Whether the server has opened a connection that was not accepted.
    pub fn has_another(&mut self) -> bool {
        match self {
            Self::Simulator(application) => application.has_another(),
            Self::Socket(application) => application.accept(Duration::ZERO).is_ok_and(|link| link.is_some()),
        }
    }
}

/// An application on a socket of this machine.
#[derive(Debug)]
pub struct SocketApplication {
    listener: TcpListener,
    address: SocketAddr,
}

impl SocketApplication {
    /// Begins to listen on a free port.
    ///
    /// # Errors
    /// What the system says.
    pub fn listen() -> Result<Self, String> {
        let listen = || -> std::io::Result<Self> {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        listen().map_err(|error| error.to_string())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&self, patience: Duration) -> Result<Option<SocketLink>, String> {
        let timeout = rustix::event::Timespec {
            tv_sec: patience.as_secs() as _,
            tv_nsec: patience.subsec_nanos() as _,
        };
        let text = |error: std::io::Error| error.to_string();
        poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&timeout))
            .map_err(|error| text(error.into()))?;
        match self.listener.accept() {
            Ok((stream, _)) => SocketLink::of(stream).map(Some).map_err(text),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(text(error)),
        }
    }
}

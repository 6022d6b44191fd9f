//! What is known of each listener: whether accepting is wanted, and what of it is with the kernel.
//!
//! It must never decide where to accept (see accepting.rs).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::callers::Callers;
use super::handed::Device;
use crate::host::khttpd;
use crate::{Queue, socket};

/// How accepting is armed: on which ring, and whether by one multishot operation or by single ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptMode {
    /// Index of the ring.
    pub(crate) ring: usize,
    /// A single operation accepts all connections to come; else each takes its own.
    pub(crate) multishot: bool,
}

/// A listener and its accepts that are with the kernel.
pub(crate) struct Listener {
    /// The listening socket, or the device; `None` once it was given up.
    pub(crate) socket: Option<OwnedFd>,
    /// The socket afterwards, while accepts name it.
    pub(crate) leaving: Option<OwnedFd>,
    /// How many connections may wait in its queue.
    pub(crate) backlog: u32,
    /// The engine wants connections.
    pub(crate) wanted: bool,
    /// Where accepts are armed; meaningful while some are outstanding.
    pub(crate) accept_mode: AcceptMode,
    /// How many operations for it are with the kernel.
    pub(crate) outstanding: u32,
    /// They are being cancelled.
    pub(crate) cancelling: bool,
    /// Where the kernel writes who is connecting, if that is to be learnt.
    pub(crate) callers: Callers,
    /// Only for khttpd's device in place of a socket.
    pub(crate) device: Option<Device>,
}

impl Listener {
    /// Takes a listening socket, or khttpd's device. A socket becomes a blocking one: io_uring waits by
    /// itself, and must not be told EAGAIN.
    ///
    /// # Errors
    /// When it is neither.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let device = khttpd::is_device(&socket)?.then(Device::new);
        let backlog = if device.is_some() {
            // No accept of many shots empties it.
            0
        } else {
            rustix::io::ioctl_fionbio(&socket, false)?;
            socket::queue(socket.as_fd()).ok_or(io::ErrorKind::InvalidInput)?.limit
        };
        let accept_mode = AcceptMode { ring: 0, multishot: false };
        let socket = Some(socket);
        Ok(Self {
            socket,
            leaving: None,
            backlog,
            wanted: false,
            accept_mode,
            outstanding: 0,
            cancelling: false,
            callers: Callers::default(),
            device,
        })
    }

    /// See [`crate::Io::drop_syn`]. Where the kernel refuses, clients go on connecting for a moment more.
    pub(crate) fn drop_syn(&self) {
        let _ = self.socket.as_ref().map(|socket| socket::drop_syn(socket.as_fd()));
    }

    /// What waits, and how much may; `None` once it is gone.
    pub(crate) fn queue(&self) -> Option<Queue> {
        match &self.socket {
            Some(device) if self.device.is_some() => Some(khttpd::queue(device.as_fd())),
            Some(socket) => socket::queue(socket.as_fd()),
            None => (!self.is_gone()).then_some(Queue { waiting: 0, limit: self.backlog }),
        }
    }

    /// See [`crate::Io::admit_syn`].
    pub(crate) fn admit_syn(&self) {
        let _ = self.socket.as_ref().map(|socket| socket::admit_syn(socket.as_fd()));
    }

    /// Notes that an operation of the listener has come back from the kernel.
    pub(crate) fn note_end(&mut self) {
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.cancelling = false;
            self.leaving = None;
        }
    }

    /// Whether its number may be used again: nothing of it is with the kernel.
    pub(crate) fn is_gone(&self) -> bool {
        self.socket.is_none() && self.outstanding == 0 && !self.cancelling
    }
}

/// As long as a ring has more free slots than this, one multishot accept cannot overfill it in one turn,
/// which empties at most the queues and what joins them meanwhile.
pub(crate) fn multishot_reserve(listeners: &[Listener]) -> u32 {
    let backlogs: u32 = listeners.iter().map(|listener| listener.backlog).sum();
    backlogs.saturating_mul(2).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn the_length_of_the_queue_is_read_back() {
        let socket = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 37).unwrap();
        assert_eq!(Listener::new(socket).unwrap().backlog, 37);
    }
}

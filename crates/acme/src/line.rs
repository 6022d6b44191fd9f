//! The line between a server and its agent: packets on a pair of Unix sockets, each read whole or not at
//! all.
//!
//! While one server takes over from another both read the same end for a moment: so a message is one packet,
//! never a part of a stream that two readers could tear.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::PACKET_BYTES_MAX;

/// An end of the line between the server and the agent.
#[derive(Debug)]
pub struct Line(OwnedFd);

impl Line {
    /// Both ends of a new line. Programs that are started do not inherit them (close-on-exec).
    ///
    /// # Errors
    /// Those of socketpair(2).
    pub fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// The end with this descriptor, inherited from the process before.
    #[must_use]
    pub fn of(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// The descriptor of this end, for a process that is to inherit it.
    #[must_use]
    pub fn into_descriptor(self) -> OwnedFd {
        self.0
    }

    /// A second handle of this end, with a descriptor of its own.
    ///
    /// # Errors
    /// The process may open no more descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Sends a message to the other end.
    ///
    /// # Errors
    /// The other process has ended, or the message is too long for a packet.
    pub fn tell(&self, message: &impl Serialize) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > PACKET_BYTES_MAX {
            let text = format!("a message of {} bytes; {PACKET_BYTES_MAX} are the most", bytes.len());
            return Err(io::Error::other(text));
        }
        loop {
            match rustix::net::send(&self.0, &bytes, rustix::net::SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for the next message from the other end; `None` once every process there has ended.
    ///
    /// # Errors
    /// The packet is no message of this program.
    pub fn hear<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        loop {
            match rustix::io::read(&self.0, &mut bytes) {
                Ok(0) => return Ok(None),
                Ok(length) => return Ok(Some(serde_json::from_slice(&bytes[..length])?)),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_stay_apart_and_the_end_is_heard() {
        let (one, other) = Line::pair().expect("a pair");
        one.tell(&"first").expect("told");
        one.tell(&"second").expect("told");
        assert_eq!(other.hear::<String>().expect("a packet").as_deref(), Some("first"));
        let copy = other.try_clone().expect("a copy");
        assert_eq!(copy.hear::<String>().expect("a packet").as_deref(), Some("second"));
        drop(one);
        assert_eq!(other.hear::<String>().expect("an end"), None);
    }

    #[test]
    fn what_is_too_long_is_refused_and_what_is_no_message_is_told() {
        let (one, other) = Line::pair().expect("a pair");
        assert!(one.tell(&"a".repeat(PACKET_BYTES_MAX)).is_err());
        one.tell(&1).expect("told");
        assert!(other.hear::<String>().is_err());
        drop(other);
        assert!(one.tell(&1).is_err());
    }
}

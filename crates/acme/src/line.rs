//! The line between a server and its agent: packets on a pair of Unix sockets, each read whole or not at
//! all.
//!
//! It must never be split: two processes may hold one end for a moment, while one takes over from the other.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::PACKET_BYTES_MAX;

/// One end.
#[derive(Debug)]
pub struct Line(OwnedFd);

impl Line {
    /// Both ends. Neither passes to another program unless it is given.
    ///
    /// # Errors
    /// Those of socketpair(2).
    pub fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// The end that was given to this process.
    #[must_use]
    pub fn of(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// The descriptor, to be given to another process.
    #[must_use]
    pub fn into_descriptor(self) -> OwnedFd {
        self.0
    }

    /// Another value of the same end.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Tells the other side.
    ///
    /// # Errors
    /// It is gone, or the message is too long for a packet.
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

    /// What the other side tells next; nothing once it is gone.
    ///
    /// # Errors
    /// What came is no message.
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

//! The services of a node's port, by DOSTP and by UDP alike: echo (RFC 862) sends messages back, discard
//! (RFC 863) counts and drops them.
//!
//! This file must never wait, nor end because of what a peer sends.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use staunch_dostp::{Received, Socket};
use staunch_netio::datagram::{Datagrams as _, Readiness, Udp};

/// The port of the echo service, as in TCP and UDP.
pub(super) const ECHO_PORT: u16 = 7;
/// The port of the discard service, as in TCP and UDP.
pub(super) const DISCARD_PORT: u16 = 9;

/// How a message begins that asks a discard service how many have come.
const HOW_MANY: &[u8; 8] = b"how many";
/// Bytes of that message: its beginning and a number of the sender's.
const QUESTION_BYTES: usize = 16;
/// Bytes of the answer: the question, and how many have come.
pub(super) const ANSWER_BYTES: usize = QUESTION_BYTES + 8;

/// Messages taken in one turn at most, by DOSTP and by UDP each: a peer that floods the node must not keep
/// it from its end.
pub(super) const TURN_COUNT: usize = 1_024;

/// Echo or discard.
pub(super) enum PortService {
    /// They are sent back.
    Echo {
        /// By UDP, where a port is served.
        udp: Option<UdpEcho>,
    },
    /// They are counted.
    Discard {
        /// Messages that have come by DOSTP.
        count: u64,
        /// By UDP, where a port is served.
        udp: Option<UdpDiscard>,
    },
}

/// Sends UDP datagrams back.
pub(super) struct UdpEcho {
    udp: UdpSocket,
    /// Any UDP datagram fits.
    buffer: Vec<u8>,
}

/// Counts UDP datagrams.
pub(super) struct UdpDiscard {
    udp: Udp,
    /// Another handle to that socket, for answers.
    answers: UdpSocket,
    descriptor: OwnedFd,
    count: u64,
}

impl PortService {
    /// The echo service, by UDP too at this port.
    ///
    /// # Errors
    /// As bind(2).
    pub(super) fn echo(address: Ipv4Addr, port: Option<u16>) -> io::Result<Self> {
        Ok(Self::Echo { udp: port.map(|port| UdpEcho::bind(address, port)).transpose()? })
    }

    /// The discard service, by UDP too at this port.
    ///
    /// # Errors
    /// As bind(2) and dup(2).
    pub(super) fn discard(address: Ipv4Addr, port: Option<u16>) -> io::Result<Self> {
        let udp = port.map(|port| UdpDiscard::bind(address, port)).transpose()?;
        Ok(Self::Discard { count: 0, udp })
    }

    /// The descriptor that tells of what has come by UDP.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Echo { udp } => udp.as_ref().map(|udp| udp.udp.as_fd()),
            Self::Discard { udp, .. } => udp.as_ref().map(|udp| udp.descriptor.as_fd()),
        }
    }

    /// Does what has come by DOSTP, at most [`TURN_COUNT`] messages. Says how many.
    ///
    /// # Errors
    /// ENETDOWN and what else ends the socket.
    pub(super) fn take_dostp(&mut self, socket: &Socket) -> io::Result<usize> {
        for count in 0..TURN_COUNT {
            match socket.receive() {
                Ok(received) => self.take(socket, &received)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error),
            }
        }
        Ok(TURN_COUNT)
    }

    /// Does what has come by UDP, at most [`TURN_COUNT`] datagrams. Says how many.
    ///
    /// # Errors
    /// As recvmsg(2).
    pub(super) fn take_udp(&mut self) -> io::Result<usize> {
        match self {
            Self::Echo { udp } => Ok(udp.as_mut().map_or(0, UdpEcho::turn)),
            Self::Discard { udp, .. } => udp.as_mut().map_or(Ok(0), UdpDiscard::turn),
        }
    }

    /// Sends a message back or counts it. What was sent to all is not answered: a forged source would be
    /// flooded.
    fn take(&mut self, socket: &Socket, received: &Received) -> io::Result<()> {
        match self {
            Self::Echo { .. } if received.to_all || received.from.port() == ECHO_PORT => Ok(()),
            Self::Echo { .. } => send_back(socket, &received.payload, received.from),
            Self::Discard { count, .. } => match answer(&received.payload, *count) {
                Some(_) if received.to_all => Ok(()),
                Some(answer) => send_back(socket, &answer, received.from),
                None => {
                    *count += 1;
                    Ok(())
                }
            },
        }
    }
}

impl UdpEcho {
    fn bind(address: Ipv4Addr, port: u16) -> io::Result<Self> {
        Ok(Self { udp: bound(address, port)?, buffer: vec![0; 65_536] })
    }

    fn turn(&mut self) -> usize {
        for count in 0..TURN_COUNT {
            let Ok((length, from)) = self.udp.recv_from(&mut self.buffer) else { return count };
            self.udp.send_to(&self.buffer[..length], from).ok();
        }
        TURN_COUNT
    }
}

impl UdpDiscard {
    fn bind(address: Ipv4Addr, port: u16) -> io::Result<Self> {
        let answers = bound(address, port)?;
        let udp = Udp::new(answers.try_clone()?.into())?;
        let Readiness::Descriptor(descriptor) = udp.readiness()? else {
            return Err(ErrorKind::Unsupported.into());
        };
        Ok(Self { udp, answers, descriptor, count: 0 })
    }

    fn turn(&mut self) -> io::Result<usize> {
        let Self { udp, answers, count, .. } = self;
        udp.receive_batch(TURN_COUNT, &mut |datagram| {
            // The kernel may have joined several.
            for one in datagram.bytes.chunks(datagram.segment_bytes.max(1)) {
                match answer(one, *count) {
                    // A peer that cannot be answered is its own matter.
                    Some(answer) => _ = answers.send_to(&answer, datagram.path.peer),
                    None => *count += 1,
                }
            }
        })
    }
}

/// A question with this number.
pub(super) fn question(number: u64) -> [u8; QUESTION_BYTES] {
    let mut question = [0; QUESTION_BYTES];
    question[..8].copy_from_slice(HOW_MANY);
    question[8..].copy_from_slice(&number.to_be_bytes());
    question
}

/// How many have come, by what may be the answer to this question.
pub(super) fn count_in(answer: &[u8], question: &[u8; QUESTION_BYTES]) -> Option<u64> {
    answer.strip_prefix(question)?.try_into().ok().map(u64::from_be_bytes)
}

/// The answer to a message that asks how many have come.
fn answer(message: &[u8], count: u64) -> Option<[u8; ANSWER_BYTES]> {
    if message.len() != QUESTION_BYTES || !message.starts_with(HOW_MANY) {
        return None;
    }
    let mut answer = [0; ANSWER_BYTES];
    answer[..QUESTION_BYTES].copy_from_slice(message);
    answer[QUESTION_BYTES..].copy_from_slice(&count.to_be_bytes());
    Some(answer)
}

fn bound(address: Ipv4Addr, port: u16) -> io::Result<UdpSocket> {
    let udp = UdpSocket::bind((address, port))?;
    udp.set_nonblocking(true)?;
    Ok(udp)
}

/// Sends an answer. A peer that cannot be answered is its own matter; it is counted.
fn send_back(socket: &Socket, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
    match socket.send_to(payload, to) {
        Err(error) if error.kind() == ErrorKind::NetworkDown => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_answered_and_no_other_message() {
        let asked = question(7);
        let said = answer(&asked, 1_000_000).expect("an answer");
        assert_eq!(count_in(&said, &asked), Some(1_000_000));
        assert_eq!(count_in(&said, &question(8)), None);
        assert_eq!(count_in(&said[..ANSWER_BYTES - 1], &asked), None);
        for message in [&b""[..], b"how many", &[0x5a; QUESTION_BYTES], &[&asked[..], b"?"].concat()] {
            assert_eq!(answer(message, 1), None, "{message:?}");
        }
    }
}

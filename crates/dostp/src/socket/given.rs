//! Rings that one process opens and another one reads: descriptors pass over a Unix socket (SCM_RIGHTS).
//!
//! It owns the words of question and answer, and the asker's side. The claim of the port is sent along, so
//! that nobody gets the frames of a port that another process has; where the asker's claims do not count for
//! all, the node's own claim comes back with the rings. It must never open a ring.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::claim::Claim;

/// How long a node is waited for: it answers between two turns of its own.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of a question or an answer: a few words, two secrets, or a sentence of refusal.
const WORDS_BYTES_MAX: usize = 512;

/// Descriptors of one question or answer.
const DESCRIPTORS_MAX: usize = 3;

/// Two rings, the MTU they were made for, and a claim of the port that counts for all, if the asker's does
/// not.
pub(super) struct Given {
    pub(super) messages: OwnedFd,
    pub(super) control: OwnedFd,
    pub(super) mtu: u16,
    pub(super) claim: Option<Claim>,
}

/// Asks the node that listens there.
///
/// # Errors
/// Nobody listens there, this process may not speak with it, or it refuses.
pub(super) fn ask(path: &Path, (claim, port): (&Claim, u16)) -> io::Result<Given> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {}", path.display(), reason(&error)));
    let node = UnixStream::connect(path).map_err(named)?;
    node.set_read_timeout(Some(PATIENCE))?;
    node.set_write_timeout(Some(PATIENCE))?;
    send(&node, &format!("rings {port}\n"), &[claim.as_fd()]).map_err(named)?;
    let (words, mut descriptors) = receive(&node).map_err(named)?;
    let mtu = words.trim().strip_prefix("rings ").and_then(|mtu| mtu.parse().ok());
    let claim = if descriptors.len() == DESCRIPTORS_MAX { descriptors.pop() } else { None };
    let claim = claim.map(Claim::of).transpose()?;
    match (mtu, <[OwnedFd; 2]>::try_from(descriptors)) {
        (Some(mtu), Ok([messages, control])) => Ok(Given { messages, control, mtu, claim }),
        _ => Err(named(io::Error::new(ErrorKind::PermissionDenied, words.trim()))),
    }
}

/// Why nothing was given, in words.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => "no node gives rings here".to_owned(),
        ErrorKind::WouldBlock => format!("the node does not answer within {} s", PATIENCE.as_secs()),
        _ => error.to_string(),
    }
}

/// A question that came over the node's socket: a word, and what was sent along.
#[derive(Debug)]
pub struct Asked {
    /// The word, without its line end.
    pub word: String,
    pub(super) descriptors: Vec<OwnedFd>,
}

impl Asked {
    /// Hears a question.
    ///
    /// # Errors
    /// Those of recvmsg(2), such as EAGAIN when the client's patience is over.
    pub fn hear(client: &UnixStream) -> io::Result<Self> {
        let (words, descriptors) = receive(client)?;
        Ok(Self { word: words.trim_end().to_owned(), descriptors })
    }

    /// The port whose rings are asked for, if it is such a question.
    pub fn port_of_rings(&self) -> Option<u16> {
        self.word.strip_prefix("rings ")?.parse().ok()
    }
}

/// Says some words, and hands descriptors over with them.
pub(super) fn send(to: &UnixStream, words: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(to, &[IoSlice::new(words.as_bytes())], &mut beside, SendFlags::NOSIGNAL)?;
    if sent == words.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

/// Reads some words, and the descriptors handed over with them.
pub(super) fn receive(from: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let mut words = [0; WORDS_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut words)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors = rights.flatten().collect();
    Ok((String::from_utf8_lossy(&words[..received.bytes]).into_owned(), descriptors))
}

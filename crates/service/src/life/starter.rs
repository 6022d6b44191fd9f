//! The process that starts the next one in an upgrade. It is started before the server is confined, and so
//! can start a process that is free to confine itself anew, to other folders.
//!
//! It must never start anything but the program and words that it was told before the server opened a thing,
//! nor take anything of the server but descriptors and what is said about them. It speaks with nobody else,
//! and ends with the server.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use staunch_confine::Identity;
use staunch_netio::handover as descriptors;
use staunch_program::Failure;

use super::handover;
use super::program::Program;

/// The hidden subcommand of `staunch` that runs it.
const WORD: &str = "upgrade-starter";
/// The program of this very process, even if its file was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// Descriptors in a packet: the kernel takes 253 (SCM_MAX_FD).
const DESCRIPTORS_MAX: usize = 250;
/// Bytes of a packet: a program with its words, which an operator wrote, or the text about thousands of
/// sockets. A datagram of a Unix socket may have twice as many by default.
const PACKET_BYTES_MAX: usize = 100_000;

/// What a packet of the server asks for: its first byte.
const PROGRAM: u8 = b'P';
const DESCRIPTORS: u8 = b'D';
const START: u8 = b'S';
const WAIT: u8 = b'W';
const KILL: u8 = b'K';
/// What a packet of the starter says: its first byte.
const STARTED: u8 = b's';
const ENDED: u8 = b'e';
const FAILED: u8 = b'f';

/// The server's end.
#[derive(Debug)]
pub(super) struct Starter(OwnedFd);

impl Starter {
    /// Starts the process, which becomes this user.
    ///
    /// # Errors
    /// It cannot be started; there is no /proc.
    pub(super) fn new(program: &Program, user: Option<&Identity>) -> io::Result<Self> {
        let (ours, others) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(OWN_PROGRAM);
        command.arg0("staunch").arg(WORD).args(user.map(Identity::to_string));
        command.stdin(others).stdout(Stdio::inherit());
        for name in handover::FOREIGN.into_iter().chain([handover::VARIABLE]) {
            command.env_remove(name);
        }
        let told = staunch_confine::hand_on(user);
        command.env_remove(staunch_confine::INHERITED);
        command.envs(told);
        // Signals of the terminal are for the server.
        command.process_group(0).spawn()?;
        let words = program.words.iter().map(OsString::as_os_str);
        let all: Vec<&[u8]> =
            [program.path.as_os_str()].into_iter().chain(words).map(|word| word.as_bytes()).collect();
        send(&ours, PROGRAM, &all.join(&0), &[])?;
        Ok(Self(ours))
    }

    /// Has the program started with these descriptors, and with a text in which their numbers stand. Gives
    /// the number of the process.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn start(&self, told: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<u32> {
        let (parts, last) = descriptors.split_at(descriptors.len() / DESCRIPTORS_MAX * DESCRIPTORS_MAX);
        for part in parts.chunks(DESCRIPTORS_MAX) {
            send(&self.0, DESCRIPTORS, &numbers(part), part)?;
        }
        // Those of this packet stand in front of the text.
        let text = [&numbers(last)[..], told.as_bytes()].join(&0);
        send(&self.0, START, &text, last)?;
        match self.hear()? {
            (STARTED, text) => text.parse().map_err(io::Error::other),
            (_, text) => Err(io::Error::other(text)),
        }
    }

    /// Waits for the end of the process that was started last, after killing it if it is not over. How it
    /// ended, in words.
    pub(super) fn end(&self, kill: bool) -> String {
        let heard = send(&self.0, if kill { KILL } else { WAIT }, b"", &[]).and_then(|()| self.hear());
        heard.map_or_else(|error| error.to_string(), |(_, text)| text)
    }

    fn hear(&self) -> io::Result<(u8, String)> {
        let (bytes, _) = receive(&self.0)?;
        let (&kind, text) = bytes.split_first().ok_or_else(gone)?;
        Ok((kind, String::from_utf8_lossy(text).into_owned()))
    }
}

fn gone() -> io::Error {
    io::Error::other("the process that starts others has ended")
}

/// Numbers of descriptors, each with a blank behind it.
fn numbers(descriptors: &[BorrowedFd<'_>]) -> Vec<u8> {
    descriptors.iter().map(|one| format!("{} ", one.as_raw_fd())).collect::<String>().into_bytes()
}

fn send(line: &OwnedFd, kind: u8, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if text.len() >= PACKET_BYTES_MAX {
        return Err(io::Error::other(format!("{} bytes; {PACKET_BYTES_MAX} are the most", text.len())));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    loop {
        let parts = [IoSlice::new(std::slice::from_ref(&kind)), IoSlice::new(text)];
        match rustix::net::sendmsg(line, &parts, &mut beside, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next packet, with its descriptors; an empty one when the other end is gone.
fn receive(line: &OwnedFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; PACKET_BYTES_MAX + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    loop {
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut room = [IoSliceMut::new(&mut bytes)];
        let length = match rustix::net::recvmsg(line, &mut room, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => received.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut descriptors = Vec::new();
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        bytes.truncate(length);
        return Ok((bytes, descriptors));
    }
}

/// Runs the process until its server has ended, as this user (`user`) if one is named.
///
/// # Errors
/// Standard input is no line to a server; the user cannot be assumed.
pub fn run(user: Option<&str>) -> Result<(), Failure> {
    // The next server belongs to the group of this one, as if that had started it.
    let group = staunch_confine::group_of_parent();
    if let Some(user) = user {
        let user = Identity::find(user).map_err(|unknown| format!("user: {unknown}"))?;
        user.assume().map_err(|error| error.to_string())?;
    }
    let line = io::stdin().as_fd().try_clone_to_owned();
    let line = line.map_err(|error| format!("no line to a server: {error}"))?;
    let fault = |error: io::Error| Failure::from(format!("the line to the server: {error}"));
    let mut work = Work { program: None, received: Vec::new(), child: None, group };
    loop {
        let (packet, descriptors) = receive(&line).map_err(fault)?;
        let Some((&kind, text)) = packet.split_first() else { return Ok(()) };
        if let Some((kind, text)) = work.obey(kind, text, descriptors) {
            // The server may have ended, which the next look at the line tells.
            let _ = send(&line, kind, text.as_bytes(), &[]);
        }
    }
}

/// What the starter knows.
struct Work {
    program: Option<Program>,
    /// Descriptors, with the numbers they have in the server.
    received: Vec<(i32, OwnedFd)>,
    child: Option<Child>,
    /// Process group of the server.
    group: Option<i32>,
}

impl Work {
    /// Does what a packet asks for. Gives the answer, if it is to have one.
    fn obey(&mut self, kind: u8, text: &[u8], descriptors: Vec<OwnedFd>) -> Option<(u8, String)> {
        match kind {
            PROGRAM if self.program.is_none() => {
                let mut words = text.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
                let path = words.next()?.into();
                self.program = Some(Program { path, words: words.collect() });
                None
            }
            DESCRIPTORS => {
                self.keep(text, descriptors);
                None
            }
            START => {
                let (numbers, told) = text.split_at(text.iter().position(|byte| *byte == 0)?);
                self.keep(numbers, descriptors);
                let started = self.start(&String::from_utf8_lossy(&told[1..]));
                self.received.clear();
                Some(match started {
                    Ok(process) => (STARTED, process.to_string()),
                    Err(error) => (FAILED, error.to_string()),
                })
            }
            WAIT | KILL => {
                let end = |mut child: Child| {
                    if kind == KILL {
                        child.kill()?;
                    }
                    child.wait()
                };
                let ended = self.child.take().map(end);
                let how = ended.map_or_else(
                    || "nothing was started".into(),
                    |ended| ended.map_or_else(|error| error.to_string(), |status| status.to_string()),
                );
                Some((ENDED, how))
            }
            _ => None,
        }
    }

    fn keep(&mut self, numbers: &[u8], descriptors: Vec<OwnedFd>) {
        let numbers = String::from_utf8_lossy(numbers);
        let numbers = numbers.split_ascii_whitespace().map_while(|number| number.parse().ok());
        self.received.extend(numbers.zip(descriptors));
    }

    fn start(&mut self, told: &str) -> io::Result<u32> {
        let program = self.program.as_ref().ok_or_else(|| io::Error::other("no program was told"))?;
        let mut copies = Vec::new();
        for (number, descriptor) in &self.received {
            copies.push((*number, descriptors::inheritable(descriptor)?));
        }
        let own =
            |number: i32| Some(copies.iter().find(|(of_server, _)| *of_server == number)?.1.as_raw_fd());
        let told =
            handover::renumber(told, own).ok_or_else(|| io::Error::other("a descriptor is missing"))?;
        let mut command = command(program);
        if let Some(group) = self.group {
            command.process_group(group);
        }
        let child = command.env(handover::VARIABLE, told).spawn()?;
        let process = child.id();
        self.child = Some(child);
        Ok(process)
    }
}

/// The program, to be started as it was at first.
pub(super) fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    let mut words = program.words.iter();
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    command.args(words).stdin(Stdio::null());
    for name in handover::FOREIGN {
        command.env_remove(name);
    }
    command
}

//! The life of a child: it waits for the begin, asks again and again, and tells what came.
//!
//! A connection is socket, two deadlines, connect, one send, recv until the peer has closed, close. It must
//! never do more, nor allocate in the loop.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, read};
use rustix::net::{RecvFlags, SendFlags, getsockname, recv, send};
use staunch_netio::clock;
use staunch_protocol::answer::{AnswerReader, HeadMemory, Step};

use super::fault::Fault;
use super::plan::Plan;
use super::source::Source;
use super::tally::{Board, Tally};
use crate::results::Protocol;
use crate::syscall::thread_usage;

/// What is received in one call: the paper's 4000 bytes and any head at once, and long answers in few calls,
/// within the cache of a processor.
const RECEIVE_BYTES: usize = 128 * 1024;
/// So many time-outs in a row, and a child gives up: it would wait for days.
const TIME_OUTS_MAX: u32 = 3;
/// The status of an answer that has what was asked for.
const OK: u16 = 200;

/// Lives the life of a child.
pub(super) fn live(plan: &Plan, board: &Board, number: usize, barrier: &OwnedFd) {
    let mut child = Child::new(plan, board.tally(number));
    board.be_ready();
    // Nothing is ever written: it ends when the parent lets go of the other end.
    while read(barrier, &mut [0; 1]) == Err(Errno::INTR) {}
    let before = thread_usage();
    child.tally.begin(clock::now_ns());
    child.ask_all(board);
    child.tally.end(clock::now_ns(), &thread_usage().since(&before));
}

struct Child<'a> {
    plan: &'a Plan,
    tally: Tally<'a>,
    source: Source,
    request: Vec<u8>,
    buffer: Vec<u8>,
    memory: HeadMemory,
    /// The connection that is kept, with keep-alive.
    kept: Option<OwnedFd>,
}

impl<'a> Child<'a> {
    fn new(plan: &'a Plan, tally: Tally<'a>) -> Self {
        Self {
            plan,
            tally,
            source: Source::new(plan.address, plan.patience),
            request: request(plan).into_bytes(),
            // Written now, so that no page of it is missing later.
            buffer: vec![1; RECEIVE_BYTES],
            memory: HeadMemory::new(),
            kept: None,
        }
    }

    fn ask_all(&mut self, board: &Board) {
        let mut time_outs = 0;
        for done in 0..self.plan.loops {
            if board.is_stopped() {
                return;
            }
            let fault = match self.ask() {
                Ok(()) => {
                    self.tally.answered();
                    time_outs = 0;
                    continue;
                }
                Err(fault) => fault,
            };
            self.tally.failed(fault, 1);
            time_outs = if fault.is_time_out() { time_outs + 1 } else { 0 };
            let left = self.plan.loops - done - 1;
            if time_outs == TIME_OUTS_MAX && left > 0 {
                return self.tally.failed(Fault::NotTried, left);
            }
        }
    }

    fn ask(&mut self) -> Result<(), Fault> {
        let socket = match self.kept.take() {
            Some(socket) => socket,
            None => {
                let socket = self.source.connect()?;
                self.tally.connected();
                socket
            }
        };
        say(&socket, &self.request)?;
        let mut bytes = 0;
        let heard = match self.plan.protocol {
            Protocol::Paper => self.hear_bytes(&socket, &mut bytes).map(|()| false),
            Protocol::Http | Protocol::KeepAlive => self.hear_http(&socket, &mut bytes),
        };
        self.tally.received(bytes);
        let keep = heard?;
        let wanted = self.plan.bytes as u64;
        if bytes != wanted {
            return Err(if bytes < wanted { Fault::Short } else { Fault::Long });
        }
        if keep {
            self.kept = Some(socket);
        }
        Ok(())
    }

    /// Hears bytes until the peer closes.
    fn hear_bytes(&mut self, socket: &OwnedFd, bytes: &mut u64) -> Result<(), Fault> {
        loop {
            match self.hear(socket)? {
                0 => return Ok(()),
                count => *bytes += count as u64,
            }
        }
    }

    /// Hears an answer, and says whether the connection stays. If it does not, the peer is waited for to
    /// close it, so that both protocols do the same and the port is free at once.
    fn hear_http(&mut self, socket: &OwnedFd, bytes: &mut u64) -> Result<bool, Fault> {
        let mut reader = AnswerReader::new();
        reader.begin(false);
        let (status, keep) = loop {
            let count = self.hear(socket)?;
            if count == 0 {
                let ended = reader.end().map_err(|_| Fault::Short)?.ok_or(Fault::Short)?;
                return right(ended.status).map(|()| false);
            }
            let mut body = |piece: &[u8]| *bytes += piece.len() as u64;
            match reader.read_with(&mut self.memory, &self.buffer[..count], &mut body) {
                Ok(Step::More) => {}
                Ok(Step::Complete { consumed, status, keep }) if consumed == count => break (status, keep),
                Ok(Step::Complete { .. }) => return Err(Fault::Long),
                Err(_) => return Err(Fault::NotHttp),
            }
        };
        right(status)?;
        let keep = keep && self.plan.protocol == Protocol::KeepAlive;
        if !keep && self.hear(socket)? > 0 {
            return Err(Fault::Long);
        }
        Ok(keep)
    }

    /// Hears what is there, or waits for it; 0 when the peer has closed.
    fn hear(&mut self, socket: &OwnedFd) -> Result<usize, Fault> {
        loop {
            match recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((_, count)) if self.is_echo(socket, count) => {
                    return Err(Errno::CONNREFUSED.into());
                }
                Ok((_, count)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Whether the child hears itself. Where nobody listens at a port that the kernel may choose, one
    /// connection in thousands gets that very port for its own end, and is connected to itself.
    fn is_echo(&self, socket: &OwnedFd, count: usize) -> bool {
        self.buffer[..count] == self.request[..]
            && getsockname(socket).is_ok_and(|own| own == self.plan.address.into())
    }
}

fn right(status: u16) -> Result<(), Fault> {
    if status == OK { Ok(()) } else { Err(Fault::Status(status)) }
}

fn say(socket: impl AsFd, mut request: &[u8]) -> Result<(), Errno> {
    while !request.is_empty() {
        match send(&socket, request, SendFlags::NOSIGNAL) {
            Ok(count) => request = &request[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// What each loop says.
fn request(plan: &Plan) -> String {
    let Plan { address, bytes, .. } = plan;
    match plan.protocol {
        Protocol::Paper => format!("{bytes}\n"),
        Protocol::Http => {
            format!("GET /{bytes} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        }
        Protocol::KeepAlive => format!("GET /{bytes} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
    }
}

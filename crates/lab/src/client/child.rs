//! The life of a child: it waits for the begin, asks again and again, and tells what came.
//!
//! A connection is socket, two deadlines, connect, one send, recv until the peer has closed, close. It must
//! never do more, nor allocate in the loop.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, read};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use staunch_netio::clock;
use staunch_protocol::answer::HeadMemory;

use super::answer::{AnswerInPart, Heard, request};
use super::fault::Fault;
use super::loops::Loops;
use super::plan::Plan;
use super::source::Source;
use super::tally::Board;
use crate::syscall::thread_usage;

/// What is received in one call: the paper's 4000 bytes and any head at once, and long answers in few calls,
/// within the cache of a processor.
pub(super) const RECEIVE_BYTES: usize = 128 * 1024;

/// Lives the life of a child.
pub(super) fn live(plan: &Plan, board: &Board, number: usize, barrier: &OwnedFd) {
    let mut child = Child::new(plan, board, number);
    board.be_ready();
    await_begin(barrier);
    let before = thread_usage();
    child.loops.tally.begin(clock::now_ns());
    while child.loops.are_left() && !board.is_stopped() {
        child.answer.begin();
        let outcome = child.ask();
        child.loops.end(outcome, child.answer.bytes());
    }
    child.loops.tally.end(clock::now_ns(), &thread_usage().since(&before));
}

/// Waits at the barrier. Nothing is ever written: it ends when the parent lets go of the other end.
pub(super) fn await_begin(barrier: &OwnedFd) {
    while read(barrier, &mut [0; 1]) == Err(Errno::INTR) {}
}

struct Child<'a> {
    loops: Loops<'a>,
    source: Source,
    request: Vec<u8>,
    answer: AnswerInPart,
    buffer: Vec<u8>,
    memory: HeadMemory,
    /// The connection that is kept, with keep-alive.
    kept: Option<OwnedFd>,
}

impl<'a> Child<'a> {
    fn new(plan: &Plan, board: &'a Board, number: usize) -> Self {
        Self {
            loops: Loops::new(plan.loops, board.tally(number)),
            source: Source::patient(plan.address, plan.patience),
            request: request(plan).into_bytes(),
            answer: AnswerInPart::new(plan),
            // Written now, so that no page of it is missing later.
            buffer: vec![1; RECEIVE_BYTES],
            memory: HeadMemory::new(),
            kept: None,
        }
    }

    fn ask(&mut self) -> Result<(), Fault> {
        let socket = match self.kept.take() {
            Some(socket) => socket,
            None => {
                let socket = self.source.connect()?;
                self.loops.tally.connected();
                socket
            }
        };
        say(&socket, &self.request)?;
        loop {
            let count = self.hear(&socket)?;
            let input = &self.buffer[..count];
            if input.is_empty() {
                return self.answer.end();
            }
            if *input == *self.request && self.source.is_own_peer(&socket) {
                return Err(Errno::CONNREFUSED.into());
            }
            if self.answer.hear(&mut self.memory, input)? == Heard::Whole {
                self.kept = Some(socket);
                return Ok(());
            }
        }
    }

    /// Hears what is there, or waits for it; 0 when the peer has closed.
    fn hear(&mut self, socket: &OwnedFd) -> Result<usize, Fault> {
        loop {
            match recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((_, count)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
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

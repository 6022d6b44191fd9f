//! A child of the loop: a connection under way, what of the request is said, and the answer so far.
//!
//! It must never make a call that finds nothing while all goes well: what was sent whole needs no more room,
//! and an answer that is whole is not asked for once more.

use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use staunch_protocol::answer::HeadMemory;

use super::super::answer::{AnswerInPart, Heard, request};
use super::super::child::RECEIVE_BYTES;
use super::super::fault::Fault;
use super::super::loops::Loops;
use super::super::plan::Plan;
use super::super::source::Source;
use super::super::tally::Tally;

/// What is told of a connection: that bytes came, or the end of them. Once each: what is not taken is not
/// told again.
const INPUT: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
/// Input, and room to send.
const BOTH: EventFlags = INPUT.union(EventFlags::OUT);
/// The peer has said all it will, and nothing is wrong.
const ENDED: EventFlags = EventFlags::RDHUP;
/// What has to be asked for, for it may hide an error.
const BROKEN: EventFlags = EventFlags::ERR.union(EventFlags::HUP);

/// What all children use in turn.
pub(super) struct SeatTable {
    pub(super) epoll: OwnedFd,
    source: Source,
    request: Vec<u8>,
    buffer: Vec<u8>,
    memory: HeadMemory,
}

impl SeatTable {
    pub(super) fn new(plan: &Plan, epoll: OwnedFd) -> Self {
        Self {
            epoll,
            source: Source::nonblocking(plan.address),
            request: request(plan).into_bytes(),
            // Written now, so that no page of it is missing later.
            buffer: vec![1; RECEIVE_BYTES],
            memory: HeadMemory::new(),
        }
    }
}

/// A child.
pub(super) struct Seat<'a> {
    pub(super) loops: Loops<'a>,
    pub(super) answer: AnswerInPart,
    /// When the peer has been waited for long enough.
    pub(super) deadline_ns: u64,
    /// The connection, be it under way.
    socket: Option<OwnedFd>,
    /// Whether it is made.
    is_connected: bool,
    /// What is told of it; nothing before it was first waited for.
    watched: EventFlags,
    /// Bytes of the request that are sent.
    sent: usize,
}

impl<'a> Seat<'a> {
    pub(super) fn new(plan: &Plan, tally: Tally<'a>) -> Self {
        Self {
            loops: Loops::new(plan.loops, tally),
            answer: AnswerInPart::new(plan),
            deadline_ns: u64::MAX,
            socket: None,
            is_connected: false,
            watched: EventFlags::empty(),
            sent: 0,
        }
    }

    /// Begins a loop: connects, unless the connection stayed. What is left is to ask.
    pub(super) fn begin(&mut self, table: &mut SeatTable) -> Result<(), Fault> {
        self.answer.begin();
        self.sent = 0;
        if self.socket.is_none() {
            self.socket = Some(table.source.connect()?);
        }
        Ok(())
    }

    /// Goes on with a loop; whether it has ended well.
    pub(super) fn go_on(
        &mut self,
        number: usize,
        flags: EventFlags,
        table: &mut SeatTable,
    ) -> Result<bool, Fault> {
        if self.sent < table.request.len() {
            // What came meanwhile is told again: what is watched changes when all is sent.
            return self.say(number, table).map(|()| false);
        }
        self.hear(flags, table)
    }

    /// Closes the connection if there is one.
    pub(super) fn hang_up(&mut self) {
        self.socket = None;
        self.is_connected = false;
        self.watched = EventFlags::empty();
    }

    /// Asks: sends what can be sent. A peer on this machine is connected by now, and takes all of it; any
    /// other is waited for.
    pub(super) fn say(&mut self, number: usize, table: &SeatTable) -> Result<(), Fault> {
        let Some(socket) = &self.socket else { return Ok(()) };
        while self.sent < table.request.len() {
            match send(socket, &table.request[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.sent += count;
                    if !self.is_connected {
                        self.is_connected = true;
                        self.loops.tally.connected();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        let wanted = if self.sent < table.request.len() { BOTH } else { INPUT };
        if self.watched == wanted {
            return Ok(());
        }
        let data = EventData::new_u64(number as u64);
        if self.watched.is_empty() {
            epoll::add(&table.epoll, socket, data, wanted)?;
        } else {
            epoll::modify(&table.epoll, socket, data, wanted)?;
        }
        self.watched = wanted;
        Ok(())
    }

    /// Takes what came; whether the answer is whole. If the peer had ended before, and less came than there
    /// was room for, that was all: the call that would say so is spared.
    fn hear(&mut self, flags: EventFlags, table: &mut SeatTable) -> Result<bool, Fault> {
        let Some(socket) = &self.socket else { return Ok(false) };
        let is_ended = flags.contains(ENDED) && !flags.intersects(BROKEN);
        loop {
            let count = match recv(socket, &mut table.buffer[..], RecvFlags::empty()) {
                Ok((_, count)) => count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            };
            let input = &table.buffer[..count];
            if *input == *table.request && table.source.is_own_peer(socket) {
                return Err(Errno::CONNREFUSED.into());
            }
            if !input.is_empty() && self.answer.hear(&mut table.memory, input)? == Heard::Whole {
                if is_ended {
                    self.hang_up();
                }
                return Ok(true);
            }
            if input.is_empty() || (is_ended && count < RECEIVE_BYTES) {
                self.answer.end()?;
                self.hang_up();
                return Ok(true);
            }
            if count < RECEIVE_BYTES {
                return Ok(false);
            }
        }
    }
}

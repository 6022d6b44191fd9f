//! The other side of a simulated connection: it follows a script and writes down what it saw.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::Taken;

/// A peer that echoes takes no more while so much of what it sent back was not read.
const ECHO_BYTES_MAX: usize = 64 * 1024;

/// Name of a peer, in the order they were made.
pub type PeerId = usize;

/// A step of a peer's script, done in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Do nothing for so many milliseconds.
    Wait(u64),
    /// Do nothing until so many bytes were received in all, or the connection has ended.
    UntilReceived(usize),
    /// From now on the kernel takes up to so many bytes that the peer does not take yet, and reports room
    /// when half of that is free.
    Queue(usize),
    /// Take no more bytes until the next `Read`.
    Stall,
    /// Take bytes until so many were received in all, then no more until the next `Read`.
    TakeUpTo(usize),
    /// Take bytes again.
    Read,
    /// Send back whatever comes from now on, and the end after it.
    Echo,
    /// Go on with what follows when the other side has half-closed, which ends the script of others.
    Outlast,
    /// Send no more, but go on reading.
    HalfClose,
    /// Close in order.
    Close,
    /// Break the connection off.
    Reset,
}

/// How a connection ended, seen from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The server closed or half-closed in order, after all it had sent.
    Orderly,
    /// The server broke off: bytes of the peer were unread when it closed.
    Reset,
    /// The peer itself ended it.
    Own,
}

/// What a peer saw.
#[derive(Debug, Default, Clone)]
pub struct Transcript {
    /// Everything it received.
    pub received: Vec<u8>,
    /// How it ended, if it did.
    pub ended: Option<End>,
    /// Whether the other side accepted it, or connected to it.
    pub accepted: bool,
    /// When it ended, in the simulation's milliseconds.
    pub ended_ms: u64,
}

/// A peer under way.
#[derive(Debug)]
pub(super) struct Peer {
    steps: VecDeque<Step>,
    /// Where it connects from, or listens.
    pub(super) address: Option<SocketAddr>,
    /// The peer does nothing before there is a connection to it.
    waits_for_connection: bool,
    wait_until_ms: Option<u64>,
    /// Sent by the peer, not yet delivered to the server.
    pub(super) unread: VecDeque<u8>,
    pub(super) half_closed: bool,
    pub(super) reset: bool,
    /// The peer takes no more bytes than so many in all.
    taken_max: usize,
    /// What the kernel has taken for it, and so many at most.
    queue: VecDeque<u8>,
    queue_bytes_max: usize,
    /// What it takes goes back.
    pub(super) echoes: bool,
    /// The peer goes on after the other side has half-closed, and whether that has.
    pub(super) outlasts: bool,
    pub(super) sees_end: bool,
    pub(super) transcript: Transcript,
}

impl Peer {
    pub(super) fn new(script: Vec<Step>) -> Self {
        Self {
            steps: script.into(),
            address: None,
            waits_for_connection: false,
            wait_until_ms: None,
            unread: VecDeque::new(),
            half_closed: false,
            reset: false,
            taken_max: usize::MAX,
            queue: VecDeque::new(),
            queue_bytes_max: 0,
            echoes: false,
            outlasts: false,
            sees_end: false,
            transcript: Transcript::default(),
        }
    }

    /// A peer that is connected to, and begins its script with `connected`.
    pub(super) fn listening(script: Vec<Step>) -> Self {
        Self { waits_for_connection: true, ..Self::new(script) }
    }

    /// There is a connection to it.
    pub(super) fn connected(&mut self) {
        self.waits_for_connection = false;
        self.transcript.accepted = true;
    }

    /// How many bytes it would take now. After its end whatever is sent to it vanishes.
    pub(super) fn room_bytes(&self) -> usize {
        match self.transcript.ended {
            Some(_) => usize::MAX,
            None if self.queue_bytes_max > 0 => {
                let room_bytes = self.queue_bytes_max.saturating_sub(self.queue.len());
                if room_bytes * 2 < self.queue_bytes_max { 0 } else { room_bytes }
            }
            None => {
                let room_bytes = self.taken_max.saturating_sub(self.transcript.received.len());
                let echo_bytes = ECHO_BYTES_MAX.saturating_sub(self.unread.len());
                if self.echoes { room_bytes.min(echo_bytes) } else { room_bytes }
            }
        }
    }

    /// The kernel takes bytes for it.
    pub(super) fn hand_over(&mut self, bytes: &[u8]) {
        self.queue.extend(bytes);
        self.take_queued();
    }

    /// Takes what it may of what the kernel has for it.
    fn take_queued(&mut self) {
        let room_bytes = self.taken_max.saturating_sub(self.transcript.received.len());
        let taken_bytes = room_bytes.min(self.queue.len());
        let taken: Vec<u8> = self.queue.drain(..taken_bytes).collect();
        self.transcript.received.extend_from_slice(&taken);
        if self.echoes {
            self.unread.extend(taken);
        }
    }

    /// What it has acknowledged, and what the kernel keeps for it.
    pub(super) fn taken(&self) -> Taken {
        Taken { mark: self.transcript.received.len() as u64, left_bytes: self.queue.len() as u64 }
    }

    /// Adds a step to the end of the script.
    pub(super) fn add(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    /// Whether `advance` would do something.
    pub(super) fn can_act(&self, now_ms: u64) -> bool {
        let ended = self.transcript.ended.is_some();
        match self.steps.front() {
            _ if self.waits_for_connection => false,
            None => false,
            Some(step) if ended => is_passive(step),
            Some(Step::Wait(_)) => self.wait_until_ms.is_none_or(|until_ms| until_ms <= now_ms),
            Some(Step::UntilReceived(bytes)) => self.transcript.received.len() >= *bytes || self.sees_end,
            Some(_) => true,
        }
    }

    /// Does every step that can be done now.
    pub(super) fn advance(&mut self, now_ms: u64) {
        if self.waits_for_connection {
            return;
        }
        while self.transcript.ended.is_none() || self.steps.front().is_some_and(is_passive) {
            match self.steps.front() {
                Some(Step::Wait(ms)) => {
                    let until_ms = *self.wait_until_ms.get_or_insert(now_ms + ms);
                    if until_ms > now_ms {
                        return;
                    }
                    self.wait_until_ms = None;
                }
                Some(Step::UntilReceived(bytes)) => {
                    let is_over = self.transcript.ended.is_some() || self.sees_end;
                    if self.transcript.received.len() < *bytes && !is_over {
                        return;
                    }
                }
                Some(Step::Send(bytes)) => self.unread.extend(bytes),
                Some(Step::Queue(bytes)) => self.queue_bytes_max = *bytes,
                Some(Step::Stall) => self.taken_max = 0,
                Some(Step::TakeUpTo(bytes)) => self.taken_max = *bytes,
                Some(Step::Read) => self.taken_max = usize::MAX,
                Some(Step::Echo) => self.echoes = true,
                Some(Step::Outlast) => self.outlasts = true,
                Some(Step::HalfClose) => self.half_closed = true,
                Some(Step::Close) => {
                    self.half_closed = true;
                    self.end(End::Own, now_ms);
                }
                Some(Step::Reset) => {
                    self.reset = true;
                    self.end(End::Own, now_ms);
                }
                None => return,
            }
            self.steps.pop_front();
            self.take_queued();
        }
    }

    /// When its present waiting ends.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.wait_until_ms
    }

    /// Whether it could still act if something came from the other side.
    pub(super) fn has_steps(&self) -> bool {
        !self.waits_for_connection && !self.steps.is_empty()
    }

    /// Whether it is through: its connection has ended, or nobody connected to it.
    pub(super) fn is_done(&self) -> bool {
        self.waits_for_connection || self.transcript.ended.is_some()
    }

    pub(super) fn end(&mut self, end: End, now_ms: u64) {
        if end == End::Orderly {
            self.transcript.received.extend(self.queue.drain(..));
        }
        if self.transcript.ended.is_none() {
            self.transcript.ended = Some(end);
            self.transcript.ended_ms = now_ms;
        }
        if end != End::Own {
            self.steps.clear();
            self.wait_until_ms = None;
        }
    }
}

/// Steps that pass by once the connection has ended.
fn is_passive(step: &Step) -> bool {
    matches!(step, Step::UntilReceived(_))
}

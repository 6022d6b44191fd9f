//! A reader: from the bytes of its connection to what the meter counts.
//!
//! It must never call the network: it says what is to be done, and the thread does it. Order for each
//! connection: `begin`, `request`, then `read` for what comes.

use std::sync::Arc;

use staunch_netio::Slot;
use staunch_protocol::answer::{AnswerReader, Step};
use staunch_protocol::event_stream::EventReader;

use super::head::{AnswerHead, HeadFault};
use super::ledger::Ledger;
use super::meter::Meter;
use super::socket::{self, SocketStream};

/// What a reader is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReaderStage {
    /// The reader has no connection.
    #[default]
    Away,
    /// Its connection is being made.
    Connecting,
    /// The reader has asked, and its stream is not open yet.
    Asked,
    /// Its stream is open.
    Open,
    /// Its connection is being closed.
    Leaving,
}

/// What is to be done after bytes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    GoOn,
    /// The stream is open now.
    Opened,
    /// The stream has ended in order.
    Ended,
    /// The answer was no stream.
    Wrong,
    /// The stream cannot be read on.
    Broken,
}

/// Messages that begin a WebSocket. It is open when as many have come in return.
#[derive(Debug, Clone)]
pub(crate) struct SocketGreeting {
    /// The messages in frames.
    pub(crate) frames: Arc<[u8]>,
    /// How many they are.
    pub(crate) messages: usize,
}

/// A reader, which stays the same from connection to connection.
#[derive(Debug, Default)]
pub(crate) struct LiveReader {
    /// Its connection, unless it is away.
    pub(crate) slot: Slot,
    /// Number of its topic.
    pub(crate) topic: u32,
    pub(crate) stage: ReaderStage,
    /// Its stream was open before.
    pub(crate) has_been_open: bool,
    /// The stream of the connection that is being closed was open.
    has_stood: bool,
    /// The reader has stopped reading, as it was told.
    pub(crate) is_stalled: bool,
    /// When its connection was begun.
    pub(crate) begun_ns: u64,
    pub(crate) ledger: Ledger,
    /// The last id that its streams have told.
    pub(crate) last_id: String,
    /// After how many milliseconds its stream wants it to come back.
    pub(crate) retry_ms: Option<u64>,
    /// What has come of a head whose end has not.
    head: Vec<u8>,
    answer: AnswerReader,
    events: EventReader,
    /// The stream, if it is a WebSocket.
    socket: Option<SocketStream>,
    /// What begins its WebSockets, if it reads by them.
    greeting: Option<SocketGreeting>,
    /// Messages that are to come before the WebSocket counts as open.
    lacking: usize,
    /// What is to be sent as soon as nothing is being sent.
    pub(crate) reply: Vec<u8>,
    /// A container is with the kernel.
    pub(crate) is_sending: bool,
}

impl LiveReader {
    /// A reader of a topic, which is away.
    /// With a greeting it reads by WebSocket.
    pub(crate) fn of_topic(topic: u32, greeting: Option<SocketGreeting>) -> Self {
        Self { topic, greeting, ..Self::default() }
    }

    /// A new connection is begun.
    pub(crate) fn begin(&mut self, slot: Slot, now_ns: u64) {
        self.slot = slot;
        self.stage = ReaderStage::Connecting;
        self.begun_ns = now_ns;
        self.head = Vec::new();
        self.answer = AnswerReader::new();
        self.events = EventReader::new();
        self.socket = None;
        self.reply = Vec::new();
        self.is_sending = false;
    }

    /// Appends what it asks: the request without its last line, and where it resumes.
    pub(crate) fn request(&mut self, lines: &[u8], resume: bool, output: &mut Vec<u8>) -> bool {
        self.stage = ReaderStage::Asked;
        output.extend_from_slice(lines);
        let resumes = resume && !self.last_id.is_empty();
        if resumes {
            output.extend_from_slice(b"Last-Event-ID: ");
            output.extend_from_slice(self.last_id.as_bytes());
            output.extend_from_slice(b"\r\n");
        }
        output.extend_from_slice(b"\r\n");
        resumes
    }

    /// Takes bytes of its connection.
    pub(crate) fn read(&mut self, bytes: &mut [u8], meter: &mut Meter) -> Then {
        meter.counts.received_bytes += bytes.len() as u64;
        match self.stage {
            ReaderStage::Asked | ReaderStage::Open if self.socket.is_some() => self.read_socket(bytes, meter),
            ReaderStage::Asked => self.read_head(bytes, meter),
            ReaderStage::Open => self.read_stream(bytes, meter),
            ReaderStage::Away | ReaderStage::Connecting | ReaderStage::Leaving => Then::GoOn,
        }
    }

    fn read_head(&mut self, bytes: &[u8], meter: &mut Meter) -> Then {
        let mut kept = std::mem::take(&mut self.head);
        let whole = if kept.is_empty() {
            bytes
        } else {
            kept.extend_from_slice(bytes);
            &kept
        };
        match AnswerHead::find(whole) {
            Ok(None) => {
                self.head = whole.to_vec();
                Then::GoOn
            }
            Ok(Some((head, length))) if self.greeting.is_some() => {
                self.upgrade(head, &whole[length..], meter)
            }
            Ok(Some((head, length))) if is_stream(head, meter) => self.open(whole, length, meter),
            Ok(Some(_)) => Then::Wrong,
            Err(fault) => {
                meter.note_fault(|| words(fault).to_owned());
                Then::Wrong
            }
        }
    }

    /// The head is that of a stream: what stands behind it belongs to the stream.
    fn open(&mut self, whole: &[u8], head_bytes: usize, meter: &mut Meter) -> Then {
        let (head, behind) = whole.split_at(head_bytes);
        self.answer.begin(false);
        match self.answer.read(head, &mut |_: &[u8]| ()) {
            Ok(Step::More) => self.stage = ReaderStage::Open,
            Ok(Step::Complete { .. }) => return Then::Ended,
            Err(fault) => {
                meter.note_fault(|| fault.to_string());
                return Then::Wrong;
            }
        }
        match self.read_stream(behind, meter) {
            Then::GoOn => Then::Opened,
            other => other,
        }
    }

    fn read_stream(&mut self, bytes: &[u8], meter: &mut Meter) -> Then {
        if self.is_stalled {
            return Then::GoOn;
        }
        meter.counts.stream_bytes += bytes.len() as u64;
        let comments = self.events.comments();
        let (events, ledger) = (&mut self.events, &mut self.ledger);
        let mut fault = None;
        let step = self.answer.read(bytes, &mut |piece: &[u8]| {
            let read =
                events.read(piece, |event| meter.note_event(ledger, &event.kind, event.data.as_bytes()));
            if let Err(endless) = read {
                fault.get_or_insert(endless.to_string());
            }
        });
        meter.counts.signs_of_life += self.events.comments() - comments;
        if let Some(sentence) = fault {
            meter.note_fault(|| sentence);
            return Then::Broken;
        }
        match step {
            Ok(Step::More) => Then::GoOn,
            Ok(Step::Complete { .. }) => Then::Ended,
            Err(fault) => {
                meter.note_fault(|| fault.to_string());
                Then::Broken
            }
        }
    }

    /// The answer to the handshake came, and what stands behind it.
    fn upgrade(&mut self, head: AnswerHead<'_>, behind: &[u8], meter: &mut Meter) -> Then {
        *meter.statuses.entry(head.status).or_default() += 1;
        if !socket::is_upgrade(head, meter) {
            return Then::Wrong;
        }
        self.socket = Some(SocketStream::default());
        if let Some(SocketGreeting { frames, messages }) = &self.greeting {
            self.reply.extend_from_slice(frames);
            self.lacking = *messages;
        }
        self.read_socket(&mut behind.to_vec(), meter)
    }

    fn read_socket(&mut self, bytes: &mut [u8], meter: &mut Meter) -> Then {
        let Some(socket) = self.socket.as_mut().filter(|_| !self.is_stalled) else { return Then::GoOn };
        meter.counts.stream_bytes += bytes.len() as u64;
        let read = socket.read(bytes, &mut self.ledger, meter, &mut self.reply);
        self.lacking = self.lacking.saturating_sub(read.messages);
        if self.lacking == 0 {
            self.stage = ReaderStage::Open;
        }
        match (read.is_broken, read.is_ended) {
            (true, _) => Then::Broken,
            (_, true) => Then::Ended,
            _ => Then::GoOn,
        }
    }

    /// The connection is to be closed.
    pub(crate) fn part(&mut self) {
        self.has_stood = self.stage == ReaderStage::Open;
        self.stage = ReaderStage::Leaving;
    }

    /// The connection is gone: keeps what the next one begins with. Returns whether its stream was open.
    pub(crate) fn leave(&mut self) -> bool {
        self.stage = ReaderStage::Away;
        if !self.events.last_id().is_empty() {
            self.last_id = self.events.last_id().to_owned();
        }
        self.retry_ms = self.events.retry_ms().or(self.retry_ms);
        self.head = Vec::new();
        self.has_stood
    }
}

/// Whether the answer is the one that was wanted.
fn is_stream(head: AnswerHead<'_>, meter: &mut Meter) -> bool {
    *meter.statuses.entry(head.status).or_default() += 1;
    if head.status != 200 {
        meter.note_fault(|| format!("a reader was answered {}", head.status));
        return false;
    }
    let kind = head.field("content-type").unwrap_or_default();
    let is_stream =
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream");
    if !is_stream {
        let kind = kind.to_owned();
        meter.note_fault(|| format!("a reader was answered by {kind:?} in place of text/event-stream"));
    }
    is_stream
}

fn words(fault: HeadFault) -> &'static str {
    match fault {
        HeadFault::NotHttp => "what a reader was answered is not HTTP",
        HeadFault::TooLong => "the head of an answer to a reader has no end",
    }
}

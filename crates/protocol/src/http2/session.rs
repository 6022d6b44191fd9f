//! The session: one connection's HTTP/2, from the server's side.
//!
//! It owns the order of things on a connection: which frames may come, which streams are open, how much may
//! be sent. It must never ask the time, and never tell the end of a stream twice. How it is driven stands in
//! `http2`.
//!
//! # Rules
//! 1. A request is given once, when its block is complete. It is over when its response is complete, when
//!    [`Event::Reset`] tells so, or with the connection: each request once.
//! 2. A body is given by events until `discard_body`, or the end of the response. What the peer may send of
//!    it grows only by what was `taken`.
//! 3. What is malformed is reset, what is too large answered: both are told as [`Event::Refused`], for no
//!    handler sees them. What breaks the connection's rules ends it with GOAWAY.
//! 4. A response that is complete before the body of its request ends that body (RFC 9113, section 8.1): not
//!    at once, for some clients lose an answer that comes together with the reset of its stream.
//! 5. No stream is remembered while nothing of it waits.

mod answering;
mod bodies;
mod deadlines;
mod ending;
mod frames;
mod keeping;
mod streams;
mod tunnels;

use super::error::{ConnectionFault, ErrorCode};
use super::frame;
use super::head::{HeadFault, HeadWriter, sentence};
use super::hpack::DynamicTable;
use super::ledger::{Glitch, Ledger};
use super::memory::WorkerMemory;
use super::opening::Opening;
use super::priority::Priority;
use super::stream::{Mark, Stream};
use crate::limits::{BODY_WINDOW_BYTES, STREAM_NUMBER_LEAVE, STREAMS_MAX, WINDOW_BYTES};
use crate::message::{BodyIn, Method, Request, SelfAnswered};
use crate::status::Status;

pub use answering::ResponseHead;

/// What a session has to say.
#[derive(Debug)]
pub enum Event<'e> {
    /// A request to answer.
    Request {
        /// The number of its stream.
        stream: u32,
        /// The request. A body follows if its `content` says so.
        request: Request<'e>,
    },
    /// A piece of the body of a request.
    Body {
        /// Of which stream.
        stream: u32,
        /// The next bytes, at least one.
        piece: &'e [u8],
    },
    /// That body has ended.
    BodyEnd {
        /// Of which stream.
        stream: u32,
    },
    /// A request is over before its answer is complete: by the peer, or because of what it sent.
    Reset {
        /// The number of its stream.
        stream: u32,
        /// The code of the frame that ended it.
        code: ErrorCode,
    },
    /// What came was no request, and was dealt with.
    Refused {
        /// The number of its stream.
        stream: u32,
        /// What it was answered with; nothing if its stream was reset.
        answered: Option<SelfAnswered>,
    },
    /// The input is used up.
    NeedInput,
    /// The session reads no more, and every request is over. Send what it wrote and close; linger
    /// (half-close, then read and discard until the peer closes or the deadline passes) when `linger` is set.
    Close {
        /// See above.
        linger: bool,
        /// What the peer did wrong, if it did.
        fault: Option<ConnectionFault>,
    },
}

/// The protocol state of an HTTP/2 connection.
#[derive(Debug)]
pub struct Session {
    /// Nothing while nothing waits.
    busy: Option<Box<Busy>>,
    table: DynamicTable,
    /// Since when nothing is asked for, or the first bytes are awaited.
    since_ms: u64,
    /// How much of all answers the peer takes now.
    send_window: u32,
    /// The window of a new stream.
    stream_window: u32,
    /// How much of all bodies the peer may send now.
    receive_left: u32,
    /// How much of it was taken and not yet told.
    owed: u32,
    /// The highest number of a stream that came.
    last_stream: u32,
    ledger: Ledger,
    phase: Phase,
    flags: u8,
    /// The request given last, while it is neither answered nor remembered: [`CURRENT`] and what is known of
    /// it.
    current: u8,
}

const _: () = assert!(size_of::<Session>() <= 72);

/// The request given last waits for its answer. The lowest four bits are its priority.
const CURRENT: u8 = 1 << 7;
/// The request given last is a HEAD request.
const CURRENT_HEAD: u8 = 1 << 6;
/// Its response has begun.
const CURRENT_BEGUN: u8 = 1 << 5;

/// The peer sends no more.
const PEER_ENDED: u8 = 1;
/// The next block has to say that no table is used (RFC 7541, section 4.2).
const TABLE_UNUSED: u8 = 1 << 1;
/// Lingering is of use.
const LINGER: u8 = 1 << 2;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The preface has not come.
    Preface,
    /// The first frame has not come: settings.
    Settings,
    Open,
    /// The peer was told that we leave, and may not know it yet.
    Leaving,
    /// No further request is taken.
    Left,
    Closed,
}

/// What a session holds on the heap.
#[derive(Debug, Default)]
struct Busy {
    /// Input that was not used: less than a frame.
    input: Vec<u8>,
    /// A block of fields that goes on.
    block: Vec<u8>,
    /// Of which stream it is, if there is one.
    block_head: Option<BlockHead>,
    block_frames: u8,
    /// In the order in which they came.
    streams: Vec<Stream>,
    /// Numbers of those that we have ended before the peer, in the order of their ends.
    ended: Vec<u32>,
    has_news: bool,
    has_resets: bool,
    /// The stream that was served last in turn with others.
    served: u32,
    /// The stream that was served last is a tunnel.
    served_tunnel: bool,
    /// Since when a frame or a block is incomplete.
    partial_ms: Option<u64>,
    /// How much of it had come then.
    partial_bytes: usize,
    /// Its deadline is that of a body.
    partial_is_body: bool,
}

/// What HEADERS say of the block that they begin.
#[derive(Debug, Clone, Copy)]
struct BlockHead {
    stream: u32,
    ends_stream: bool,
    /// An error in the scheme of priorities that was before RFC 9218.
    depends_on_itself: bool,
}

/// What was taken from the input.
enum Taken<'i> {
    /// A frame about which nothing is to be said.
    Frame,
    NeedInput,
    Event(Event<'i>),
    /// A block of fields in one frame.
    Block(BlockHead, &'i [u8]),
    /// A block that came in several frames.
    LongBlock(BlockHead, Vec<u8>),
}

/// What a frame came to, if it did not end the connection.
type Outcome<'i> = Result<Taken<'i>, ConnectionFault>;

/// Sections 6.1 and 6.2.
const TOO_MUCH_PADDING: ConnectionFault =
    ConnectionFault::protocol("a frame has more padding than it is long");

/// What became of a block of fields.
enum BlockUse {
    Request(BlockHead),
    Nothing,
    Event(Event<'static>),
}

impl Session {
    /// A new connection. Appends our settings, and how much of all bodies may come: both may be sent before
    /// anything came.
    pub fn new(now_ms: u64, out: &mut Vec<u8>) -> Self {
        frame::push_settings(out);
        frame::push_window_update(0, BODY_WINDOW_BYTES - WINDOW_BYTES, out);
        Self {
            busy: None,
            table: DynamicTable::new(),
            since_ms: now_ms,
            send_window: WINDOW_BYTES,
            stream_window: WINDOW_BYTES,
            receive_left: BODY_WINDOW_BYTES,
            owed: 0,
            last_stream: 0,
            ledger: Ledger::new(now_ms),
            phase: Phase::Preface,
            flags: LINGER,
            current: 0,
        }
    }

    /// The next event. Consumes from `input` what it used. Appends to `out` what the protocol asks for:
    /// acknowledgements, windows, resets, answers to what is too large.
    pub fn poll_event<'e, 'i: 'e>(
        &mut self,
        memory: &'e mut WorkerMemory,
        input: &mut &'i [u8],
        now_ms: u64,
        opening: &Opening,
        out: &mut Vec<u8>,
    ) -> Event<'e> {
        self.remember_current(now_ms);
        self.push_owed_resets(out);
        loop {
            if self.phase == Phase::Closed {
                return self.closed(None);
            }
            if let Some(news) = self.next_news() {
                return news;
            }
            if self.phase == Phase::Left && !self.has_live_streams() {
                return self.leave_for_good(out);
            }
            let taken = self.take_frame(input, now_ms, out);
            let used = match taken {
                Ok(Taken::Frame) => continue,
                Ok(Taken::Event(event)) => return event,
                Ok(Taken::NeedInput) => return self.wait_for_input(input, now_ms, out),
                Ok(Taken::Block(head, block)) => self.use_block(head, block, memory, now_ms, out),
                Ok(Taken::LongBlock(head, block)) => self.use_block(head, &block, memory, now_ms, out),
                Err(fault) => Err(fault),
            };
            match used {
                Ok(BlockUse::Request(head)) => return self.give_request(head, memory, now_ms, opening, out),
                Ok(BlockUse::Nothing) => {}
                Ok(BlockUse::Event(event)) => return event,
                Err(fault) => return self.fail(fault, out),
            }
        }
    }

    /// Nothing more can be done with the input.
    fn wait_for_input(&mut self, input: &[u8], now_ms: u64, out: &mut Vec<u8>) -> Event<'static> {
        self.tell_window(out);
        let peer_ended = self.flags & PEER_ENDED != 0;
        if peer_ended && let Some(news) = self.cancel_open_requests(now_ms) {
            return news;
        }
        if peer_ended && !self.has_live_streams() {
            return self.leave_for_good(out);
        }
        self.note_partial(input, now_ms);
        Event::NeedInput
    }

    /// Reads a complete block, whatever its stream is: tables must go on alike.
    fn use_block(
        &mut self,
        block_head: BlockHead,
        block: &[u8],
        memory: &mut WorkerMemory,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<BlockUse, ConnectionFault> {
        let stream = block_head.stream;
        let is_new = stream > self.last_stream;
        let is_useless = if is_new { self.phase == Phase::Left } else { self.find(stream).is_none() };
        if is_useless {
            self.judge_useless_block(block_head, block.len(), now_ms)?;
        }
        let WorkerMemory { reader, head, blocks, .. } = memory;
        if is_new && blocks.recall(block, &self.table, reader) {
            return self.begin_stream(block_head, Ok(()), now_ms, out);
        }
        head.clear(!is_new);
        reader.read(block, &mut self.table, |field| head.take(field))?;
        let finished = head.finish();
        if is_new {
            if finished.is_ok() {
                blocks.note(block, &self.table, reader, head);
            }
            return self.begin_stream(block_head, finished, now_ms, out);
        }
        self.take_trailer(block_head, finished, now_ms, out)
    }

    /// A block that is for nobody, read only because tables must go on alike: it crossed with our word that
    /// we leave, or that its stream is over.
    #[cold]
    fn judge_useless_block(
        &mut self,
        head: BlockHead,
        bytes: usize,
        now_ms: u64,
    ) -> Result<(), ConnectionFault> {
        let stream = head.stream;
        if stream <= self.last_stream && !self.has_ended(stream, head.ends_stream) {
            return Err(match stream == self.last_stream {
                true => ConnectionFault::new(ErrorCode::STREAM_CLOSED, "fields on a stream that is over"),
                false => ConnectionFault::protocol("a stream has a lower number than one before"),
            });
        }
        self.pay(Glitch::UselessBlock(u16::try_from(bytes).unwrap_or(u16::MAX)), now_ms)
    }

    /// The block opens a stream (section 5.1.1).
    fn begin_stream(
        &mut self,
        head: BlockHead,
        finished: Result<(), HeadFault>,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<BlockUse, ConnectionFault> {
        if self.phase == Phase::Left {
            return Ok(BlockUse::Nothing);
        }
        self.last_stream = head.stream;
        self.since_ms = now_ms;
        if head.stream >= STREAM_NUMBER_LEAVE {
            self.leave(out);
        }
        let (glitch, code) = match finished {
            _ if self.live_streams_count() >= STREAMS_MAX => (Glitch::Refused, ErrorCode::REFUSED_STREAM),
            _ if head.depends_on_itself => (Glitch::StreamError, ErrorCode::PROTOCOL_ERROR),
            Err(HeadFault::Malformed) => (Glitch::StreamError, ErrorCode::PROTOCOL_ERROR),
            Ok(()) | Err(HeadFault::TooLarge) => return Ok(BlockUse::Request(head)),
        };
        self.pay(glitch, now_ms)?;
        self.reset_unknown(head, code, out);
        Ok(BlockUse::Event(Event::Refused { stream: head.stream, answered: None }))
    }

    /// Gives the request that stands in the memory, or answers it if it is none.
    fn give_request<'e>(
        &mut self,
        block_head: BlockHead,
        memory: &'e mut WorkerMemory,
        now_ms: u64,
        opening: &Opening,
        out: &mut Vec<u8>,
    ) -> Event<'e> {
        let BlockHead { stream, ends_stream, .. } = block_head;
        let WorkerMemory { head, blocks, heads, refusal, .. } = memory;
        let head: &'e HeadWriter = blocks.head().unwrap_or(head);
        if let Some(refusal) = head.refused_protocol(ends_stream) {
            return self.refuse_request(block_head, Some(refusal), now_ms, opening, out);
        }
        let read = match head.is_too_large() {
            true => Err(Status::REQUEST_HEADER_FIELDS_TOO_LARGE),
            false => head.request(heads, refusal),
        };
        let mut request = match read {
            Ok(request) if !ends_stream || request.content == BodyIn::None => request,
            Ok(_) | Err(Status::BAD_REQUEST) => {
                return self.refuse_request(block_head, None, now_ms, opening, out);
            }
            Err(status) => {
                let answer = Some((status, sentence(refusal)));
                return self.refuse_request(block_head, answer, now_ms, opening, out);
            }
        };
        if ends_stream {
            let is_head = request.method == Method::Head;
            self.current = CURRENT | head.priority().packed() | if is_head { CURRENT_HEAD } else { 0 };
            return Event::Request { stream, request };
        }
        let mut opened = Stream::new(stream, self.stream_window, head.priority(), now_ms);
        if head.protocol().is_some() {
            opened.expect_body(BodyIn::Open);
            opened.set(Mark::Tunnel, true);
        } else {
            if !head.has_length() {
                request.content = BodyIn::Open;
            }
            opened.expect_body(request.content);
            opened.set(Mark::OmitBody, request.method == Method::Head);
            opened.set(Mark::Expects, head.expects());
        }
        self.busy.get_or_insert_default().streams.push(opened);
        Event::Request { stream, request }
    }

    /// A request that no handler sees: reset, or answered.
    #[cold]
    fn refuse_request(
        &mut self,
        head: BlockHead,
        answer: Option<(Status, &[u8])>,
        now_ms: u64,
        opening: &Opening,
        out: &mut Vec<u8>,
    ) -> Event<'static> {
        let glitch = if answer.is_some() { Glitch::RefusedHead } else { Glitch::StreamError };
        if let Err(fault) = self.pay(glitch, now_ms) {
            return self.fail(fault, out);
        }
        let answered = answer.map(|(status, sentence)| {
            let body_bytes = self.answer_refused(head.stream, status, sentence, opening, out);
            SelfAnswered { status, body_bytes }
        });
        if answered.is_none() {
            self.reset_unknown(head, ErrorCode::PROTOCOL_ERROR, out);
        } else if !head.ends_stream {
            let mut stream = Stream::new(head.stream, self.stream_window, Priority::default(), now_ms);
            stream.expect_body(BodyIn::Open);
            self.busy.get_or_insert_default().streams.push(stream);
            self.begin_late(head.stream, now_ms);
        }
        Event::Refused { stream: head.stream, answered }
    }
}

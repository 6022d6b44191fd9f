//! Reading answers, as a client: one reader a connection, one answer at a time, from bytes in any pieces.
//!
//! It owns where an answer ends. It must never keep a byte of a body, nor know what was asked for beyond
//! HEAD. Order: `begin` for each request, then `read` until it is complete; what `read` did not use belongs
//! to the next answer, after the next `begin`. When the peer has closed, `end` once. After a fault nothing.

mod fault;
mod head;
mod memory;

pub use fault::AnswerFault;
pub use memory::HeadMemory;

use super::chunked::{Lines, Sign};
use crate::limits::{ANSWER_HEAD_BYTES_MAX, INTERIM_ANSWERS_MAX};
use head::{Body, Head, parse_head};

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All input is used, and the answer goes on.
    More,
    /// The answer is complete.
    Complete {
        /// So many bytes of this input were used. The others belong to the next answer.
        consumed: usize,
        /// The status code, 101 or from 200 on.
        status: u16,
        /// Whether the server lets the connection stay open.
        keep: bool,
    },
}

/// An answer that was complete when the peer closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete {
    /// The status code.
    pub status: u16,
}

/// Reads the answers of one connection. Without a head under way it owns no memory but its own.
#[derive(Debug)]
pub struct AnswerReader {
    /// What came of a head that was split; otherwise empty.
    kept: Vec<u8>,
    /// Bytes left of the body, or of the chunk (while its size is read: the size so far).
    remaining_bytes: u64,
    status: u16,
    state: State,
    interim_count: u8,
    keep: bool,
    asked_by_head: bool,
}

const _: () = assert!(size_of::<AnswerReader>() <= 64, "there are as many as connections");

#[derive(Debug, Clone, Copy)]
enum State {
    /// No answer is awaited.
    Idle,
    Head,
    /// In a body of known length.
    Length,
    Chunked(Lines),
    UntilClose,
}

impl Default for AnswerReader {
    fn default() -> Self {
        Self::new()
    }
}

impl AnswerReader {
    /// A reader that awaits no answer yet.
    pub const fn new() -> Self {
        Self {
            kept: Vec::new(),
            remaining_bytes: 0,
            status: 0,
            state: State::Idle,
            interim_count: 0,
            keep: false,
            asked_by_head: false,
        }
    }

    /// The next answer is awaited; the one before must be complete. The answer to a HEAD request has no body,
    /// whatever it says.
    #[inline]
    pub fn begin(&mut self, asked_by_head: bool) {
        debug_assert!(matches!(self.state, State::Idle), "the answer before is not complete");
        self.state = State::Head;
        self.interim_count = 0;
        self.asked_by_head = asked_by_head;
    }

    /// Takes what came and gives the body's bytes to `body`, in pieces as they come, without the lines around
    /// chunks.
    ///
    /// # Errors
    /// What is wrong with the answer. The connection cannot give another.
    #[inline]
    pub fn read<B>(&mut self, input: &[u8], body: &mut B) -> Result<Step, AnswerFault>
    where
        B: FnMut(&[u8]) + ?Sized,
    {
        self.read_by(input, body, parse_head)
    }

    /// As `read`, several times faster when the head is the one that `memory` saw last.
    ///
    /// # Errors
    /// As `read`.
    #[inline]
    pub fn read_with<B>(
        &mut self,
        memory: &mut HeadMemory,
        input: &[u8],
        body: &mut B,
    ) -> Result<Step, AnswerFault>
    where
        B: FnMut(&[u8]) + ?Sized,
    {
        self.read_by(input, body, |head, asked_by_head| memory.parse_head(head, asked_by_head))
    }

    #[inline]
    fn read_by<B, P>(&mut self, input: &[u8], body: &mut B, mut parse: P) -> Result<Step, AnswerFault>
    where
        B: FnMut(&[u8]) + ?Sized,
        P: FnMut(&[u8], bool) -> Result<Option<Head>, AnswerFault>,
    {
        let mut rest = input;
        while !rest.is_empty() {
            let complete = match self.state {
                State::Idle => return Err(AnswerFault::Unasked),
                State::Head => self.read_head(&mut rest, &mut parse)?,
                State::Length => self.read_data(&mut rest, body),
                State::Chunked(lines) => self.read_chunked(lines, &mut rest, body)?,
                State::UntilClose => {
                    body(rest);
                    return Ok(Step::More);
                }
            };
            if complete {
                self.state = State::Idle;
                let consumed = input.len() - rest.len();
                return Ok(Step::Complete { consumed, status: self.status, keep: self.keep });
            }
        }
        Ok(Step::More)
    }

    /// The peer has closed. `Some`: this was the end of the answer's body. `None`: no answer was awaited.
    ///
    /// # Errors
    /// An answer was awaited and did not come, or not all of it.
    pub fn end(&mut self) -> Result<Option<Complete>, AnswerFault> {
        match self.state {
            State::Idle => Ok(None),
            State::UntilClose => {
                self.state = State::Idle;
                Ok(Some(Complete { status: self.status }))
            }
            State::Head if self.kept.is_empty() && self.interim_count == 0 => Err(AnswerFault::NothingCame),
            // What is wrong with the last line is seen now if not before.
            State::Head => Err(parse_head(&self.kept, false).err().unwrap_or(AnswerFault::EndedInHead)),
            State::Length | State::Chunked(_) => Err(AnswerFault::EndedInBody),
        }
    }

    /// Whether the answer is complete that is then known.
    #[inline]
    fn read_head<P>(&mut self, rest: &mut &[u8], parse: &mut P) -> Result<bool, AnswerFault>
    where
        P: FnMut(&[u8], bool) -> Result<Option<Head>, AnswerFault>,
    {
        if !self.kept.is_empty() {
            return self.read_split_head(rest);
        }
        // RFC 9112, section 2.2: empty lines before a message are passed over.
        while let [b'\r' | b'\n', after @ ..] = rest {
            *rest = after;
        }
        if let Some(head) = parse(rest, self.asked_by_head)? {
            *rest = rest.get(head.length_bytes..).unwrap_or_default();
            return self.accept(head);
        }
        self.kept = rest.to_vec();
        *rest = &[];
        Ok(false)
    }

    /// Looks at the head again at most once a line: a server that sends byte by byte costs little more.
    #[cold]
    fn read_split_head(&mut self, rest: &mut &[u8]) -> Result<bool, AnswerFault> {
        let before_bytes = self.kept.len();
        let added = rest.get(..ANSWER_HEAD_BYTES_MAX - before_bytes).unwrap_or(rest);
        self.kept.extend_from_slice(added);
        let line_ended = memchr::memchr(b'\n', added).is_some();
        if (line_ended || self.kept.len() == ANSWER_HEAD_BYTES_MAX)
            && let Some(head) = parse_head(&self.kept, self.asked_by_head)?
        {
            *rest = rest.get(head.length_bytes - before_bytes..).unwrap_or_default();
            self.kept = Vec::new();
            return self.accept(head);
        }
        *rest = rest.get(added.len()..).unwrap_or_default();
        Ok(false)
    }

    #[inline]
    fn accept(&mut self, head: Head) -> Result<bool, AnswerFault> {
        if head.interim {
            self.interim_count += 1;
            if self.interim_count > INTERIM_ANSWERS_MAX {
                return Err(AnswerFault::Head("more than 16 interim answers"));
            }
            return Ok(false);
        }
        self.status = head.status;
        self.keep = head.keep;
        self.remaining_bytes = 0;
        self.state = match head.body {
            Body::None => return Ok(true),
            Body::Length(length_bytes) => {
                self.remaining_bytes = length_bytes;
                State::Length
            }
            Body::Chunked => State::Chunked(Lines::LENIENT),
            Body::UntilClose => State::UntilClose,
        };
        Ok(false)
    }

    /// Gives away what remains of the body or chunk; whether that was all of it.
    #[inline]
    fn read_data<B: FnMut(&[u8]) + ?Sized>(&mut self, rest: &mut &[u8], body: &mut B) -> bool {
        let taken = usize::try_from(self.remaining_bytes).unwrap_or(usize::MAX).min(rest.len());
        let (data, after) = rest.split_at(taken);
        body(data);
        *rest = after;
        self.remaining_bytes -= taken as u64;
        self.remaining_bytes == 0
    }

    fn read_chunked<B: FnMut(&[u8]) + ?Sized>(
        &mut self,
        mut lines: Lines,
        rest: &mut &[u8],
        body: &mut B,
    ) -> Result<bool, AnswerFault> {
        while let Some((byte, after)) = rest.split_first() {
            if lines.in_data() {
                if self.read_data(rest, body) {
                    lines.end_data();
                }
                continue;
            }
            *rest = after;
            match lines.step(*byte).ok_or(AnswerFault::Chunk)? {
                Sign::Nothing => {}
                Sign::Digit(digit) => {
                    let so_far = self.remaining_bytes.checked_mul(16).ok_or(AnswerFault::Chunk)?;
                    self.remaining_bytes = so_far + u64::from(digit);
                }
                Sign::SizeRead if self.remaining_bytes == 0 => lines.begin_trailer(),
                Sign::SizeRead => {}
                Sign::End => return Ok(true),
            }
        }
        self.state = State::Chunked(lines);
        Ok(false)
    }
}

const _: () = assert!(INTERIM_ANSWERS_MAX == 16);

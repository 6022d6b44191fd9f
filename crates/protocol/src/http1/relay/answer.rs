//! An application's answers, read strictly: one reader a connection, one answer at a time.
//!
//! It owns where an answer ends, and that nothing of it is passed on that was not understood. It must never
//! keep a byte of a body. Order: `begin` for each request, then `next` until it gives `More` (then more bytes
//! are needed), or `End`. When the application has closed, `end` once. After a fault nothing.

mod fault;
mod head;
mod lines;

pub use fault::RelayFault;
pub(crate) use head::{Body, Draft, HeadSays};
pub(crate) use lines::LineReader;

use super::super::chunked::{Lines, Sign};
use crate::limits::{INTERIM_ANSWERS_MAX, RELAYED_HEAD_BYTES_MAX, TRAILER_BYTES_MAX};
use crate::message::Fields;
use crate::status::Status;

/// What came of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayStep<'s> {
    /// The input is used up, and the answer goes on.
    More,
    /// An interim answer, 103; others are left out.
    Interim(RelayHead<'s>),
    /// The head of the answer. Behind 101, which only answers a request for an upgrade, all that comes until
    /// the application closes is told in pieces, and is no HTTP; `Upgrade` is then among the fields.
    Head(RelayHead<'s>),
    /// Bytes of the body, at least one, without what surrounds chunks.
    Piece(&'s [u8]),
    /// The answer is complete.
    End {
        /// Fields behind the body. They are held until the next call.
        trailers: Fields<'s>,
        /// Whether the connection may serve another request. It may not if input is left over: no request
        /// asked for it.
        keeps: bool,
    },
}

/// The head of an answer, as it is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayHead<'s> {
    /// A final one, or 103 of an interim answer.
    pub status: Status,
    /// The fields that are passed on. Content-Length is among them only where no body follows although the
    /// field has a meaning: in an answer to HEAD, and in 304.
    pub fields: Fields<'s>,
    /// What Content-Length says.
    pub length_bytes: Option<u64>,
    /// Whether a body follows, be it an empty one. None does in an answer to HEAD, nor in 204 and 304, nor in
    /// 101, whose tunnel is no body.
    pub has_body: bool,
    /// Whether Connection names Upgrade, as 101 has to (RFC 9110, section 7.8).
    pub says_upgrade: bool,
}

/// Reads the answers of one connection to an application. At rest it owns no memory but its own.
#[derive(Debug)]
pub struct RelayReader {
    lines: LineReader,
    draft: Draft,
    /// Bytes left of the body, or of the chunk (while its size is read: the size so far).
    remaining_bytes: u64,
    state: State,
    interim_count: u8,
    keeps: bool,
    asked_by_head: bool,
    asked_for_upgrade: bool,
    has_begun: bool,
}

const _: () = assert!(size_of::<RelayReader>() <= 160, "there are as many as connections to applications");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No answer is awaited.
    Idle,
    Head,
    /// In a body of known length.
    Length,
    Chunks(Lines),
    /// Behind the last chunk.
    Trailers,
    UntilClose,
    /// The body is complete, and its end was not told yet.
    Ended,
}

/// A step that is not yet joined with what the reader holds of it.
enum Told<'i> {
    More,
    Head(HeadSays),
    Piece(&'i [u8]),
    End,
}

impl Default for RelayReader {
    fn default() -> Self {
        Self::new()
    }
}

impl RelayReader {
    /// A reader that awaits no answer yet.
    pub const fn new() -> Self {
        Self {
            lines: LineReader::new(),
            draft: Draft::new(),
            remaining_bytes: 0,
            state: State::Idle,
            interim_count: 0,
            keeps: false,
            asked_by_head: false,
            asked_for_upgrade: false,
            has_begun: false,
        }
    }

    /// The next answer is awaited; the one before must have ended. The answer to a HEAD request has no body,
    /// whatever it says.
    pub fn begin(&mut self, asked_by_head: bool) {
        debug_assert_eq!(self.state, State::Idle, "the answer before has not ended");
        *self = Self { state: State::Head, keeps: true, asked_by_head, ..Self::new() };
    }

    /// The next answer is awaited, as by `begin`, and it may be 101: an upgrade was asked for.
    pub fn begin_upgrade(&mut self) {
        self.begin(false);
        self.asked_for_upgrade = true;
    }

    /// Takes the next step from `input`, which shrinks by what was used. A step may come without input: call
    /// until `More`.
    ///
    /// # Errors
    /// What is wrong with the answer. The connection cannot give another.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<RelayStep<'s>, RelayFault> {
        Ok(match self.advance(input)? {
            Told::More => RelayStep::More,
            Told::Head(says) => self.tell_head(says)?,
            Told::Piece(piece) => RelayStep::Piece(piece),
            Told::End => RelayStep::End { trailers: Fields::new(self.draft.lines()), keeps: self.keeps },
        })
    }

    /// The application has closed. `true`: this was the end of a body, and so of an answer, after which no
    /// other follows. `false`: no answer was awaited.
    ///
    /// # Errors
    /// An answer was awaited and did not come, or not all of it.
    pub fn end(&mut self) -> Result<bool, RelayFault> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(false),
            State::UntilClose | State::Ended => Ok(true),
            State::Head if !self.has_begun => Err(RelayFault::NothingCame),
            State::Head => Err(RelayFault::EndedInHead),
            State::Length | State::Chunks(_) | State::Trailers => Err(RelayFault::EndedInBody),
        }
    }

    /// Memory it takes beside itself, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.lines.held_bytes() + self.draft.held_bytes()
    }

    /// Whether a byte of the present answer came, be it of an interim one.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn advance<'i>(&mut self, input: &mut &'i [u8]) -> Result<Told<'i>, RelayFault> {
        if self.state != State::Idle {
            self.has_begun |= !input.is_empty();
        }
        loop {
            match self.state {
                State::Idle => {
                    self.draft = Draft::new();
                    return if input.is_empty() { Ok(Told::More) } else { Err(RelayFault::Unasked) };
                }
                State::Ended => {
                    self.draft = Draft::new();
                    return Ok(self.finish());
                }
                _ if input.is_empty() => return Ok(Told::More),
                State::Head => {
                    let Some(says) = self.read_head(input)? else { return Ok(Told::More) };
                    // RFC 9110, section 15.2: 100 was not asked for, and others say nothing to us.
                    match says.code {
                        101 | 103 | 200.. => return Ok(Told::Head(says)),
                        _ => self.draft = Draft::new(),
                    }
                }
                State::Length => return Ok(Told::Piece(self.take_data(input))),
                State::Chunks(lines) if lines.in_data() => return Ok(Told::Piece(self.take_data(input))),
                State::Chunks(lines) => self.read_size(lines, input)?,
                State::Trailers => {
                    return Ok(if self.read_trailers(input)? { self.finish() } else { Told::More });
                }
                State::UntilClose => {
                    self.draft = Draft::new();
                    return Ok(Told::Piece(std::mem::take(input)));
                }
            }
        }
    }

    /// Reads lines until the head is complete.
    fn read_head(&mut self, input: &mut &[u8]) -> Result<Option<HeadSays>, RelayFault> {
        const LIMIT: (usize, RelayFault) = (RELAYED_HEAD_BYTES_MAX, RelayFault::HeadTooLarge);
        if !self.lines.has_begun() {
            // Behind an interim answer that was told.
            self.draft = Draft::new();
        }
        loop {
            match self.lines.next(input, LIMIT, |line| self.draft.take_line(line))? {
                None => return Ok(None),
                Some(false) => {}
                Some(true) => {
                    self.lines.restart();
                    let says = self.draft.finish(self.asked_by_head)?;
                    self.count_interim(says.code)?;
                    // An interim answer may say that the connection closes behind the final one.
                    self.keeps &= says.keeps;
                    return Ok(Some(says));
                }
            }
        }
    }

    fn count_interim(&mut self, code: u16) -> Result<(), RelayFault> {
        match code {
            101 if !self.asked_for_upgrade => Err(RelayFault::Switched),
            100..200 if self.interim_count == INTERIM_ANSWERS_MAX => Err(RelayFault::TooManyInterim),
            100..200 => {
                self.interim_count += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn tell_head(&mut self, says: HeadSays) -> Result<RelayStep<'_>, RelayFault> {
        let status = Status::from_code(says.code).ok_or(RelayFault::Code)?;
        self.state = match says.body {
            _ if status.is_interim() => State::Head,
            // A tunnel, which its end ends.
            _ if status == Status::SWITCHING_PROTOCOLS => State::UntilClose,
            Body::Nothing | Body::Length(0) => State::Ended,
            Body::Length(length_bytes) => {
                self.remaining_bytes = length_bytes;
                State::Length
            }
            Body::Chunked => State::Chunks(Lines::STRICT),
            Body::UntilClose => State::UntilClose,
        };
        let head = RelayHead {
            status,
            fields: Fields::new(self.draft.lines()),
            length_bytes: says.length_bytes,
            has_body: says.body != Body::Nothing,
            says_upgrade: says.says_upgrade,
        };
        Ok(if status.is_interim() { RelayStep::Interim(head) } else { RelayStep::Head(head) })
    }

    /// Gives what came of the body, or of the present chunk.
    fn take_data<'i>(&mut self, input: &mut &'i [u8]) -> &'i [u8] {
        self.draft = Draft::new();
        let taken = usize::try_from(self.remaining_bytes).unwrap_or(usize::MAX).min(input.len());
        let (data, rest) = input.split_at(taken);
        *input = rest;
        self.remaining_bytes -= taken as u64;
        if self.remaining_bytes == 0 {
            self.state = match self.state {
                State::Chunks(mut lines) => {
                    lines.end_data();
                    State::Chunks(lines)
                }
                _ => State::Ended,
            };
        }
        data
    }

    /// Reads what stands between the data of two chunks.
    fn read_size(&mut self, mut lines: Lines, input: &mut &[u8]) -> Result<(), RelayFault> {
        while let [byte, rest @ ..] = input
            && !lines.in_data()
        {
            *input = rest;
            match lines.step(*byte).ok_or(RelayFault::Chunk)? {
                Sign::Digit(digit) => {
                    let so_far = self.remaining_bytes.checked_mul(16).ok_or(RelayFault::ChunkSize)?;
                    self.remaining_bytes = so_far + u64::from(digit);
                }
                Sign::SizeRead if self.remaining_bytes == 0 => {
                    self.draft = Draft::new();
                    self.state = State::Trailers;
                    return Ok(());
                }
                Sign::Nothing | Sign::SizeRead | Sign::End => {}
            }
        }
        self.state = State::Chunks(lines);
        Ok(())
    }

    /// Reads the lines behind the last chunk; whether all have come.
    fn read_trailers(&mut self, input: &mut &[u8]) -> Result<bool, RelayFault> {
        const LIMIT: (usize, RelayFault) = (TRAILER_BYTES_MAX, RelayFault::TrailersTooLarge);
        loop {
            match self.lines.next(input, LIMIT, |line| self.draft.take_trailer(line))? {
                None => return Ok(false),
                Some(false) => {}
                Some(true) => {
                    self.lines.restart();
                    return Ok(true);
                }
            }
        }
    }

    fn finish<'i>(&mut self) -> Told<'i> {
        self.state = State::Idle;
        self.has_begun = false;
        Told::End
    }
}

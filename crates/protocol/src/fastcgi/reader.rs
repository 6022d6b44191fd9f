//! A FastCGI application's answers, read strictly: one reader a connection, one answer at a time.
//!
//! It owns where an answer ends: at the record that says so. It must never keep a byte of a body. Order: as
//! of [`crate::http1::relay::RelayReader`].

use super::record::{HEAD_BYTES, RecordHead, RecordKind};
use crate::http1::relay::{Body, Draft, HeadSays, LineReader, RelayFault, RelayHead, RelayStep};
use crate::limits::{FASTCGI_ERRORS_BYTES_MAX, RELAYED_HEAD_BYTES_MAX};
use crate::message::Fields;
use crate::status::Status;

/// Reads the answers of one connection to a FastCGI application. At rest it owns no memory but its own.
#[derive(Debug)]
pub struct FastCgiReader {
    lines: LineReader,
    draft: Draft,
    /// What the application said of its errors.
    errors: Vec<u8>,
    /// The head of a record, or the content of the one that ends a request, as far as it has come.
    short: [u8; HEAD_BYTES],
    short_bytes: u8,
    record: Option<RecordHead>,
    /// Bytes of the body that may still come.
    room_bytes: u64,
    state: State,
    says: Says,
    asked_by_head: bool,
    has_begun: bool,
    /// The number of the request; 0 before the first.
    request: u16,
}

const _: () = assert!(size_of::<FastCgiReader>() <= 224, "there are as many as connections to applications");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No answer is awaited.
    Idle,
    Head,
    Body,
}

/// What is known of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Says {
    /// Content-Length was said, and a body may follow.
    has_length: bool,
    /// More came than was said: what is behind it is dropped, and the connection is not used again.
    is_too_long: bool,
}

/// A step that is not yet joined with what the reader holds of it.
enum Told<'i> {
    More,
    Head(HeadSays),
    Piece(&'i [u8]),
    End,
}

impl Default for FastCgiReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FastCgiReader {
    /// A reader that awaits no answer yet.
    pub const fn new() -> Self {
        Self {
            lines: LineReader::of_cgi(),
            draft: Draft::of_cgi(),
            errors: Vec::new(),
            short: [0; HEAD_BYTES],
            short_bytes: 0,
            record: None,
            room_bytes: 0,
            state: State::Idle,
            says: Says { has_length: false, is_too_long: false },
            asked_by_head: false,
            has_begun: false,
            request: 0,
        }
    }

    /// The next answer is awaited; the one before must have ended. It is that to a request of another number:
    /// what an application says late of the one before is never taken for it.
    pub fn begin(&mut self, asked_by_head: bool) {
        debug_assert_eq!(self.state, State::Idle, "the answer before has not ended");
        let request = self.request.checked_add(1).unwrap_or(1);
        *self = Self { state: State::Head, asked_by_head, request, ..Self::new() };
    }

    /// The number of the request whose answer is awaited: 1 for the first, then 2. See
    /// [`renumber`](super::renumber).
    pub fn request(&self) -> u16 {
        self.request
    }

    /// Takes the next step from `input`, which shrinks by what was used. A step may come without input: call
    /// until `More`.
    ///
    /// # Errors
    /// What is wrong with the answer. The connection cannot give another.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<RelayStep<'s>, RelayFault> {
        Ok(match self.advance(input)? {
            Told::More => RelayStep::More,
            Told::Head(says) => RelayStep::Head(self.tell_head(says)?),
            Told::Piece(piece) => RelayStep::Piece(piece),
            Told::End => RelayStep::End { trailers: Fields::NONE, keeps: !self.says.is_too_long },
        })
    }

    /// The application has closed. Never the end of an answer: `false`, if none was awaited.
    ///
    /// # Errors
    /// An answer was awaited and did not come, or not all of it.
    pub fn end(&mut self) -> Result<bool, RelayFault> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(false),
            State::Head if !self.has_begun => Err(RelayFault::NothingCame),
            State::Head => Err(RelayFault::EndedInHead),
            State::Body => Err(RelayFault::EndedInBody),
        }
    }

    /// What the application said of its errors while it made the present answer, as far as it is kept.
    pub fn errors(&self) -> &[u8] {
        &self.errors
    }

    /// Memory it takes beside itself, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.lines.held_bytes() + self.draft.held_bytes() + self.errors.capacity()
    }

    /// Whether a byte of the present answer came.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn advance<'i>(&mut self, input: &mut &'i [u8]) -> Result<Told<'i>, RelayFault> {
        match self.state {
            State::Idle => {
                (self.draft, self.errors) = (Draft::of_cgi(), Vec::new());
                return if input.is_empty() { Ok(Told::More) } else { Err(RelayFault::Unasked) };
            }
            State::Head | State::Body => self.has_begun |= !input.is_empty(),
        }
        while !input.is_empty() {
            let Some(record) = self.record else {
                if let Some(head) = self.take_short(input) {
                    self.record = Some(RecordHead::read(head, self.request).ok_or(RelayFault::Record)?);
                }
                continue;
            };
            if record.content_bytes == 0 {
                if self.skip_padding(record, input) && record.kind == RecordKind::EndRequest {
                    return Ok(self.finish());
                }
                continue;
            }
            if let Some(told) = self.take_content(record, input)? {
                return Ok(told);
            }
        }
        Ok(Told::More)
    }

    /// Collects eight bytes.
    fn take_short(&mut self, input: &mut &[u8]) -> Option<[u8; HEAD_BYTES]> {
        let start = usize::from(self.short_bytes);
        let (taken, rest) = input.split_at(input.len().min(HEAD_BYTES - start));
        *input = rest;
        self.short.iter_mut().skip(start).zip(taken).for_each(|(place, byte)| *place = *byte);
        self.short_bytes += taken.len() as u8;
        (usize::from(self.short_bytes) == HEAD_BYTES).then(|| {
            self.short_bytes = 0;
            self.short
        })
    }

    /// Whether the record has ended.
    fn skip_padding(&mut self, record: RecordHead, input: &mut &[u8]) -> bool {
        let skipped = input.len().min(usize::from(record.padding_bytes));
        *input = input.get(skipped..).unwrap_or_default();
        let padding_bytes = record.padding_bytes - skipped as u8;
        self.record = (padding_bytes > 0).then_some(RecordHead { padding_bytes, ..record });
        padding_bytes == 0
    }

    /// Takes what came of a record's content.
    fn take_content<'i>(
        &mut self,
        record: RecordHead,
        input: &mut &'i [u8],
    ) -> Result<Option<Told<'i>>, RelayFault> {
        let content = input.get(..usize::from(record.content_bytes)).unwrap_or(input);
        let mut left = content;
        let told = match record.kind {
            RecordKind::Stdout if self.state == State::Head => self.take_head(&mut left)?.map(Told::Head),
            RecordKind::Stdout => self.take_body(std::mem::take(&mut left)).map(Told::Piece),
            RecordKind::EndRequest => {
                if let Some(ending) = self.take_short(&mut left) {
                    self.check_end(ending)?;
                }
                None
            }
            _ => {
                self.keep_errors(std::mem::take(&mut left));
                None
            }
        };
        let taken_bytes = content.len() - left.len();
        let content_bytes = record.content_bytes - taken_bytes as u16;
        self.record = Some(RecordHead { content_bytes, ..record });
        if content_bytes == 0 && record.padding_bytes == 0 {
            self.record = None;
        }
        *input = input.get(taken_bytes..).unwrap_or_default();
        if record.kind == RecordKind::EndRequest && self.record.is_none() {
            return Ok(Some(self.finish()));
        }
        Ok(told)
    }

    fn take_head(&mut self, content: &mut &[u8]) -> Result<Option<HeadSays>, RelayFault> {
        const LIMIT: (usize, RelayFault) = (RELAYED_HEAD_BYTES_MAX, RelayFault::HeadTooLarge);
        while !content.is_empty() {
            if self.lines.next(content, LIMIT, |line| self.draft.take_line(line))? == Some(true) {
                self.lines.restart();
                return self.draft.finish(self.asked_by_head).map(Some);
            }
        }
        Ok(None)
    }

    fn tell_head(&mut self, says: HeadSays) -> Result<RelayHead<'_>, RelayFault> {
        self.state = State::Body;
        self.room_bytes = match says.body {
            Body::Nothing => 0,
            Body::Length(length_bytes) => length_bytes,
            // The record that ends the request ends the body as well.
            Body::UntilClose => u64::MAX,
            Body::Chunked => return Err(RelayFault::Coding),
        };
        self.says.has_length = matches!(says.body, Body::Length(_));
        Ok(RelayHead {
            status: Status::from_code(says.code).ok_or(RelayFault::Code)?,
            fields: Fields::new(self.draft.lines()),
            length_bytes: says.length_bytes,
            has_body: says.body != Body::Nothing,
            says_upgrade: says.says_upgrade,
        })
    }

    /// What of a content belongs to the body. A program that answers HEAD may send one all the same.
    fn take_body<'i>(&mut self, content: &'i [u8]) -> Option<&'i [u8]> {
        self.draft = Draft::of_cgi();
        let taken = usize::try_from(self.room_bytes).unwrap_or(usize::MAX).min(content.len());
        self.says.is_too_long |= self.says.has_length && taken < content.len();
        self.room_bytes -= taken as u64;
        content.get(..taken).filter(|piece| !piece.is_empty())
    }

    fn keep_errors(&mut self, content: &[u8]) {
        let room = FASTCGI_ERRORS_BYTES_MAX - self.errors.len();
        self.errors.extend_from_slice(content.get(..room).unwrap_or(content));
    }

    /// FastCGI, section 5.5: the fifth byte says whether the request was worked on.
    fn check_end(&self, ending: [u8; HEAD_BYTES]) -> Result<(), RelayFault> {
        match (ending[4], self.state) {
            (0, State::Body) if self.says.has_length && self.room_bytes > 0 => Err(RelayFault::EndedInBody),
            (0, State::Body) => Ok(()),
            (0, _) => Err(RelayFault::EndedInHead),
            (2, _) => Err(RelayFault::Overloaded),
            _ => Err(RelayFault::Record),
        }
    }

    fn finish<'i>(&mut self) -> Told<'i> {
        self.draft = Draft::of_cgi();
        self.state = State::Idle;
        self.has_begun = false;
        Told::End
    }
}

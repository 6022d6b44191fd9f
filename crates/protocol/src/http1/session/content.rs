//! Exchanges that are not over at once: bodies of requests that are wanted, responses written bit by bit.
//!
//! It must never be on the way of a request whose body nobody wants and whose answer is complete.

use super::super::body::{BROKEN_BODY, Discard};
use super::super::reading::{BodyReader, Next};
use super::super::response::{self, Persistence};
use super::super::writer::BodyOut;
use super::{Event, Phase, Session, refuse};
use crate::message::{Fields, Request, Version};
use crate::status::Status;

impl Session {
    /// The body of the request last given is wanted: from the next poll on it comes by [`Event::Body`] and
    /// [`Event::BodyEnd`]. Appends 100 if the peer waits for that (RFC 9110, section 10.1.1). To be called
    /// before the response begins; a second call does nothing.
    #[cold]
    pub fn read_body(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        if self.phase == Phase::Reading {
            return;
        }
        assert!(self.phase == Phase::Answering, "no request whose body could be read");
        self.phase = Phase::Reading;
        if self.discard.is_withheld() {
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if self.persistence == Persistence::Unread {
            let http10 = request.version == Version::Http10;
            self.persistence = if http10 { Persistence::KeepAlive } else { Persistence::Implied };
        }
        self.discard = Discard::NOTHING;
        self.held.get_or_insert_default().reader = Some(BodyReader::new(request.content));
    }

    /// Whether the body of the request last given is wanted and has not ended.
    #[inline]
    pub fn is_reading(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.reader.is_some())
    }

    /// The deadline of the body begins now: it was not read before, or not for a while.
    pub fn begin_reading(&mut self, now_ms: u64) {
        self.since_ms = now_ms;
    }

    /// The response begins while the body may still come: what is left of that is thrown away.
    #[cold]
    pub(super) fn answer_early(&mut self) {
        self.assert_unanswered();
        self.stop_reading();
    }

    fn assert_unanswered(&self) {
        assert!(matches!(self.phase, Phase::Answering | Phase::Reading), "a response without a request");
    }

    /// Appends an interim response (RFC 9110, section 15.2) to a request that has no other yet. Not for a
    /// peer of HTTP/1.0, which knows none.
    #[cold]
    pub fn push_interim(&self, status: Status, fields: Fields<'_>, out: &mut Vec<u8>) {
        self.assert_unanswered();
        out.extend_from_slice(format!("HTTP/1.1 {status}\r\n").as_bytes());
        [fields.lines(), b"\r\n"].iter().for_each(|part| out.extend_from_slice(part));
    }

    /// The body is not wanted any more: what is left of it is thrown away behind the response.
    pub fn stop_reading(&mut self) {
        let Some(reader) = self.held.as_mut().and_then(|held| held.reader.take()) else { return };
        self.discard = reader.into_discard();
        if self.discard.is_lost() && !self.persistence.is_last() {
            self.persistence = Persistence::Unread;
        }
    }

    /// Begins a final response whose body is written piece by piece, as the value given says: appends status
    /// line, Date, Server, what frames the body, the fields and the blank line. `length_bytes` is the body's
    /// length, if it is known. Ended by `end_response`.
    #[cold]
    pub fn begin_open(
        &mut self,
        status: Status,
        fields: Fields<'_>,
        length_bytes: Option<u64>,
        http10: bool,
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> BodyOut {
        self.assert_unanswered();
        self.phase = Phase::Streaming;
        let body = match length_bytes {
            _ if status.has_no_content() => BodyOut::Nothing,
            Some(length_bytes) => BodyOut::Length(length_bytes),
            None if http10 => {
                self.persistence = Persistence::Close;
                BodyOut::UntilClose
            }
            None => BodyOut::Chunked,
        };
        response::begin(status, self.persistence, date, out);
        match body {
            BodyOut::Length(length_bytes) => {
                out.extend_from_slice(format!("Content-Length: {length_bytes}\r\n").as_bytes());
            }
            BodyOut::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            BodyOut::Nothing | BodyOut::UntilClose => {}
        }
        out.extend_from_slice(fields.lines());
        out.extend_from_slice(b"\r\n");
        if self.omit_body { BodyOut::Nothing } else { body }
    }

    /// Answers 101: what follows in both directions is no HTTP (RFC 9110, section 7.8). Everything that the
    /// peer sends comes by [`Event::Body`], and [`Event::BodyEnd`] when it ends. The fields name the
    /// protocol. No deadline runs for what the peer sends. Ended by `end_response`, and the connection with
    /// it.
    #[cold]
    pub fn begin_upgrade(&mut self, fields: Fields<'_>, date: &[u8; 29], out: &mut Vec<u8>) -> BodyOut {
        self.assert_unanswered();
        self.phase = Phase::Streaming;
        self.persistence = Persistence::Close;
        self.discard = Discard::NOTHING;
        self.held.get_or_insert_default().reader = Some(BodyReader::of_everything());
        response::begin(Status::SWITCHING_PROTOCOLS, Persistence::Implied, date, out);
        out.extend_from_slice(b"Connection: Upgrade\r\n");
        out.extend_from_slice(fields.lines());
        out.extend_from_slice(b"\r\n");
        BodyOut::UntilClose
    }

    /// The response that was begun by `begin_open` or `begin_upgrade` is complete.
    pub fn end_response(&mut self) {
        assert!(self.phase == Phase::Streaming, "no response under way");
        self.stop_reading();
        self.phase = Phase::Answered;
    }

    /// The response under way will never be complete: nothing more is read.
    pub fn break_off(&mut self) {
        self.held = None;
        self.phase = Phase::Closed { linger: false };
    }

    /// What comes of the body that is wanted.
    #[cold]
    pub(super) fn poll_content<'i>(
        &mut self,
        input: &mut &'i [u8],
        now_ms: u64,
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> Event<'i> {
        let Some(held) = self.held.as_mut() else { return Event::NeedInput };
        let Some(reader) = &mut held.reader else { return Event::NeedInput };
        let input_bytes = input.len();
        match reader.next(input) {
            Next::Piece(bytes) => {
                self.note_progress(now_ms);
                Event::Body(bytes)
            }
            Next::End => {
                held.reader = None;
                Event::BodyEnd
            }
            Next::Broken if self.phase == Phase::Reading => {
                let answered = refuse(BROKEN_BODY, self.omit_body, date, out);
                self.held = None;
                self.close(true, Some(answered))
            }
            Next::Broken => {
                self.held = None;
                self.close(true, None)
            }
            Next::NeedInput if self.peer_ended && reader.is_endless() => {
                held.reader = None;
                Event::BodyEnd
            }
            Next::NeedInput if self.peer_ended => {
                self.held = None;
                self.close(false, None)
            }
            Next::NeedInput => {
                if input_bytes > 0 {
                    self.note_progress(now_ms);
                }
                Event::NeedInput
            }
        }
    }
}

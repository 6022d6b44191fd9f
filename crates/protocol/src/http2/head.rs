//! The head of a request, made of the fields of a block.
//!
//! It owns RFC 9113, section 8.3, as far as fields stand to one another. What a request may say beyond that
//! is judged by the reader of HTTP/1.1: a head is written as HTTP/1.1 would send it, and read by the same
//! code, so no rule stands twice. It must never write a byte into the head that could end a line: `field` has
//! seen to that. Order: `clear`, `take` for each field, `finish`, and once more `request`.

use super::field::{FieldLine, Meaning};
use super::priority::Priority;
use crate::http1::{self, RequestMemory, Session};
use crate::limits::{FIELDS_MAX, HEAD_BYTES_MAX};
use crate::message::{Method, Request, Version};
use crate::status::Status;

/// A head under construction: one a worker, for a head is complete before the next begins.
#[derive(Debug, Default, Clone)]
pub(super) struct HeadWriter {
    /// As HTTP/1.1 writes it.
    head: Vec<u8>,
    /// The pseudo-fields, behind one another.
    pseudo: Vec<u8>,
    /// The crumbs of `cookie`, joined.
    cookie: Vec<u8>,
    method: Part,
    scheme: Part,
    authority: Part,
    path: Part,
    protocol: Part,
    fields_count: usize,
    counted_bytes: usize,
    is_malformed: bool,
    /// The request line is written: only fields may follow.
    begun: bool,
    has_length: bool,
    expects: bool,
    is_trailer: bool,
    priority: Priority,
}

/// Start and end in the pseudo-fields. Nothing stands at 0, so an end of 0 is none.
type Part = (u32, u32);

/// The only protocol that is spoken in tunnels.
const WEBSOCKET: &[u8] = b"websocket";

/// Why a head is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadFault {
    /// The head breaks a rule: the stream is reset.
    Malformed,
    /// The head is larger than what is taken: the request is answered with a refusal.
    TooLarge,
}

impl HeadWriter {
    /// The next block is one of these.
    pub(super) fn clear(&mut self, is_trailer: bool) {
        self.head.clear();
        self.pseudo.clear();
        // A place before the first part: 0 means none.
        self.pseudo.push(0);
        self.cookie.clear();
        [self.method, self.scheme, self.authority, self.path, self.protocol] = [(0, 0); 5];
        (self.fields_count, self.counted_bytes, self.is_malformed) = (0, 0, false);
        (self.begun, self.has_length, self.expects) = (is_trailer, false, false);
        self.is_trailer = is_trailer;
        self.priority = Priority::default();
    }

    /// The next field.
    #[inline]
    pub(super) fn take(&mut self, field: FieldLine<'_>) {
        self.counted_bytes += field.counted_bytes();
        self.fields_count += 1;
        if self.is_too_large() {
            return;
        }
        match field.meaning {
            Meaning::Plain if self.begun => self.push_line(field),
            Meaning::Malformed => self.is_malformed = true,
            Meaning::Method | Meaning::Scheme | Meaning::Authority | Meaning::Path | Meaning::Protocol => {
                self.take_pseudo(field)
            }
            _ => self.take_known(field),
        }
    }

    #[inline]
    fn push_line(&mut self, field: FieldLine<'_>) {
        if !self.is_trailer {
            self.head.extend_from_slice(field.line);
        }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.fields_count > FIELDS_MAX || self.counted_bytes > HEAD_BYTES_MAX
    }

    /// Section 8.3: each once, and all before the first field.
    fn take_pseudo(&mut self, field: FieldLine<'_>) {
        let start = self.pseudo.len() as u32;
        self.pseudo.extend_from_slice(field.value());
        let end = self.pseudo.len() as u32;
        let part = match field.meaning {
            Meaning::Method => &mut self.method,
            Meaning::Scheme => &mut self.scheme,
            Meaning::Authority => &mut self.authority,
            Meaning::Protocol => &mut self.protocol,
            _ => &mut self.path,
        };
        if self.begun {
            self.is_malformed = true;
        }
        if std::mem::replace(part, (start, end)) != (0, 0) {
            self.is_malformed = true;
        }
    }

    /// A field that is more than a line.
    fn take_known(&mut self, field: FieldLine<'_>) {
        self.begin();
        if self.is_trailer {
            return;
        }
        match field.meaning {
            Meaning::Cookie => {
                if !self.cookie.is_empty() {
                    self.cookie.extend_from_slice(b"; ");
                }
                self.cookie.extend_from_slice(field.value());
            }
            // Section 8.3.1: what `:authority` says must not be contradicted.
            Meaning::Host if self.authority != (0, 0) => {
                if !self.part(self.authority).eq_ignore_ascii_case(field.value()) {
                    self.is_malformed = true;
                }
            }
            Meaning::Expect => {
                self.expects = true;
                self.push_line(field);
            }
            Meaning::Length => {
                self.has_length = true;
                self.push_line(field);
            }
            Meaning::Priority => self.take_priority(field),
            _ => self.push_line(field),
        }
    }

    fn take_priority(&mut self, field: FieldLine<'_>) {
        self.priority = Priority::read(field.value());
        self.push_line(field);
    }

    fn part(&self, part: Part) -> &[u8] {
        self.pseudo.get(part.0 as usize..part.1 as usize).unwrap_or_default()
    }

    /// Writes the request line, and Host if it was told by `:authority`. CONNECT with `:protocol` is asked of
    /// a path, and means what GET with Upgrade does in HTTP/1.1 (RFC 8441, section 5.1): as GET it is read.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let Self { head, pseudo, method, authority, path, protocol, .. } = self;
        let part = |part: Part| pseudo.get(part.0 as usize..part.1 as usize).unwrap_or_default();
        let (method, target) = match (part(*method), *protocol) {
            (b"CONNECT", (0, 0)) => (&b"CONNECT"[..], *authority),
            (b"CONNECT", _) => (&b"GET"[..], *path),
            (method, _) => (method, *path),
        };
        for bytes in [method, b" ", part(target), b" HTTP/1.1\r\n"] {
            head.extend_from_slice(bytes);
        }
        if *authority != (0, 0) {
            for bytes in [&b"host: "[..], part(*authority), b"\r\n"] {
                head.extend_from_slice(bytes);
            }
        }
    }

    /// All fields were taken.
    pub(super) fn finish(&mut self) -> Result<(), HeadFault> {
        if self.is_too_large() {
            return Err(HeadFault::TooLarge);
        }
        self.begin();
        if self.is_malformed || !(self.is_trailer || self.has_good_pseudo()) {
            return Err(HeadFault::Malformed);
        }
        if self.is_trailer {
            return Ok(());
        }
        if !self.cookie.is_empty() {
            for bytes in [&b"cookie: "[..], &self.cookie, b"\r\n"] {
                self.head.extend_from_slice(bytes);
            }
        }
        self.head.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Section 8.3.1; of CONNECT: section 8.5, and RFC 8441, section 4, if it names a protocol. What follows
    /// that is no content, so its length is none either (RFC 9110, section 9.3.6).
    fn has_good_pseudo(&self) -> bool {
        let has = |part: Part| part != (0, 0);
        let path = self.part(self.path);
        match self.part(self.method) {
            b"" => false,
            b"CONNECT" if has(self.protocol) => {
                has(self.scheme) && path.starts_with(b"/") && !self.has_length
            }
            _ if has(self.protocol) => false,
            b"CONNECT" => has(self.authority) && !has(self.path) && !has(self.scheme),
            b"OPTIONS" if path == b"*" => has(self.scheme),
            _ => has(self.scheme) && path.starts_with(b"/"),
        }
    }

    /// The head, as far as it is written.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.head
    }

    /// Whether the request waits for 100.
    pub(super) fn expects(&self) -> bool {
        self.expects
    }

    /// Whether it says how long its body is.
    pub(super) fn has_length(&self) -> bool {
        self.has_length
    }

    /// The protocol that is to be spoken on the stream instead of HTTP (RFC 8441), if one is named.
    #[inline]
    pub(super) fn protocol(&self) -> Option<&[u8]> {
        if self.protocol == (0, 0) { None } else { Some(self.part(self.protocol)) }
    }

    /// Why that is refused before any handler sees the request, if it is.
    #[inline]
    pub(super) fn refused_protocol(&self, ends_stream: bool) -> Option<(Status, &'static [u8])> {
        let protocol = self.protocol()?;
        if !protocol.eq_ignore_ascii_case(WEBSOCKET) {
            let sentence = b"501 Not Implemented: the only :protocol that is spoken here is websocket\n";
            return Some((Status::NOT_IMPLEMENTED, sentence));
        }
        let sentence = b"400 Bad Request: a WebSocket that has ended before it began\n";
        ends_stream.then_some((Status::BAD_REQUEST, sentence))
    }

    /// The priority that the head asks for.
    pub(super) fn priority(&self) -> Priority {
        self.priority
    }

    /// The request, read as if it had come by HTTP/1.1.
    ///
    /// # Errors
    /// The status that the reader of HTTP/1.1 refuses it with; what is wrong stands in `refusal`.
    pub(super) fn request<'h>(
        &'h self,
        memory: &mut RequestMemory,
        refusal: &mut Vec<u8>,
    ) -> Result<Request<'h>, Status> {
        let mut input = &self.head[..];
        let mut session = Session::new(0);
        refusal.clear();
        match session.poll_event_with(memory, &mut input, 0, &[b' '; 29], refusal) {
            http1::Event::Request(mut request) => {
                request.version = Version::Http2;
                if self.protocol().is_some() {
                    request.method = Method::Connect;
                }
                Ok(request)
            }
            http1::Event::Close { answered: Some(answered), .. } => Err(answered.status),
            _ => Err(Status::BAD_REQUEST),
        }
    }
}

/// The sentence of a refusal that HTTP/1.1 has written.
pub(super) fn sentence(refusal: &[u8]) -> &[u8] {
    let end = refusal.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    end.and_then(|end| refusal.get(end + 4..)).unwrap_or_default()
}

//! The head of a request: where it ends, and what it says.
//!
//! It owns RFC 9112, sections 2 to 5. It must never look behind the blank line, and never be kind: what two
//! readers could understand in two ways is refused. Order: `parse_at_once`, which gives every good head that
//! came in one piece; else `HeadSearch::find_end`, which looks at each line once, until the blank line is
//! seen, then `parse_head` once.

mod memory;
mod said;

pub use memory::RequestMemory;

pub(super) use self::said::Head;
use self::said::HeadFields;
use super::field::{token_bytes, trim};
use super::line::line_bytes;
use super::response::Refusal;
use super::target::{parse_target, path_bytes};
use crate::limits::{FIELDS_MAX, HEAD_BYTES_MAX, REQUEST_LINE_BYTES_MAX};
use crate::message::{BodyIn, Kept, Method, Request, Version};
use crate::status::Status;

/// A search for the blank line that goes on where it stopped, however finely the bytes are split. What is
/// wrong with a line by itself is told as soon as it is complete: a peer that errs may never send the blank
/// line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeadSearch {
    /// Bytes of this head looked at.
    seen_bytes: u16,
    /// Lines that are complete, the request line among them.
    lines_count: u8,
    /// An empty line before this head was skipped.
    pub(super) empty_line_skipped: bool,
}

const _: () = assert!(HEAD_BYTES_MAX <= u16::MAX as usize && FIELDS_MAX < u8::MAX as usize);

impl HeadSearch {
    /// Behind an empty line that was skipped.
    pub(super) fn behind_empty_line() -> Self {
        Self { empty_line_skipped: true, ..Self::default() }
    }

    /// Whether no byte of this head was seen yet.
    pub(super) fn is_new(self) -> bool {
        self.seen_bytes == 0
    }

    /// Length of the head with its blank line, or `None` when that has not come yet. `input` begins with what
    /// was given before. Lines end with CR and LF: a recipient may take LF alone (RFC 9112, section 2.2), and
    /// we do not, because the peers of a request smuggler disagree there.
    #[inline]
    pub(super) fn find_end(&mut self, input: &[u8]) -> Result<Option<usize>, Refusal> {
        let window = input.get(..HEAD_BYTES_MAX).unwrap_or(input);
        let mut at = usize::from(self.seen_bytes);
        while let Some(offset) = memchr::memchr(b'\n', window.get(at..).unwrap_or_default()) {
            let (lines, _) = window.split_at(at + offset);
            let line = &lines[memchr::memrchr(b'\n', lines).map_or(0, |line_feed| line_feed + 1)..];
            at = lines.len() + 1;
            match self.lines_count {
                0 => check_request_line(line)?,
                1.. if line == b"\r" => return Ok(Some(at)),
                1.. if usize::from(self.lines_count) > FIELDS_MAX => return Err(TOO_MANY_FIELDS),
                1.. => _ = split_field(checked(line)?)?,
            }
            self.lines_count += 1;
        }
        if self.lines_count == 0 && window.len() >= REQUEST_LINE_BYTES_MAX + 2 {
            return Err(LINE_TOO_LONG);
        }
        if window.len() == HEAD_BYTES_MAX {
            return Err(HEAD_TOO_LARGE);
        }
        self.seen_bytes = window.len() as u16;
        Ok(None)
    }
}

fn check_request_line(line: &[u8]) -> Result<(), Refusal> {
    if line.len() > REQUEST_LINE_BYTES_MAX + 1 {
        return Err(LINE_TOO_LONG);
    }
    let line = parse_request_line(checked(line)?)?;
    parse_target(line.method, line.target, line.mark)?;
    Ok(())
}

/// RFC 9112, section 3: a longer request line than the server wishes to parse gets 414.
const LINE_TOO_LONG: Refusal = Refusal::new(Status::URI_TOO_LONG, "the request line is longer than 8 KiB");
/// RFC 6585, section 5.
const HEAD_TOO_LARGE: Refusal =
    Refusal::new(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is larger than 32 KiB");
/// RFC 9110, section 15.6.6.
pub(super) const OTHER_VERSION: Refusal =
    Refusal::new(Status::HTTP_VERSION_NOT_SUPPORTED, "this server speaks HTTP/1.0 and HTTP/1.1");
const TOO_MANY_FIELDS: Refusal =
    Refusal::new(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, "more than 100 header fields");

const _: () = assert!(REQUEST_LINE_BYTES_MAX == 8 << 10 && HEAD_BYTES_MAX == 32 << 10 && FIELDS_MAX == 100);

/// The request at the start of the input, if its head is there as a whole and good: one pass. `None` says
/// nothing; the search for the end and [`parse_head`] tell what is missing or wrong.
#[inline]
pub(super) fn parse_at_once(input: &[u8]) -> Option<Head<'_>> {
    parse_lines(input.get(..HEAD_BYTES_MAX).unwrap_or(input)).ok()
}

/// Parses a whole head, blank line included, whose lines [`HeadSearch::find_end`] has looked at.
pub(super) fn parse_head(head: &[u8]) -> Result<Head<'_>, Refusal> {
    parse_lines(head)
}

/// Parses up to the blank line. What the lines are made of is checked only as far as it is read, so of two
/// faults this does not always name the first.
#[inline]
fn parse_lines(bytes: &[u8]) -> Result<Head<'_>, Refusal> {
    let (line, mut rest) = split_line(bytes)?;
    if line.len() > REQUEST_LINE_BYTES_MAX {
        return Err(LINE_TOO_LONG);
    }
    let line = parse_request_line(line)?;
    let target = parse_target(line.method, line.target, line.mark)?;
    let mut fields = HeadFields::new(empty_request(&line), bytes.as_ptr().addr());
    let mut fields_count = 0;
    loop {
        let field;
        (field, rest) = split_line(rest)?;
        if field.is_empty() {
            break;
        }
        fields_count += 1;
        if fields_count > FIELDS_MAX {
            return Err(TOO_MANY_FIELDS);
        }
        let (name, value) = split_field(field)?;
        fields.take(name, value)?;
    }
    fields.request.head = &bytes[..bytes.len() - rest.len()];
    fields.request.path = target.path;
    fields.request.query = target.query;
    fields.finish(target.authority, line.method == Method::Connect)
}

/// A line, given without its LF, without its CR. Refuses every control character but tabs (RFC 9110, section
/// 5.5; RFC 9112, section 2.2: a bare CR). One pass without a branch, which the compiler turns into vector
/// code.
fn checked(line: &[u8]) -> Result<&[u8], Refusal> {
    let [line @ .., b'\r'] = line else { return Err(Refusal::bad("bare LF in the head")) };
    let bad = line.iter().fold(false, |bad, &byte| bad | (byte.is_ascii_control() & (byte != b'\t')));
    if bad { Err(name_bad_byte(line)) } else { Ok(line) }
}

#[cold]
fn name_bad_byte(line: &[u8]) -> Refusal {
    Refusal::bad(match () {
        () if line.contains(&0) => "NUL in the head",
        () if line.contains(&b'\r') => "bare CR in the head",
        () => "a control character in the head",
    })
}

/// The first line without its end, and what follows it. It is called in two places and too large for the
/// compiler to be put there by itself; each line costs ten instructions more then.
#[inline(always)]
fn split_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    match bytes.split_at(line_bytes(bytes)) {
        (line, [b'\r', b'\n', rest @ ..]) => Ok((line, rest)),
        _ => Err(Refusal::bad("a line of the head has no end")),
    }
}

struct RequestLine<'a> {
    method: Method,
    target: &'a [u8],
    /// Where in the target the first `?` or `#` stands.
    mark: Option<usize>,
    version: Version,
}

/// `method SP request-target SP HTTP-version`, with exactly these two spaces (RFC 9112, section 3).
#[inline]
fn parse_request_line(line: &[u8]) -> Result<RequestLine<'_>, Refusal> {
    let (method_name, rest) = line.split_at(token_bytes(line));
    let [b' ', rest @ ..] = rest else {
        return Err(Refusal::bad(if line.is_empty() {
            "the request line is empty"
        } else {
            "the request line does not begin with a method and a space"
        }));
    };
    let path_bytes = path_bytes(rest);
    let (space, mark) = match rest.get(path_bytes) {
        Some(b'?' | b'#') => (memchr::memchr2(b' ', b'\t', rest), Some(path_bytes)),
        end => (end.map(|_| path_bytes), None),
    };
    let Some(space) = space else {
        return Err(Refusal::bad("the request line has no version"));
    };
    let (target, version) = rest.split_at(space);
    if target.is_empty() || method_name.is_empty() {
        return Err(Refusal::bad("the request line has an empty part"));
    }
    let version = parse_version(version)?;
    Ok(RequestLine { method: parse_method(method_name), target, mark, version })
}

/// ` HTTP/1.x` with the space before it (RFC 9112, section 2.3). All later minor versions are spoken to as
/// 1.1 (RFC 9110, section 2.5).
#[inline]
fn parse_version(version: &[u8]) -> Result<Version, Refusal> {
    match version {
        b" HTTP/1.1" => Ok(Version::Http11),
        b" HTTP/1.0" => Ok(Version::Http10),
        [b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Ok(Version::Http11),
        [b' ', b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(OTHER_VERSION),
        _ => Err(Refusal::bad("the request line does not end with HTTP/1.1")),
    }
}

/// Methods are case-sensitive (RFC 9110, section 9.1).
#[inline]
fn parse_method(name: &[u8]) -> Method {
    match name {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        _ => parse_rare_method(name),
    }
}

/// The registry of RFC 9110, section 16.1.
fn parse_rare_method(name: &[u8]) -> Method {
    match name {
        b"POST" => Method::Post,
        b"PUT" => Method::Put,
        b"PATCH" => Method::Patch,
        b"DELETE" => Method::Delete,
        b"OPTIONS" => Method::Options,
        b"CONNECT" => Method::Connect,
        b"TRACE" => Method::Trace,
        b"QUERY" | b"PRI" | b"ACL" | b"BASELINE-CONTROL" | b"BIND" | b"CHECKIN" | b"CHECKOUT" | b"COPY"
        | b"LABEL" | b"LINK" | b"LOCK" | b"MERGE" | b"MKACTIVITY" | b"MKCALENDAR" | b"MKCOL"
        | b"MKREDIRECTREF" | b"MKWORKSPACE" | b"MOVE" | b"ORDERPATCH" | b"PROPFIND" | b"PROPPATCH"
        | b"REBIND" | b"REPORT" | b"SEARCH" | b"UNBIND" | b"UNCHECKOUT" | b"UNLINK" | b"UNLOCK"
        | b"UPDATE" | b"UPDATEREDIRECTREF" | b"VERSION-CONTROL" => Method::Other,
        _ => Method::Unknown,
    }
}

/// `field-name ":" OWS field-value OWS` (RFC 9112, section 5).
#[inline]
fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    let (name, rest) = line.split_at(token_bytes(line));
    match rest {
        [b':', value @ ..] if !name.is_empty() => Ok((name, trim(value))),
        _ => Err(name_bad_field(name, rest)),
    }
}

#[cold]
fn name_bad_field(name: &[u8], rest: &[u8]) -> Refusal {
    Refusal::bad(match (name, rest.first()) {
        // RFC 9112, sections 2.2 and 5.2: white space before the first field, or a folded line.
        ([], Some(b' ' | b'\t')) => "a header line begins with white space",
        ([], Some(b':')) => "a header line has no name",
        // RFC 9112, section 5.1: a MUST, for proxies disagreed about it.
        (_, Some(b' ' | b'\t')) => "white space between a field name and its colon",
        (_, None) => "a header line without a colon",
        _ => "a field name is not a token",
    })
}

#[inline]
fn empty_request<'a>(line: &RequestLine<'a>) -> Request<'a> {
    Request {
        method: line.method,
        path: b"",
        query: None,
        host: b"",
        version: line.version,
        content: BodyIn::None,
        repeated: 0,
        head: b"",
        kept: Kept::default(),
    }
}

#[cfg(test)]
mod tests;

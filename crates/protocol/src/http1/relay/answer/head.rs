//! The head of an answer: which of its lines are passed on, and what it says of its body and connection.
//!
//! It owns RFC 9112, sections 4 to 6, as a proxy reads them: what two readers could understand in two ways is
//! refused, whether they would or not. Order: `take_line` for each line, then `finish`.

use super::super::super::field::{list_members, token_bytes, trim};
use super::super::lines::push_field;
use super::super::names::{AnswerField, is_trailer, is_usual_option, judge_said};
use super::fault::RelayFault;
use crate::limits::{NAMED_FIELDS_MAX, RELAYED_FIELDS_MAX};

/// Room for the fields of a usual answer, so that one allocation serves it.
const LINES_BYTES: usize = 512;

/// A head under construction.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Lines that are passed on, written anew.
    lines: Vec<u8>,
    /// Names that Connection has, behind a comma each, if one is of a field that would be passed on.
    named: Vec<u8>,
    length_bytes: Option<u64>,
    /// 0 until the status line came.
    code: u16,
    fields_count: u16,
    named_count: u8,
    is_http10: bool,
    is_chunked: bool,
    says_close: bool,
    says_keep_alive: bool,
    says_upgrade: bool,
    /// Whether a CGI program wrote it: fields alone, `Status` among them.
    is_cgi: bool,
    has_location: bool,
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// None may follow, whatever the fields say.
    Nothing,
    Length(u64),
    Chunked,
    UntilClose,
}

/// What a head that is complete says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadSays {
    pub(crate) code: u16,
    pub(crate) length_bytes: Option<u64>,
    pub(crate) body: Body,
    /// Whether the connection may serve another request.
    pub(crate) keeps: bool,
    /// Whether Connection names Upgrade.
    pub(crate) says_upgrade: bool,
}

impl Draft {
    pub(crate) const fn new() -> Self {
        Self {
            lines: Vec::new(),
            named: Vec::new(),
            length_bytes: None,
            code: 0,
            fields_count: 0,
            named_count: 0,
            is_http10: false,
            is_chunked: false,
            says_close: false,
            says_keep_alive: false,
            says_upgrade: false,
            is_cgi: false,
            has_location: false,
        }
    }

    /// The head of a CGI program's answer (RFC 3875, section 6.2), which has no status line.
    pub(crate) const fn of_cgi() -> Self {
        let mut draft = Self::new();
        draft.is_cgi = true;
        draft
    }

    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.lines.capacity() + self.named.capacity()
    }

    /// The next line, without its end. Whether it was the blank one, which ends the head.
    pub(crate) fn take_line(&mut self, line: &[u8]) -> Result<bool, RelayFault> {
        if self.code == 0 && !self.is_cgi {
            return self.take_status(line).map(|()| false);
        }
        if line.is_empty() {
            return Ok(true);
        }
        if usize::from(self.fields_count) == RELAYED_FIELDS_MAX {
            return Err(RelayFault::TooManyFields);
        }
        self.fields_count += 1;
        let (name, value) = split_field(line)?;
        if self.is_cgi && self.take_cgi(name, value)? {
            return Ok(false);
        }
        match judge_said(name) {
            AnswerField::Passed => push_field(name, value, &mut self.lines),
            AnswerField::Upgrade if self.code == 101 => push_field(name, value, &mut self.lines),
            AnswerField::Dropped | AnswerField::Upgrade => {}
            AnswerField::Connection => self.take_connection(value)?,
            AnswerField::Length => self.take_length(value)?,
            AnswerField::Coding => self.take_coding(value)?,
        }
        Ok(false)
    }

    /// `HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112, section 4). Many leave out the second
    /// space with the phrase.
    fn take_status(&mut self, line: &[u8]) -> Result<(), RelayFault> {
        let rest = match line.split_at_checked(b"HTTP/1.1 ".len()) {
            Some((b"HTTP/1.1 ", rest)) => rest,
            Some((b"HTTP/1.0 ", rest)) => {
                self.is_http10 = true;
                rest
            }
            _ => return Err(RelayFault::Version),
        };
        self.lines.reserve(LINES_BYTES);
        self.code = code_of(rest).ok_or(RelayFault::Code)?;
        Ok(())
    }

    /// Whether a field is one that only CGI has. RFC 3875, section 6.3.3: `Status`, at most once.
    fn take_cgi(&mut self, name: &[u8], value: &[u8]) -> Result<bool, RelayFault> {
        self.has_location |= name.eq_ignore_ascii_case(b"location");
        if !name.eq_ignore_ascii_case(b"status") {
            return Ok(false);
        }
        let code = code_of(value).filter(|code| self.code == 0 && *code >= 200);
        self.code = code.ok_or(RelayFault::Code)?;
        Ok(true)
    }

    fn take_connection(&mut self, value: &[u8]) -> Result<(), RelayFault> {
        for option in list_members(value) {
            self.says_close |= option.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.says_upgrade |= option.eq_ignore_ascii_case(b"upgrade");
            if !is_usual_option(option) {
                self.named_count += 1;
                if usize::from(self.named_count) > NAMED_FIELDS_MAX {
                    return Err(RelayFault::TooManyNamed);
                }
                self.named.push(b',');
                self.named.extend_from_slice(option);
            }
        }
        Ok(())
    }

    /// Digits, once. RFC 9110, section 8.6, allows to take a list of equal numbers, and to refuse it.
    fn take_length(&mut self, value: &[u8]) -> Result<(), RelayFault> {
        if self.is_chunked {
            return Err(RelayFault::LengthAndChunks);
        }
        let digits = Some(value).filter(|value| value.iter().all(u8::is_ascii_digit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let length_bytes = digits.and_then(|digits| digits.parse().ok()).ok_or(RelayFault::Length)?;
        match self.length_bytes.replace(length_bytes) {
            Some(_) => Err(RelayFault::LengthTwice),
            None => Ok(()),
        }
    }

    fn take_coding(&mut self, value: &[u8]) -> Result<(), RelayFault> {
        if self.is_http10 {
            return Err(RelayFault::CodingInHttp10);
        }
        if self.length_bytes.is_some() {
            return Err(RelayFault::LengthAndChunks);
        }
        if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(RelayFault::Coding);
        }
        self.is_chunked = true;
        Ok(())
    }

    /// The blank line came: RFC 9112, sections 6.3 and 9.3.
    pub(crate) fn finish(&mut self, asked_by_head: bool) -> Result<HeadSays, RelayFault> {
        if self.is_cgi && self.code == 0 {
            // RFC 3875, sections 6.2.3 and 6.3.3. The redirect of a local path is left to the client.
            self.code = if self.has_location { 302 } else { 200 };
        }
        if self.code < 200 && (self.is_chunked || self.length_bytes.is_some()) {
            return Err(RelayFault::InterimWithBody);
        }
        if !self.named.is_empty() {
            self.drop_named();
        }
        let body = match self.length_bytes {
            _ if asked_by_head || matches!(self.code, 100..200 | 204 | 304) => Body::Nothing,
            Some(length_bytes) => Body::Length(length_bytes),
            None if self.is_chunked => Body::Chunked,
            None => Body::UntilClose,
        };
        if let Some(length_bytes) = self.length_bytes.filter(|_| asked_by_head || self.code == 304) {
            push_field(b"Content-Length", length_bytes.to_string().as_bytes(), &mut self.lines);
        }
        // What says that a body follows where none may might send one, and it must not become another answer.
        let is_odd = match self.code {
            204 => self.is_chunked || self.length_bytes.is_some_and(|bytes| bytes > 0),
            304 => self.is_chunked,
            _ => false,
        };
        let stays = if self.is_http10 { self.says_keep_alive } else { true };
        let keeps = stays && !self.says_close && body != Body::UntilClose && !is_odd;
        let Self { code, length_bytes, says_upgrade, .. } = *self;
        Ok(HeadSays { code, length_bytes, body, keeps, says_upgrade })
    }

    /// Leaves out what Connection names.
    #[cold]
    fn drop_named(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        for (name, value) in crate::message::Fields::new(&lines).iter() {
            if !list_members(&self.named).any(|option| option.eq_ignore_ascii_case(name)) {
                push_field(name, value, &mut self.lines);
            }
        }
        self.named = Vec::new();
    }

    /// A line of a trailer section. Whether it was the blank one, which ends it.
    pub(crate) fn take_trailer(&mut self, line: &[u8]) -> Result<bool, RelayFault> {
        if line.is_empty() {
            return Ok(true);
        }
        let (name, value) = split_field(line)?;
        if is_trailer(name) {
            push_field(name, value, &mut self.lines);
        }
        Ok(false)
    }
}

/// Three digits from 100 to 599, and nothing or a space behind them.
fn code_of(text: &[u8]) -> Option<u16> {
    let ([first @ b'1'..=b'5', second @ b'0'..=b'9', third @ b'0'..=b'9']
    | [first @ b'1'..=b'5', second @ b'0'..=b'9', third @ b'0'..=b'9', b' ', ..]) = text
    else {
        return None;
    };
    let digit = |letter: &u8| u16::from(letter - b'0');
    Some(digit(first) * 100 + digit(second) * 10 + digit(third))
}

/// `field-name ":" OWS field-value OWS` (RFC 9112, section 5).
fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), RelayFault> {
    let (name, rest) = line.split_at(token_bytes(line));
    match rest {
        [b':', value @ ..] if !name.is_empty() => Ok((name, trim(value))),
        _ => Err(blame_field(name, rest)),
    }
}

#[cold]
fn blame_field(name: &[u8], rest: &[u8]) -> RelayFault {
    match (name, rest.first()) {
        ([], Some(b' ' | b'\t')) => RelayFault::Folded,
        ([], Some(b':')) => RelayFault::NameMissing,
        (_, Some(b' ' | b'\t')) => RelayFault::SpaceBeforeColon,
        (_, None) => RelayFault::ColonMissing,
        _ => RelayFault::Name,
    }
}

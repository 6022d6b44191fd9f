//! The head of an answer: what it says about its body and its connection.
//!
//! It owns RFC 9112, section 6.3, as a client reads it. It must never take a byte of the body. The letters
//! are left to httparse: what a server may send is wider than what ours takes as a request, and a client that
//! measures servers must not refuse what browsers take (a bare LF, a folded line, no reason phrase, white
//! space before a colon, a later minor version).

use std::mem::MaybeUninit;

use httparse::{Error, Header, ParserConfig, Response, Status};

use super::super::field::list_members;
use super::super::framing::merge_content_length;
use super::fault::AnswerFault;
use crate::limits::{ANSWER_FIELDS_MAX, ANSWER_HEAD_BYTES_MAX};

/// How the body of an answer is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// There is none.
    None,
    /// So many bytes, at least one.
    Length(u64),
    /// The chunked transfer coding.
    Chunked,
    /// All bytes until the peer closes.
    UntilClose,
}

/// What a head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its length, blank line included.
    pub(super) length_bytes: usize,
    pub(super) status: u16,
    /// Whether another answer to the same request follows (RFC 9110, section 15.2).
    pub(super) interim: bool,
    pub(super) body: Body,
    /// Whether the connection stays open afterwards (RFC 9112, section 9.3).
    pub(super) keep: bool,
}

/// Reads the head that `input` begins with; `None` when its end has not come.
#[inline]
pub(super) fn parse_head(input: &[u8], asked_by_head: bool) -> Result<Option<Head>, AnswerFault> {
    let window = input.get(..ANSWER_HEAD_BYTES_MAX).unwrap_or(input);
    match parse_window(window, asked_by_head) {
        Err(Error::Version) if is_later_minor(window) => {
            parse_window(&as_version_1_1(window), asked_by_head).unwrap_or_else(|error| Err(blame(error)))
        }
        parsed => parsed.unwrap_or_else(|error| Err(blame(error))),
    }
}

/// RFC 9110, section 2.5: a later minor version is read as the latest that is known. What follows it may
/// still be to come.
fn is_later_minor(window: &[u8]) -> bool {
    let rest = window.strip_prefix(b"HTTP/1.");
    rest.is_some_and(|rest| matches!(rest, [b'2'..=b'9'] | [b'2'..=b'9', b' ', ..]))
}

#[cold]
fn as_version_1_1(window: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1", window.get(8..).unwrap_or_default()].concat()
}

fn blame(error: Error) -> AnswerFault {
    AnswerFault::Head(sentence(error))
}

#[inline]
fn parse_window(window: &[u8], asked_by_head: bool) -> Result<Result<Option<Head>, AnswerFault>, Error> {
    let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; ANSWER_FIELDS_MAX];
    let mut response = Response::new(&mut []);
    let mut config = ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    config.allow_spaces_after_header_name_in_responses(true);
    Ok(match config.parse_response_with_uninit_headers(&mut response, window, &mut room)? {
        Status::Complete(length_bytes) => {
            let status = response.code.unwrap_or_default();
            if status < 100 {
                return Ok(Err(AnswerFault::Head("the status is below 100")));
            }
            let http10 = response.version == Some(0);
            Fields::of(response.headers).judge(length_bytes, status, http10, asked_by_head).map(Some)
        }
        Status::Partial if window.len() == ANSWER_HEAD_BYTES_MAX => {
            Err(AnswerFault::Head("the answer's head is larger than 128 KiB"))
        }
        Status::Partial => Ok(None),
    })
}

const _: () = assert!(ANSWER_HEAD_BYTES_MAX == 128 << 10 && ANSWER_FIELDS_MAX == 1024);

#[cold]
fn sentence(error: Error) -> &'static str {
    match error {
        Error::Version => "what came is not of HTTP/1",
        Error::Status => "the status line is broken",
        Error::TooManyHeaders => "the answer has more than 1024 header fields",
        Error::HeaderName => "the name of a header field has a byte that may not stand there, or no colon",
        Error::HeaderValue => "the value of a header field has a byte that may not stand there",
        Error::NewLine => "a CR in the answer's head is not followed by LF",
        Error::Token => "the answer's head has a byte that may not stand there",
    }
}

/// What the fields say that matter here.
struct Fields {
    length_bytes: Result<Option<u64>, &'static str>,
    coded: bool,
    chunked_last: bool,
    chunked_twice: bool,
    says_close: bool,
    says_keep_alive: bool,
}

impl Fields {
    #[inline]
    fn of(headers: &[Header<'_>]) -> Self {
        let mut fields = Self {
            length_bytes: Ok(None),
            coded: false,
            chunked_last: false,
            chunked_twice: false,
            says_close: false,
            says_keep_alive: false,
        };
        for header in headers {
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => fields.add_connection(header.value),
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.length_bytes =
                        fields.length_bytes.and_then(|before| merge_content_length(before, header.value));
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    fields.add_transfer_encoding(header.value);
                }
                _ => {}
            }
        }
        fields
    }

    fn add_connection(&mut self, value: &[u8]) {
        for option in list_members(value) {
            self.says_close |= option.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Several lines are one list. Parameters of a coding make it unknown: chunked has none.
    fn add_transfer_encoding(&mut self, value: &[u8]) {
        self.coded = true;
        for coding in list_members(value) {
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.chunked_twice |= chunked && self.chunked_last;
            self.chunked_last = chunked;
        }
    }

    /// RFC 9112, section 6.3 in its order, and section 9.3.
    #[inline]
    fn judge(
        &self,
        length_bytes: usize,
        status: u16,
        http10: bool,
        asked_by_head: bool,
    ) -> Result<Head, AnswerFault> {
        // 101 is final for us: what follows is another protocol, which nobody here speaks.
        let interim = (100..200).contains(&status) && status != 101;
        let bodiless = asked_by_head || status < 200 || status == 204 || status == 304;
        let body = if bodiless { Body::None } else { self.body()? };
        // RFC 9112, section 6.1: with a transfer coding HTTP/1.0 is not to be trusted further.
        let stays = if http10 { self.says_keep_alive && !self.coded } else { true };
        let keep = stays && !self.says_close && status != 101 && body != Body::UntilClose;
        Ok(Head { length_bytes, status, interim, body, keep })
    }

    #[inline]
    fn body(&self) -> Result<Body, AnswerFault> {
        if self.coded {
            return self.coded_body();
        }
        Ok(match self.length_bytes.map_err(AnswerFault::Length)? {
            Some(0) => Body::None,
            Some(length_bytes) => Body::Length(length_bytes),
            None => Body::UntilClose,
        })
    }

    /// Section 6.3, rules 3 and 4: a length beside a coding may be an attack and ought to be an error.
    #[cold]
    fn coded_body(&self) -> Result<Body, AnswerFault> {
        if self.length_bytes != Ok(None) {
            return Err(AnswerFault::Length("both Content-Length and Transfer-Encoding"));
        }
        if self.chunked_twice {
            return Err(AnswerFault::Length("chunked is applied twice"));
        }
        Ok(if self.chunked_last { Body::Chunked } else { Body::UntilClose })
    }
}

//! What the fields of a head say that a session or an answer has to know.
//!
//! It owns which fields are looked at, and what of them is refused. It must never keep more of a field than
//! where its value stands.

use super::super::field::list_members;
use super::super::framing::FramingFields;
use super::super::host::{Authority, parse_authority};
use super::super::response::Refusal;
use crate::message::{BodyIn, Request, Version};
use crate::status::Status;

/// A request and what only the session needs to know of it.
#[derive(Debug)]
pub(in crate::http1) struct Head<'a> {
    pub(in crate::http1) request: Request<'a>,
    /// Whether the peer lets the connection stay open (RFC 9112, section 9.3).
    pub(in crate::http1) keep_alive: bool,
    /// Whether the peer waits for 100 before it sends the body (RFC 9110, section 10.1.1).
    pub(in crate::http1) expects_continue: bool,
    /// CONNECT: what follows may be meant for the far end of a tunnel.
    pub(in crate::http1) wants_tunnel: bool,
}

/// What the fields seen so far say.
pub(super) struct HeadFields<'a> {
    pub(super) request: Request<'a>,
    /// Where the head begins in memory: what is kept of it are distances.
    head_address: usize,
    framing: FramingFields,
    host: Option<&'a [u8]>,
    says_close: bool,
    says_keep_alive: bool,
    expects_continue: bool,
}

impl<'a> HeadFields<'a> {
    #[inline]
    pub(super) fn new(request: Request<'a>, head_address: usize) -> Self {
        Self {
            request,
            head_address,
            framing: FramingFields::default(),
            host: None,
            says_close: false,
            says_keep_alive: false,
            expects_continue: false,
        }
    }

    /// Sorts by length and first letter, so that a field nobody asks for costs one jump and no comparison.
    #[inline]
    pub(super) fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Refusal> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match (name.len(), name.first().map_or(0, |letter| letter | 0x20)) {
            (4, b'h') if is(b"host") => return self.take_host(value),
            (5, b'r') if is(b"range") => self.keep(Request::RANGE, value),
            (6, b'a') if is(b"accept") => self.keep(Request::ACCEPT, value),
            (6, b'e') if is(b"expect") => return self.take_expect(value),
            (8, b'i') if is(b"if-match") => self.keep(Request::IF_MATCH, value),
            (8, b'i') if is(b"if-range") => self.keep(Request::IF_RANGE, value),
            (10, b'c') if is(b"connection") => self.take_connection(value),
            (13, b'i') if is(b"if-none-match") => self.keep(Request::IF_NONE_MATCH, value),
            (14, b'c') if is(b"content-length") => return self.framing.add_content_length(value),
            (15, b'a') if is(b"accept-encoding") => self.keep(Request::ACCEPT_ENCODING, value),
            (17, b'i') if is(b"if-modified-since") => self.keep(Request::IF_MODIFIED_SINCE, value),
            (17, b't') if is(b"transfer-encoding") => return self.framing.add_transfer_encoding(value),
            (19, b'i') if is(b"if-unmodified-since") => self.keep(Request::IF_UNMODIFIED_SINCE, value),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn keep(&mut self, name: u16, value: &'a [u8]) {
        let start = value.as_ptr().addr() - self.head_address;
        if !self.request.kept.keep(name, start, value.len()) {
            self.request.repeated |= name;
        }
    }

    /// RFC 9112, section 3.2: more than one Host is 400, in every version.
    #[inline]
    fn take_host(&mut self, value: &'a [u8]) -> Result<(), Refusal> {
        if self.host.replace(value).is_some() { Err(Refusal::bad("more than one Host")) } else { Ok(()) }
    }

    fn take_connection(&mut self, value: &[u8]) {
        for option in list_members(value) {
            self.says_close |= option.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// RFC 9110, section 10.1.1. HTTP/1.0 has no expectations.
    fn take_expect(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.request.version == Version::Http10 {
            return Ok(());
        }
        if !list_members(value).all(|member| member.eq_ignore_ascii_case(b"100-continue")) {
            return Err(Refusal::new(
                Status::EXPECTATION_FAILED,
                "the only expectation known is 100-continue",
            ));
        }
        self.expects_continue = true;
        Ok(())
    }

    #[inline]
    pub(super) fn finish(
        mut self,
        authority: Option<Authority<'a>>,
        wants_tunnel: bool,
    ) -> Result<Head<'a>, Refusal> {
        let http10 = self.request.version == Version::Http10;
        // RFC 9112, section 3.2: Host must be there in 1.1 and valid always, even if the target overrides it.
        let host = match self.host {
            Some(value) => parse_authority(value).ok_or(Refusal::bad("Host is not valid"))?.host,
            None if http10 => b"",
            None => return Err(Refusal::bad("no Host in HTTP/1.1")),
        };
        // The target URI is made of Host and path (RFC 9112, section 3.3), and an http URI with an empty host
        // is refused (RFC 9110, section 4.2.1). The target * names no resource, and HTTP/1.0 needs no Host.
        if host.is_empty() && !http10 && authority.is_none() && self.request.path != b"*" {
            return Err(Refusal::bad("Host is empty"));
        }
        self.request.host = authority.map_or(host, |authority| authority.host);
        self.request.content = self.framing.finish(http10)?;
        Ok(Head {
            keep_alive: !self.says_close && (!http10 || self.says_keep_alive),
            expects_continue: self.expects_continue && self.request.content != BodyIn::None,
            wants_tunnel,
            request: self.request,
        })
    }
}

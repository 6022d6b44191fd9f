//! A request, written anew.
//!
//! It owns the request line, the framing, and the order of what goes to an application. It must never write
//! a field that could say of the body, the host or the client anything but what this server understood.

use super::super::field::list_members;
use super::super::target::split_absolute;
use super::cookies::push_cookies;
use super::forwarding::{Forwarding, HostRule};
use super::lines::{push_field, push_list};
use super::names::{FORWARDED, FORWARDED_FOR, RequestField, is_usual_option, judge_asked};
use super::refusal::RelayRefusal;
use super::uri::push_encoded;
use super::{origin, via};
use crate::limits::NAMED_FIELDS_MAX;
use crate::message::{BodyIn, Method, Request, Version};
use crate::status::Status;

/// Whether a request may be made twice (RFC 9110, section 9.2.2).
pub fn is_idempotent(method: Method) -> bool {
    use Method::{Connect, Delete, Get, Head, Options, Other, Patch, Post, Put, Trace, Unknown};
    match method {
        Get | Head | Options | Trace | Put | Delete => true,
        Post | Patch | Connect | Other | Unknown => false,
    }
}

/// Room for what is added to a head: about ten short fields.
const ADDED_BYTES: usize = 512;

/// Appends the head of the request for an application. `body` says how the body is announced.
///
/// # Errors
/// The request is not to be passed on; nothing was appended.
pub fn write_request(
    request: &Request<'_>,
    forwarding: &Forwarding<'_>,
    body: BodyIn,
    out: &mut Vec<u8>,
) -> Result<(), RelayRefusal> {
    debug_assert!(!forwarding.path.iter().any(|byte| byte.is_ascii_control() || *byte == b' '));
    let (method, target) = split_line(request.head);
    let start = out.len();
    out.reserve(request.head.len() + forwarding.path.len() + ADDED_BYTES);
    push_line(method, forwarding.path, request.query, out);
    let asked_host = host_of(request, target);
    let host = match forwarding.host {
        HostRule::Kept => asked_host,
        HostRule::Set(host) => host,
    };
    push_field(b"Host", host, out);
    let written = push_fields(request, forwarding, out).and_then(|seen| {
        origin::write(request, forwarding, seen.proxys, asked_host, out);
        seen.push_rest(request, forwarding, out)
    });
    if written.is_err() {
        out.truncate(start);
        return written;
    }
    push_framing(request.method, body, out);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The method and the target of a head, as they were sent.
fn split_line(head: &[u8]) -> (&[u8], &[u8]) {
    let mut words = head.split(|byte| matches!(byte, b' ' | b'\r'));
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

fn push_line(method: &[u8], path: &[u8], query: Option<&[u8]>, out: &mut Vec<u8>) {
    let path = if path.is_empty() { b"/" } else { path };
    [method, b" "].iter().for_each(|part| out.extend_from_slice(part));
    push_encoded(path, out);
    if let Some(query) = query {
        out.push(b'?');
        push_encoded(query, out);
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// The host asked for, with its port. RFC 9112, section 3.2.2: that of the target comes before Host. A colon
/// without a port means nothing (RFC 9110, section 4.2.3), and not every reader takes it.
fn host_of<'a>(request: &Request<'a>, target: &'a [u8]) -> &'a [u8] {
    let host = match target.first() {
        Some(b'/' | b'*') => request.values(b"host").next().unwrap_or_default(),
        _ => split_absolute(target).map_or(request.host, |(authority, _)| authority),
    };
    host.strip_suffix(b":").unwrap_or(host)
}

/// What was seen in the fields that are not passed on as they stand.
#[derive(Debug, Default)]
struct Seen<'a> {
    /// What a trusted proxy said, as bits of names.
    proxys: u8,
    has_via: bool,
    takes_trailers: bool,
    /// Connection names Upgrade.
    says_upgrade: bool,
    upgrade: Option<&'a [u8]>,
    max_forwards: Option<&'a [u8]>,
    cookies_count: usize,
    /// Connection names a field that would be passed on.
    names_fields: bool,
}

/// Fields that need a second pass: those that Connection names are left out, and cookies are joined.
#[derive(Debug, Default)]
struct Care<'a> {
    named: Vec<&'a [u8]>,
    joins_cookies: bool,
}

/// Passes on the client's fields, in one pass for all requests but odd ones.
fn push_fields<'a>(
    request: &Request<'a>,
    forwarding: &Forwarding<'_>,
    out: &mut Vec<u8>,
) -> Result<Seen<'a>, RelayRefusal> {
    if !asks_here(request, forwarding) {
        check_method(request.method)?;
    }
    let start = out.len();
    let seen = push_fields_with(request, forwarding, &Care::default(), out);
    let leaves_cookie = seen.cookies_count > 0 && forwarding.without_cookie.is_some();
    if !seen.names_fields && seen.cookies_count < 2 && !leaves_cookie {
        return Ok(seen);
    }
    out.truncate(start);
    let joins_cookies = seen.cookies_count > 1 || leaves_cookie;
    let care = Care { named: named_by_connection(request)?, joins_cookies };
    Ok(push_fields_with(request, forwarding, &care, out))
}

/// Whether the handshake of a WebSocket is made here, for a client that has made none (RFC 8441, section 5).
fn asks_here(request: &Request<'_>, forwarding: &Forwarding<'_>) -> bool {
    request.asks_websocket() && forwarding.socket_key.is_some()
}

/// Whether a request of this method may be passed on, as is known before its body is there. A tunnel is none
/// of a reverse proxy, and TRACE would show a client what is added to its request.
///
/// # Errors
/// The request is not to be passed on, unless it asks for a WebSocket.
pub fn check_method(method: Method) -> Result<(), RelayRefusal> {
    let reason = match method {
        Method::Connect => "CONNECT is not passed on",
        Method::Trace => "TRACE is not passed on",
        _ => return Ok(()),
    };
    Err(RelayRefusal { status: Status::NOT_IMPLEMENTED, reason })
}

fn push_fields_with<'a>(
    request: &Request<'a>,
    forwarding: &Forwarding<'_>,
    care: &Care<'_>,
    out: &mut Vec<u8>,
) -> Seen<'a> {
    let mut seen = Seen::default();
    for (name, value) in request.fields() {
        let asked = judge_asked(name);
        let may_be_named =
            matches!(asked, RequestField::Passed | RequestField::Cookie | RequestField::Proxys(_));
        if may_be_named && care.named.iter().any(|named| named.eq_ignore_ascii_case(name)) {
            continue;
        }
        match asked {
            RequestField::Passed if request.asks_websocket() && is_of_handshake(name) => {}
            RequestField::Passed => push_field(name, value, out),
            RequestField::Cookie if care.joins_cookies => {
                if seen.cookies_count == 0 {
                    push_cookies(request, forwarding.without_cookie, out);
                }
                seen.cookies_count += 1;
            }
            RequestField::Cookie => {
                push_field(name, value, out);
                seen.cookies_count += 1;
            }
            RequestField::Proxys(bit) if forwarding.trusts => match bit {
                FORWARDED | FORWARDED_FOR => seen.proxys |= bit,
                _ => {
                    seen.proxys |= bit;
                    push_field(name, value, out);
                }
            },
            _ => seen.take(asked, value),
        }
    }
    seen
}

/// The fields that Connection names, but for those that are not passed on anyway.
fn named_by_connection<'a>(request: &Request<'a>) -> Result<Vec<&'a [u8]>, RelayRefusal> {
    let options = request.values(b"connection").flat_map(list_members);
    let named: Vec<_> =
        options.filter(|option| !is_usual_option(option)).take(NAMED_FIELDS_MAX + 1).collect();
    if named.len() > NAMED_FIELDS_MAX { Err(TOO_MANY_NAMED) } else { Ok(named) }
}

/// The name of the key of a handshake.
const SOCKET_KEY: &[u8] = b"Sec-WebSocket-Key";

/// Whether a field means nothing on a stream of HTTP/2 (RFC 8441, section 5.1): towards the application the
/// key is ours, and so is what answers it.
fn is_of_handshake(name: &[u8]) -> bool {
    [SOCKET_KEY, b"Sec-WebSocket-Accept"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

const TOO_MANY_NAMED: RelayRefusal =
    RelayRefusal { status: Status::BAD_REQUEST, reason: "Connection names more than 16 fields" };

const _: () = assert!(NAMED_FIELDS_MAX == 16);

impl<'a> Seen<'a> {
    fn take(&mut self, asked: RequestField, value: &'a [u8]) {
        match asked {
            RequestField::Connection => {
                for option in list_members(value) {
                    self.says_upgrade |= option.eq_ignore_ascii_case(b"upgrade");
                    self.names_fields |= !is_usual_option(option);
                }
            }
            RequestField::Te => {
                self.takes_trailers |=
                    list_members(value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
            }
            RequestField::Upgrade => self.upgrade = self.upgrade.or(Some(value)),
            RequestField::Via => self.has_via = true,
            RequestField::MaxForwards => self.max_forwards = Some(value),
            RequestField::Passed | RequestField::Dropped | RequestField::Cookie | RequestField::Proxys(_) => {
            }
        }
    }

    /// Writes the fields that are made of what was seen.
    fn push_rest(
        &self,
        request: &Request<'_>,
        forwarding: &Forwarding<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), RelayRefusal> {
        self.push_via(request, forwarding.pseudonym, out)?;
        self.push_max_forwards(request.method, out)?;
        match forwarding.socket_key.filter(|_| request.asks_websocket()) {
            Some(key) => push_handshake(key, out),
            None => self.push_connection(request.version, forwarding.upgrades, out),
        }
        Ok(())
    }

    fn push_via(
        &self,
        request: &Request<'_>,
        pseudonym: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), RelayRefusal> {
        let own = |out: &mut Vec<u8>| {
            out.extend_from_slice(via::protocol(request.version));
            out.extend_from_slice(pseudonym);
        };
        if self.has_via {
            via::check(request, pseudonym)?;
            push_list(b"Via", request.values(b"via"), out, own);
        } else {
            push_list(b"Via", std::iter::empty(), out, own);
        }
        Ok(())
    }

    /// RFC 9110, section 7.6.2. Of other methods the field has no meaning, and stays.
    fn push_max_forwards(&self, method: Method, out: &mut Vec<u8>) -> Result<(), RelayRefusal> {
        let Some(value) = self.max_forwards else { return Ok(()) };
        if method != Method::Options {
            push_field(b"Max-Forwards", value, out);
            return Ok(());
        }
        match std::str::from_utf8(value).ok().and_then(|digits| digits.parse::<u32>().ok()) {
            Some(0) => Err(RelayRefusal {
                status: Status::NOT_IMPLEMENTED,
                reason: "Max-Forwards is 0, so the request is not passed on",
            }),
            Some(left) => {
                push_field(b"Max-Forwards", (left - 1).to_string().as_bytes(), out);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The fields of our own connection. That it stays is implied.
    fn push_connection(&self, version: Version, upgrades: bool, out: &mut Vec<u8>) {
        let upgrade = self.upgrade.filter(|_| upgrades && self.says_upgrade && version == Version::Http11);
        let options: &[u8] = match (self.takes_trailers, upgrade) {
            (false, None) => return,
            (true, None) => b"TE",
            (false, Some(_)) => b"Upgrade",
            (true, Some(_)) => b"TE, Upgrade",
        };
        push_field(b"Connection", options, out);
        if self.takes_trailers {
            push_field(b"TE", b"trailers", out);
        }
        if let Some(upgrade) = upgrade {
            push_field(b"Upgrade", upgrade, out);
        }
    }
}

/// RFC 6455, section 4.1. The version and what else was asked for are the client's.
fn push_handshake(key: &[u8], out: &mut Vec<u8>) {
    push_field(b"Connection", b"Upgrade", out);
    push_field(b"Upgrade", b"websocket", out);
    push_field(SOCKET_KEY, key, out);
}

/// RFC 9112, section 6; RFC 9110, section 8.6: a length of 0 where a body would have a meaning.
fn push_framing(method: Method, body: BodyIn, out: &mut Vec<u8>) {
    use Method::{Connect, Delete, Get, Head, Options, Other, Patch, Post, Put, Trace, Unknown};
    match (body, method) {
        (BodyIn::Open, _) => push_field(b"Transfer-Encoding", b"chunked", out),
        (BodyIn::Length(length_bytes), _) => {
            push_field(b"Content-Length", length_bytes.to_string().as_bytes(), out);
        }
        (BodyIn::None, Post | Put | Patch | Other | Unknown) => push_field(b"Content-Length", b"0", out),
        (BodyIn::None, Get | Head | Delete | Options | Connect | Trace) => {}
    }
}

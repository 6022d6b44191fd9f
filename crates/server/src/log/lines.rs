//! From a record to a line of text: combined, of one's own, or JSON.
//!
//! It owns the escapes: nothing a peer sends can end a line, a string, or move a terminal's cursor. It must
//! never format a date more than once a second.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use staunch_engine::UNIX_PEER;

use super::passed::Passed;
use super::record::Record;
use super::settings::{Field, Format, Piece};

const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Writes lines of one form.
pub(super) struct Lines {
    format: Format,
    second: Second,
}

/// A second, as it stands in lines.
struct Second {
    unix_s: u64,
    /// `[20/Nov/2026:10:00:00 +0000]`
    combined: [u8; 28],
    /// `2026-11-20T10:00:00`
    rfc3339: [u8; 19],
}

impl Lines {
    pub(super) fn new(format: Format) -> Self {
        Self { format, second: Second::of(0) }
    }

    /// Appends the line of one request, its end included.
    pub(super) fn write(&mut self, record: &Record<'_>, worker: u16, out: &mut Vec<u8>) {
        let unix_s = record.unix_ms / 1000;
        if unix_s != self.second.unix_s {
            self.second = Second::of(unix_s);
        }
        match &self.format {
            Format::Combined => combined(record, &self.second, out),
            Format::Text(pieces) => own(record, &self.second, pieces, worker, out),
            Format::Json(fields) => json(record, &self.second, fields, worker, out),
        }
        out.push(b'\n');
    }
}

/// A second since 1970 as `2026-11-20T10:00:00`.
pub(super) fn rfc3339(unix_s: u64) -> String {
    Second::of(unix_s).rfc3339.iter().copied().map(char::from).collect()
}

/// A second since 1970 as `Nov  5 10:00:00` (RFC 3164, section 4.1.2: a day below 10 has a space before it).
pub(super) fn rfc3164(unix_s: u64) -> String {
    // `[20/Nov/2026:10:00:00 +0000]`
    let text: String = Second::of(unix_s).combined.iter().copied().map(char::from).collect();
    let day = text[1..3].trim_start_matches('0');
    format!("{} {day:>2} {}", &text[4..7], &text[13..21])
}

impl Second {
    fn of(unix_s: u64) -> Self {
        // Later than the year 9999 has no date in any of these forms.
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(unix_s.min(253_402_300_799));
        // `Fri, 20 Nov 2026 10:00:00 GMT`
        let date = httpdate::fmt_http_date(moment);
        let date = date.as_bytes();
        let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        let number = MONTHS.chunks(3).position(|name| name == month).unwrap_or_default() + 1;
        let number = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        let mut second = Self { unix_s, combined: [0; 28], rfc3339: [0; 19] };
        fill(&mut second.combined, &[b"[", day, b"/", month, b"/", year, b":", time, b" +0000]"]);
        fill(&mut second.rfc3339, &[year, b"-", &number, b"-", day, b"T", time]);
        second
    }
}

fn fill(out: &mut [u8], pieces: &[&[u8]]) {
    let bytes = pieces.concat();
    out.copy_from_slice(&bytes);
}

/// `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer"
/// "$http_user_agent"`
fn combined(record: &Record<'_>, second: &Second, out: &mut Vec<u8>) {
    // What follows mostly finds its room, and asks for it only once.
    out.reserve(256 + record.request_line.len() + record.referer.len() + record.user_agent.len());
    address(record.client, out);
    out.extend_from_slice(b" - ");
    match user(record.credentials) {
        None => out.push(b'-'),
        Some(user) => word(&user, out),
    }
    out.push(b' ');
    out.extend_from_slice(&second.combined);
    out.extend_from_slice(b" \"");
    request_line(record, out);
    out.extend_from_slice(b"\" ");
    number(u64::from(record.status), out);
    out.push(b' ');
    number(record.body_bytes, out);
    out.extend_from_slice(b" \"");
    plain(record.referer, out);
    out.extend_from_slice(b"\" \"");
    plain(record.user_agent, out);
    out.push(b'"');
}

/// The pieces of a line of one's own; values are escaped as in a combined one.
fn own(record: &Record<'_>, second: &Second, pieces: &[Piece], worker: u16, out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Request => request_line(record, out),
            Piece::TimeLocal => out.extend_from_slice(&second.combined[1..27]),
            Piece::TimeIso => fill_time(second, out),
            Piece::RequestTime => seconds(record.waited_ms, out),
            Piece::Field(field) => value(record, second, *field, worker, out),
        }
    }
}

fn value(record: &Record<'_>, second: &Second, field: Field, worker: u16, out: &mut Vec<u8>) {
    let [method, target, version] = words(record);
    match field {
        Field::Time => fill_time(second, out),
        Field::Client => address(record.client, out),
        Field::User => word(user(record.credentials).as_deref().unwrap_or_default(), out),
        Field::Method => plain(method, out),
        Field::Target => plain(target, out),
        Field::Version => plain(version, out),
        Field::Host => plain(record.host, out),
        Field::Status => number(u64::from(record.status), out),
        Field::Bytes => number(record.body_bytes, out),
        Field::Referer => plain(record.referer, out),
        Field::UserAgent => plain(record.user_agent, out),
        Field::ForwardedFor => plain(record.forwarded_for, out),
        Field::DurationUs => number(u64::from(record.waited_ms) * 1000, out),
        Field::Worker => number(u64::from(worker), out),
        Field::ClientVerify => out.extend_from_slice(verdict(record)),
        Field::ClientSubject => plain(subject(record), out),
        Field::ClientFingerprint => plain(&fingerprint(record), out),
        Field::Upstream => plain(server(record), out),
        Field::UpstreamClass => plain(class(record), out),
        Field::UpstreamTries
        | Field::UpstreamLineMs
        | Field::UpstreamHeaderMs
        | Field::UpstreamResponseMs => match passed(record, field) {
            None => out.push(b'-'),
            Some(tries) if field == Field::UpstreamTries => number(u64::from(tries), out),
            Some(time_ms) => seconds(time_ms, out),
        },
    }
}

/// The server that a request was passed on to.
fn server<'a>(record: &Record<'a>) -> &'a [u8] {
    Passed::decode(record.passed).map_or(&[], |passed| passed.server)
}

/// The standing of a request that was passed on, in the line of its application.
fn class(record: &Record<'_>) -> &'static [u8] {
    Passed::decode(record.passed).map_or(&[], |passed| passed.standing.name().as_bytes())
}

/// The number that a field tells of a request that was passed on.
fn passed(record: &Record<'_>, field: Field) -> Option<u32> {
    let passed = Passed::decode(record.passed)?;
    match field {
        Field::UpstreamTries => Some(passed.tries),
        Field::UpstreamLineMs => Some(passed.line_ms),
        Field::UpstreamHeaderMs => passed.header_ms,
        Field::UpstreamResponseMs => passed.response_ms,
        _ => None,
    }
}

/// What nginx says of a client's certificate (`$ssl_client_verify`). One that is not good ends the handshake.
fn verdict(record: &Record<'_>) -> &'static [u8] {
    if record.certificate.is_some() { b"SUCCESS" } else { b"NONE" }
}

fn subject<'a>(record: &Record<'a>) -> &'a [u8] {
    record.certificate.map_or(&[], |certificate| certificate.subject)
}

/// The certificate's SHA-256 as small hexadecimal digits.
fn fingerprint(record: &Record<'_>) -> Vec<u8> {
    let bytes = record.certificate.map(|certificate| certificate.fingerprint);
    let halves = bytes.into_iter().flatten().flat_map(|&byte| [byte >> 4, byte & 15]);
    halves.map(|half| HEX[usize::from(half)].to_ascii_lowercase()).collect()
}

fn fill_time(second: &Second, out: &mut Vec<u8>) {
    out.extend_from_slice(&second.rfc3339);
    out.extend_from_slice(b"+00:00");
}

fn seconds(ms: u32, out: &mut Vec<u8>) {
    number(u64::from(ms / 1000), out);
    let digit = |unit: u32| b'0' + (ms / unit % 10) as u8;
    out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
}

fn json(record: &Record<'_>, second: &Second, fields: &[Field], worker: u16, out: &mut Vec<u8>) {
    let [method, target, version] = words(record);
    for (index, field) in fields.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"{\"" } else { b",\"" });
        out.extend_from_slice(field.name().as_bytes());
        out.extend_from_slice(b"\":");
        match field {
            Field::Time => {
                out.push(b'"');
                out.extend_from_slice(&second.rfc3339);
                let ms = record.unix_ms % 1000;
                let digit = |unit: u64| b'0' + (ms / unit % 10) as u8;
                out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1), b'Z', b'"']);
            }
            Field::Client if record.client.is_some() => {
                out.push(b'"');
                address(record.client, out);
                out.push(b'"');
            }
            Field::Client => out.extend_from_slice(b"null"),
            Field::User => string(user(record.credentials).as_deref().unwrap_or_default(), out),
            Field::Method => string(method, out),
            Field::Target => string(target, out),
            Field::Version => string(version, out),
            Field::Host => string(record.host, out),
            Field::Status => number(u64::from(record.status), out),
            Field::Bytes => number(record.body_bytes, out),
            Field::Referer => string(record.referer, out),
            Field::UserAgent => string(record.user_agent, out),
            Field::ForwardedFor => string(record.forwarded_for, out),
            Field::DurationUs => number(u64::from(record.waited_ms) * 1000, out),
            Field::Worker => number(u64::from(worker), out),
            Field::ClientVerify => string(verdict(record), out),
            Field::ClientSubject => string(subject(record), out),
            Field::ClientFingerprint => string(&fingerprint(record), out),
            Field::Upstream => string(server(record), out),
            Field::UpstreamClass => string(class(record), out),
            Field::UpstreamTries
            | Field::UpstreamLineMs
            | Field::UpstreamHeaderMs
            | Field::UpstreamResponseMs => match passed(record, *field) {
                None => out.extend_from_slice(b"null"),
                Some(told) => number(u64::from(told), out),
            },
        }
    }
    out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
}

/// The version at the end of the line as HTTP/1.1 would have sent it, and how it is told of HTTP/2.
const HTTP1: &[u8] = b"HTTP/1.1";
const HTTP2: &[u8] = b"HTTP/2.0";

/// The request line, with the version that was spoken.
fn request_line(record: &Record<'_>, out: &mut Vec<u8>) {
    match record.request_line.strip_suffix(HTTP1).filter(|_| record.is_http2) {
        None => plain(record.request_line, out),
        Some(before) => {
            plain(before, out);
            out.extend_from_slice(HTTP2);
        }
    }
}

/// Method, target and version of a request line.
fn words<'a>(record: &Record<'a>) -> [&'a [u8]; 3] {
    let mut words = record.request_line.splitn(3, |byte| *byte == b' ');
    let [method, target, version] = std::array::from_fn(|_| words.next().unwrap_or_default());
    [method, target, if record.is_http2 { HTTP2 } else { version }]
}

/// The name in the credentials of basic authentication (RFC 7617).
fn user(credentials: &[u8]) -> Option<Vec<u8>> {
    let (scheme, rest) = credentials.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut decoded = BASE64_STANDARD.decode(rest.trim_ascii()).ok()?;
    decoded.truncate(decoded.iter().position(|byte| *byte == b':')?);
    Some(decoded)
}

#[inline]
fn address(client: Option<IpAddr>, out: &mut Vec<u8>) {
    match client.map(|client| client.to_canonical()) {
        None => out.push(b'-'),
        Some(IpAddr::V4(address)) => {
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                number(u64::from(octet), out);
            }
        }
        Some(address) if address == UNIX_PEER => out.extend_from_slice(b"unix:"),
        // Writing into a vector does not fail.
        Some(IpAddr::V6(address)) => _ = write!(out, "{address}"),
    }
}

#[inline]
fn number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Printable ASCII that ends no string.
fn is_plain(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\'
}

/// Whether nothing is to be escaped. Without an early end, so that many bytes are looked at at once.
fn are_plain(bytes: &[u8]) -> bool {
    let (pieces, rest) = bytes.as_chunks::<16>();
    let piece = |piece: &[u8; 16]| piece.iter().fold(true, |all, byte| all & is_plain(*byte));
    pieces.iter().fold(true, |all, one| all & piece(one)) && rest.iter().all(|byte| is_plain(*byte))
}

/// Text of the combined format, escaped as nginx does it: `\xHH`. What is empty is `-`.
fn plain(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_empty() {
        out.push(b'-');
    } else if are_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        for &byte in bytes {
            if is_plain(byte) {
                out.push(byte);
            } else {
                out.extend_from_slice(b"\\x");
                hex(byte, out);
            }
        }
    }
}

/// A word of the combined format: as `plain`, and nothing in it that could end it or look like the date
/// behind.
#[inline(never)]
fn word(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.iter().any(|byte| b" []".contains(byte)) {
        return plain(bytes, out);
    }
    for &byte in bytes {
        match byte {
            b' ' | b'[' | b']' => {
                out.extend_from_slice(b"\\x");
                hex(byte, out);
            }
            _ => plain(&[byte], out),
        }
    }
}

/// A JSON string, or null for what is empty. Bytes that are no UTF-8 become the replacement character.
fn string(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_empty() {
        return out.extend_from_slice(b"null");
    }
    out.push(b'"');
    if are_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        String::from_utf8_lossy(bytes).chars().for_each(|character| escaped(character, out));
    }
    out.push(b'"');
}

/// Control characters, those of the upper half included, could move a terminal's cursor.
fn escaped(character: char, out: &mut Vec<u8>) {
    match character {
        '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
        _ if character.is_control() => {
            out.extend_from_slice(b"\\u00");
            hex(character as u8, out);
        }
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

#[cfg(test)]
#[path = "lines/tests.rs"]
mod tests;

//! The ClientHello, read before any key is touched: name, protocols, ticket, versions.
//!
//! It owns what can be known of a newcomer without work. It must never allocate but to join a message that
//! came in several records, and never accept what rustls would not read: rustls reads the same bytes
//! afterwards, and what it makes of them decides.
use std::net::IpAddr;

use crate::alert::{Alert, Fault};
use crate::limits::{
    EXTENSIONS_MAX, HELLO_BYTES_MAX, RECORD_HEAD_BYTES, RECORD_PLAIN_BYTES_MAX, SERVER_NAME_BYTES_MAX,
};

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SSL_3: u16 = 0x0300;
const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;

/// Extensions that are looked at (IANA, "TLS ExtensionType Values").
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const SUPPORTED_GROUPS: u16 = 10;
    pub(super) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SESSION_TICKET: u16 = 35;
    pub(super) const PRE_SHARED_KEY: u16 = 41;
    pub(super) const EARLY_DATA: u16 = 42;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
    pub(super) const KEY_SHARE: u16 = 51;
    /// RFC 9849. Nothing answers it yet.
    pub(super) const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
}

/// What a ClientHello says of who comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientHello<'a> {
    /// The host name asked for, as it was sent, but without a dot at its end. An IP address is no name
    /// (RFC 6066, section 3) and is left out.
    pub server_name: Option<&'a str>,
    /// The list of protocols offered, each behind its length (RFC 7301, section 3.1). See
    /// [`Self::protocols`].
    alpn: &'a [u8],
    /// The first ticket: of a session of TLS 1.3, or else of TLS 1.2. Not opened yet.
    pub ticket: Option<&'a [u8]>,
    /// Whether TLS 1.3 is offered.
    pub offers_tls13: bool,
    /// Whether data follow at once.
    pub has_early_data: bool,
    /// Whether another ClientHello is hidden in this one.
    pub has_encrypted_hello: bool,
}

impl<'a> ClientHello<'a> {
    /// The protocols offered, in the client's order.
    pub fn protocols(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut list = Bytes(self.alpn);
        std::iter::from_fn(move || list.short_vector().ok())
    }
}

/// Reads a ClientHello from the first bytes of a connection. `Ok(None)`: more bytes are needed. A message in
/// several records is put together in `joined`.
///
/// # Errors
/// What came is no ClientHello that is spoken here; the fault has the answer.
pub fn peek<'a>(bytes: &'a [u8], joined: &'a mut Vec<u8>) -> Result<Option<ClientHello<'a>>, Fault> {
    let Some(first) = record(bytes)? else { return Ok(None) };
    let Some(length) = message_length(first.content)? else {
        return join(bytes, joined);
    };
    match first.content.get(4..4 + length) {
        Some(message) => parse(message).map(Some),
        None => join(bytes, joined),
    }
}

/// Refuses a first record by what came of its head, so that no more of it is waited for.
pub(crate) fn check_head(bytes: &[u8]) -> Result<(), Fault> {
    record(bytes).map(|_| ())
}

/// A record of the handshake: its content, as far as it came, and what follows it.
struct Record<'a> {
    content: &'a [u8],
    rest: &'a [u8],
    is_whole: bool,
}

/// The record at the beginning. `Ok(None)`: its head is not whole.
fn record(bytes: &[u8]) -> Result<Option<Record<'_>>, Fault> {
    let Some(&kind) = bytes.first() else { return Ok(None) };
    if kind != HANDSHAKE_RECORD {
        return Err(stranger(bytes));
    }
    if bytes.get(1).is_some_and(|&major| major != 3) {
        return Err(Fault::Refused(Alert::ProtocolVersion, "a record of no version of TLS"));
    }
    let Some(head) = bytes.get(..RECORD_HEAD_BYTES) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    if length == 0 {
        return Err(decode("an empty handshake record"));
    }
    if length > RECORD_PLAIN_BYTES_MAX {
        return Err(Fault::Refused(Alert::RecordOverflow, "a record longer than 2^14 bytes"));
    }
    let behind = &bytes[RECORD_HEAD_BYTES..];
    let is_whole = behind.len() >= length;
    let (content, rest) = behind.split_at(length.min(behind.len()));
    Ok(Some(Record { content, rest, is_whole }))
}

/// Why bytes that begin no handshake are refused.
fn stranger(bytes: &[u8]) -> Fault {
    match bytes {
        [b'A'..=b'Z', ..] => Fault::PlainHttp,
        [0x80..=0xff, _, CLIENT_HELLO, ..] => {
            Fault::Refused(Alert::ProtocolVersion, "a ClientHello of SSL 2")
        }
        _ => Fault::Refused(Alert::UnexpectedMessage, "what came first is no handshake"),
    }
}

/// The length of the message that begins here; `None`: its four bytes are not whole.
fn message_length(content: &[u8]) -> Result<Option<usize>, Fault> {
    if content.first().is_some_and(|&kind| kind != CLIENT_HELLO) {
        return Err(Fault::Refused(Alert::UnexpectedMessage, "the first message is no ClientHello"));
    }
    let Some(head) = content.get(..4) else { return Ok(None) };
    let length = usize::from(head[1]) << 16 | usize::from(head[2]) << 8 | usize::from(head[3]);
    if length > HELLO_BYTES_MAX {
        return Err(decode("a ClientHello longer than 16 KiB"));
    }
    Ok(Some(length))
}

/// Puts a message together that came in several records, and reads it once it is whole.
fn join<'a>(mut bytes: &[u8], joined: &'a mut Vec<u8>) -> Result<Option<ClientHello<'a>>, Fault> {
    joined.clear();
    let mut end = None;
    while let Some(record) = record(bytes)? {
        joined.extend_from_slice(record.content);
        end = message_length(joined)?.map(|length| 4 + length).filter(|&end| end <= joined.len());
        if end.is_some() || !record.is_whole {
            break;
        }
        bytes = record.rest;
    }
    match end {
        Some(end) => parse(&joined[4..end]).map(Some),
        None => Ok(None),
    }
}

/// Reads the body of the message (RFC 8446, section 4.1.2).
fn parse(body: &[u8]) -> Result<ClientHello<'_>, Fault> {
    let mut body = Bytes(body);
    let legacy_version = body.number()?;
    body.take(32)?;
    if body.short_vector()?.len() > 32 {
        return Err(decode("a session id longer than 32 bytes"));
    }
    let suites = body.vector()?;
    if suites.is_empty() || suites.len() % 2 != 0 {
        return Err(decode("a list of suites that is empty or cut"));
    }
    if body.short_vector()?.is_empty() {
        return Err(decode("no compression method"));
    }
    if legacy_version <= SSL_3 {
        return Err(Fault::Refused(Alert::ProtocolVersion, "a ClientHello of SSL 3"));
    }
    let mut hello = ClientHello::default();
    let (mut versions, mut needed) = (None, Needed::default());
    if !body.0.is_empty() {
        let mut extensions = Bytes(body.vector()?);
        read_extensions(&mut extensions, &mut hello, &mut versions, &mut needed)?;
        if !body.0.is_empty() {
            return Err(decode("bytes behind the extensions"));
        }
    }
    let offers = |version: u16| match versions {
        Some(list) => list_has(list, version),
        None => version == TLS_1_2 && legacy_version >= TLS_1_2,
    };
    hello.offers_tls13 = offers(TLS_1_3);
    if !hello.offers_tls13 && !offers(TLS_1_2) {
        return Err(Fault::Refused(Alert::ProtocolVersion, "neither TLS 1.3 nor TLS 1.2 is offered"));
    }
    if hello.offers_tls13 && !needed.is_complete() {
        return Err(Fault::Refused(Alert::MissingExtension, "TLS 1.3 without what its keys are made of"));
    }
    Ok(hello)
}

/// Which of the extensions are there that TLS 1.3 cannot do without (RFC 8446, section 9.2).
#[derive(Default)]
struct Needed {
    has_groups: bool,
    has_signatures: bool,
    has_key_share: bool,
    has_ticket: bool,
}

impl Needed {
    fn is_complete(&self) -> bool {
        self.has_groups == self.has_key_share && (self.has_ticket || self.has_groups && self.has_signatures)
    }
}

fn list_has(list: &[u8], version: u16) -> bool {
    list.chunks_exact(2).any(|pair| pair == version.to_be_bytes())
}

fn read_extensions<'a>(
    extensions: &mut Bytes<'a>,
    hello: &mut ClientHello<'a>,
    versions: &mut Option<&'a [u8]>,
    needed: &mut Needed,
) -> Result<(), Fault> {
    let mut seen = [0; EXTENSIONS_MAX];
    let mut count = 0;
    let mut old_ticket = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let mut value = Bytes(extensions.vector()?);
        if count == EXTENSIONS_MAX {
            return Err(decode("more than 64 extensions"));
        }
        if seen[..count].contains(&kind) {
            return Err(Fault::Refused(Alert::IllegalParameter, "an extension stands twice"));
        }
        seen[count] = kind;
        count += 1;
        match kind {
            extension::SERVER_NAME => hello.server_name = server_name(&mut value)?,
            extension::ALPN => hello.alpn = protocols(&mut value)?,
            extension::SESSION_TICKET => old_ticket = Some(value.0).filter(|ticket| !ticket.is_empty()),
            extension::PRE_SHARED_KEY => {
                needed.has_ticket = true;
                hello.ticket = Some(first_identity(&mut value)?);
            }
            extension::SUPPORTED_GROUPS => needed.has_groups = true,
            extension::SIGNATURE_ALGORITHMS => needed.has_signatures = true,
            extension::KEY_SHARE => needed.has_key_share = true,
            extension::EARLY_DATA => hello.has_early_data = true,
            extension::SUPPORTED_VERSIONS => *versions = Some(value.short_vector()?),
            extension::ENCRYPTED_CLIENT_HELLO => hello.has_encrypted_hello = true,
            _ => {}
        }
    }
    hello.ticket = hello.ticket.or(old_ticket);
    Ok(())
}

/// The host name in the list of names (RFC 6066, section 3).
fn server_name<'a>(value: &mut Bytes<'a>) -> Result<Option<&'a str>, Fault> {
    let mut list = Bytes(value.vector()?);
    let mut found = None;
    while !list.0.is_empty() {
        let kind = list.short_number()?;
        let name = list.vector()?;
        if kind == 0 && found.replace(name).is_some() {
            return Err(Fault::Refused(Alert::IllegalParameter, "two host names"));
        }
    }
    let Some(name) = found else { return Ok(None) };
    let name = name.strip_suffix(b".").unwrap_or(name);
    let name = std::str::from_utf8(name).ok().filter(|name| is_host_or_address(name));
    let name = name.ok_or(Fault::Refused(Alert::IllegalParameter, "the server name is no host name"))?;
    Ok((name.parse::<IpAddr>().is_err()).then_some(name))
}

/// Letters, digits, hyphens, underscores and dots, in labels of 1 to 63 bytes; or an IP address.
fn is_host_or_address(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_plain);
    (name.len() <= SERVER_NAME_BYTES_MAX && name.split('.').all(is_label)) || name.parse::<IpAddr>().is_ok()
}

/// The list of protocols (RFC 7301, section 3.1): not empty, and none in it is.
fn protocols<'a>(value: &mut Bytes<'a>) -> Result<&'a [u8], Fault> {
    let list = value.vector()?;
    let mut names = Bytes(list);
    if list.is_empty() {
        return Err(decode("an empty list of protocols"));
    }
    while !names.0.is_empty() {
        if names.short_vector()?.is_empty() {
            return Err(decode("an empty protocol"));
        }
    }
    Ok(list)
}

/// The first of the tickets offered (RFC 8446, section 4.2.11).
fn first_identity<'a>(value: &mut Bytes<'a>) -> Result<&'a [u8], Fault> {
    Bytes(value.vector()?).vector()
}

fn decode(why: &'static str) -> Fault {
    Fault::Refused(Alert::DecodeError, why)
}

/// Bytes not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(decode("a ClientHello that is cut"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn short_number(&mut self) -> Result<u8, Fault> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Result<u16, Fault> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Bytes behind a length of one byte.
    fn short_vector(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.short_number()?;
        self.take(length.into())
    }

    /// Bytes behind a length of two bytes.
    fn vector(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.number()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests;

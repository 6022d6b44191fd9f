//! The PROXY protocol, versions 1 and 2: where a connection comes from, told by the proxy it came through
//! before anything else (proxy-protocol.txt of HAProxy, sections 2.1 and 2.2).
//!
//! It owns the format alone. It must never decide whom to believe: whoever accepts the connection has to know
//! that a proxy sent it. Bytes may come in pieces: they are given again from the beginning with what came.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{PROXY_LINE_BYTES_MAX, PROXY_V2_BYTES_MAX};

/// What the bytes at the beginning of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Introduction {
    /// A whole header has not come yet.
    NeedMore,
    /// A header of PROXY, complete.
    Header {
        /// Where the client is; `None` when the proxy speaks for itself (LOCAL) or does not know (UNKNOWN,
        /// UNSPEC, and what is not TCP).
        source: Option<SocketAddr>,
        /// Length of the header; the client's bytes follow.
        bytes_used: usize,
    },
    /// Not a header, for this reason.
    Fault(&'static str),
}

const V1_BEGINNING: &[u8] = b"PROXY ";
const V2_BEGINNING: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The fixed part: beginning, version and command, family, length.
const V2_FIXED_BYTES: usize = V2_BEGINNING.len() + 4;

/// Reads the beginning of a connection, everything that has come so far. Once it is not `NeedMore`, further
/// bytes do not change it.
pub fn read_introduction(bytes: &[u8]) -> Introduction {
    let outcome = if is_beginning(bytes, V1_BEGINNING) {
        read_line(bytes)
    } else if is_beginning(bytes, V2_BEGINNING) {
        read_binary(bytes)
    } else {
        Err("neither a PROXY line nor the signature of version 2")
    };
    match outcome {
        Ok(None) => Introduction::NeedMore,
        Ok(Some((source, bytes_used))) => Introduction::Header { source, bytes_used },
        Err(fault) => Introduction::Fault(fault),
    }
}

/// A source, if there is one, and how long the header is; nothing if there is more to come.
type Outcome = Result<Option<(Option<SocketAddr>, usize)>, &'static str>;

fn is_beginning(bytes: &[u8], beginning: &[u8]) -> bool {
    let length = bytes.len().min(beginning.len());
    bytes[..length] == beginning[..length]
}

/// Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443` and CRLF.
fn read_line(bytes: &[u8]) -> Outcome {
    let window = &bytes[..bytes.len().min(PROXY_LINE_BYTES_MAX)];
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        let too_long = window.len() == PROXY_LINE_BYTES_MAX;
        return if too_long { Err("the PROXY line does not end") } else { Ok(None) };
    };
    let line = std::str::from_utf8(&window[..end]).map_err(|_| "the PROXY line is not ASCII")?;
    let mut words = line.split(' ').skip(1);
    let source = match words.next() {
        // What else stands there is to be ignored.
        Some("UNKNOWN") => return Ok(Some((None, end + 2))),
        Some("TCP4") => read_addresses::<Ipv4Addr>(&mut words),
        Some("TCP6") => read_addresses::<Ipv6Addr>(&mut words),
        _ => return Err("the PROXY line names no family that there is"),
    };
    match (source, words.next()) {
        (Some(source), None) => Ok(Some((Some(source), end + 2))),
        _ => Err("the PROXY line does not hold two addresses and two ports"),
    }
}

fn read_addresses<'w, A>(words: &mut impl Iterator<Item = &'w str>) -> Option<SocketAddr>
where
    A: std::str::FromStr + Into<std::net::IpAddr>,
{
    let source: A = words.next()?.parse().ok()?;
    words.next()?.parse::<A>().ok()?;
    let port = read_port(words.next()?)?;
    read_port(words.next()?)?;
    Some(SocketAddr::new(source.into(), port))
}

/// Digits alone: `+80` is no port.
fn read_port(word: &str) -> Option<u16> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

/// Version 2: the fixed part, addresses as the family says, then what other fields there may be.
fn read_binary(bytes: &[u8]) -> Outcome {
    let Some((&[version_and_command, family, high, low], rest)) =
        bytes.get(V2_BEGINNING.len()..).and_then(<[u8]>::split_first_chunk)
    else {
        return Ok(None);
    };
    let announced_bytes = usize::from(u16::from_be_bytes([high, low]));
    let is_local = match version_and_command {
        0x20 => true,
        0x21 => false,
        _ => return Err("the PROXY header is of no version and command that there is"),
    };
    if V2_FIXED_BYTES + announced_bytes > PROXY_V2_BYTES_MAX {
        return Err("the PROXY header is too long");
    }
    let addresses_bytes = match family {
        _ if is_local => 0,
        0x00 => 0,
        0x11 | 0x12 => 12,
        0x21 | 0x22 => 36,
        0x31 | 0x32 => 216,
        _ => return Err("the PROXY header is of no family that there is"),
    };
    if announced_bytes < addresses_bytes {
        return Err("the PROXY header is too short for its addresses");
    }
    let Some(addresses) = rest.get(..announced_bytes) else { return Ok(None) };
    let source = match family {
        _ if is_local => None,
        0x11 => read_source::<4, 8>(addresses),
        0x21 => read_source::<16, 32>(addresses),
        _ => None,
    };
    Ok(Some((source, V2_FIXED_BYTES + announced_bytes)))
}

/// Source and destination of `LENGTH` bytes each, then the source's port at `PORT`.
fn read_source<const LENGTH: usize, const PORT: usize>(addresses: &[u8]) -> Option<SocketAddr>
where
    [u8; LENGTH]: Into<std::net::IpAddr>,
{
    let source: [u8; LENGTH] = *addresses.first_chunk()?;
    let port = u16::from_be_bytes(*addresses.get(PORT..)?.first_chunk()?);
    Some(SocketAddr::new(source.into(), port))
}

#[cfg(test)]
mod tests;

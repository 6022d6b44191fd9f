//! What a proxy tells an application of a request: the client, the scheme, the host.
//!
//! It owns X-Forwarded-For, -Proto and -Host, X-Real-IP, and Forwarded (RFC 7239). What a trusted proxy has
//! said before stays, and our hop stands behind it. It must never take a client's word.

use std::io::Write as _;
use std::net::IpAddr;

use super::super::field::list_members;
use super::forwarding::Forwarding;
use super::lines::{push_field, push_list};
use super::names::{FORWARDED, FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PROTO, REAL_IP};
use crate::message::Request;

/// Writes all that was not `said` (as bits of names) by a trusted proxy, and adds to what was.
pub(super) fn write(
    request: &Request<'_>,
    forwarding: &Forwarding<'_>,
    said: u8,
    host: &[u8],
    out: &mut Vec<u8>,
) {
    let client = forwarding.client.map(|client| client.to_canonical());
    let scheme: &[u8] = if forwarding.is_secured { b"https" } else { b"http" };
    write_for(request, client, said, out);
    if said & FORWARDED_PROTO == 0 {
        push_field(b"X-Forwarded-Proto", scheme, out);
    }
    if said & FORWARDED_HOST == 0 && !host.is_empty() {
        push_field(b"X-Forwarded-Host", host, out);
    }
    if said & FORWARDED != 0 {
        push_list(b"Forwarded", request.values(b"forwarded"), out, |out| {
            push_element(client, scheme, host, out);
        });
    }
}

fn write_for(request: &Request<'_>, client: Option<IpAddr>, said: u8, out: &mut Vec<u8>) {
    let told = || request.values(b"x-forwarded-for");
    let own = |out: &mut Vec<u8>| client.into_iter().for_each(|client| push_display(client, out));
    match (said & FORWARDED_FOR != 0, client) {
        (true, _) => push_list(b"X-Forwarded-For", told(), out, own),
        (false, Some(_)) => push_list(b"X-Forwarded-For", std::iter::empty(), out, own),
        (false, None) => {}
    }
    if said & REAL_IP != 0 {
        return;
    }
    // A trusted proxy names its own client last.
    let last = if said & FORWARDED_FOR == 0 { None } else { told().flat_map(list_members).last() };
    let last = last.and_then(|address| std::str::from_utf8(address).ok()?.parse().ok());
    if let Some(address) = last.or(client) {
        out.extend_from_slice(b"X-Real-IP: ");
        push_display(address, out);
        out.extend_from_slice(b"\r\n");
    }
}

/// An element of Forwarded (RFC 7239, sections 4 to 6). A host is an authority, so it holds no quote.
fn push_element(client: Option<IpAddr>, scheme: &[u8], host: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"for=");
    match client {
        Some(IpAddr::V4(address)) => push_display(address, out),
        Some(IpAddr::V6(address)) => push_display(format_args!("\"[{address}]\""), out),
        None => out.extend_from_slice(b"unknown"),
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(scheme);
    if !host.is_empty() {
        [b";host=\"", host, b"\""].iter().for_each(|part| out.extend_from_slice(part));
    }
}

fn push_display(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    // A vector takes all that it is given.
    _ = write!(out, "{value}");
}

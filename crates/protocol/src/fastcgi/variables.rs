//! The variables of a request (RFC 3875, section 4.1), as FastCGI sends them.
//!
//! It owns which fields become variables. It must never let two fields become one variable, nor a client
//! write one that is the server's.

use super::script::Script;
use crate::http1::relay::{
    Forwarding, HostRule, RelayRefusal, RequestField, judge_asked, named_by_connection,
};
use crate::message::{BodyIn, Request, Version};

/// Appends a name and its value (FastCGI, section 3.4): lengths of one byte, or of four.
fn push_variable(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for text in [name, value] {
        match u8::try_from(text.len()) {
            Ok(length @ ..=0x7f) => out.push(length),
            _ => out.extend_from_slice(&(text.len() as u32 | 1 << 31).to_be_bytes()),
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Appends all variables of a request.
pub(super) fn push_variables(
    request: &Request<'_>,
    forwarding: &Forwarding<'_>,
    script: &Script<'_>,
    body: BodyIn,
    out: &mut Vec<u8>,
) -> Result<(), RelayRefusal> {
    let named = named_by_connection(request)?;
    let mut set = |name: &str, value: &[u8]| push_variable(name.as_bytes(), value, out);
    set("GATEWAY_INTERFACE", b"CGI/1.1");
    set("SERVER_SOFTWARE", b"staunch");
    set("SERVER_PROTOCOL", protocol(request.version));
    set("REQUEST_METHOD", method_of(request.head));
    set("REQUEST_SCHEME", if forwarding.is_secured { b"https" } else { b"http" });
    set("REQUEST_URI", &target(forwarding.path, request.query));
    set("QUERY_STRING", request.query.unwrap_or_default());
    set("DOCUMENT_ROOT", script.root);
    set("SCRIPT_FILENAME", script.file);
    set("SCRIPT_NAME", script.name);
    if !script.path_info.is_empty() {
        set("PATH_INFO", script.path_info);
    }
    set("SERVER_NAME", request.host);
    set("SERVER_PORT", script.port.to_string().as_bytes());
    if let Some(client) = forwarding.client {
        set("REMOTE_ADDR", client.to_canonical().to_string().as_bytes());
    }
    if forwarding.is_secured {
        set("HTTPS", b"on");
    }
    // PHP refuses to run without it where it was built to.
    set("REDIRECT_STATUS", b"200");
    if let BodyIn::Length(length_bytes) = body {
        set("CONTENT_LENGTH", length_bytes.to_string().as_bytes());
    } else if body == BodyIn::None {
        set("CONTENT_LENGTH", b"0");
    }
    push_fields(request, forwarding, &named, out);
    Ok(())
}

fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

fn method_of(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b' ').next().unwrap_or_default()
}

fn target(path: &[u8], query: Option<&[u8]>) -> Vec<u8> {
    match query {
        Some(query) => [path, b"?", query].concat(),
        None => path.to_vec(),
    }
}

/// Section 4.1.18: a field is `HTTP_` and its name in capitals, several of a name are one.
fn push_fields(request: &Request<'_>, forwarding: &Forwarding<'_>, named: &[&[u8]], out: &mut Vec<u8>) {
    let is = |name: &[u8], other: &[u8]| name.eq_ignore_ascii_case(other);
    let mut passed: Vec<_> = request.fields().collect();
    passed.retain(|(name, _)| {
        let is_passed = match judge_asked(name) {
            RequestField::Passed | RequestField::Cookie | RequestField::Via => true,
            RequestField::Proxys(_) => forwarding.trusts,
            _ => false,
        };
        is_passed && has_variable(name) && !named.iter().any(|named| is(name, named))
    });
    for (index, (name, _)) in passed.iter().enumerate() {
        if passed.iter().take(index).any(|(before, _)| is(before, name)) {
            continue;
        }
        let all = passed.iter().skip(index).filter(|(other, _)| is(other, name));
        let between: &[u8] = if is(name, b"cookie") { b"; " } else { b", " };
        let value = all.map(|(_, value)| *value).collect::<Vec<_>>().join(between);
        push_variable(&variable_of(name), &value, out);
    }
    let host = match forwarding.host {
        HostRule::Kept => request.values(b"host").next().unwrap_or(request.host),
        HostRule::Set(host) => host,
    };
    push_variable(b"HTTP_HOST", host, out);
}

/// Letters, digits and hyphens are all that names have whose variables differ.
fn has_variable(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn variable_of(name: &[u8]) -> Vec<u8> {
    if name.eq_ignore_ascii_case(b"content-type") {
        return b"CONTENT_TYPE".to_vec();
    }
    let letters = name.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() });
    b"HTTP_".iter().copied().chain(letters).collect()
}

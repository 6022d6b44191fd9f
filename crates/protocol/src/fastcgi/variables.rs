//! The variables of a request (RFC 3875, section 4.1), as FastCGI sends them.
//!
//! It owns which fields become variables. It must never let two fields become one variable, nor a client
//! write one that is the server's.

use super::script::Script;
use crate::http1::relay::{Forwarding, RelayRefusal, write_request};
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

/// Appends all variables of a request. Its fields are those that an application of HTTP would get, which are
/// written by the same hand: no rule of them is here.
pub(super) fn push_variables(
    request: &Request<'_>,
    forwarding: &Forwarding<'_>,
    script: &Script<'_>,
    body: BodyIn,
    out: &mut Vec<u8>,
) -> Result<(), RelayRefusal> {
    let mut head = Vec::new();
    write_request(request, &Forwarding { upgrades: false, ..*forwarding }, body, &mut head)?;
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end());
    let line = lines.next().unwrap_or_default();
    let fields: Vec<Field<'_>> = lines.filter_map(field).collect();
    push_meta(request, line, &fields, script, out);
    match body {
        BodyIn::Length(length_bytes) => {
            push_variable(b"CONTENT_LENGTH", length_bytes.to_string().as_bytes(), out);
        }
        BodyIn::None | BodyIn::Open => push_variable(b"CONTENT_LENGTH", b"0", out),
    }
    push_fields(&fields, out);
    Ok(())
}

/// Name and value.
type Field<'a> = (&'a [u8], &'a [u8]);

fn field(line: &[u8]) -> Option<Field<'_>> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
}

/// Sections 4.1.1 to 4.1.17, and what PHP asks for beside them.
fn push_meta(
    request: &Request<'_>,
    line: &[u8],
    fields: &[Field<'_>],
    script: &Script<'_>,
    out: &mut Vec<u8>,
) {
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let query = target.iter().position(|byte| *byte == b'?').and_then(|mark| target.get(mark + 1..));
    let is_secured = says_https(value(fields, b"x-forwarded-proto"));
    let host = value(fields, b"host");
    let mut set = |name: &str, value: &[u8]| push_variable(name.as_bytes(), value, out);
    set("GATEWAY_INTERFACE", b"CGI/1.1");
    set("SERVER_SOFTWARE", b"staunch");
    set("SERVER_PROTOCOL", protocol(request.version));
    set("REQUEST_METHOD", method);
    set("REQUEST_SCHEME", if is_secured { b"https" } else { b"http" });
    set("REQUEST_URI", target);
    set("QUERY_STRING", query.unwrap_or_default());
    if !script.root.is_empty() {
        set("DOCUMENT_ROOT", script.root);
        set("SCRIPT_FILENAME", &[script.root, script.name].concat());
    }
    set("SCRIPT_NAME", script.name);
    if !script.path_info.is_empty() {
        set("PATH_INFO", script.path_info);
    }
    set("SERVER_NAME", if request.host.is_empty() { b"localhost" } else { request.host });
    let port_of_scheme: &[u8] = if is_secured { b"443" } else { b"80" };
    set("SERVER_PORT", port_of(host).unwrap_or(port_of_scheme));
    match script.client {
        Some(client) => set("REMOTE_ADDR", client.to_canonical().to_string().as_bytes()),
        // RFC 3875 wants one; this is what others say.
        None => set("REMOTE_ADDR", b"unix:"),
    }
    if is_secured {
        set("HTTPS", b"on");
    }
    // PHP refuses to run without it where it was built to.
    set("REDIRECT_STATUS", b"200");
}

/// The first value of a field; empty if there is none.
fn value<'a>(fields: &[Field<'a>], name: &[u8]) -> &'a [u8] {
    fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map_or(b"", |(_, value)| value)
}

/// Whether the scheme nearest to the client is HTTPS: this server's own word, or that of a trusted proxy.
fn says_https(schemes: &[u8]) -> bool {
    let first = schemes.split(|byte| *byte == b',').next().unwrap_or_default();
    first.trim_ascii().eq_ignore_ascii_case(b"https")
}

/// The port of a Host, if it names one.
fn port_of(host: &[u8]) -> Option<&[u8]> {
    let colon = host.iter().rposition(|byte| *byte == b':')?;
    host.get(colon + 1..).filter(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit))
}

fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

/// Section 4.1.18: a field is `HTTP_` and its name in capitals, several of a name are one.
fn push_fields(fields: &[Field<'_>], out: &mut Vec<u8>) {
    for (index, (name, _)) in fields.iter().enumerate() {
        let is_same = |other: &&Field<'_>| other.0.eq_ignore_ascii_case(name);
        if !has_variable(name) || fields.iter().take(index).any(|before| is_same(&before)) {
            continue;
        }
        let all = fields.iter().skip(index).filter(is_same).map(|(_, value)| *value);
        push_variable(&variable_of(name), &all.collect::<Vec<_>>().join(&b", "[..]), out);
    }
}

/// Whether a field becomes a variable: none that is about a connection of HTTP, nor one whose name has other
/// bytes than letters, digits and hyphens, for those of two such names may be one variable.
fn has_variable(name: &[u8]) -> bool {
    const OF_CONNECTIONS: [&[u8]; 5] =
        [b"connection", b"content-length", b"te", b"transfer-encoding", b"upgrade"];
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && !OF_CONNECTIONS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

fn variable_of(name: &[u8]) -> Vec<u8> {
    if name.eq_ignore_ascii_case(b"content-type") {
        return b"CONTENT_TYPE".to_vec();
    }
    let letters = name.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() });
    b"HTTP_".iter().copied().chain(letters).collect()
}

//! Faults of other proxies, by name: what they passed on and this one does not.

use staunch_protocol::http1::relay::{RelayFault, RelayReader};

use crate::relay_reading::{answers, read};
use crate::relay_writing::{fields_of, pass_on};

/// Pingora passed what stands behind a request for an upgrade to the application before that had agreed: it
/// is the next request, and read as such.
#[test]
fn pingora_cve_2026_2833_bytes_behind_an_upgrade() {
    let client = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\
        GET /admin HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n";
    let passed = pass_on(client, |_| {});
    let paths: Vec<_> = passed.requests.iter().map(|request| &request.path[..]).collect();
    assert_eq!(paths, [&b"/"[..], b"/admin"]);
    let text = String::from_utf8_lossy(&passed.stream);
    assert!(!text.contains("Upgrade") && !text.contains("127.0.0.1"), "{text}");
    // And an application that agrees unasked is not believed.
    let agrees = read([&b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nGET"[..]], &[false]);
    assert_eq!(agrees.fault, Some(RelayFault::Switched));
}

/// Pingora took HTTP/1.0 with Transfer-Encoding, several codings and several lengths for something.
#[test]
fn pingora_cve_2026_2835_framing_of_a_request() {
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (version, framing) in [
        ("1.0", "Transfer-Encoding: chunked"),
        ("1.0", "Transfer-Encoding: identity, chunked"),
        ("1.1", "Transfer-Encoding: chunked, identity"),
        ("1.1", "Transfer-Encoding: identity"),
        ("1.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        ("1.1", "Transfer-Encoding: xchunked"),
        ("1.1", "Transfer-Encoding : chunked"),
        ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
        ("1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        ("1.1", "Content-Length: 0\r\nContent-Length: 5"),
        ("1.1", "Content-Length: 0, 5"),
        ("1.1", "Content-Length: +5"),
        ("1.1", "Content-Length: 5\nX: y"),
        ("1.1", "X: y\r\n Transfer-Encoding: chunked"),
        ("1.1", "X: y\0\r\nContent-Length: 5"),
        ("1.1", "X: y\rContent-Length: 5"),
    ] {
        let client = format!("POST / HTTP/{version}\r\nHost: a\r\n{framing}\r\n\r\n0\r\n\r\n{smuggled}");
        let passed = pass_on(client.as_bytes(), |_| {});
        assert_eq!(passed.answered, [400], "{framing:?}");
        assert!(passed.stream.is_empty() && passed.part.is_empty(), "{framing:?}: something was passed on");
    }
}

/// Extensions of chunks with a bare LF ended a line for some readers (CVE-2025-55315 and others): the body
/// breaks there, and what was passed on of it stays without an end.
#[test]
fn chunk_extensions_with_a_line_feed() {
    for body in ["5;\n\r\nhello\r\n0\r\n\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n"] {
        let client = format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let passed = pass_on(client.as_bytes(), |_| {});
        assert!(passed.requests.is_empty() && passed.stream.is_empty(), "{body:?}");
        assert!(!passed.part.ends_with(b"0\r\n\r\n"), "{body:?}");
    }
}

/// CVE-2016-5385, in 2026 again by Caddy's FastCGI: `Proxy` becomes the variable HTTP_PROXY.
#[test]
fn httpoxy() {
    for name in ["Proxy", "proxy", "PROXY"] {
        let client = format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: http://evil.example\r\n\r\n");
        for trusts in [false, true] {
            let passed = pass_on(client.as_bytes(), |way| way.trusts = trusts);
            let lines = fields_of(&passed.stream);
            assert!(!lines.iter().any(|line| line.contains("evil")), "{lines:?}");
        }
    }
}

/// nginx before 1.29.5: bytes that came before a request went out were read as its answer.
#[test]
fn bytes_before_the_request() {
    let mut reader = RelayReader::new();
    let injected = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(reader.next(&mut &injected[..]), Err(RelayFault::Unasked));
}

/// An answer that says more than was asked for is one answer: what stands behind it is nobody's.
#[test]
fn answers_that_are_two() {
    let two =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let reading = read([two.as_bytes()], &[false]);
    assert_eq!(answers(&reading), [(200, b"ok".to_vec(), true)]);
    assert_eq!(reading.fault, Some(RelayFault::Unasked));
    let head =
        "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let reading = read([head.as_bytes()], &[true]);
    assert_eq!(answers(&reading), [(200, vec![], true)]);
    assert_eq!(reading.fault, Some(RelayFault::Unasked));
}

/// rpxy took a body that was cut for a whole one.
#[test]
fn a_body_that_is_cut() {
    for framed in [
        "Content-Length: 10\r\n\r\nabcde",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
        "Transfer-Encoding: chunked\r\n\r\nA\r\nabcde",
    ] {
        let reading = read([format!("HTTP/1.1 200 OK\r\n{framed}").as_bytes()], &[false]);
        assert_eq!(reading.fault, Some(RelayFault::EndedInBody), "{framed:?}");
        assert!(answers(&reading).is_empty());
    }
}

/// nginx 1.31.3 got a bound for the fields of an answer.
#[test]
fn fields_without_end() {
    let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
    bytes.extend(b"A: b\r\n".repeat(10_000));
    assert_eq!(read([&bytes[..]], &[false]).fault, Some(RelayFault::TooManyFields));
}

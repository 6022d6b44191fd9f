//! Requests that come by HTTP/2 and go on by HTTP/1.1.

use staunch_protocol::http1::relay::{Forwarding, RelayRefusal, write_request};
use staunch_protocol::http2::{Event, Opening, Session, WorkerMemory};

use crate::relay_writing::FROM_CLIENT;

#[path = "../http2_driver/mod.rs"]
#[allow(dead_code)]
mod http2_driver;

use http2_driver::{block, frame, hello};

/// What is written of a request with these fields behind the pseudo-fields.
fn written(fields: &[(&str, &str)]) -> String {
    written_as(&[(":method", "POST")], None, fields).expect("a good request")
}

fn written_as(
    asked: &[(&str, &str)],
    socket_key: Option<&[u8]>,
    fields: &[(&str, &str)],
) -> Result<String, RelayRefusal> {
    let pseudo = [(":scheme", "https"), (":authority", "a.example:81"), (":path", "/a?b=c")];
    let fields = &[asked, &pseudo[..], fields].concat();
    let bytes = [hello(), frame(1, 4, 1, &block(fields))].concat();
    let (mut out, mut memory) = (Vec::new(), WorkerMemory::new([1, 2]));
    let mut session = Session::new(0, &mut out);
    let opening = Opening::new(b"Sun, 06 Nov 1994 08:49:37 GMT");
    let mut input = &bytes[..];
    match session.poll_event(&mut memory, &mut input, 0, &opening, &mut out) {
        Event::Request { request, .. } => {
            let mut head = Vec::new();
            let forwarding = Forwarding { path: request.path, socket_key, ..FROM_CLIENT };
            write_request(&request, &forwarding, request.content, &mut head)?;
            Ok(String::from_utf8(head).expect("ASCII"))
        }
        other => panic!("{other:?} of {fields:?}"),
    }
}

#[test]
fn a_whole_request() {
    assert_eq!(
        written(&[
            ("cookie", "a=1"),
            ("te", "trailers"),
            ("x_forwarded_for", "198.51.100.1"),
            ("proxy", "http://evil.example"),
            ("accept", "*/*"),
            ("cookie", "b=2"),
            ("x-forwarded-for", "198.51.100.1"),
        ]),
        "POST /a?b=c HTTP/1.1\r\nHost: a.example:81\r\naccept: */*\r\ncookie: a=1; b=2\r\n\
         X-Forwarded-For: 192.0.2.7\r\nX-Real-IP: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\
         X-Forwarded-Host: a.example:81\r\nVia: 2 staunch-1\r\nConnection: TE\r\nTE: trailers\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
}

/// RFC 8441 in front, RFC 6455 behind: the key is the one that the proxy has made.
#[test]
fn a_websocket_is_asked_for_by_get() {
    let asked = [(":method", "CONNECT"), (":protocol", "websocket")];
    let fields = [
        ("sec-websocket-key", "theirs"),
        ("sec-websocket-accept", "theirs"),
        ("sec-websocket-version", "13"),
        ("te", "trailers"),
    ];
    let text = written_as(&asked, Some(b"ours"), &fields).expect("a request that is passed on");
    assert_eq!(
        text,
        "GET /a?b=c HTTP/1.1\r\nHost: a.example:81\r\nsec-websocket-version: 13\r\n\
         X-Forwarded-For: 192.0.2.7\r\nX-Real-IP: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\
         X-Forwarded-Host: a.example:81\r\nVia: 2 staunch-1\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Key: ours\r\n\r\n"
    );
    let refusal = written_as(&asked, None, &fields).expect_err("no handshake is made");
    assert_eq!(refusal.status.code(), 501);
}

#[test]
fn a_length_that_is_known() {
    let text = written(&[("content-length", "5"), ("expect", "100-continue")]);
    assert!(text.ends_with("\r\nContent-Length: 5\r\n\r\n"), "{text}");
    assert!(!text.to_ascii_lowercase().contains("expect") && !text.contains("Transfer-Encoding"), "{text}");
}

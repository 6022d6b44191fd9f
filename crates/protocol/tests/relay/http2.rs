//! Requests that come by HTTP/2 and go on by HTTP/1.1.

use staunch_protocol::http1::relay::{Forwarding, write_request};
use staunch_protocol::http2::{Event, Opening, Session, WorkerMemory};

use crate::relay_writing::FROM_CLIENT;

#[path = "../http2_driver/mod.rs"]
#[allow(dead_code)]
mod http2_driver;

use http2_driver::{block, frame, hello};

/// What is written of a request with these fields behind the pseudo-fields.
fn written(fields: &[(&str, &str)]) -> String {
    let pseudo =
        [(":method", "POST"), (":scheme", "https"), (":authority", "a.example:81"), (":path", "/a?b=c")];
    let bytes = [hello(), frame(1, 4, 1, &block(&[&pseudo[..], fields].concat()))].concat();
    let (mut out, mut memory) = (Vec::new(), WorkerMemory::new([1, 2]));
    let mut session = Session::new(0, &mut out);
    let opening = Opening::new(b"Sun, 06 Nov 1994 08:49:37 GMT");
    let mut input = &bytes[..];
    match session.poll_event(&mut memory, &mut input, 0, &opening, &mut out) {
        Event::Request { request, .. } => {
            let mut head = Vec::new();
            let forwarding = Forwarding { path: request.path, ..FROM_CLIENT };
            write_request(&request, &forwarding, request.content, &mut head).expect("a good request");
            String::from_utf8(head).expect("ASCII")
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

#[test]
fn a_length_that_is_known() {
    let text = written(&[("content-length", "5"), ("expect", "100-continue")]);
    assert!(text.ends_with("\r\nContent-Length: 5\r\n\r\n"), "{text}");
    assert!(!text.to_ascii_lowercase().contains("expect") && !text.contains("Transfer-Encoding"), "{text}");
}

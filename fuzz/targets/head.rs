//! A head: no panic, and what is heard of it agrees with itself. It must never need a second delivery.
#![cfg_attr(fuzzing, no_main)]

use staunch_protocol::http1::{Event, Session};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let (mut input, mut out) = (bytes, Vec::new());
    let mut session = Session::new(0);
    match session.poll_event(&mut input, 0, b"Sun, 06 Nov 1994 08:49:37 GMT", &mut out) {
        Event::Request(request) => {
            assert!(out.is_empty());
            assert!(request.head.ends_with(b"\r\n\r\n"));
            assert!(request.path == b"*" || request.path.starts_with(b"/"));
            assert!(request.fields().all(|(name, _)| !name.is_empty()));
            assert_eq!(request.accept(), request.values(b"accept").next());
        }
        Event::Body(_) | Event::BodyEnd => unreachable!("a body was given that was not asked for"),
        Event::NeedInput | Event::Preface => assert!(out.is_empty()),
        Event::Close { linger, answered } => {
            assert!(linger && answered.is_some() && out.starts_with(b"HTTP/1.1 "));
        }
    }
}

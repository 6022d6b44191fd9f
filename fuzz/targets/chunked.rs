//! A chunked body, whole and byte by byte: the same requests follow it, or the same refusal. It must never
//! fuzz the head before it.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/driver/mod.rs"]
mod driver;

use driver::{Manner, run};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(body: &[u8]) {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let next = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    let whole = run([&[head, body, next].concat()[..]], Manner::default());
    let pieces = [&head[..]].into_iter().chain(body.chunks(1)).chain([&next[..]]);
    let bytewise = run(pieces, Manner::default());
    assert!(bytewise.agrees_with(&whole));
    assert!(!bytewise.requests.is_empty());
}

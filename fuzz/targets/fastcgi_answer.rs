//! Any bytes as the answer of a FastCGI application, whole, in pieces, and byte by byte: the same is read.
//!
//! The first byte says how long the pieces are, and whether HEAD asked. It must never judge an answer.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/fastcgi_reading/mod.rs"]
mod fastcgi_reading;

use fastcgi_reading::read;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(input: &[u8]) {
    let Some((manner, bytes)) = input.split_first() else { return };
    let asked_by_head = manner & 1 == 1;
    let whole = read([bytes], asked_by_head);
    assert_eq!(read(bytes.chunks(1 + usize::from(manner >> 1)), asked_by_head), whole);
    assert_eq!(read(bytes.chunks(1), asked_by_head), whole);
}

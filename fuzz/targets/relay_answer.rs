//! Any bytes as an application's answers, whole, split in three, and byte by byte: each step is the same, and
//! a reader that takes more understands what is passed on in the same way.
//!
//! The first byte says which requests were HEAD, the next two where to cut. It must never judge an answer.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/reading/mod.rs"]
mod reading;
#[path = "../../crates/protocol/tests/relay_reading/mod.rs"]
mod relay_reading;

use relay_reading::{answers, read};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(input: &[u8]) {
    let Some((&[heads, first, second], bytes)) = input.split_first_chunk() else { return };
    let asked_by_head: Vec<bool> = (0..4).map(|index| heads >> index & 1 == 1).collect();
    let (start, rest) = bytes.split_at(bytes.len().min(usize::from(first)));
    let (middle, end) = rest.split_at(rest.len().min(usize::from(second)));
    let whole = read([bytes], &asked_by_head);
    assert_eq!(read([start, middle, end], &asked_by_head), whole);
    assert_eq!(read(bytes.chunks(1), &asked_by_head), whole);
    let strict = answers(&whole);
    let kind = reading::read([bytes], &asked_by_head).answers;
    assert!(kind.len() >= strict.len());
    for (strict, kind) in strict.iter().zip(&kind) {
        assert_eq!((strict.0, &strict.1), (kind.0, &kind.1));
    }
}

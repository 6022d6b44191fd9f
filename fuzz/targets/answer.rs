//! Any bytes as answers, whole, split in three, and byte by byte: the same is read.
//!
//! The first byte says which requests were HEAD, the next two where to cut. It must never judge an answer.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/reading/mod.rs"]
mod reading;

use reading::{read, read_with};
use staunch_protocol::answer::HeadMemory;

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
    let mut memory = HeadMemory::new();
    assert_eq!(read_with(Some(&mut memory), [bytes], &asked_by_head), whole);
    assert_eq!(read_with(Some(&mut memory), [bytes], &asked_by_head), whole);
}

//! Any bytes, split at any places, with any answers late: the same is heard and said, but for a broken body.
//!
//! The first four bytes say which answers are late, the next two where to cut. It must never judge an answer.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/driver/mod.rs"]
mod driver;

use driver::{Manner, run, run_with};
use staunch_protocol::http1::RequestMemory;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(input: &[u8]) {
    let Some((waits, input)) = input.split_first_chunk() else { return };
    let Some((&[first, second], bytes)) = input.split_first_chunk() else { return };
    let waits = u32::from_le_bytes(*waits);
    let (start, rest) = bytes.split_at(bytes.len().min(usize::from(first)));
    let (middle, end) = rest.split_at(rest.len().min(usize::from(second)));
    let whole = run([bytes], Manner::default());
    assert!(run([start, middle, end], Manner { waits, forgets: false }).agrees_with(&whole));
    let mut heads = RequestMemory::new();
    for others in [bytes, end, bytes] {
        let alone = run([others], Manner::default());
        assert_eq!(run_with(&mut heads, [others], Manner::default()), alone);
    }
}

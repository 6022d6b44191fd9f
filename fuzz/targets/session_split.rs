//! Any bytes, split at any places, with any answers late: the same is heard and said, but for a broken body.
//!
//! The first four bytes say which answers are late, the next two where to cut. It must never judge an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/protocol/tests/driver/mod.rs"]
mod driver;

use driver::{Manner, run, run_with};
use staunch_protocol::http1::RequestMemory;

fuzz_target!(|input: (u32, u8, u8, &[u8])| {
    let (waits, first, second, bytes) = input;
    let (start, rest) = bytes.split_at(bytes.len().min(usize::from(first)));
    let (middle, end) = rest.split_at(rest.len().min(usize::from(second)));
    let whole = run([bytes], Manner::default());
    assert!(run([start, middle, end], Manner { waits, forgets: false }).agrees_with(&whole));
    let mut heads = RequestMemory::new();
    for others in [bytes, end, bytes] {
        let alone = run([others], Manner::default());
        assert_eq!(run_with(&mut heads, [others], Manner::default()), alone);
    }
});

//! Any bytes, split at any places, with bodies read, collected and thrown away: the same is heard and said.
//!
//! The first eight bytes say how each request is answered, the next two where to cut. It must never judge an
//! answer.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/body_driver/mod.rs"]
mod body_driver;

use body_driver::run;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(input: &[u8]) {
    let Some((ways, input)) = input.split_first_chunk() else { return };
    let Some((&[first, second], bytes)) = input.split_first_chunk() else { return };
    let ways = u64::from_le_bytes(*ways);
    let (start, rest) = bytes.split_at(bytes.len().min(usize::from(first)));
    let (middle, end) = rest.split_at(rest.len().min(usize::from(second)));
    let whole = run([bytes], ways);
    assert!(run([start, middle, end], ways).agrees_with(&whole));
}

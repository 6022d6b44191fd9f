//! Any bytes, split at any places, with bodies read, collected and thrown away: the same is heard and said.
//!
//! The first eight bytes say how each request is answered, the next two where to cut. It must never judge an
//! answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/protocol/tests/body_driver/mod.rs"]
mod body_driver;

use body_driver::run;

fuzz_target!(|input: (u64, u8, u8, &[u8])| {
    let (ways, first, second, bytes) = input;
    let (start, rest) = bytes.split_at(bytes.len().min(usize::from(first)));
    let (middle, end) = rest.split_at(rest.len().min(usize::from(second)));
    let whole = run([bytes], ways);
    assert!(run([start, middle, end], ways).agrees_with(&whole));
});

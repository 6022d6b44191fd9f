//! Any frames behind a good start, whole and in pieces: the same is told, and each request is over exactly
//! once.
//!
//! The first four bytes say which requests are answered late, the next how large the pieces are. It must
//! never judge an answer.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/http2_driver/mod.rs"]
mod http2_driver;

use http2_driver::{Driver, Manner, hello};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

fn run(bytes: &[u8], piece_bytes: usize, manner: Manner) -> Vec<String> {
    let mut driver = Driver::new(manner);
    if !driver.deliver(&hello()) {
        // The first piece that closes the session is the last.
        let _ = bytes.chunks(piece_bytes).any(|piece| driver.deliver(piece));
    }
    driver.new_frames();
    driver.end();
    driver.told
}

pub(crate) fn judge(input: &[u8]) {
    let Some((waits, input)) = input.split_first_chunk() else { return };
    let Some((&piece_bytes, bytes)) = input.split_first() else { return };
    let waits = u32::from_le_bytes(*waits);
    let manner = Manner { waits, goes_on: false, reads: true };
    let whole = run(bytes, usize::MAX, manner);
    assert_eq!(run(bytes, usize::from(piece_bytes).max(1), manner), whole);
    run(bytes, 64, Manner { waits, goes_on: true, reads: false });
}

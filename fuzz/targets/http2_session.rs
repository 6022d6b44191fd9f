//! Any frames behind a good start, whole and in pieces: the same is told, and each request is over exactly
//! once.
//!
//! The first four bytes say which requests are answered late, the next how large the pieces are. It must
//! never judge an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/protocol/tests/http2_driver/mod.rs"]
mod http2_driver;

use http2_driver::{Driver, Manner, hello};

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

fuzz_target!(|input: (u32, u8, &[u8])| {
    let (waits, piece_bytes, bytes) = input;
    let manner = Manner { waits, goes_on: false, reads: true };
    let whole = run(bytes, usize::MAX, manner);
    assert_eq!(run(bytes, usize::from(piece_bytes).max(1), manner), whole);
    run(bytes, 64, Manner { waits, goes_on: true, reads: false });
});

//! Blocks of fields by one table: each is read or blamed, and what tables hold is bounded and given back.
//!
//! The first byte of each block is its length. It must never judge what a field says.
#![cfg_attr(fuzzing, no_main)]

use staunch_protocol::http2::probe::Blocks;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

/// Fields are counted with 32 bytes more than they have letters, so a table of 4 096 bytes has at most 128.
const TABLE_BYTES_MAX: usize = 4096 + 4 * 256;

pub(crate) fn judge(bytes: &[u8]) {
    let mut blocks = Blocks::default();
    let mut rest = bytes;
    while let Some((&length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(behind.len().min(usize::from(length)));
        rest = behind;
        match blocks.read(block) {
            Ok(fields) => assert!(fields.len() <= block.len()),
            Err(reason) => assert!(!reason.is_empty()),
        }
        assert!(blocks.held_bytes().0 <= TABLE_BYTES_MAX);
    }
    blocks.release();
    assert_eq!(blocks.held_bytes(), (0, 0));
}

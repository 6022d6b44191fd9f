//! Decoding of paths: whatever comes in, what comes out stays beneath the root. It must never touch a disk.
#![cfg_attr(fuzzing, no_main)]

use staunch_protocol::http1::decode_path;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(raw: &[u8]) {
    let mut scratch = Vec::new();
    let Ok(decoded) = decode_path(raw, &mut scratch) else { return };
    let relative = decoded.strip_prefix(b"/").expect("begins with a slash");
    assert!(!decoded.contains(&0) && decoded.len() <= raw.len());
    let mut segments = relative.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        assert!(segment != b"." && segment != b"..");
        assert!(!segment.is_empty() || segments.peek().is_none());
    }
}

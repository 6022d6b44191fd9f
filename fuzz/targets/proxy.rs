//! The beginning of a connection through a proxy, cut anywhere: what is known once stays.
#![cfg_attr(fuzzing, no_main)]

use staunch_protocol::proxy::{Introduction, read_introduction};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let whole = read_introduction(bytes);
    if let Introduction::Header { bytes_used, .. } = whole {
        assert!(bytes_used <= bytes.len());
    }
    for cut in 0..bytes.len() {
        let outcome = read_introduction(&bytes[..cut]);
        assert!(outcome == whole || outcome == Introduction::NeedMore);
    }
}

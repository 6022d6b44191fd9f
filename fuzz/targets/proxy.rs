//! The beginning of a connection through a proxy, cut anywhere: what is known once stays.
#![no_main]

use libfuzzer_sys::fuzz_target;
use staunch_protocol::proxy::{Introduction, read_introduction};

fuzz_target!(|bytes: &[u8]| {
    let whole = read_introduction(bytes);
    if let Introduction::Header { bytes_used, .. } = whole {
        assert!(bytes_used <= bytes.len());
    }
    for cut in 0..bytes.len() {
        let outcome = read_introduction(&bytes[..cut]);
        assert!(outcome == whole || outcome == Introduction::NeedMore);
    }
});

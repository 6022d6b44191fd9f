//! Tokens and sets of keys of any bytes. It must never grant what has ended.
#![cfg_attr(fuzzing, no_main)]

use staunch_live::token::{Issuer, Key, read_keys, verify};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let keys = vec![Key::secret(&[7; 32]).unwrap()];
    let issuer = Issuer { name: "us".into(), audience: "hub".into(), keys, mercure_compatibility: true };
    if let Ok(granted) = verify(bytes, std::slice::from_ref(&issuer), 1000) {
        assert!(granted.ends_at_s > 1000);
    }
    let _ = read_keys(bytes);
}

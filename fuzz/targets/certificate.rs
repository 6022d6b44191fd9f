//! A chain and its key as they stand in files: read or blamed. It must never judge a certificate.
//!
//! The input is a place and a change, then a chain and, behind a zero byte, a key as text; a good pair,
//! damaged there, is read too.
#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use staunch_tls::{CertificatePair, LocalAuthority};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

const NOW_UNIX_S: u64 = 1_795_000_000;

/// A good chain and its key.
static GOOD: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let authority = LocalAuthority::create(NOW_UNIX_S).expect("an authority");
    let issued = authority.issue(&["localhost", "127.0.0.1"], NOW_UNIX_S).expect("local names");
    let chain = format!("{}{}", issued.certificate_pem, authority.certificate_pem());
    (chain.into_bytes(), issued.key_pem.as_bytes().to_vec())
});

/// Whatever is read can be asked everything.
fn read(chain: &[u8], key: &[u8]) {
    match CertificatePair::read(chain, key) {
        Ok(pair) => {
            let (from, to) = pair.validity_unix_s();
            assert!(pair.names().iter().all(|name| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
            let in_time = from <= NOW_UNIX_S && NOW_UNIX_S <= to;
            assert_eq!(pair.check(NOW_UNIX_S, &[]).is_ok(), in_time);
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}

pub(crate) fn judge(input: &[u8]) {
    let Some((&[first, second, change], texts)) = input.split_first_chunk() else { return };
    let place = usize::from(u16::from_le_bytes([first, second]));
    let chain_end = texts.iter().position(|byte| *byte == 0).unwrap_or(texts.len());
    let (chain, key) = texts.split_at(chain_end);
    read(chain, key);
    let (mut damaged, good_key) = GOOD.clone();
    let place = place % damaged.len();
    damaged[place] ^= change;
    read(&damaged, &good_key);
}

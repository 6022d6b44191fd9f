//! Any bytes as requests that are passed on: the application understands as many, the same targets, hosts and
//! bodies.
//!
//! The first byte says how they are passed on. It must never judge a request.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/protocol/tests/relay_writing/mod.rs"]
mod relay_writing;

use relay_writing::{pass_on_with_host, understand};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(input: &[u8]) {
    let Some((manner, bytes)) = input.split_first() else { return };
    let passed = pass_on_with_host(bytes, |way| {
        way.trusts = manner & 1 == 1;
        way.upgrades = manner & 2 == 2;
        way.client = way.client.filter(|_| manner & 4 == 0);
        way.is_secured = manner & 8 == 0;
    });
    if let Some(understood) = understand(&passed.stream) {
        assert_eq!(understood, passed.requests);
    }
}

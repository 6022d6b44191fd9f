//! The fuzz targets (`fuzz/targets`) as tests, in the profile that is there: each takes its seeds, and inputs
//! made from them. What guides itself by coverage is `make fuzz`, which `make soak` runs for hours.
//!
//! `STAUNCH_FUZZ_RUNS` and `STAUNCH_FUZZ_SEED` change how many inputs a target gets, and which.
// Targets share drivers of the conversation tests, and use a part of each.
#![allow(clippy::duplicate_mod, dead_code)]

mod mutation;

#[path = "../../fuzz/targets/answer.rs"]
mod answer;
#[path = "../../fuzz/targets/certificate.rs"]
mod certificate;
#[path = "../../fuzz/targets/chunked.rs"]
mod chunked;
#[path = "../../fuzz/targets/client_hello.rs"]
mod client_hello;
#[path = "../../fuzz/targets/commands.rs"]
mod commands;
#[path = "../../fuzz/targets/commands_protobuf.rs"]
mod commands_protobuf;
#[path = "../../fuzz/targets/config.rs"]
mod config;
#[path = "../../fuzz/targets/dostp_fabric.rs"]
mod dostp_fabric;
#[path = "../../fuzz/targets/dostp_frame.rs"]
mod dostp_frame;
#[path = "../../fuzz/targets/dostp_node.rs"]
mod dostp_node;
#[path = "../../fuzz/targets/event_stream.rs"]
mod event_stream;
#[path = "../../fuzz/targets/fastcgi_answer.rs"]
mod fastcgi_answer;
#[path = "../../fuzz/targets/head.rs"]
mod head;
#[path = "../../fuzz/targets/http2_hpack.rs"]
mod http2_hpack;
#[path = "../../fuzz/targets/http2_session.rs"]
mod http2_session;
#[path = "../../fuzz/targets/inflate.rs"]
mod inflate;
#[path = "../../fuzz/targets/live_channels.rs"]
mod live_channels;
#[path = "../../fuzz/targets/patterns.rs"]
mod patterns;
#[path = "../../fuzz/targets/proxy.rs"]
mod proxy;
#[path = "../../fuzz/targets/publication.rs"]
mod publication;
#[path = "../../fuzz/targets/range.rs"]
mod range;
#[path = "../../fuzz/targets/relay_answer.rs"]
mod relay_answer;
#[path = "../../fuzz/targets/relay_request.rs"]
mod relay_request;
#[path = "../../fuzz/targets/session_bodies.rs"]
mod session_bodies;
#[path = "../../fuzz/targets/session_split.rs"]
mod session_split;
#[path = "../../fuzz/targets/target.rs"]
mod target;
#[path = "../../fuzz/targets/token.rs"]
mod token;
#[path = "../../fuzz/targets/websocket.rs"]
mod websocket;

use std::panic::catch_unwind;
use std::path::Path;

use mutation::Inputs;

/// Inputs for a target beside its seeds: some seconds of one processor for all targets together.
const RUNS: u64 = 20_000;

/// Gives a target its seeds and what is made from them. An input that fails is kept in a file and named.
fn try_out(name: &str, judge: fn(&[u8])) {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    let runs = number("STAUNCH_FUZZ_RUNS").unwrap_or(RUNS);
    let seed = number("STAUNCH_FUZZ_SEED").unwrap_or(1);
    let seeds = seeds(name);
    let mut made = Inputs::new(&seeds, seed);
    let inputs = seeds.iter().cloned().chain(std::iter::from_fn(|| Some(made.make())));
    for input in inputs.take(seeds.len() + runs as usize) {
        if catch_unwind(|| judge(&input)).is_err() {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
            std::fs::write(&file, &input).expect("the folder of tests can be written to");
            panic!("{name} failed (STAUNCH_FUZZ_SEED={seed}); its input stands in {}", file.display());
        }
    }
}

/// Files of `fuzz/seeds/NAME`, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(name);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a seed").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a seed can be read")).collect()
}

/// Makes a test of each target, named as it is.
macro_rules! targets {
    ($($name:ident)*) => {
        mod target_tests {
            $(#[test]
            fn $name() {
                super::try_out(stringify!($name), super::$name::judge);
            })*
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    answer
    certificate
    chunked
    client_hello
    commands
    commands_protobuf
    config
    dostp_fabric
    dostp_frame
    dostp_node
    event_stream
    fastcgi_answer
    head
    http2_hpack
    http2_session
    inflate
    live_channels
    patterns
    proxy
    publication
    range
    relay_answer
    relay_request
    session_bodies
    session_split
    target
    token
    websocket
}

#[test]
fn every_target_is_among_the_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/targets");
    let entries = std::fs::read_dir(folder).expect("the folder of targets");
    let mut found: Vec<_> = entries.map(|entry| entry.expect("a target").path()).collect();
    found.sort();
    let found: Vec<_> = found.iter().map(|path| path.file_stem().unwrap_or_default()).collect();
    assert_eq!(found, NAMES);
}

#[test]
fn a_target_that_fails_is_noticed() {
    let failed = catch_unwind(|| try_out("canary", |input| assert!(!input.contains(&0xff), "0xff")));
    assert!(failed.is_err());
}

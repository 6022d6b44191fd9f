//! The conversations with khttpd, played inside the machine that has it: `kernel-wire MODE BUNDLE [PART]`.
//!
//! The last line says how many conversations were held, and how many need what khttpd has not. It must never
//! be run outside of a machine made for it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use staunch_tests::conversation::Conversation;
use staunch_tests::module::Loaded;
use staunch_tests::suite::{Stage, load_bundle, run};

const SEED: u64 = 20_240_102;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mode, bundle, part) = match &arguments[..] {
        [mode, bundle] => (mode, bundle, ""),
        [mode, bundle, part] => (mode, bundle, part.as_str()),
        _ => return fail("usage: kernel-wire kthread|wq|ready|softirq BUNDLE [PART OF A NAME]"),
    };
    let Some(mode) = ["kthread", "wq", "ready", "softirq"].into_iter().find(|known| known == mode) else {
        return fail("the mode is none of kthread, wq, ready, softirq");
    };
    let text = match std::fs::read_to_string(bundle) {
        Ok(text) => text,
        Err(error) => return fail(&format!("{bundle}: {error}")),
    };
    match load_bundle(&text) {
        Ok(conversations) => hold(&conversations, mode, part),
        Err(error) => fail(&error),
    }
}

fn hold(conversations: &[Conversation], mode: &'static str, part: &str) -> ExitCode {
    let chosen: Vec<Conversation> =
        conversations.iter().filter(|conversation| conversation.name.contains(part)).cloned().collect();
    let outcome = run(&chosen, Stage::Module { mode }, SEED);
    for failure in &outcome.failures {
        println!("{failure}");
    }
    let lacking = chosen.iter().filter(|conversation| Loaded::lacks(conversation).is_some()).count();
    let (held, failed) = (outcome.conversations, outcome.failures.len());
    println!("held {held} conversations in {} runs, {failed} failed, {lacking} left out", outcome.runs);
    if failed == 0 && held > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fail(words: &str) -> ExitCode {
    eprintln!("kernel-wire: {words}");
    ExitCode::FAILURE
}

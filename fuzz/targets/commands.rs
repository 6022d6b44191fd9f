//! Messages of Centrifugo's clients: whatever comes is read or refused, and replies to it are lines of JSON.
#![cfg_attr(fuzzing, no_main)]

use staunch_live::centrifugo::{ClientError, Language, Reply};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let Ok(commands) = Language::Json.read_commands(bytes) else { return };
    assert!(commands.len() <= bytes.iter().filter(|byte| **byte == b'\n').count() + 1);
    for command in commands {
        let mut reply = Vec::new();
        Language::Json.append_reply(command.id, &Reply::Refused(ClientError::NOT_AVAILABLE), &mut reply);
        assert!(!reply.contains(&b'\n') && reply.starts_with(b"{") && reply.ends_with(b"}"));
    }
}

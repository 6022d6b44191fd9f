//! Messages of Centrifugo's clients: whatever comes is read or refused, and replies to it are lines of JSON.
#![cfg_attr(fuzzing, no_main)]

use staunch_live::centrifugo::{ClientError, done, read_commands, refused};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let Ok(message) = std::str::from_utf8(bytes) else { return };
    let Ok(commands) = read_commands(message) else { return };
    assert!(commands.len() <= message.lines().count());
    for command in commands {
        let reply = done(command.id, &command.ask);
        let reply = reply.unwrap_or_else(|| refused(command.id, ClientError::NOT_AVAILABLE));
        assert!(!reply.contains('\n') && reply.starts_with('{') && reply.ends_with('}'));
    }
}

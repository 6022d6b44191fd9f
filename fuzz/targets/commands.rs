//! Messages of Centrifugo's clients: whatever comes is read or refused, and replies to it are lines of JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use staunch_live::centrifugo::{ClientError, done, read_commands, refused};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = std::str::from_utf8(bytes) else { return };
    let Ok(commands) = read_commands(message) else { return };
    assert!(commands.len() <= message.lines().count());
    for command in commands {
        let reply = done(command.id, &command.ask);
        let reply = reply.unwrap_or_else(|| refused(command.id, ClientError::NOT_AVAILABLE));
        assert!(!reply.contains('\n') && reply.starts_with('{') && reply.ends_with('}'));
    }
});

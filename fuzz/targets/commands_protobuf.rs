//! Messages of Centrifugo's clients as Protobuf: whatever comes is read or refused, with memory in
//! proportion, and replies to it have their length before them.
#![cfg_attr(fuzzing, no_main)]

use staunch_live::centrifugo::{Ask, ClientError, Language, Reply};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let Ok(commands) = Language::Protobuf.read_commands(bytes) else { return };
    assert!(commands.len() <= bytes.len());
    let mut text_bytes = 0;
    for command in commands {
        text_bytes += match &command.ask {
            Ask::Connect(token) => token.as_ref().map_or(0, String::len),
            Ask::Subscribe(asked) => {
                asked.channel.len() + asked.recover.as_ref().map_or(0, |(epoch, _)| epoch.len())
            }
            Ask::Unsubscribe(text) | Ask::Refresh(text) => text.len(),
            Ask::Publish(channel, data) => channel.len() + data.capacity(),
            Ask::History(asked) => {
                asked.channel.len() + asked.since.as_ref().map_or(0, |(epoch, _)| epoch.len())
            }
            Ask::Ping | Ask::Pong | Ask::Other => 0,
        };
        let mut message = Vec::new();
        Language::Protobuf.append_reply(
            command.id,
            &Reply::Refused(ClientError::NOT_AVAILABLE),
            &mut message,
        );
        assert_eq!(usize::from(message[0]) + 1, message.len());
    }
    assert!(text_bytes <= bytes.len());
}

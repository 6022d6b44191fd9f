//! Messages byte by byte, and both languages beside each other.

use proptest::prelude::*;

use super::super::Language;
use super::*;
use crate::name::TopicName;
use crate::topic::TopicId;
use crate::version::Epoch;

fn delimited(fields: &[&[u8]]) -> Vec<u8> {
    let message = fields.concat();
    let mut output = Vec::new();
    append_delimited(&message, &mut output);
    output
}

fn bytes(field: u64, bytes: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    append_bytes(field, bytes, &mut output);
    output
}

fn number(field: u64, number: u64) -> Vec<u8> {
    let mut output = Vec::new();
    append_number(field, number, &mut output);
    output
}

/// Each command as a client's bytes, and as JSON: both are understood alike, but for what is published.
#[test]
fn commands_mean_what_those_of_json_mean() {
    let channel = bytes(1, b"a");
    let position = [number(1, 7), bytes(2, b"e")].concat();
    let negative = number(7, -1_i64 as u64);
    let table: Vec<(Vec<u8>, &str)> = vec![
        (bytes(4, b""), r#""connect":{}"#),
        (bytes(4, &bytes(1, b"t")), r#""connect":{"token":"t"}"#),
        (bytes(4, &[bytes(4, b"js"), bytes(5, b"1")].concat()), r#""connect":{"name":"js"}"#),
        (bytes(5, &channel), r#""subscribe":{"channel":"a"}"#),
        (bytes(5, &[&channel[..], &bytes(2, b"t")].concat()), r#""subscribe":{"channel":"a","token":"t"}"#),
        (
            bytes(5, &[&channel[..], &number(3, 1), &bytes(6, b"e"), &number(7, 9)].concat()),
            r#""subscribe":{"channel":"a","recover":true,"epoch":"e","offset":9}"#,
        ),
        (bytes(6, &channel), r#""unsubscribe":{"channel":"a"}"#),
        (
            bytes(10, &[&channel[..], &number(7, 3), &bytes(8, &position)].concat()),
            r#""history":{"channel":"a","limit":3,"since":{"offset":7,"epoch":"e"}}"#,
        ),
        (bytes(10, &channel), r#""history":{"channel":"a"}"#),
        (
            bytes(10, &[&channel[..], &negative, &number(9, 1)].concat()),
            r#""history":{"channel":"a","limit":-1,"reverse":true}"#,
        ),
        (bytes(14, &bytes(1, b"t")), r#""refresh":{"token":"t"}"#),
        (bytes(8, &channel), r#""presence":{"channel":"a"}"#),
        (bytes(11, b""), r#""ping":{}"#),
    ];
    for (fields, text) in table {
        let ours = Language::Protobuf.read_commands(&delimited(&[&number(1, 5), &fields]));
        let theirs = Language::Json.read_commands(format!("{{\"id\":5,{text}}}").as_bytes());
        assert_eq!(ours, theirs, "{text}");
        assert!(ours.is_ok(), "{text}");
    }
    let publish = delimited(&[&number(1, 5), &bytes(7, &[&channel[..], &bytes(2, b"\xff")].concat())]);
    let expected = Ask::Publish("a".into(), Published::Bytes(b"\xff".to_vec()));
    assert_eq!(read_commands(&publish), Ok(vec![Command { id: 5, ask: expected }]));
    let pongs = read_commands(Language::Protobuf.sign_of_life());
    assert_eq!(pongs, Ok(vec![Command { id: 0, ask: Ask::Pong }]));
}

#[test]
fn several_commands_of_a_message_keep_their_order() {
    let one = delimited(&[&number(1, 300), &bytes(11, b"")]);
    let ids = |message: &[u8]| {
        let read = read_commands(message);
        read.map(|commands| commands.iter().map(|command| command.id).collect::<Vec<_>>())
    };
    assert_eq!(ids(&[&one[..], &[0], &one].concat()), Ok(vec![300, 0, 300]));
    assert_eq!(ids(&[0].repeat(COMMANDS_PER_MESSAGE_MAX)).map(|ids| ids.len()), Ok(COMMANDS_PER_MESSAGE_MAX));
    assert_eq!(ids(&[0].repeat(COMMANDS_PER_MESSAGE_MAX + 1)), Err(ClientError::BAD_REQUEST));
}

#[test]
fn what_is_no_command() {
    let cases = [
        b"\x05\x08".to_vec(),
        b"{\"id\":1}".to_vec(),
        delimited(&[&number(1, 1 << 32)]),
        delimited(&[&bytes(1, b"1")]),
        delimited(&[&bytes(5, &bytes(1, b"\xff"))]),
        delimited(&[&bytes(5, &number(1, 1))]),
        delimited(&[&number(5, 1)]),
    ];
    for message in cases {
        assert_eq!(read_commands(&message), Err(ClientError::BAD_REQUEST), "{message:?}");
    }
}

fn update(number: u64, value: Value) -> Update {
    Update {
        number,
        topics: [(TopicId(0), TopicName::new("a").unwrap())].into(),
        value,
        patch: None,
        id: None,
        kind: None,
        retry_ms: None,
        private: false,
        stamp: None,
        is_foreign: false,
        hash: None,
    }
}

#[test]
fn replies_are_messages_with_their_length() {
    let version = Version { epoch: Epoch(0xe), number: 9 };
    let (json, gone) = (update(3, Value::Json(b"{}"[..].into())), update(4, Value::Gone));
    let publications = [&json, &gone];
    let connected = |expires_in_s| Reply::Connected { client: "c", ping_s: 25, expires_in_s };
    let replies: [(Reply<'_>, &[u8]); 9] = [
        (connected(None), b"\x14\x08\x01\x2a\x10\x0a\x01c\x12\x07staunch\x38\x19\x40\x01"),
        (
            connected(Some(60)),
            b"\x18\x08\x01\x2a\x14\x0a\x01c\x12\x07staunch\x18\x01\x20\x3c\x38\x19\x40\x01",
        ),
        (
            Reply::Refreshed { client: "c", expires_in_s: Some(60) },
            b"\x14\x08\x01\x72\x10\x0a\x01c\x12\x07staunch\x18\x01\x20\x3c",
        ),
        (
            Reply::Subscribed { from: version, recovered: None },
            b"\x0b\x08\x01\x32\x07\x18\x01\x32\x01e\x48\x09",
        ),
        (
            Reply::Subscribed { from: version, recovered: Some(true) },
            b"\x0f\x08\x01\x32\x0b\x18\x01\x32\x01e\x40\x01\x48\x09\x60\x01",
        ),
        (
            Reply::History { version, publications: &publications },
            b"\x25\x08\x01\x5a\x21\x0a\x06\x22\x02{}\x30\x03\
              \x0a\x12\x22\0\x30\x04\x3a\x0c\x0a\x07deleted\x12\x011\x12\x01e\x18\x09",
        ),
        (Reply::Published, b"\x04\x08\x01\x42\0"),
        (Reply::Ping, b"\x04\x08\x01\x62\0"),
        (
            Reply::Refused(ClientError::TOO_MANY_REQUESTS),
            b"\x1b\x08\x01\x12\x17\x08\x6f\x12\x11too many requests\x18\x01",
        ),
    ];
    for (reply, expected) in replies {
        let mut message = Vec::new();
        append_reply(1, &reply, &mut message);
        assert_eq!(message, expected, "{reply:?}");
    }
}

#[test]
fn pushes() {
    let patched = update(7, Value::Binary(b"\xff"[..].into()));
    let whole = push_of_update("a", &patched, None);
    assert_eq!(whole, b"\x0c\x22\x0a\x12\x01a\x22\x05\x22\x01\xff\x30\x07");
    let patch = push_of_update("a", &patched, Some(b"{}"));
    let tag = b"\x3a\x0a\x0a\x05patch\x12\x011";
    assert_eq!(patch, [&b"\x19\x22\x17\x12\x01a\x22\x12\x22\x02{}\x30\x07"[..], tag].concat());
    assert_eq!(push_of_message("a", "{}"), b"\x0b\x22\x09\x12\x01a\x42\x04\x0a\x02{}");
    let welcome = Language::Protobuf.welcome(Version { epoch: Epoch(0xe), number: 9 }, 5);
    assert!(welcome.ends_with(br#"{"epoch":"e","offset":9,"retry":5}"#), "{welcome:?}");
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(message in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(commands) = read_commands(&message) {
            prop_assert!(commands.len() <= message.len());
        }
    }
}

//! Frames in, happenings out: the examples of the standards, faults, splits.

use proptest::prelude::*;

use super::super::deflate::{Deflater, deflate_message};
use super::super::frame::append_frame;
use super::*;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// What arrived, as text that is easy to compare.
fn run(session: &mut Session, pieces: &[&[u8]]) -> Vec<String> {
    let (mut told, mut inflater) = (Vec::new(), Inflater::default());
    for piece in pieces {
        let mut bytes = piece.to_vec();
        let mut rest = &mut bytes[..];
        loop {
            match session.step(rest, &mut inflater) {
                Ok((Some(happening), behind)) => {
                    told.push(describe(happening));
                    rest = behind;
                }
                Ok((None, behind)) => {
                    assert!(behind.is_empty());
                    break;
                }
                Err(fault) => {
                    told.push(fault.to_string());
                    return told;
                }
            }
        }
    }
    told
}

fn describe(happening: Happening<'_>) -> String {
    match happening {
        Happening::Text(text) => format!("text {text}"),
        Happening::Binary(bytes) => format!("binary {bytes:?}"),
        Happening::Ping(bytes) => format!("ping {}", String::from_utf8_lossy(bytes)),
        Happening::Pong(bytes) => format!("pong {}", String::from_utf8_lossy(bytes)),
        Happening::Close(None, _) => "close".to_owned(),
        Happening::Close(Some(code), reason) => format!("close {} {reason}", code.number()),
    }
}

fn server() -> Session {
    Session::new(Role::Server, true, 1000)
}

/// A frame of a client, with the first byte as given.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    append_frame(Opcode::Text, false, Some(MASK), payload, &mut frame);
    frame[0] = first;
    frame
}

/// Whole, byte by byte, and in pieces of three: the same happens, and nothing is held afterwards.
fn check(session: impl Fn() -> Session, bytes: &[u8], expected: &[&str]) {
    for width in [bytes.len().max(1), 1, 3] {
        let mut session = session();
        let pieces: Vec<&[u8]> = bytes.chunks(width).collect();
        assert_eq!(run(&mut session, &pieces), expected, "{bytes:x?} in pieces of {width}");
        if !expected.iter().any(|told| told.ends_with(')')) {
            assert!(!session.is_half_received(), "{bytes:x?} in pieces of {width}");
        }
    }
}

#[test]
fn the_examples_of_the_standard() {
    let client = || Session::new(Role::Client, true, 100_000);
    check(client, &[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], &["text Hello"]);
    check(server, &[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58], &["text Hello"]);
    check(client, &[0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f], &["text Hello"]);
    check(client, &[0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], &["ping Hello"]);
    check(server, &[0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58], &["pong Hello"]);
    check(client, &[0xc1, 0x07, 0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], &["text Hello"]);
    check(client, &[0x41, 0x03, 0xf2, 0x48, 0xcd, 0x80, 0x04, 0xc9, 0xc9, 0x07, 0x00], &["text Hello"]);
}

#[test]
fn messages_and_what_comes_between() {
    let parts = [masked(0x01, b"a"), masked(0x89, b"?"), masked(0x00, b"b"), masked(0x80, b"c")].concat();
    check(server, &parts, &["ping ?", "text abc"]);
    check(server, &[masked(0x82, &[1, 2]), masked(0x81, b"")].concat(), &["binary [1, 2]", "text "]);
    check(server, &[masked(0x01, b""), masked(0x80, b"")].concat(), &["text "]);
    let split_character = [masked(0x01, &[0xc3]), masked(0x80, &[0xa4])].concat();
    check(server, &split_character, &["text ä"]);
    let closed = [masked(0x88, &[3, 232, b'b', b'y', b'e']), masked(0x81, b"late")].concat();
    check(server, &closed, &["close 1000 bye"]);
    check(server, &masked(0x88, &[]), &["close"]);
}

#[test]
fn faults_have_a_code() {
    let long = vec![b'x'; 1001];
    let table: &[(Vec<u8>, &[&str])] = &[
        (vec![0x81, 0x01, b'a'], &["a frame of a client must be masked (1002)"]),
        (masked(0xb1, b"a"), &["a reserved bit is set (1002)"]),
        (masked(0x09, b"a"), &["a control frame in parts (1002)"]),
        (masked(0x80, b"a"), &["a continuation of nothing (1002)"]),
        ([masked(0x01, b"a"), masked(0x81, b"b")].concat(), &["a message within another (1002)"]),
        (masked(0x81, &[0xff]), &["text that is not UTF-8 (1007)"]),
        ([masked(0x01, &[0xc3]), masked(0x80, b"a")].concat(), &["text that is not UTF-8 (1007)"]),
        (masked(0x82, &long), &["a message longer than the limit (1009)"]),
        (
            [masked(0x02, &long[..600]), masked(0x80, &long[..401])].concat(),
            &["a message longer than the limit (1009)"],
        ),
        (masked(0xc1, b"Hello"), &["a compressed message that cannot be inflated (1007)"]),
        (masked(0x88, &[3]), &["a close frame with half a code (1002)"]),
        (masked(0x88, &[3, 237]), &["a close code that may not be sent (1002)"]),
        (masked(0x88, &[3, 232, 0xff]), &["text that is not UTF-8 (1007)"]),
        (
            [masked(0x81, b"a"), masked(0x83, b"")].concat(),
            &["text a", "an opcode that is not defined (1002)"],
        ),
    ];
    for (bytes, expected) in table {
        check(server, bytes, expected);
    }
    let mut bomb = Vec::new();
    deflate_message(&mut Deflater::new(9), &[0; 1001], &mut bomb);
    check(server, &masked(0xc2, &bomb), &["a message longer than the limit (1009)"]);
    let plain = || Session::new(Role::Server, false, 1000);
    check(plain, &masked(0xc1, b"a"), &["a reserved bit is set (1002)"]);
    let client = || Session::new(Role::Client, false, 1000);
    check(client, &masked(0x81, b"a"), &["a frame of a server must not be masked (1002)"]);
}

/// A message may begin and end with nothing, and may not go on so.
#[test]
fn frames_without_content_are_bounded() {
    let most = EMPTY_FRAMES_MAX as usize;
    let message =
        |empty: usize| [masked(0x01, b""), masked(0x00, b"").repeat(empty - 1), masked(0x80, b"x")].concat();
    let mut session = server();
    assert_eq!(run(&mut session, &[&message(most), &message(most)]), ["text x", "text x"]);
    let told = run(&mut session, &[&message(most + 1)]);
    assert_eq!(told, ["too many frames without content (1008)"]);
}

#[test]
fn a_length_that_is_only_told_is_not_held() {
    let mut session = Session::new(Role::Server, false, u32::MAX);
    let head = [&[0x82, 0xff][..], &(4u64 << 29).to_be_bytes(), &MASK, b"abc"].concat();
    run(&mut session, &[&head]);
    assert!(session.held_bytes() < 300, "{}", session.held_bytes());
}

#[derive(Debug, Clone)]
enum Sent {
    Message { text: bool, compressed: bool, payload: String, cuts: Vec<usize> },
    Control { ping: bool, payload: String },
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        (any::<bool>(), any::<bool>(), ".{0,60}", proptest::collection::vec(0usize..80, 0..4))
            .prop_map(|(text, compressed, payload, cuts)| Sent::Message { text, compressed, payload, cuts }),
        (any::<bool>(), "[a-z]{0,9}").prop_map(|(ping, payload)| Sent::Control { ping, payload }),
    ]
}

fn write(sent: &Sent, mask: [u8; 4], bytes: &mut Vec<u8>) -> String {
    match sent {
        Sent::Control { ping, payload } => {
            let opcode = if *ping { Opcode::Ping } else { Opcode::Pong };
            append_frame(opcode, false, Some(mask), payload.as_bytes(), bytes);
            format!("{} {payload}", if *ping { "ping" } else { "pong" })
        }
        Sent::Message { text, compressed, payload, cuts } => {
            let mut wire = Vec::new();
            match compressed {
                true => deflate_message(&mut Deflater::new(1), payload.as_bytes(), &mut wire),
                false => wire.extend_from_slice(payload.as_bytes()),
            }
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
            places.extend([0, wire.len()]);
            places.sort_unstable();
            let begins = if *text { 1 } else { 2 } | u8::from(*compressed) << 6;
            for (index, two) in places.windows(2).enumerate() {
                let start = bytes.len();
                append_frame(Opcode::Binary, false, Some(mask), &wire[two[0]..two[1]], bytes);
                let last = u8::from(index + 2 == places.len()) << 7;
                bytes[start] = last | if index == 0 { begins } else { 0 };
            }
            if *text { format!("text {payload}") } else { format!("binary {:?}", payload.as_bytes()) }
        }
    }
}

proptest! {
    #[test]
    fn any_split_tells_the_same(
        all in proptest::collection::vec(sent(), 1..8), mask: [u8; 4],
        cuts in proptest::collection::vec(0usize..2000, 0..12),
    ) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for sent in &all {
            expected.push(write(sent, mask, &mut bytes));
        }
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
        let mut session = server();
        prop_assert_eq!(run(&mut session, &pieces), expected);
        prop_assert!(!session.is_half_received());
    }

    #[test]
    fn no_bytes_reach_a_panic_and_splits_agree(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let whole = run(&mut server(), &[&bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(run(&mut server(), &single), whole);
    }
}

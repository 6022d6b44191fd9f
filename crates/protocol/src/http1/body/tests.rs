//! Tables of bodies, each in one piece, byte by byte, and split at every place.

use super::*;
use crate::limits::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};

/// What was left behind the body, or how it ended otherwise.
fn discard(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<u8>, Progress> {
    let mut discard = Discard::new(framing);
    let mut progress = discard.advance(&mut &b""[..]);
    for (index, piece) in pieces.iter().enumerate() {
        let mut input = *piece;
        progress = discard.advance(&mut input);
        if progress == Progress::Done {
            return Ok([&[input], &pieces[index + 1..]].concat().concat());
        }
        if progress == Progress::Lost {
            break;
        }
        assert!(input.is_empty());
    }
    if progress == Progress::Done { Ok(Vec::new()) } else { Err(progress) }
}

#[test]
fn bodies_of_known_length() {
    assert_eq!(discard(Framing::None, &[b"next"]), Ok(b"next".to_vec()));
    assert_eq!(discard(Framing::Length(3), &[b"abcnext"]), Ok(b"next".to_vec()));
    assert_eq!(discard(Framing::Length(3), &[b"a", b"b", b"cnext"]), Ok(b"next".to_vec()));
    assert_eq!(discard(Framing::Length(3), &[b"ab"]), Err(Progress::NeedInput));
    assert_eq!(discard(Framing::Length(DISCARDED_BODY_BYTES_MAX), &[b"ab"]), Err(Progress::NeedInput));
    assert_eq!(discard(Framing::Length(DISCARDED_BODY_BYTES_MAX + 1), &[b"ab"]), Err(Progress::Lost));
    assert_eq!(discard(Framing::Length(u64::MAX), &[b"ab"]), Err(Progress::Lost));
}

const DONE: Result<(), Progress> = Ok(());
const MORE: Result<(), Progress> = Err(Progress::NeedInput);
const LOST: Result<(), Progress> = Err(Progress::Lost);

const CHUNKED: &[(&[u8], Result<(), Progress>)] = &[
    (b"0\r\n\r\n", DONE),
    (b"000\r\n\r\n", DONE),
    (b"3\r\nabc\r\n0\r\n\r\n", DONE),
    (b"a\r\n0123456789\r\n0\r\n\r\n", DONE),
    (b"A\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n", DONE),
    (b"1;a\r\n \r\n0\r\n\r\n", DONE),
    (b"1 ; a = b\r\n \r\n0;x\r\n\r\n", DONE),
    (b"1;a=\";\\\"\\\\\";b\r\n \r\n0\r\n\r\n", DONE),
    (b"0\r\nA: b\r\nC: d\r\n\r\n", DONE),
    (b"", MORE),
    (b"0", MORE),
    (b"0\r\n", MORE),
    (b"0\r\n\r", MORE),
    (b"5\r\nabc", MORE),
    (b"0\r\nA: b\r\n", MORE),
    (b"\r\n", LOST),
    (b"x\r\n", LOST),
    (b" 1\r\n", LOST),
    (b"-1\r\n", LOST),
    (b"+1\r\n", LOST),
    (b"0x1\r\n", LOST),
    (b"1\n", LOST),
    (b"1\ra", LOST),
    (b"1 \r\n", LOST),
    (b"1 2\r\n", LOST),
    (b"1;a\n", LOST),
    (b"1;a=\"b\r\n", LOST),
    (b"1;a\0\r\n", LOST),
    (b"1\r\nab", LOST),
    (b"1\r\na\n", LOST),
    (b"1\r\na\r\r", LOST),
    (b"0\r\n\n", LOST),
    (b"0\r\nA: b\n", LOST),
    (b"0\r\nA: b\0", LOST),
    (b"0\r\n\ra", LOST),
    (b"fffffffffffffffff\r\n", LOST),
    (b"100000001\r\n", LOST),
    (b"100001\r\n", LOST),
];

#[test]
fn chunked_bodies_however_split() {
    for (body, expected) in CHUNKED {
        let name = body.escape_ascii().to_string();
        let bytes = if expected.is_ok() { [body, &b"next"[..]].concat() } else { body.to_vec() };
        let expected = expected.map(|()| b"next".to_vec());
        for at in 0..=bytes.len() {
            let pieces = bytes.split_at(at);
            assert_eq!(discard(Framing::Chunked, &[pieces.0, pieces.1]), expected, "{name} at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(discard(Framing::Chunked, &single), expected, "{name} byte by byte");
    }
}

#[test]
fn limits() {
    let line = |bytes: usize| [b"0;", &vec![b'x'; bytes - 2][..], b"\r\n\r\n"].concat();
    assert!(discard(Framing::Chunked, &[&line(CHUNK_LINE_BYTES_MAX)]).is_ok());
    assert_eq!(discard(Framing::Chunked, &[&line(CHUNK_LINE_BYTES_MAX + 1)]), Err(Progress::Lost));
    let zeros = |bytes: usize| [&vec![b'0'; bytes][..], b"\r\n\r\n"].concat();
    assert!(discard(Framing::Chunked, &[&zeros(CHUNK_LINE_BYTES_MAX)]).is_ok());
    assert_eq!(discard(Framing::Chunked, &[&zeros(CHUNK_LINE_BYTES_MAX + 1)]), Err(Progress::Lost));
    let trailer = |bytes: usize| [b"0\r\n", &vec![b'x'; bytes][..], b"\r\n\r\n"].concat();
    assert!(discard(Framing::Chunked, &[&trailer(TRAILER_BYTES_MAX)]).is_ok());
    assert_eq!(discard(Framing::Chunked, &[&trailer(TRAILER_BYTES_MAX + 1)]), Err(Progress::Lost));
    // A limit of its own holds for each line, one for all of them together.
    let lines = "1;xxxx\r\na\r\n".repeat(1000) + "0\r\n\r\n";
    assert!(discard(Framing::Chunked, &[lines.as_bytes()]).is_ok());
    let lines = "1;xxxx\r\na\r\n".repeat(DISCARDED_BODY_BYTES_MAX as usize / 8) + "0\r\n\r\n";
    assert_eq!(discard(Framing::Chunked, &[lines.as_bytes()]), Err(Progress::Lost));
}

#[test]
fn a_whole_chunk_of_the_limit_is_lost_by_its_size_line_only() {
    let size = format!("{DISCARDED_BODY_BYTES_MAX:x}\r\n");
    assert_eq!(discard(Framing::Chunked, &[size.as_bytes()]), Err(Progress::Lost));
    let size = format!("{:x}\r\n", DISCARDED_BODY_BYTES_MAX - 100);
    assert_eq!(discard(Framing::Chunked, &[size.as_bytes()]), Err(Progress::NeedInput));
}

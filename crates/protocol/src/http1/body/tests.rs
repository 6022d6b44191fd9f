//! Tables of bodies, each in one piece, byte by byte, and split at every place.

use super::*;
use crate::limits::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};

/// What was left behind the body, or how it ended otherwise.
fn discard(framing: BodyIn, pieces: &[&[u8]]) -> Result<Vec<u8>, Progress> {
    let mut discard = Discard::new(framing);
    let mut progress = discard.advance(&mut &b""[..]);
    for (index, piece) in pieces.iter().enumerate() {
        let mut input = *piece;
        progress = discard.advance(&mut input);
        if progress == Progress::Done {
            return Ok([&[input], &pieces[index + 1..]].concat().concat());
        }
        if matches!(progress, Progress::Lost | Progress::Broken) {
            break;
        }
        assert!(input.is_empty());
    }
    if progress == Progress::Done { Ok(Vec::new()) } else { Err(progress) }
}

#[test]
fn bodies_of_known_length() {
    assert_eq!(discard(BodyIn::None, &[b"next"]), Ok(b"next".to_vec()));
    assert_eq!(discard(BodyIn::Length(3), &[b"abcnext"]), Ok(b"next".to_vec()));
    assert_eq!(discard(BodyIn::Length(3), &[b"a", b"b", b"cnext"]), Ok(b"next".to_vec()));
    assert_eq!(discard(BodyIn::Length(3), &[b"ab"]), Err(Progress::NeedInput));
    assert_eq!(discard(BodyIn::Length(DISCARDED_BODY_BYTES_MAX), &[b"ab"]), Err(Progress::NeedInput));
    assert_eq!(discard(BodyIn::Length(DISCARDED_BODY_BYTES_MAX + 1), &[b"ab"]), Err(Progress::Lost));
    assert_eq!(discard(BodyIn::Length(u64::MAX), &[b"ab"]), Err(Progress::Lost));
}

const DONE: Result<(), Progress> = Ok(());
const MORE: Result<(), Progress> = Err(Progress::NeedInput);
const LOST: Result<(), Progress> = Err(Progress::Lost);
const BROKEN: Result<(), Progress> = Err(Progress::Broken);

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
    (b"0\r\nA:\r\n!#$%&'*+-.^_`|~1:\t b\tc \xff:\r\n\r\n", DONE),
    (b"", MORE),
    (b"0", MORE),
    (b"0\r\n", MORE),
    (b"0\r\n\r", MORE),
    (b"5\r\nabc", MORE),
    (b"0\r\nA: b\r\n", MORE),
    (b"\r\n", BROKEN),
    (b"x\r\n", BROKEN),
    (b" 1\r\n", BROKEN),
    (b"-1\r\n", BROKEN),
    (b"+1\r\n", BROKEN),
    (b"0x1\r\n", BROKEN),
    (b"1\n", BROKEN),
    (b"1\ra", BROKEN),
    (b"1 \r\n", BROKEN),
    (b"1 2\r\n", BROKEN),
    (b"1;a\n", BROKEN),
    (b"1;a=\"b\r\n", BROKEN),
    (b"1;a\0\r\n", BROKEN),
    (b"1\r\nab", BROKEN),
    (b"1\r\na\n", BROKEN),
    (b"1\r\na\r\r", BROKEN),
    (b"0\r\n\n", BROKEN),
    (b"0\r\nA: b\n", BROKEN),
    (b"0\r\nA: b\0", BROKEN),
    (b"0\r\nA: b\x7f", BROKEN),
    (b"0\r\nA: b\rc", BROKEN),
    (b"0\r\nA\r\n\r\n", BROKEN),
    (b"0\r\nA b: c\r\n\r\n", BROKEN),
    (b"0\r\nA : b\r\n\r\n", BROKEN),
    (b"0\r\nA(: b\r\n\r\n", BROKEN),
    (b"0\r\n\xe4: b\r\n\r\n", BROKEN),
    (b"0\r\n: b\r\n\r\n", BROKEN),
    (b"0\r\n A: b\r\n\r\n", BROKEN),
    (b"0\r\nA: b\r\n c\r\n\r\n", BROKEN),
    (b"0\r\nA: b\r\n\tc: d\r\n\r\n", BROKEN),
    (b"0\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n", BROKEN),
    (b"0\r\n\ra", BROKEN),
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
            assert_eq!(discard(BodyIn::Open, &[pieces.0, pieces.1]), expected, "{name} at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(discard(BodyIn::Open, &single), expected, "{name} byte by byte");
    }
}

#[test]
fn limits() {
    let line = |bytes: usize| [b"0;", &vec![b'x'; bytes - 2][..], b"\r\n\r\n"].concat();
    assert!(discard(BodyIn::Open, &[&line(CHUNK_LINE_BYTES_MAX)]).is_ok());
    assert_eq!(discard(BodyIn::Open, &[&line(CHUNK_LINE_BYTES_MAX + 1)]), Err(Progress::Broken));
    let zeros = |bytes: usize| [&vec![b'0'; bytes][..], b"\r\n\r\n"].concat();
    assert!(discard(BodyIn::Open, &[&zeros(CHUNK_LINE_BYTES_MAX)]).is_ok());
    assert_eq!(discard(BodyIn::Open, &[&zeros(CHUNK_LINE_BYTES_MAX + 1)]), Err(Progress::Broken));
    let trailer = |bytes: usize| [b"0\r\nx:", &vec![b'x'; bytes - 4][..], b"\r\n\r\n"].concat();
    assert!(discard(BodyIn::Open, &[&trailer(TRAILER_BYTES_MAX)]).is_ok());
    assert_eq!(discard(BodyIn::Open, &[&trailer(TRAILER_BYTES_MAX + 1)]), Err(Progress::Broken));
    let trailers = |lines: usize| ["0\r\n", &"x:\r\n".repeat(lines), "\r\n"].concat();
    assert!(discard(BodyIn::Open, &[trailers(TRAILER_BYTES_MAX / 4).as_bytes()]).is_ok());
    let more = trailers(TRAILER_BYTES_MAX / 4 + 1);
    assert_eq!(discard(BodyIn::Open, &[more.as_bytes()]), Err(Progress::Broken));
    // A limit of its own holds for each line, one for all of them together.
    let lines = "1;xxxx\r\na\r\n".repeat(1000) + "0\r\n\r\n";
    assert!(discard(BodyIn::Open, &[lines.as_bytes()]).is_ok());
    let lines = "1;xxxx\r\na\r\n".repeat(DISCARDED_BODY_BYTES_MAX as usize / 8) + "0\r\n\r\n";
    assert_eq!(discard(BodyIn::Open, &[lines.as_bytes()]), Err(Progress::Lost));
}

#[test]
fn a_whole_chunk_of_the_limit_is_lost_by_its_size_line_only() {
    let size = format!("{DISCARDED_BODY_BYTES_MAX:x}\r\n");
    assert_eq!(discard(BodyIn::Open, &[size.as_bytes()]), Err(Progress::Lost));
    let size = format!("{:x}\r\n", DISCARDED_BODY_BYTES_MAX - 100);
    assert_eq!(discard(BodyIn::Open, &[size.as_bytes()]), Err(Progress::NeedInput));
}

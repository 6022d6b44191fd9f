//! Answers as servers send them, right and wrong: where they end, and what is wrong with them, however split.

mod reading;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reading::{Reading, read, read_with};
use staunch_protocol::answer::AnswerFault::{self, *};
use staunch_protocol::answer::HeadMemory;
use staunch_protocol::limits::{
    ANSWER_FIELDS_MAX, ANSWER_HEAD_BYTES_MAX, CHUNK_LINE_BYTES_MAX, INTERIM_ANSWERS_MAX, TRAILER_BYTES_MAX,
};

/// Reads in one piece, byte by byte and, when that is not too much, split at every place: all must be equal.
fn read_all_ways(bytes: &[u8], asked_by_head: &[bool]) -> Reading {
    let whole = read([bytes], asked_by_head);
    let name = || bytes[..bytes.len().min(300)].escape_ascii().to_string();
    assert_eq!(read(bytes.chunks(1), asked_by_head), whole, "byte by byte: {}", name());
    let mut memory = HeadMemory::new();
    for _ in 0..2 {
        let remembered = read_with(Some(&mut memory), [bytes], asked_by_head);
        assert_eq!(remembered, whole, "remembered: {}", name());
    }
    if bytes.len() < 1000 {
        for at in 0..=bytes.len() {
            let (start, end) = bytes.split_at(at);
            assert_eq!(read([start, end], asked_by_head), whole, "split at {at}: {}", name());
        }
    }
    whole
}

/// Reads an answer to GET in all ways: its status, its body, and whether the connection is kept.
fn answer(bytes: &[u8]) -> Result<(u16, String, bool), AnswerFault> {
    let reading = read_all_ways(bytes, &[false]);
    match (&reading.answers[..], reading.fault) {
        ([(status, body, keep)], None) => Ok((*status, String::from_utf8_lossy(body).into(), *keep)),
        ([], Some(fault)) => Err(fault),
        _ => panic!("{reading:?} of {}", bytes.escape_ascii()),
    }
}

#[test]
fn where_a_body_ends() {
    let cases: &[(&str, (u16, &str, bool))] = &[
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", (200, "abc", true)),
        ("HTTP/1.1 200 OK\r\ncontent-LENGTH:\t003 \r\n\r\nabc", (200, "abc", true)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc", (200, "abc", true)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, "", true)),
        ("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 200 OK\nContent-Length: 1\n\na", (200, "a", true)),
        ("\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 200 \u{fc}\r\nX: \u{fc}\r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\na", (404, "a", true)),
        ("HTTP/1.1 999 What\r\nContent-Length: 1\r\n\r\na", (999, "a", true)),
        ("HTTP/1.1 204 No Content\r\n\r\n", (204, "", true)),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", (204, "", true)),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", (304, "", true)),
        ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", (304, "", true)),
        ("HTTP/1.1 200 OK\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 200 OK\r\n\r\n", (200, "", false)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (200, "abc", true)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: ,CHUNKED\r\n\r\n\
             00a ;x=\"\\\"\"\r\n0123456789\r\n1\r\na\r\n000\r\nTrailer: x\r\n\r\n",
            (200, "0123456789a", true),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n folded\r\n\tC\r\n\r\n",
            (200, "", true),
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        (
            "HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n\
             HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            (200, "a", true),
        ),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", (101, "", false)),
    ];
    for (bytes, (status, body, keep)) in cases {
        assert_eq!(answer(bytes.as_bytes()), Ok((*status, (*body).to_owned(), *keep)), "{bytes:?}");
    }
}

#[test]
fn whether_a_connection_stays() {
    let cases = [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "CONNECTION: Upgrade, CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ];
    for (version, fields, keep) in cases {
        let bytes = format!("HTTP/{version} 200 OK\r\n{fields}Content-Length: 1\r\n\r\na");
        assert_eq!(answer(bytes.as_bytes()), Ok((200, "a".to_owned(), keep)), "{bytes:?}");
    }
    let coded =
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    assert_eq!(answer(coded), Ok((200, "a".to_owned(), false)));
}

#[test]
fn answers_to_head_have_no_body() {
    for fields in ["Content-Length: 5\r\n", "", "Transfer-Encoding: chunked\r\n", "Content-Length: x\r\n"] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let reading = read_all_ways(head.repeat(2).as_bytes(), &[true, true]);
        assert_eq!(reading.answers, vec![(200, vec![], true); 2], "{fields:?}");
        assert_eq!(reading.fault, None);
    }
}

/// A remembered head is not used for a longer head, nor for an answer to HEAD if it came as one to GET.
#[test]
fn a_memory_of_heads_tells_them_apart() {
    let mut memory = HeadMemory::new();
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let other = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
    let mut bodies = |bytes: &[&[u8]], asked_by_head| {
        let reading = read_with(Some(&mut memory), [&bytes.concat()[..]], asked_by_head);
        assert_eq!(reading.fault, None);
        reading.answers.into_iter().map(|(_, body, _)| body.len()).collect::<Vec<_>>()
    };
    assert_eq!(bodies(&[head, b"ab", head, b"cd", other, b"efg"], &[false; 3]), [2, 2, 3]);
    assert_eq!(bodies(&[other, head, b"ab", other, other], &[true, false, true, true]), [0, 2, 0, 0]);
}

#[test]
fn pipelined_answers_follow_one_another() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
        HTTP/1.1 304 Not Modified\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\
        HTTP/1.1 200 OK\r\n\r\nrest";
    let reading = read_all_ways(bytes, &[false, false, false, true, false]);
    let of = |status, body: &[u8], keep| (status, body.to_vec(), keep);
    assert_eq!(
        reading.answers,
        [
            of(200, b"ab", true),
            of(304, b"", true),
            of(200, b"c", true),
            of(200, b"", true),
            of(200, b"rest", false)
        ]
    );
    assert_eq!(reading.fault, None);
    let unasked = read_all_ways(bytes, &[false]);
    assert_eq!((unasked.answers.len(), unasked.fault), (1, Some(Unasked)));
    assert_eq!(read_all_ways(b"", &[]), Reading::default());
}

#[test]
fn faults() {
    let cases: &[(&str, AnswerFault)] = &[
        ("", NothingCame),
        ("\r\n", NothingCame),
        ("H", EndedInHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", EndedInHead),
        ("HTTP/1.1 100 Continue\r\n\r\n", EndedInHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", EndedInBody),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\na", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx", Chunk),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=\"\r\"\r\na", Chunk),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", Chunk),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n", Chunk),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n b\r\n\r\n", Chunk),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA : b\r\n\r\n", Chunk),
        ("SSH-2.0-OpenSSH_9.2\r\n", Head("what came is not of HTTP/1")),
        ("HTTP/2 200\r\n\r\n", Head("what came is not of HTTP/1")),
        ("HTTP/1.1 2x0 OK\r\n\r\n", Head("the status line is broken")),
        ("HTTP/1.1 2000 OK\r\n\r\n", Head("the status line is broken")),
        ("HTTP/1.1 099 OK\r\n\r\n", Head("the status is below 100")),
        ("HTTP/1.1 200 O\0K\r\n\r\n", Head("the status line is broken")),
        (
            "HTTP/1.1 200 OK\r\nA B: c\r\n\r\n",
            Head("the name of a header field has a byte that may not stand there, or no colon"),
        ),
        (
            "HTTP/1.1 200 OK\r\nA: \0\r\n\r\n",
            Head("the value of a header field has a byte that may not stand there"),
        ),
        ("HTTP/1.1 200 OK\r\n\rA: b\r\n\r\n", Head("a CR in the answer's head is not followed by LF")),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
            Length("two different values of Content-Length"),
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\na", Length("Content-Length is not a number of bytes")),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\na", Length("Content-Length is not a number of bytes")),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Length("both Content-Length and Transfer-Encoding"),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
            Length("chunked is applied twice"),
        ),
    ];
    for (bytes, fault) in cases {
        let found = read_all_ways(bytes.as_bytes(), &[false]).fault;
        assert_eq!(found, Some(*fault), "{bytes:?}");
        assert!(!fault.to_string().is_empty() && !fault.to_string().ends_with('.'), "{fault}");
    }
}

#[test]
fn what_odd_servers_send_is_read() {
    let plain = |head: &str| format!("{head}Content-Length: 5\r\n\r\nhello");
    let long = "X-A: ".to_owned() + &"v".repeat(500) + "\r\n";
    for text in [
        plain("HTTP/1.2 200 OK\r\n"),
        plain("HTTP/1.9 200\r\n"),
        plain("HTTP/1.1 200 OK\r\nX-B : c\r\n"),
        plain(&format!("HTTP/1.1 200 OK\r\n{}", long.repeat(115))),
        plain(&format!("HTTP/1.1 200 OK\r\n{}", "X-A: v\r\n".repeat(600))),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0005 \r\nhello\r\n0  \t\r\n\r\n".to_owned(),
    ] {
        assert_eq!(answer(text.as_bytes()), Ok((200, "hello".to_owned(), true)), "{text}");
    }
    for text in [
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.x 200 OK\r\n\r\n",
        "HTTP/1.22 200 OK\r\n\r\n",
        "HTTP/1.2\t200\r\n\r\n",
    ] {
        assert_eq!(answer(text.as_bytes()), Err(Head("what came is not of HTTP/1")), "{text}");
    }
    let padded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n";
    assert!(answer(padded.as_bytes()).is_err(), "nothing stands before a size");
}

#[test]
fn limits() {
    let fields = |count: usize| format!("HTTP/1.1 204 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert_eq!(answer(fields(ANSWER_FIELDS_MAX).as_bytes()), Ok((204, String::new(), true)));
    let fault = Head("the answer has more than 1024 header fields");
    assert_eq!(answer(fields(ANSWER_FIELDS_MAX + 1).as_bytes()), Err(fault));

    let opening = "HTTP/1.1 204 OK\r\nA: ";
    let head = |bytes: usize| format!("{opening}{}\r\n\r\n", "x".repeat(bytes - opening.len() - 4));
    assert_eq!(answer(head(ANSWER_HEAD_BYTES_MAX).as_bytes()), Ok((204, String::new(), true)));
    let fault = Head("the answer's head is larger than 128 KiB");
    assert_eq!(answer(head(ANSWER_HEAD_BYTES_MAX + 1).as_bytes()), Err(fault));

    let interim = |count: u8| {
        "HTTP/1.1 100 Continue\r\n\r\n".repeat(usize::from(count)) + "HTTP/1.1 204 No Content\r\n\r\n"
    };
    assert_eq!(answer(interim(INTERIM_ANSWERS_MAX).as_bytes()), Ok((204, String::new(), true)));
    let fault = Head("more than 16 interim answers");
    assert_eq!(answer(interim(INTERIM_ANSWERS_MAX + 1).as_bytes()), Err(fault));

    let chunked = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        answer([head, body, "\r\n\r\n"].concat().as_bytes())
    };
    let complete = Ok((200, String::new(), true));
    assert_eq!(chunked(&"0".repeat(CHUNK_LINE_BYTES_MAX)), complete);
    assert_eq!(chunked(&"0".repeat(CHUNK_LINE_BYTES_MAX + 1)), Err(Chunk));
    let trailer = |bytes: usize| "0\r\nx:".to_owned() + &"x".repeat(bytes - 4);
    assert_eq!(chunked(&trailer(TRAILER_BYTES_MAX)), complete);
    assert_eq!(chunked(&trailer(TRAILER_BYTES_MAX + 1)), Err(Chunk));
}

/// Several answers behind one another, most of them valid, some with bytes changed, added or lost.
fn conversations() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3u8);
    let changes = prop_oneof![4 => Just(vec![]), 1 => prop::collection::vec(change, 1..3)];
    (prop::collection::vec(answers(), 1..5), changes).prop_map(|(answers, changes)| {
        let mut bytes = answers.concat().into_bytes();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => _ = bytes.remove(at),
            }
        }
        bytes
    })
}

fn answers() -> impl Strategy<Value = String> {
    let line = "(HTTP/1\\.1 10[023] Wait\r\nX: y\r\n\r\n)?\
        HTTP/1\\.[01] (200|206|301|404|500|304)( [A-Z ]{0,5})?\r\n";
    let fields = "(\
        Connection: (keep-alive|close)\r\n|Server: [a-c ]{0,9}\r\n|\
        [A-C]{1,3}:[ \t]?(\r\n )?[a-c ]{0,9}\r\n){0,3}";
    let body = prop_oneof![
        4 => "Content-Length: 3\r\n\r\n[a-c]{3}",
        1 => "Content-Length: 0\r\n\r\n",
        1 => "\r\n[a-c]{0,3}",
        2 => "Transfer-Encoding: (gzip, )?chunked\r\n\r\n\
            (2(;x(=\"[a;\\\\]\")?)?\r\n[a-c]{2}\r\n){0,3}0\r\n([A-C]: b\r\n)?\r\n",
    ];
    (line, fields, body).prop_map(|(line, fields, body)| line + &fields + &body)
}

/// Cuts bytes at places given as 1/65536 of their length.
fn cut<'b>(bytes: &'b [u8], places: &[u16]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|it| (usize::from(*it) * bytes.len()) >> 16).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut start = 0;
    let piece = |end: usize| &bytes[std::mem::replace(&mut start, end)..end];
    places.into_iter().map(piece).collect()
}

fn config(seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases: 4000,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(0x71))]

    #[test]
    fn splitting_changes_nothing(
        bytes in conversations(),
        places in prop::collection::vec(any::<u16>(), 0..8),
        asked_by_head in prop::collection::vec(prop::bool::weighted(0.1), 0..6),
    ) {
        let whole = read([&bytes[..]], &asked_by_head);
        prop_assert_eq!(&read(cut(&bytes, &places), &asked_by_head), &whole);
        prop_assert_eq!(&read(bytes.chunks(1), &asked_by_head), &whole);
    }

    /// A memory of heads is of no consequence, whatever it saw before on other connections.
    #[test]
    fn remembering_changes_nothing(
        connections in prop::collection::vec(conversations(), 1..4),
        order in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<[bool; 4]>(), any::<u16>()),
            1..6,
        ),
    ) {
        let mut memory = HeadMemory::new();
        for (index, asked_by_head, place) in order {
            let bytes = index.get(&connections);
            let expected = read([&bytes[..]], &asked_by_head);
            let remembered = read_with(Some(&mut memory), cut(bytes, &[place]), &asked_by_head);
            prop_assert_eq!(remembered, expected);
        }
    }
}

/// The canary: a piece that is lost is caught by the very comparison above.
#[test]
fn a_lost_piece_is_caught() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let pieces = cut(bytes, &[10_000, 60_000]);
    assert_eq!(pieces.concat(), bytes);
    let whole = read([&bytes[..]], &[false]);
    assert_eq!(whole.answers.len(), 1);
    assert_eq!(read(pieces.clone(), &[false]), whole);
    assert_ne!(read([pieces[0], pieces[2]], &[false]), whole);
}

#[test]
fn conversations_are_neither_all_right_nor_all_wrong() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::new(config(0x71));
    let (mut answers, mut faults) = (0, 0);
    for _ in 0..500 {
        let bytes = conversations().new_tree(&mut runner).expect("a conversation").current();
        let reading = read([&bytes[..]], &[false; 6]);
        answers += reading.answers.len();
        faults += usize::from(matches!(reading.fault, Some(Head(_) | Length(_) | Chunk)));
    }
    assert!(answers > 600, "{answers} answers in 500 conversations");
    assert!((10..250).contains(&faults), "{faults} of 500 conversations are broken");
}

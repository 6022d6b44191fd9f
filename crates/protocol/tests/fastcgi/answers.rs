//! Answers: good ones however their bytes are split, and faults by name.

use proptest::prelude::*;
use staunch_protocol::fastcgi::FastCgiReader;
use staunch_protocol::http1::relay::{RelayFault, RelayStep};

use crate::fastcgi_reading::{Answer, read};
use crate::records::{STDERR, STDOUT, end, record};

fn read_all_ways(bytes: &[u8], asked_by_head: bool) -> Answer {
    let whole = read([bytes], asked_by_head);
    assert_eq!(read(bytes.chunks(1), asked_by_head), whole, "byte by byte: {}", bytes.escape_ascii());
    for at in 0..bytes.len().min(1000) {
        let (start, rest) = bytes.split_at(at);
        assert_eq!(read([start, rest], asked_by_head), whole, "split at {at}: {}", bytes.escape_ascii());
    }
    whole
}

/// An answer in one record, and its end.
fn answer(output: &str) -> Answer {
    read_all_ways(&[record(STDOUT, output.as_bytes(), 3), record(STDOUT, b"", 0), end(0)].concat(), false)
}

#[test]
fn statuses() {
    for (fields, code) in [
        ("", 200),
        ("Status: 404 Not Found\r\n", 404),
        ("status:418\r\n", 418),
        ("Location: https://a/\r\n", 302),
        ("Location: /b\r\n", 302),
        ("Location: /b\r\nStatus: 201 Created\r\n", 201),
    ] {
        let answer = answer(&format!("{fields}Content-Type: text/plain\r\n\r\nbody"));
        assert_eq!((answer.code, &answer.body[..], answer.fault), (code, &b"body"[..], None), "{fields:?}");
        assert_eq!(answer.keeps, Some(true));
        assert!(!answer.fields.to_ascii_lowercase().contains("status"), "{}", answer.fields);
    }
}

#[test]
fn heads_end_with_line_feeds_too() {
    let answer = answer("A: b\nC:d\r\n\nbody\r\n");
    assert_eq!((&answer.fields[..], &answer.body[..]), ("A: b\r\nC: d\r\n", &b"body\r\n"[..]));
}

#[test]
fn many_records() {
    let bytes = [
        record(STDERR, b"PHP Warning: a\n", 1),
        record(STDOUT, b"Content-Ty", 0),
        record(STDOUT, b"pe: a\r\nContent-Length: 6\r\nX-Accel-Redirect: /x\r\n\r\nab", 7),
        record(STDERR, b"b", 0),
        record(STDOUT, b"cdef", 0),
        record(STDOUT, b"", 8),
        end(0),
    ];
    let answer = read_all_ways(&bytes.concat(), false);
    let expected = Answer {
        code: 200,
        fields: "Content-Type: a\r\n".into(),
        length_bytes: Some(6),
        body: b"abcdef".to_vec(),
        errors: "PHP Warning: a\nb".into(),
        keeps: Some(true),
        fault: None,
    };
    assert_eq!(answer, expected);
}

#[test]
fn bodies_where_none_may_be() {
    for (output, asked_by_head) in
        [("A: b\r\n\r\nbody", true), ("Status: 204\r\n\r\nbody", false), ("Status: 304\r\n\r\n", false)]
    {
        let answer = read_all_ways(&[record(STDOUT, output.as_bytes(), 0), end(0)].concat(), asked_by_head);
        assert_eq!(
            (&answer.body[..], answer.keeps, answer.fault),
            (&b""[..], Some(true), None),
            "{output:?}"
        );
    }
}

#[test]
fn an_answer_that_is_longer_than_it_says() {
    let answer = answer("Content-Length: 2\r\n\r\nbody");
    assert_eq!((&answer.body[..], answer.keeps, answer.fault), (&b"bo"[..], Some(false), None));
}

#[test]
fn faults() {
    let out = |output: &str| record(STDOUT, output.as_bytes(), 0);
    let cases: Vec<(Vec<Vec<u8>>, RelayFault)> = vec![
        (vec![], RelayFault::NothingCame),
        (vec![vec![1, 6]], RelayFault::EndedInHead),
        (vec![end(0)], RelayFault::EndedInHead),
        (vec![out("A: b\r\n"), end(0)], RelayFault::EndedInHead),
        (vec![out("A: b\r\n\r\nbody")], RelayFault::EndedInBody),
        (vec![out("Content-Length: 5\r\n\r\nbody"), end(0)], RelayFault::EndedInBody),
        (vec![end(1)], RelayFault::Record),
        (vec![end(2)], RelayFault::Overloaded),
        (vec![end(3)], RelayFault::Record),
        (vec![vec![2, 6, 0, 1, 0, 0, 0, 0]], RelayFault::Record),
        (vec![vec![1, 6, 0, 2, 0, 0, 0, 0]], RelayFault::Record),
        (vec![vec![1, 6, 1, 1, 0, 0, 0, 0]], RelayFault::Record),
        (vec![vec![1, 1, 0, 1, 0, 0, 0, 0]], RelayFault::Record),
        (vec![vec![1, 11, 0, 0, 0, 8, 0, 0]], RelayFault::Record),
        (vec![vec![1, 3, 0, 1, 0, 7, 0, 0]], RelayFault::Record),
        (vec![b"HTTP/1.1 200 OK\r\n\r\n".to_vec()], RelayFault::Record),
        (vec![out("HTTP/1.1 200 OK\r\n\r\n"), end(0)], RelayFault::Name),
        (vec![out("Status: 99\r\n\r\n"), end(0)], RelayFault::Code),
        (vec![out("Status: 101\r\n\r\n"), end(0)], RelayFault::Code),
        (vec![out("Status: 200\r\nStatus: 200\r\n\r\n"), end(0)], RelayFault::Code),
        (vec![out("Transfer-Encoding: gzip\r\n\r\n"), end(0)], RelayFault::Coding),
        (vec![out("Transfer-Encoding: chunked\r\n\r\n"), end(0)], RelayFault::Coding),
        (vec![out("Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), end(0)], RelayFault::LengthTwice),
        (vec![out("A : b\r\n\r\n"), end(0)], RelayFault::SpaceBeforeColon),
        (vec![out("A: \0\r\n\r\n"), end(0)], RelayFault::Nul),
        (vec![out("A: b\r\n c\r\n\r\n"), end(0)], RelayFault::Folded),
        (vec![out("A: b\r\n\r\n"), end(0), out("x")], RelayFault::Unasked),
    ];
    for (bytes, fault) in cases {
        let bytes = bytes.concat();
        assert_eq!(read_all_ways(&bytes, false).fault, Some(fault), "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_is_kept_has_a_bound() {
    let mut reader = FastCgiReader::new();
    reader.begin(false);
    let line = record(STDERR, &[b'e'; 60_000], 0);
    for _ in 0..100 {
        assert_eq!(reader.next(&mut &line[..]), Ok(RelayStep::More));
    }
    assert_eq!(reader.errors().len(), 4096);
    assert!(reader.held_bytes() <= 8192, "{}", reader.held_bytes());
    let endless = record(STDOUT, &[b'h'; 65_535], 0);
    assert_eq!(reader.next(&mut &endless[..]), Ok(RelayStep::More));
    assert_eq!(reader.next(&mut &endless[..]), Err(RelayFault::HeadTooLarge));
}

/// What a program says, as a pattern.
const OUTPUT: &str =
    "(Status: [1-5][0-9]{2}\r\n)?([A-Z]: [a-z]{0,5}\r?\n){0,3}(Content-Length: [0-9]\r\n)?\r\n[a-z]{0,20}";

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]
    #[test]
    fn no_split_changes_what_is_read(
        output in OUTPUT,
        records in prop::collection::vec((1usize..30, any::<bool>(), 0u8..9), 1..6),
        spoilt in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
        asked_by_head in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        let mut rest = output.as_bytes();
        for (content_bytes, says_error, padding_bytes) in records {
            let (content, behind) = rest.split_at(content_bytes.min(rest.len()));
            bytes.extend(record(STDOUT, content, padding_bytes));
            if says_error {
                bytes.extend(record(STDERR, b"error", padding_bytes));
            }
            rest = behind;
        }
        bytes.extend(record(STDOUT, rest, 0));
        bytes.extend(end(0));
        if let Some((place, byte)) = spoilt {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let whole = read([&bytes[..]], asked_by_head);
        prop_assert_eq!(&read(bytes.chunks(1), asked_by_head), &whole);
        prop_assert_eq!(&read(bytes.chunks(7), asked_by_head), &whole);
    }
}

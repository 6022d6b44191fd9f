//! Answers that are not passed on: each fault by its name.

use std::collections::HashSet;

use staunch_protocol::http1::relay::{RelayFault, RelayReader};
use staunch_protocol::limits::{
    CHUNK_LINE_BYTES_MAX, INTERIM_ANSWERS_MAX, NAMED_FIELDS_MAX, RELAYED_FIELDS_MAX, RELAYED_HEAD_BYTES_MAX,
    TRAILER_BYTES_MAX,
};

use RelayFault::{
    BareCarriageReturn, BareLineFeed, Chunk, ChunkSize, Code, Coding, CodingInHttp10, ColonMissing, Control,
    EndedInBody, EndedInHead, Folded, HeadTooLarge, InterimWithBody, Length, LengthAndChunks, LengthTwice,
    Name, NameMissing, NothingCame, Nul, SpaceBeforeColon, Switched, TooManyFields, TooManyInterim,
    TooManyNamed, TrailersTooLarge, Unasked, Version,
};

use crate::answers::read_all_ways;

fn fault(bytes: &[u8]) -> Option<RelayFault> {
    read_all_ways(bytes, &[false]).fault
}

#[test]
fn status_lines() {
    for (line, expected) in [
        ("HTTP/1.2 200 OK", Version),
        ("HTTP/2 200", Version),
        ("HTTP/2.0 200", Version),
        ("http/1.1 200 OK", Version),
        ("HTTP/1.1\t200 OK", Version),
        ("HTTP/1.1", Version),
        (" HTTP/1.1 200 OK", Version),
        ("", Version),
        ("SSH-2.0-OpenSSH", Version),
        ("HTTP/1.1 ", Code),
        ("HTTP/1.1  200 OK", Code),
        ("HTTP/1.1 20 OK", Code),
        ("HTTP/1.1 2000 OK", Code),
        ("HTTP/1.1 099 OK", Code),
        ("HTTP/1.1 600 OK", Code),
        ("HTTP/1.1 999 OK", Code),
        ("HTTP/1.1 +20 OK", Code),
        ("HTTP/1.1 200\tOK", Code),
        ("HTTP/1.1 200OK", Code),
        ("HTTP/1.1 \u{665}\u{665} OK", Code),
        ("HTTP/1.1 101 Switching Protocols", Switched),
        ("HTTP/1.1 200 \0", Nul),
        ("HTTP/1.1 200 O\x1bK", Control),
    ] {
        let bytes = format!("{line}\r\nContent-Type: text/plain\r\n\r\n");
        assert_eq!(fault(bytes.as_bytes()), Some(expected), "{line:?}");
    }
}

#[test]
fn field_lines() {
    for (lines, expected) in [
        ("A: b\nContent-Length: 1\r\n", BareLineFeed),
        ("A: b\n\r\n", BareLineFeed),
        ("\nA: b\r\n", BareLineFeed),
        ("A: b\rc\r\n", BareCarriageReturn),
        ("A: b\r\r\n", BareCarriageReturn),
        ("A: b\0c\r\n", Nul),
        ("A\0: b\r\n", Nul),
        ("A: b\x7f\r\n", Control),
        ("A: b\x0bc\r\n", Control),
        (" A: b\r\n", Folded),
        ("A: b\r\n c\r\n", Folded),
        ("A: b\r\n\tContent-Length: 1\r\n", Folded),
        (": b\r\n", NameMissing),
        ("A : b\r\n", SpaceBeforeColon),
        ("Content-Length : 1\r\n", SpaceBeforeColon),
        ("Transfer-Encoding\t: chunked\r\n", SpaceBeforeColon),
        ("A\r\n", ColonMissing),
        ("A(b): c\r\n", Name),
        ("A\u{fc}: c\r\n", Name),
        ("\"A\": c\r\n", Name),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        assert_eq!(fault(bytes.as_bytes()), Some(expected), "{lines:?}");
    }
}

#[test]
fn lengths() {
    for (fields, expected) in [
        ("Content-Length: 5\r\nContent-Length: 6\r\n", LengthTwice),
        ("Content-Length: 5\r\nX: y\r\ncontent-length: 5\r\n", LengthTwice),
        ("Content-Length: 5, 5\r\n", Length),
        ("Content-Length: 5, 6\r\n", Length),
        ("Content-Length: \r\n", Length),
        ("Content-Length: -5\r\n", Length),
        ("Content-Length: +5\r\n", Length),
        ("Content-Length: 0x5\r\n", Length),
        ("Content-Length: 5 5\r\n", Length),
        ("Content-Length: 18446744073709551616\r\n", Length),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", LengthAndChunks),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", LengthAndChunks),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Coding),
        ("Transfer-Encoding: chunked, chunked\r\n", Coding),
        ("Transfer-Encoding: gzip, chunked\r\n", Coding),
        ("Transfer-Encoding: identity\r\n", Coding),
        ("Transfer-Encoding: xchunked\r\n", Coding),
        ("Transfer-Encoding: chunked;q=1\r\n", Coding),
        ("Transfer-Encoding: \"chunked\"\r\n", Coding),
        ("Transfer-Encoding: ,chunked\r\n", Coding),
        ("Transfer-Encoding:\r\n", Coding),
        ("Transfer-Encoding: \x0bchunked\r\n", Control),
    ] {
        for line in ["200 OK", "204 No Content", "304 Not Modified"] {
            let bytes = format!("HTTP/1.1 {line}\r\n{fields}\r\n");
            assert_eq!(fault(bytes.as_bytes()), Some(expected), "{bytes:?}");
            assert_eq!(read_all_ways(bytes.as_bytes(), &[true]).fault, Some(expected), "{bytes:?}");
        }
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(fault(old.as_bytes()), Some(CodingInHttp10));
    for field in ["Content-Length: 0", "Transfer-Encoding: chunked"] {
        for code in [100, 103] {
            let bytes = format!("HTTP/1.1 {code} x\r\n{field}\r\n\r\nHTTP/1.1 204 x\r\n\r\n");
            assert_eq!(fault(bytes.as_bytes()), Some(InterimWithBody), "{bytes:?}");
        }
    }
}

#[test]
fn chunks() {
    for (body, expected) in [
        ("x\r\n", Chunk),
        ("\r\n", Chunk),
        (";a\r\n", Chunk),
        ("3\nabc\r\n", Chunk),
        ("3\r\nabcd\r\n", Chunk),
        ("3\r\nabc\n0\r\n\r\n", Chunk),
        ("3 \r\nabc\r\n", Chunk),
        (" 3\r\nabc\r\n", Chunk),
        ("0x3\r\nabc\r\n", Chunk),
        ("-3\r\nabc\r\n", Chunk),
        ("3;a\nb\r\nabc\r\n", Chunk),
        ("3;a=\"\n\"\r\nabc\r\n", Chunk),
        ("3;a\rb\r\nabc\r\n", Chunk),
        ("3;\r\nabc\r\n", Chunk),
        ("10000000000000000\r\n", ChunkSize),
        ("fffffffffffffffff\r\n", ChunkSize),
        ("0\r\nA : b\r\n\r\n", SpaceBeforeColon),
        ("0\r\nA: b\n\r\n", BareLineFeed),
        ("0\r\n\n", BareLineFeed),
        ("0\r\nA: b\r\n c\r\n\r\n", Folded),
        ("0\r\nA\r\n\r\n", ColonMissing),
        ("0\r\nA: \0\r\n\r\n", Nul),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_eq!(fault(bytes.as_bytes()), Some(expected), "{body:?}");
    }
    let most = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:0>300}\r\n", 0);
    assert!(most.len() > CHUNK_LINE_BYTES_MAX);
    assert_eq!(fault(most.as_bytes()), Some(Chunk));
}

#[test]
fn answers_that_break_off() {
    let cases = [
        ("", NothingCame),
        ("H", EndedInHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", EndedInHead),
        ("HTTP/1.1 100 Continue\r\n\r\n", EndedInHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", EndedInBody),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", EndedInBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n", EndedInBody),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(bytes.as_bytes()), Some(expected), "{bytes:?}");
    }
}

#[test]
fn limits() {
    let head = |bytes: usize| {
        let start = "HTTP/1.1 204 x\r\nA: ";
        let end = "\r\n\r\n";
        [start, &"b".repeat(bytes - start.len() - end.len()), end].concat()
    };
    assert_eq!(fault(head(RELAYED_HEAD_BYTES_MAX).as_bytes()), None);
    assert_eq!(fault(head(RELAYED_HEAD_BYTES_MAX + 1).as_bytes()), Some(HeadTooLarge));
    // What is wrong beyond the limit is never seen.
    let mut long = head(RELAYED_HEAD_BYTES_MAX + 100).into_bytes();
    long[RELAYED_HEAD_BYTES_MAX + 5] = 0;
    assert_eq!(fault(&long), Some(HeadTooLarge));
    let endless = vec![b'H'; 2 * RELAYED_HEAD_BYTES_MAX];
    assert_eq!(fault(&endless), Some(HeadTooLarge));

    let fields = |count: usize| format!("HTTP/1.1 204 x\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert_eq!(fault(fields(RELAYED_FIELDS_MAX).as_bytes()), None);
    assert_eq!(fault(fields(RELAYED_FIELDS_MAX + 1).as_bytes()), Some(TooManyFields));

    let named = |count: usize| format!("HTTP/1.1 204 x\r\nConnection: close{}\r\n\r\n", ", a".repeat(count));
    assert_eq!(fault(named(NAMED_FIELDS_MAX).as_bytes()), None);
    assert_eq!(fault(named(NAMED_FIELDS_MAX + 1).as_bytes()), Some(TooManyNamed));

    let interim = |count: u8| {
        format!("{}HTTP/1.1 204 x\r\n\r\n", "HTTP/1.1 103 x\r\nA: b\r\n\r\n".repeat(usize::from(count)))
    };
    assert_eq!(fault(interim(INTERIM_ANSWERS_MAX).as_bytes()), None);
    assert_eq!(fault(interim(INTERIM_ANSWERS_MAX + 1).as_bytes()), Some(TooManyInterim));

    let trailers = |bytes: usize| {
        let start = "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
        format!("{start}A: {}\r\n\r\n", "b".repeat(bytes - 7))
    };
    assert_eq!(fault(trailers(TRAILER_BYTES_MAX).as_bytes()), None);
    assert_eq!(fault(trailers(TRAILER_BYTES_MAX + 1).as_bytes()), Some(TrailersTooLarge));
}

#[test]
fn a_byte_tells_that_the_answer_has_begun() {
    let mut reader = RelayReader::new();
    assert_eq!((reader.has_begun(), reader.end()), (false, Ok(false)));
    reader.begin(false);
    assert!(!reader.has_begun());
    let mut input = &b"H"[..];
    assert!(reader.next(&mut input).is_ok() && reader.has_begun());
    assert_eq!(reader.end(), Err(EndedInHead));
    assert_eq!(RelayReader::new().next(&mut &b"H"[..]), Err(Unasked));
}

/// A sentence names one fault.
#[test]
fn sentences_differ() {
    let all = [
        NothingCame,
        EndedInHead,
        EndedInBody,
        Unasked,
        Version,
        Code,
        Switched,
        BareLineFeed,
        BareCarriageReturn,
        Nul,
        Control,
        Folded,
        NameMissing,
        SpaceBeforeColon,
        ColonMissing,
        Name,
        HeadTooLarge,
        TooManyFields,
        TooManyInterim,
        TooManyNamed,
        InterimWithBody,
        Length,
        LengthTwice,
        LengthAndChunks,
        Coding,
        CodingInHttp10,
        Chunk,
        ChunkSize,
        TrailersTooLarge,
    ];
    let sentences: HashSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(sentences.len(), all.len());
}

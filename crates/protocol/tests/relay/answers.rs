//! Answers that are good: where they end, and what of them is passed on.

use crate::relay_reading::{Head, Reading, Step, answers, read};
use staunch_protocol::Fields;
use staunch_protocol::http1::relay::{RelayFault, RelayReader, RelayStep};

/// Reads in one piece, byte by byte and, when that is not too much, split at every place: all must be equal.
pub(crate) fn read_all_ways(bytes: &[u8], asked_by_head: &[bool]) -> Reading {
    let whole = read([bytes], asked_by_head);
    let name = || bytes[..bytes.len().min(300)].escape_ascii().to_string();
    assert_eq!(read(bytes.chunks(1), asked_by_head), whole, "byte by byte: {}", name());
    if bytes.len() < 1000 {
        for at in 0..=bytes.len() {
            let (start, end) = bytes.split_at(at);
            assert_eq!(read([start, end], asked_by_head), whole, "split at {at}: {}", name());
        }
    }
    whole
}

/// A single answer to GET: status, body, and whether the connection stays.
fn answer(bytes: &str) -> (u16, String, bool) {
    let reading = read_all_ways(bytes.as_bytes(), &[false]);
    assert_eq!(reading.fault, None, "{bytes:?}");
    let [(code, body, keeps)] = &answers(&reading)[..] else { panic!("{reading:?} of {bytes:?}") };
    (*code, String::from_utf8_lossy(body).into_owned(), *keeps)
}

/// The head of an answer with these fields.
fn head_of(fields: &str, asked_by_head: bool) -> Head {
    let bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    let reading = read_all_ways(bytes.as_bytes(), &[asked_by_head]);
    let Some(Step::Head(head)) = reading.steps.into_iter().next() else { panic!("no head: {bytes:?}") };
    head
}

#[test]
fn where_a_body_ends() {
    for (bytes, (code, body, keeps)) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", (200, "abc", true)),
        ("HTTP/1.1 200 OK\r\ncontent-LENGTH:\t003 \r\n\r\nabc", (200, "abc", true)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, "", true)),
        ("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 200 \u{fc}\t!\r\nX: \u{fc}\r\nContent-Length: 1\r\n\r\na", (200, "a", true)),
        ("HTTP/1.1 418 I'm a teapot\r\nContent-Length: 1\r\n\r\na", (418, "a", true)),
        ("HTTP/1.1 299 \r\nContent-Length: 1\r\n\r\na", (299, "a", true)),
        ("HTTP/1.1 599 \r\nContent-Length: 1\r\n\r\na", (599, "a", true)),
        ("HTTP/1.1 204 No Content\r\n\r\n", (204, "", true)),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", (204, "", true)),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", (204, "", false)),
        ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", (204, "", false)),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", (304, "", true)),
        ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", (304, "", false)),
        ("HTTP/1.1 200 OK\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 200 OK\r\n\r\n", (200, "", false)),
        ("HTTP/1.0 200 OK\r\n\r\nabc", (200, "abc", false)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (200, "abc", true)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             00a ;x=\"\\\"\"\r\n0123456789\r\n1\r\na\r\n000\r\nT: x\r\n\r\n",
            (200, "0123456789a", true),
        ),
    ] {
        assert_eq!(answer(bytes), (code, body.to_owned(), keeps), "{bytes:?}");
    }
}

#[test]
fn whether_a_connection_stays() {
    for (version, fields, keeps) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "CONNECTION: Upgrade, CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let bytes = format!("HTTP/{version} 200 OK\r\n{fields}Content-Length: 1\r\n\r\na");
        assert_eq!(answer(&bytes), (200, "a".to_owned(), keeps), "{bytes:?}");
        let bytes =
            format!("HTTP/{version} 103 x\r\n{fields}\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
        assert_eq!(answer(&bytes), (200, "a".to_owned(), keeps), "{bytes:?}");
    }
}

#[test]
fn answers_without_a_body() {
    for (fields, length_bytes, passed) in [
        ("Content-Length: 5\r\n", Some(5), "Content-Length: 5\r\n"),
        ("", None, ""),
        ("Transfer-Encoding: chunked\r\n", None, ""),
    ] {
        let head = head_of(fields, true);
        assert_eq!((head.length_bytes, head.has_body), (length_bytes, false), "{fields:?}");
        assert_eq!(head.fields, passed.as_bytes(), "{fields:?}");
        let two = format!("HTTP/1.1 200 OK\r\n{fields}\r\n").repeat(2);
        let reading = read_all_ways(two.as_bytes(), &[true, true]);
        assert_eq!((answers(&reading), reading.fault), (vec![(200, vec![], true); 2], None), "{fields:?}");
    }
    let not_modified =
        read(["HTTP/1.1 304 x\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n".as_bytes()], &[false]);
    let Step::Head(head) = &not_modified.steps[0] else { panic!("{not_modified:?}") };
    assert_eq!(head.fields, b"ETag: \"a\"\r\nContent-Length: 9\r\n");
    assert!(!head.has_body);
    let get = head_of("Content-Length: 0\r\n", false);
    assert_eq!((get.fields, get.length_bytes, get.has_body), (vec![], Some(0), true));
}

#[test]
fn fields_that_are_not_passed_on() {
    for field in [
        "Connection: keep-alive",
        "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive",
        "Proxy-Authenticate: Basic realm=a",
        "Proxy-Authentication-Info: a",
        "TE: trailers",
        "Trailer: X",
        "Upgrade: h2c",
        "Server: gunicorn",
        "Date: Sun, 06 Nov 1994 08:49:37 GMT",
        "X-Accel-Redirect: /etc/passwd",
        "X-Accel-Buffering: no",
        "x-accel-expires: 0",
    ] {
        assert_eq!(
            head_of(&format!("A: 1\r\n{field}\r\nB:2\r\n"), false).fields,
            b"A: 1\r\nB: 2\r\n",
            "{field}"
        );
    }
}

#[test]
fn fields_that_are_passed_on() {
    let fields = "Set-Cookie: a=b\r\nContent-Type: text/plain\r\nSet-Cookie: c=d\r\nVia: 1.1 a\r\nX_Y: \r\n\
        Cache-Control: no-store\r\nRetry-After: 5\r\nETag: \"\u{fc}\"\r\n";
    assert_eq!(head_of(fields, false).fields, fields.as_bytes());
    assert_eq!(head_of("A:\t b\tc \t\r\nb:d\r\n", false).fields, b"A: b\tc\r\nb: d\r\n", "written anew");
}

#[test]
fn what_connection_names_is_of_that_connection() {
    for (fields, expected) in [
        ("A: 1\r\nConnection: a, close\r\nB: 2\r\na: 3\r\n", "B: 2\r\n"),
        ("Connection: x\r\nX: 1\r\nConnection: ,Y\r\ny: 2\r\nZ: 3\r\n", "Z: 3\r\n"),
        ("Connection: content-length\r\nContent-Length: 4\r\nA: 1\r\n", "A: 1\r\n"),
    ] {
        assert_eq!(String::from_utf8_lossy(&head_of(fields, false).fields), expected, "{fields:?}");
    }
    assert_eq!(head_of("Connection: content-length\r\nContent-Length: 4\r\n", false).length_bytes, Some(4));
}

#[test]
fn interim_answers() {
    let bytes = "HTTP/1.1 100 Continue\r\nX: 1\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
        HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nServer: x\r\n\r\nHTTP/1.1 103 \r\n\r\n\
        HTTP/1.1 199 \r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: 1\r\n\r\na";
    let reading = read_all_ways(bytes.as_bytes(), &[false]);
    let interim = |fields: &[u8]| {
        Step::Interim(Head { code: 103, fields: fields.to_vec(), length_bytes: None, has_body: false })
    };
    let head = Head { code: 200, fields: b"A: 1\r\n".to_vec(), length_bytes: Some(1), has_body: true };
    let expected = [
        interim(b"Link: </a>\r\n"),
        interim(b""),
        Step::Head(head),
        Step::Body(b"a".to_vec()),
        Step::End(String::new(), true),
    ];
    assert_eq!(reading.steps, expected);
    assert_eq!(reading.fault, None);
}

#[test]
fn trailers() {
    let bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ETag\r\n\r\n1\r\na\r\n0\r\n\
        ETag:\"x\"\r\nSet-Cookie: a\r\nContent-Length: 9\r\nX:  y \r\nConnection: close\r\n\r\n";
    let reading = read_all_ways(bytes.as_bytes(), &[false]);
    assert_eq!(reading.steps.last(), Some(&Step::End("ETag: \"x\"\r\nX: y\r\n".to_owned(), true)));
}

#[test]
fn an_upgrade_that_was_asked_for() {
    let mut reader = RelayReader::new();
    reader.begin_upgrade();
    let mut input = &b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Accept: x\r\n\r\n\0HTTP/1.1"[..];
    let Ok(RelayStep::Head(head)) = reader.next(&mut input) else { panic!("no head") };
    assert_eq!((head.status.code(), head.has_body), (101, false));
    assert_eq!(head.fields.lines(), b"Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n");
    assert_eq!(reader.next(&mut input), Ok(RelayStep::Piece(b"\0HTTP/1.1")), "no HTTP any more");
    assert_eq!(reader.next(&mut &b"\r\n"[..]), Ok(RelayStep::Piece(b"\r\n")));
    assert_eq!(reader.end(), Ok(true));
    // An application need not agree, and then its connection serves on.
    reader.begin_upgrade();
    let mut input = &b"HTTP/1.1 204 x\r\nUpgrade: h2c\r\n\r\n"[..];
    let Ok(RelayStep::Head(head)) = reader.next(&mut input) else { panic!("no head") };
    assert_eq!(head.fields.lines(), b"");
    assert_eq!(reader.next(&mut input), Ok(RelayStep::End { trailers: Fields::NONE, keeps: true }));
}

#[test]
fn bytes_behind_the_end_are_left_to_the_caller_and_never_read() {
    for end in ["H", "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "\0"] {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na{end}");
        let reading = read_all_ways(bytes.as_bytes(), &[false]);
        assert_eq!(answers(&reading), [(200, b"a".to_vec(), true)], "the answer is good");
        assert_eq!(reading.fault, Some(RelayFault::Unasked), "{end:?}");
    }
}

//! Conversations with a session, as tables.

mod wanted;

use super::super::writer::BodyOut;
use super::*;
use crate::limits::{DISCARDED_BODY_BYTES_MAX, HEAD_BYTES_MAX};
use crate::message::Method;
use crate::timer::{Deadline, Timeouts};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const HOST: &str = "Host: a\r\n";

/// Polls until the session wants more, answers every request with 200 and writes down what happened: `Get
/// /a;` for a request, followed by what its response says of the connection; `400;` for a refusal; `linger;`
/// or `close;` for the end.
fn deliver(session: &mut Session, bytes: &[u8], now_ms: u64) -> String {
    let joined = session.take_kept(bytes).into_owned();
    let mut input = &joined[..];
    let mut log = String::new();
    loop {
        let mut out = Vec::new();
        let event = session.poll_event(&mut input, now_ms, DATE, &mut out);
        if !out.is_empty() {
            log += &format!("{};", out[9..12].escape_ascii());
        }
        match event {
            Event::Request(request) => {
                let rule = session.begin_response(Status::OK, DATE, &mut out);
                assert_eq!(rule == BodyRule::Omit, request.method == Method::Head);
                let says = match &out {
                    out if out.ends_with(b"close\r\n") => " close",
                    out if out.ends_with(b"keep-alive\r\n") => " keep-alive",
                    _ => "",
                };
                log += &format!("{:?} {}{says};", request.method, request.path.escape_ascii());
            }
            Event::Body(piece) => log += &format!("+{};", piece.escape_ascii()),
            Event::BodyEnd => log += "end;",
            Event::Preface => {
                log += "preface;";
                break;
            }
            Event::NeedInput => break,
            Event::Close { linger, .. } => {
                log += if linger { "linger;" } else { "close;" };
                break;
            }
        }
    }
    session.keep(input);
    log
}

fn converse(bytes: &str) -> String {
    deliver(&mut Session::new(0), bytes.as_bytes(), 0)
}

/// The preface counts only at the beginning and whole. A peer that stops before its end sent a bad request.
#[test]
fn the_preface_of_http2() {
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(converse(&format!("{preface}more")), "preface;");
    let first = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(converse(&format!("{first}{preface}")), "Get /;505;linger;");
    assert_eq!(converse("PRI * HTTP/2.0\r\nHost: a\r\n\r\n"), "505;linger;");
    for at in 1..preface.len() {
        let mut session = Session::new(0);
        assert_eq!(deliver(&mut session, &preface.as_bytes()[..at], 0), "", "{at}");
        assert_eq!(session.poll_timeout(&Timeouts::default()), Some((15_000, Deadline::Header)));
        assert_eq!(session.idle_since_ms(), None, "{at}: something has come");
        assert_eq!(deliver(&mut session, &preface.as_bytes()[at..], 1), "preface;", "{at}");
        let mut out = Vec::new();
        assert_eq!(session.refuse_preface(DATE, &mut out).status, Status::HTTP_VERSION_NOT_SUPPORTED);
        assert!(out.starts_with(b"HTTP/1.1 505 "));
        assert_eq!(deliver(&mut session, b"more", 1), "linger;");
        let mut session = Session::new(0);
        deliver(&mut session, &preface.as_bytes()[..at], 0);
        session.handle_end();
        assert!(["505;close;", "close;"].contains(&&*deliver(&mut session, b"", 1)), "{at}");
    }
}

#[test]
fn requests_and_persistence() {
    let cases = [
        ("", ""),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "Get /;"),
        ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "Get /;"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n", "Get /;Get /b;"),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400;linger;"),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400;linger;"),
        ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.0\r\n\r\n", "Head /;Get /b close;close;"),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Get / keep-alive;"),
        ("GET / HTTP/1.0\r\n\r\n", "Get / close;close;"),
        ("GET / HTTP/1.0\r\n\r\nGET", "Get / close;linger;"),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "Get / close;close;"),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", "Connect * close;close;"),
        ("GET / HTTP/2.0\r\n\r\n", "505;linger;"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(converse(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn bodies_are_thrown_away() {
    let next = format!("GET /b HTTP/1.1\r\n{HOST}\r\n");
    let cases = [
        ("Content-Length: 3\r\n\r\nabc", "Post /;Get /b;"),
        ("Content-Length: 0\r\n\r\n", "Post /;Get /b;"),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "Post /;Get /b;"),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", "400;linger;"),
        ("Transfer-Encoding: chunked\r\n\r\n0\r\n", "400;linger;"),
        ("Transfer-Encoding: chunked\r\n\r\n100001\r\n", "Post /;linger;"),
        ("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\nx", "Post / close;linger;"),
        ("Connection: close\r\nContent-Length: 3\r\n\r\nabc", "Post / close;linger;"),
        ("Content-Length: 1048577\r\n\r\n", "Post / close;linger;"),
        ("Expect: 100-continue\r\nContent-Length: 3\r\n\r\n", "Post / close;linger;"),
        ("Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", "Post /;Get /b;"),
        ("Expect: x\r\nContent-Length: 3\r\n\r\n", "417;linger;"),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "400;linger;"),
    ];
    for (rest, expected) in cases {
        let bytes = format!("POST / HTTP/1.1\r\n{HOST}{rest}{next}");
        assert_eq!(converse(&bytes), expected, "{rest:?}");
    }
    let bytes = format!("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc{next}");
    assert_eq!(converse(&bytes), "Post / close;linger;");
    assert_eq!(converse(&bytes[..bytes.len() - next.len()]), "Post / close;close;");
}

#[test]
fn a_body_that_breaks_behind_its_answer_ends_the_connection() {
    let head = format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n");
    let mut session = Session::new(0);
    assert_eq!(deliver(&mut session, format!("{head}3\r\nabc").as_bytes(), 0), "Post /;");
    assert_eq!(deliver(&mut session, b"d", 0), "linger;");
}

#[test]
fn no_lingering_without_unread_bytes() {
    let head = format!("POST / HTTP/1.1\r\n{HOST}Connection: close\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(converse(&format!("{head}abc")), "Post / close;close;");
    assert_eq!(converse(&format!("{head}ab")), "Post / close;linger;");
    assert_eq!(converse(&format!("{head}abcd")), "Post / close;linger;");
}

#[test]
fn a_response_says_what_it_must() {
    let mut session = Session::new(0);
    let mut input = &b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"[..];
    let mut out = Vec::new();
    assert!(matches!(session.poll_event(&mut input, 0, DATE, &mut out), Event::Request(_)));
    assert!(matches!(session.poll_event(&mut input, 0, DATE, &mut out), Event::NeedInput));
    session.close_after_response();
    assert_eq!(session.begin_response(Status::NOT_FOUND, DATE, &mut out), BodyRule::Omit);
    let expected = "HTTP/1.1 404 Not Found\r\nServer: staunch\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Connection: close\r\n";
    assert_eq!(out.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
    for _ in 0..2 {
        let event = session.poll_event(&mut input, 0, DATE, &mut out);
        assert!(matches!(event, Event::Close { linger: false, .. }));
    }
    assert_eq!(out.len(), expected.len());
}

#[test]
fn statuses_without_content() {
    for (status, rule) in [
        (Status::OK, BodyRule::Send),
        (Status::NO_CONTENT, BodyRule::Omit),
        (Status::NOT_MODIFIED, BodyRule::Omit),
        (Status::RANGE_NOT_SATISFIABLE, BodyRule::Send),
    ] {
        let mut session = Session::new(0);
        let mut input = &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..];
        let mut out = Vec::new();
        assert!(matches!(session.poll_event(&mut input, 0, DATE, &mut out), Event::Request(_)));
        assert_eq!(session.begin_response(status, DATE, &mut out), rule);
    }
}

#[test]
fn refusals_of_head_have_no_body() {
    for (method, has_body) in [("GET", true), ("HEAD", false)] {
        let bytes = format!("{method} / HTTP/1.1\r\n\r\n");
        let mut out = Vec::new();
        let event = Session::new(0).poll_event(&mut bytes.as_bytes(), 0, DATE, &mut out);
        assert!(matches!(event, Event::Close { linger: true, .. }));
        assert!(out.starts_with(b"HTTP/1.1 400 Bad Request\r\nServer: staunch\r\nDate: Sun, "));
        assert_eq!(out.ends_with(b"400 Bad Request: no Host in HTTP/1.1\n"), has_body);
        assert_eq!(!out.ends_with(b"\r\n\r\n"), has_body);
    }
}

#[test]
fn a_request_that_waits_is_given_once() {
    let bytes = b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n";
    let (mut session, mut out) = (Session::new(0), Vec::new());
    let mut input = &bytes[..];
    let Event::Request(request) = session.poll_event(&mut input, 0, DATE, &mut out) else { panic!() };
    assert_eq!(request.path, b"/2");
    session.keep(input);
    for _ in 0..2 {
        assert_eq!(session.poll_timeout(&Timeouts::default()), None);
        assert_eq!(deliver(&mut session, b"", 0), "");
    }
    assert_eq!(session.begin_response(Status::OK, DATE, &mut out), BodyRule::Send);
    assert_eq!(deliver(&mut session, b"", 0), "Get /3;");
    assert_eq!(session.kept_bytes(), 0);
}

#[test]
fn the_end_of_the_peer() {
    let end = |bytes: &str| {
        let mut session = Session::new(0);
        let before = deliver(&mut session, bytes.as_bytes(), 0);
        session.handle_end();
        before + &deliver(&mut session, b"", 0)
    };
    assert_eq!(end(""), "close;");
    assert_eq!(end("GET / HTTP/1.1\r\nHo"), "close;");
    assert_eq!(end("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "Get /;close;");
    assert_eq!(end("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na"), "Post /;close;");
    let mut session = Session::new(0);
    session.handle_end();
    assert_eq!(deliver(&mut session, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nBAD\r\n\r\n", 0), "Get /;400;close;");
}

#[test]
fn deadlines() {
    let timeouts = Timeouts { header_ms: 10, keep_alive_ms: 20, body_ms: 30, ..Timeouts::default() };
    let mut session = Session::new(100);
    let at = |session: &mut Session, bytes: &[u8], now_ms| {
        deliver(session, bytes, now_ms);
        session.poll_timeout(&timeouts)
    };
    // From accept, and not moved by what trickles in.
    assert_eq!(at(&mut session, b"", 100), Some((110, Deadline::Header)));
    assert_eq!(at(&mut session, b"GET / HTTP/1.1\r\n", 105), Some((110, Deadline::Header)));
    assert_eq!(at(&mut session, b"Host: a\r\n\r\n", 109), Some((129, Deadline::KeepAlive)));
    assert_eq!(at(&mut session, b"", 115), Some((129, Deadline::KeepAlive)));
    // An empty line begins nothing; the first byte of a later request does.
    assert_eq!(at(&mut session, b"\r\n", 116), Some((129, Deadline::KeepAlive)));
    assert_eq!(at(&mut session, b"P", 120), Some((130, Deadline::Header)));
    assert_eq!(at(&mut session, b"OST / HTTP/1.1\r\nHost: a\r\n", 125), Some((130, Deadline::Header)));
    // From the last byte of a body.
    assert_eq!(at(&mut session, b"Content-Length: 3\r\n\r\n", 126), Some((156, Deadline::Body)));
    assert_eq!(at(&mut session, b"a", 140), Some((170, Deadline::Body)));
    assert_eq!(at(&mut session, b"", 150), Some((170, Deadline::Body)));
    assert_eq!(at(&mut session, b"bc", 160), Some((180, Deadline::KeepAlive)));
    assert_eq!(at(&mut session, b"BAD\r\n\r\n", 170), None);
}

#[test]
fn a_body_has_to_bring_its_minimum() {
    let timeouts = Timeouts { body_ms: 15_000, body_rate_min: 100, ..Timeouts::default() };
    let cases: [(usize, u64, bool); 4] =
        [(1, 1_000, false), (90, 1_000, false), (110, 1_000, true), (1500, 14_000, true)];
    for head in ["Content-Length: 100000", "Transfer-Encoding: chunked"] {
        for (piece_bytes, every_ms, is_enough) in cases {
            let mut session = Session::new(0);
            deliver(&mut session, format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n").as_bytes(), 0);
            if head.starts_with('T') {
                deliver(&mut session, b"186a0\r\n", 0);
            }
            let mut now_ms = 0;
            let deadline_ms = |session: &Session| session.poll_timeout(&timeouts).expect("a body").0;
            while now_ms < 400_000 && now_ms + every_ms <= deadline_ms(&session) {
                now_ms += every_ms;
                deliver(&mut session, &vec![b'x'; piece_bytes], now_ms);
            }
            assert_eq!(
                now_ms > 390_000,
                is_enough,
                "{head}: {piece_bytes} bytes every {every_ms} ms: {now_ms}"
            );
            assert!(is_enough || now_ms >= 14_000, "{head}: cut off within its grace: {now_ms}");
        }
    }
}

#[test]
fn what_a_timeout_says() {
    let cases = [
        ("", "close;"),
        ("\r\n", "close;"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "close;"),
        ("\r", "408;linger;"),
        ("GET / HTTP/1.1\r\n", "408;linger;"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na", "linger;"),
    ];
    for (bytes, expected) in cases {
        let mut session = Session::new(0);
        deliver(&mut session, bytes.as_bytes(), 0);
        let mut out = Vec::new();
        session.handle_timeout(DATE, &mut out);
        let said = if out.is_empty() { String::new() } else { format!("{};", out[9..12].escape_ascii()) };
        assert_eq!(said + &deliver(&mut session, b"", 0), expected, "{bytes:?}");
        assert_eq!(session.kept_bytes(), 0);
        assert_eq!(session.poll_timeout(&Timeouts::default()), None);
    }
}

#[test]
fn a_slow_drip_keeps_no_more_than_a_head() {
    let mut session = Session::new(0);
    let mut log = deliver(&mut session, b"GET / HTTP/1.1\r\nHost: a\r\nA: ", 0);
    while log.is_empty() {
        assert!(session.kept_bytes() < HEAD_BYTES_MAX);
        log = deliver(&mut session, b"a", 0);
    }
    assert_eq!(log, "431;linger;");
    assert_eq!(session.kept_bytes(), 0);
}

#[test]
fn a_long_body_is_read_to_its_end_without_keeping_it() {
    let mut session = Session::new(0);
    let head = format!("POST / HTTP/1.1\r\n{HOST}Content-Length: {DISCARDED_BODY_BYTES_MAX}\r\n\r\n");
    assert_eq!(deliver(&mut session, head.as_bytes(), 0), "Post /;");
    for _ in 0..DISCARDED_BODY_BYTES_MAX / 4096 {
        assert_eq!(deliver(&mut session, &[b'x'; 4096], 0), "");
        assert_eq!(session.kept_bytes(), 0);
    }
    assert_eq!(deliver(&mut session, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0), "Get /;");
}

#[test]
fn an_upgrade_is_followed_by_whatever_comes() {
    let (mut session, mut out) = (Session::new(0), Vec::new());
    let mut input = &b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n\x01\x02"[..];
    assert!(matches!(session.poll_event(&mut input, 0, DATE, &mut out), Event::Request(_)));
    let body = session.begin_upgrade(Fields::new(b"Upgrade: x\r\n"), DATE, &mut out);
    assert_eq!(body, BodyOut::UntilClose);
    assert!(out.starts_with(b"HTTP/1.1 101 Switching Protocols\r\n"));
    assert!(out.ends_with(b"GMT\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"));
    session.keep(input);
    assert_eq!(deliver(&mut session, b"", 0), "+\\x01\\x02;");
    assert_eq!(deliver(&mut session, b"GET / HTTP/1.1\r\n", 0), "+GET / HTTP/1.1\\r\\n;");
    assert_eq!(session.poll_timeout(&Timeouts::default()), None);
    session.handle_end();
    assert_eq!(deliver(&mut session, b"", 0), "end;");
    session.end_response();
    assert_eq!(deliver(&mut session, b"", 0), "close;");
}

//! Bodies that are wanted, and answers that go on.

use super::*;
use crate::message::Version;

/// Gives the head, and asks for the body. What was written.
fn ask_for_body(session: &mut Session, head: &str) -> String {
    let (mut input, mut out) = (head.as_bytes(), Vec::new());
    let Event::Request(request) = session.poll_event(&mut input, 0, DATE, &mut out) else { panic!() };
    session.read_body(&request, &mut out);
    session.begin_reading(0);
    session.keep(input);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_body_that_is_wanted_comes_in_pieces() {
    let head = |rest: &str| format!("POST /a HTTP/1.1\r\nHost: a\r\n{rest}");
    let next = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    let cases = [
        ("\r\n", "", "end;"),
        ("Content-Length: 3\r\n\r\nab", "c", "+ab;+c;end;"),
        ("Content-Length: 1048577\r\n\r\na", "b", "+a;+b;"),
        ("Transfer-Encoding: chunked\r\n\r\n2\r\nab\r", "\n0\r\n\r\n", "+ab;end;"),
        ("Transfer-Encoding: chunked\r\n\r\n2\r\na", "bc", "+a;+b;400;linger;"),
    ];
    for (rest, more, expected) in cases {
        let mut session = Session::new(0);
        assert_eq!(ask_for_body(&mut session, &head(rest)), "", "{rest:?}");
        let log = deliver(&mut session, b"", 0) + &deliver(&mut session, more.as_bytes(), 0);
        assert_eq!(log, expected, "{rest:?}");
        if log.ends_with("end;") {
            session.begin_response(Status::OK, DATE, &mut Vec::new());
            assert_eq!(deliver(&mut session, next.as_bytes(), 0), "Get /b;", "{rest:?}");
        }
    }
}

#[test]
fn a_body_that_is_withheld_is_asked_for() {
    let mut session = Session::new(0);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(ask_for_body(&mut session, head), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(deliver(&mut session, b"ab", 0), "+ab;end;");
    let mut out = Vec::new();
    session.begin_response(Status::OK, DATE, &mut out);
    assert!(out.ends_with(b"GMT\r\n"), "the connection stays");
}

#[test]
fn a_body_that_is_not_wanted_any_more_is_thrown_away() {
    for (length, expected) in [(5, "Get /b;"), (2_000_000, "linger;")] {
        let mut session = Session::new(0);
        ask_for_body(&mut session, &format!("POST / HTTP/1.1\r\n{HOST}Content-Length: {length}\r\n\r\nab"));
        assert_eq!(deliver(&mut session, b"", 0), "+ab;");
        session.stop_reading();
        session.begin_response(Status::CONTENT_TOO_LARGE, DATE, &mut Vec::new());
        assert_eq!(deliver(&mut session, b"abcGET /b HTTP/1.1\r\nHost: a\r\n\r\n", 0), expected);
    }
}

/// What begins a response amid a body throws the rest away by itself, and says so where that ends the
/// connection.
#[test]
fn a_response_may_begin_amid_a_body() {
    for (length, says, expected) in [(5, "GMT\r\n", "Get /b;"), (2_000_000, "close\r\n", "linger;")] {
        let mut session = Session::new(0);
        ask_for_body(&mut session, &format!("POST / HTTP/1.1\r\n{HOST}Content-Length: {length}\r\n\r\nab"));
        assert_eq!(deliver(&mut session, b"", 0), "+ab;");
        let mut out = Vec::new();
        session.begin_response(Status::OK, DATE, &mut out);
        assert!(out.ends_with(says.as_bytes()), "{length}");
        assert_eq!(deliver(&mut session, b"cdeGET /b HTTP/1.1\r\nHost: a\r\n\r\n", 0), expected);
    }
}

#[test]
fn a_body_is_asked_for_once() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    for before in ["", "a", "abc"] {
        let (mut session, mut input, mut out) = (Session::new(0), head.as_bytes(), Vec::new());
        let Event::Request(request) = session.poll_event(&mut input, 0, DATE, &mut out) else { panic!() };
        session.read_body(&request, &mut out);
        let log = deliver(&mut session, before.as_bytes(), 0);
        session.read_body(&request, &mut out);
        assert_eq!(out, b"HTTP/1.1 100 Continue\r\n\r\n", "{before:?}");
        let body = session.begin_open(Status::OK, Fields::NONE, None, false, DATE, &mut out);
        let rest = format!("{}GET /b HTTP/1.1\r\nHost: a\r\n\r\n", &"abc"[before.len()..]);
        let log = log + &deliver(&mut session, rest.as_bytes(), 0);
        let expected = if before == "a" { "+a;+bc;end;" } else { "+abc;end;" };
        assert_eq!((log.as_str(), body), (expected, BodyOut::Chunked), "{before:?}");
        session.end_response();
        assert_eq!(deliver(&mut session, b"", 0), "Get /b;", "{before:?}");
    }
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let mut session = Session::new(0);
    let mut out = ask_for_body(&mut session, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    session.push_interim(Status::EARLY_HINTS, Fields::new(b"Link: </a>\r\n"), &mut out);
    session.push_interim(Status::EARLY_HINTS, Fields::NONE, &mut out);
    session.begin_response(Status::OK, DATE, &mut out);
    let hints = "HTTP/1.1 103 Early Hints\r\n";
    assert!(out.starts_with(format!("{hints}Link: </a>\r\n\r\n{hints}\r\nHTTP/1.1 200 OK").as_bytes()));
}

#[test]
fn the_end_and_the_deadline_within_a_body_that_is_wanted() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na";
    let mut session = Session::new(0);
    ask_for_body(&mut session, head);
    assert_eq!(deliver(&mut session, b"", 7), "+a;");
    let timeouts = Timeouts { body_ms: 30, ..Timeouts::default() };
    assert_eq!(session.poll_timeout(&timeouts), Some((37, Deadline::Body)));
    session.handle_end();
    assert_eq!(deliver(&mut session, b"", 0), "close;");

    let (mut session, mut out) = (Session::new(0), Vec::new());
    ask_for_body(&mut session, head);
    session.handle_timeout(DATE, &mut out);
    assert!(out.starts_with(b"HTTP/1.1 408 ") && deliver(&mut session, b"", 0) == "linger;");
}

#[test]
fn a_response_that_goes_on() {
    let open = |head: &str, status, length| {
        let (mut session, mut out) = (Session::new(0), Vec::new());
        let mut input = head.as_bytes();
        let Event::Request(request) = session.poll_event(&mut input, 0, DATE, &mut out) else { panic!() };
        let http10 = request.version == Version::Http10;
        let fields = Fields::new(b"A: b\r\n");
        let mut body = session.begin_open(status, fields, length, http10, DATE, &mut out);
        assert!(matches!(session.poll_event(&mut input, 0, DATE, &mut out), Event::NeedInput));
        if body.begin_piece(2, &mut out) > 0 {
            out.extend_from_slice(b"ab");
            body.end_piece(&mut out);
        }
        assert!(body.end(&mut out));
        session.end_response();
        let text = String::from_utf8(out).unwrap();
        text.split_once("GMT\r\n").unwrap().1.to_owned() + &deliver(&mut session, input, 0)
    };
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked\r\nA: b\r\n\r\n";
    assert_eq!(open(get, Status::OK, None), format!("{chunked}2\r\nab\r\n0\r\n\r\n"));
    assert_eq!(open(get, Status::OK, Some(2)), "Content-Length: 2\r\nA: b\r\n\r\nab");
    assert_eq!(open(get, Status::NO_CONTENT, None), "A: b\r\n\r\n");
    assert_eq!(open(&get.replace("GET", "HEAD"), Status::OK, None), chunked);
    let old = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    assert_eq!(open(old, Status::OK, None), "Connection: close\r\nA: b\r\n\r\nabclose;");
}

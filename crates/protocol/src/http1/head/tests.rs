//! Tables of heads, and a comparison with another parser.

mod random;

use super::*;
use crate::message::KeptRequest;

fn search_and_parse(bytes: &[u8]) -> Result<Head<'_>, Refusal> {
    let end = HeadSearch::default().find_end(bytes)?.expect("the whole head is there");
    parse_head(&bytes[..end])
}

/// The code of the refusal, and its reason.
fn refusal(bytes: &[u8]) -> (u16, &'static str) {
    match search_and_parse(bytes) {
        Ok(_) => (200, ""),
        Err(refusal) => (refusal.status.code(), refusal.reason),
    }
}

#[test]
fn request_lines() {
    let cases: &[(&str, u16)] = &[
        ("GET / HTTP/1.1", 200),
        ("GET / HTTP/1.0", 200),
        ("GET / HTTP/1.2", 200),
        ("GET / HTTP/1.9", 200),
        ("get / HTTP/1.1", 200),
        ("G!#$%&'*+-.^_`|~9 / HTTP/1.1", 200),
        ("GET /\"<>\\^`{|} HTTP/1.1", 200),
        ("GET /\u{e4} HTTP/1.1", 200),
        ("OPTIONS * HTTP/1.1", 200),
        ("CONNECT a:443 HTTP/1.1", 200),
        ("GET http://a/ HTTP/1.1", 200),
        ("PRI * HTTP/2.0", 505),
        ("GET / HTTP/2.0", 505),
        ("GET / HTTP/0.9", 505),
        ("GET / HTTP/3.1", 505),
        ("GET / HTTP/1.10", 400),
        ("GET / HTTP/11.1", 400),
        ("GET / HTTP/1", 400),
        ("GET / HTTP/1,1", 400),
        ("GET / HTTP/+1.1", 400),
        ("GET / http/1.1", 400),
        ("GET / Http/1.1", 400),
        ("GET / HTTP/1.1 ", 400),
        ("GET / HTTP/ 1.1", 400),
        ("GET / HTPT/1.1", 400),
        ("GET /", 400),
        ("GET / ", 400),
        ("GET", 400),
        ("GET ", 400),
        ("", 400),
        (" GET / HTTP/1.1", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET /  HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        ("GET /\tHTTP/1.1", 400),
        ("GET /a b HTTP/1.1", 400),
        ("GET /a\tb HTTP/1.1", 400),
        ("GET /a\0b HTTP/1.1", 400),
        ("GET /a\x7fb HTTP/1.1", 400),
        ("GET /a\x0bb HTTP/1.1", 400),
        ("GET /a\rb HTTP/1.1", 400),
        ("GET /a#b HTTP/1.1", 400),
        ("GET a HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400),
        ("G(T / HTTP/1.1", 400),
        ("G\u{e4}T / HTTP/1.1", 400),
        ("/ HTTP/1.1", 400),
    ];
    for (line, expected) in cases {
        let head = format!("{line}\r\nHost: a\r\n\r\n");
        assert_eq!(refusal(head.as_bytes()).0, *expected, "{line:?}: {:?}", refusal(head.as_bytes()));
    }
}

#[test]
fn fields() {
    let cases: &[(&[u8], u16)] = &[
        (b"A: b", 200),
        (b"A:b", 200),
        (b"A:", 200),
        (b"A: \t ", 200),
        (b"A: b\tc d", 200),
        (b"A: \xc3\xa4\xff", 200),
        (b"A: b:c", 200),
        (b"!#$%&'*+-.^_`|~1: b", 200),
        (b"A : b", 400),
        (b"A\t: b", 400),
        (b": b", 400),
        (b" A: b", 400),
        (b"\tA: b", 400),
        (b" ", 400),
        (b"A", 400),
        (b"A b", 400),
        (b"A: b\r\n c", 400),
        (b"A: b\r\n\tc: d", 400),
        (b"A: b\nB: c", 400),
        (b"A: b\rc", 400),
        (b"A: b\r\r\n", 400),
        (b"A: b\0", 400),
        (b"A: b\x01", 400),
        (b"A: b\x7f", 400),
        (b"A: b\x0c", 400),
        (b"A\0: b", 400),
        (b"A(: b", 400),
        (b"A/B: b", 400),
        (b"\xc3\xa4: b", 400),
        (b"\"A\": b", 400),
        (b"Host: a", 400),
        (b"hOST: b", 400),
        (b"Expect: 100-continue", 200),
        (b"Expect: 100-Continue, 100-CONTINUE", 200),
        (b"Expect: 200-ok", 417),
        (b"Expect: 100-continue, x", 417),
        (b"Content-Length: 5, 6", 400),
        (b"content-length: x", 400),
        (b"Transfer-Encoding: gzip, chunked", 501),
        (b"Transfer-Encoding: gzip", 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
    ];
    for (field, expected) in cases {
        let head = [b"GET / HTTP/1.1\r\nHost: a\r\n", *field, b"\r\n\r\n"].concat();
        assert_eq!(
            refusal(&head).0,
            *expected,
            "{:?}: {:?}",
            field.escape_ascii().to_string(),
            refusal(&head)
        );
    }
}

#[test]
fn reasons_name_the_fault() {
    let cases: &[(&[u8], &str)] = &[
        (b"GET / HTTP/1.1\nHost: a\r\n\r\n", "bare LF in the head"),
        (b"GET / HTTP/1.1\r\nHost: a\n\r\n", "bare LF in the head"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\n", "bare LF in the head"),
        (b"\nGET / HTTP/1.1\r\n\r\n", "bare LF in the head"),
        (b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", "bare CR in the head"),
        (b"GET / HTTP/1.1\r\nHost: \0\r\n\r\n", "NUL in the head"),
        (b"GET / HTTP/1.1\r\nHost: \x08\r\n\r\n", "a control character in the head"),
        (b"GET / HTTP/1.1\r\n\r\n", "no Host in HTTP/1.1"),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "Host is not valid"),
        (b"GET / HTTP/1.1\r\nHost: %00\r\n\r\n", "Host is not valid"),
        (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", "Host is empty"),
        (b"HEAD /a HTTP/1.2\r\nHost: \t \r\n\r\n", "Host is empty"),
        (b"GET / HTTP/1.1\r\nHost: :80\r\n\r\n", "Host is empty"),
        (b"GET / HTTP/1.0\r\nHost:\r\n\r\n", ""),
        (b"OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", ""),
        (b"GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n", ""),
        (b"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", "the host in the target is not valid"),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "more than one Host"),
        (b"\r\n\r\n", "the request line is empty"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n x\r\n\r\n", "a header line begins with white space"),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "white space between a field name and its colon"),
    ];
    for (head, reason) in cases {
        assert_eq!(refusal(head).1, *reason, "{:?}", head.escape_ascii().to_string());
    }
}

#[test]
fn everything_a_handler_asks_for() {
    let bytes = b"HEAD /a%20b?c?d HTTP/1.1\r\nHOST:\t[::1]:80 \r\nACCEPT: x\r\nAccept-Encoding: br\r\n\
        Range: bytes=0-1\r\nIf-Range: \"r\"\r\nIf-Match: \"m\"\r\nIf-None-Match: \"n\"\r\nX: y\r\n\
        If-Modified-Since: s\r\nIf-Unmodified-Since: u\r\naccept-encoding: gzip\r\nif-none-match: *\r\n\r\n";
    let head = search_and_parse(bytes).expect("valid");
    let request = head.request;
    assert_eq!(
        (request.method, request.path, request.query),
        (Method::Head, &b"/a%20b"[..], Some(&b"c?d"[..]))
    );
    assert_eq!(
        (request.host, request.version, request.content),
        (&b"[::1]"[..], Version::Http11, BodyIn::None)
    );
    assert_eq!((request.accept(), request.accept_encoding()), (Some(&b"x"[..]), Some(&b"br"[..])));
    assert_eq!((request.range(), request.if_range()), (Some(&b"bytes=0-1"[..]), Some(&b"\"r\""[..])));
    assert_eq!((request.if_match(), request.if_none_match()), (Some(&b"\"m\""[..]), Some(&b"\"n\""[..])));
    assert_eq!(
        (request.if_modified_since(), request.if_unmodified_since()),
        (Some(&b"s"[..]), Some(&b"u"[..]))
    );
    assert_eq!(request.repeated, Request::ACCEPT_ENCODING | Request::IF_NONE_MATCH);
    assert_eq!(request.values(b"ACCEPT-ENCODING").collect::<Vec<_>>(), [&b"br"[..], b"gzip"]);
    assert_eq!(request.values(b"x").collect::<Vec<_>>(), [b"y"]);
    assert_eq!(request.values(b"y").count(), 0);
    assert_eq!(request.fields().count(), 12);
    assert_eq!(request.head, bytes);
    assert!(head.keep_alive && !head.expects_continue && !head.wants_tunnel);
}

#[test]
fn persistence() {
    let cases: &[(&str, &str, bool)] = &[
        ("1.1", "", true),
        ("1.1", "Connection: keep-alive", true),
        ("1.1", "Connection: close", false),
        ("1.1", "connection: x , CLOSE", false),
        ("1.1", "Connection: keep-alive, close", false),
        ("1.1", "Connection: close\r\nConnection: keep-alive", false),
        ("1.1", "Connection: Upgrade\r\nUpgrade: h2c", true),
        ("1.1", "Connection: closed", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive", true),
        ("1.0", "Connection: a\r\nConnection: keep-alive", true),
        ("1.0", "Connection: keep-alive, close", false),
        ("1.0", "Keep-Alive: 5", false),
    ];
    for (version, fields, keep_alive) in cases {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n\r\n")
            .replace("\r\n\r\n\r\n", "\r\n\r\n");
        let parsed = search_and_parse(head.as_bytes()).expect("valid");
        assert_eq!(parsed.keep_alive, *keep_alive, "{head:?}");
    }
}

#[test]
fn methods() {
    for (name, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Post),
        ("PROPFIND", Method::Other),
        ("get", Method::Unknown),
        ("GETT", Method::Unknown),
    ] {
        let head = format!("{name} / HTTP/1.0\r\n\r\n");
        assert_eq!(search_and_parse(head.as_bytes()).expect("valid").request.method, method, "{name}");
    }
}

#[test]
fn limits() {
    let line_of = |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(bytes - 14));
    assert_eq!(refusal(line_of(REQUEST_LINE_BYTES_MAX).as_bytes()).0, 200);
    assert_eq!(refusal(line_of(REQUEST_LINE_BYTES_MAX + 1).as_bytes()).0, 414);
    let head_of =
        |bytes: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "a".repeat(bytes - 32));
    assert_eq!(head_of(HEAD_BYTES_MAX).len(), HEAD_BYTES_MAX);
    assert_eq!(refusal(head_of(HEAD_BYTES_MAX).as_bytes()).0, 200);
    assert_eq!(refusal(head_of(HEAD_BYTES_MAX + 1).as_bytes()).0, 431);
    let fields_of =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(count - 1));
    assert_eq!(refusal(fields_of(FIELDS_MAX).as_bytes()).0, 200);
    assert_eq!(refusal(fields_of(FIELDS_MAX + 1).as_bytes()).0, 431);
}

#[test]
fn one_pass_keeps_the_limits() {
    let head = |path_bytes: usize, field_bytes: usize, fields: usize| {
        let (path, value) = ("a".repeat(path_bytes), "b".repeat(field_bytes));
        format!("GET /{path} HTTP/1.1\r\nHost: a\r\nA: {value}\r\n{}\r\n", "A: b\r\n".repeat(fields))
    };
    let line_rest = "GET / HTTP/1.1".len();
    let head_rest = head(0, 0, 0).len();
    for (text, good) in [
        (head(REQUEST_LINE_BYTES_MAX - line_rest, 0, 0), true),
        (head(REQUEST_LINE_BYTES_MAX - line_rest + 1, 0, 0), false),
        (head(0, HEAD_BYTES_MAX - head_rest, 0), true),
        (head(0, HEAD_BYTES_MAX - head_rest + 1, 0), false),
        (head(0, 0, FIELDS_MAX - 2), true),
        (head(0, 0, FIELDS_MAX - 1), false),
    ] {
        let length = text.len();
        assert_eq!(parse_at_once(text.as_bytes()).is_some(), good, "{length} bytes");
        assert_eq!(is_taken_slowly(text.as_bytes()), good, "{length} bytes");
    }
}

/// Whether the slow way takes the head.
fn is_taken_slowly(bytes: &[u8]) -> bool {
    matches!(HeadSearch::default().find_end(bytes), Ok(Some(end)) if parse_head(&bytes[..end]).is_ok())
}

#[test]
fn limits_are_seen_before_the_blank_line_comes() {
    let mut search = HeadSearch::default();
    assert_eq!(search.find_end(&vec![b'a'; REQUEST_LINE_BYTES_MAX + 1]), Ok(None));
    assert_eq!(search.find_end(&vec![b'a'; REQUEST_LINE_BYTES_MAX + 2]), Err(LINE_TOO_LONG));
    let mut head = b"GET / HTTP/1.1\r\n".to_vec();
    head.resize(HEAD_BYTES_MAX - 1, b'a');
    let mut search = HeadSearch::default();
    assert_eq!(search.find_end(&head), Ok(None));
    head.push(b'a');
    assert_eq!(search.find_end(&head), Err(HEAD_TOO_LARGE));
}

#[test]
fn a_fault_is_told_when_its_line_is_complete() {
    let fields = "A: b\r\n".repeat(FIELDS_MAX);
    let cases = [
        ("GET / HTTP/5.6\r\n", 505),
        ("GET / HTTP/1.x\r\n", 400),
        ("GET /\r\n", 400),
        ("G(T / HTTP/1.1\r\n", 400),
        ("GET a HTTP/1.1\r\n", 400),
        ("GET /a\0 HTTP/1.1\r\n", 400),
        ("GET / HTTP/1.1\n", 400),
        ("GET / HTTP/1.1\r\nA: b\r\n c\r\n", 400),
        ("GET / HTTP/1.1\r\nA : b\r\n", 400),
        ("GET / HTTP/1.1\r\nA\r\n", 400),
        ("GET / HTTP/1.1\r\nA: b\rc\r\n", 400),
        (&format!("GET / HTTP/1.1\r\n{fields}B: c\r\n"), 431),
    ];
    for (text, status) in cases {
        let mut search = HeadSearch::default();
        for end in 0..text.len() {
            assert_eq!(search.find_end(&text.as_bytes()[..end]), Ok(None), "{end} bytes of {text:?}");
        }
        let found = search.find_end(text.as_bytes()).map_err(|refusal| refusal.status.code());
        assert_eq!(found, Err(status), "{text:?}");
        let behind = format!("{text}\0\n\r\n\r\n");
        let at_once = HeadSearch::default().find_end(behind.as_bytes());
        assert_eq!(at_once.map_err(|refusal| refusal.status.code()), Err(status), "{behind:?}");
    }
    // What is answered for a whole head only, for the connection stays open behind it.
    for line in ["BREW / HTTP/1.1\r\n", "DELETE / HTTP/1.1\r\n"] {
        assert_eq!(HeadSearch::default().find_end(line.as_bytes()), Ok(None), "{line:?}");
    }
}

#[test]
fn a_kept_request_says_the_same() {
    for head in [
        "GET /a%20b?c=d HTTP/1.1\r\nHost: a.example:80\r\nRange: bytes=1-2\r\nAccept: x\r\n\
         Accept: y\r\n\r\n",
        "GET http://b.example HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
        "POST / HTTP/1.0\r\nContent-Length: 7\r\n\r\n",
    ] {
        let request = parse_at_once(head.as_bytes()).expect("a good head").request;
        let kept = KeptRequest::of(&request);
        assert_eq!(format!("{request:?}"), format!("{:?}", kept.get()), "{head:?}");
        assert!(kept.held_bytes() >= head.len());
    }
}

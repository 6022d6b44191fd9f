//! Heads and bodies: the kernel's parser beside the server's session.

use proptest::prelude::*;
use staunch_protocol::http1::{Event, Session};
use staunch_protocol::{BodyIn, Method, Request, Status, Version};

use crate::driver::{self, Driver};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// What the session says of the same bytes, in the driver's words.
fn by_session(bytes: &[u8], step: usize) -> String {
    let step = if step == 0 { bytes.len() } else { step };
    let mut session = Session::new(0);
    let mut out = Vec::new();
    for piece in bytes.chunks(step.max(1)) {
        let joined = session.take_kept(piece).into_owned();
        let mut input = &joined[..];
        match session.poll_event(&mut input, 0, DATE, &mut out) {
            Event::NeedInput => session.keep(input),
            Event::Close { answered, .. } => {
                let status = answered.expect("an answer").status;
                return refusal(status, &out);
            }
            Event::Request(request) => {
                let told = tell(&request);
                let head = request.head.len();
                let keep = keeps(&mut session);
                return told.replace("KEEP", keep).replace("HEAD", &head.to_string());
            }
            Event::Preface => {
                let answered = session.refuse_preface(DATE, &mut out);
                return refusal(answered.status, &out);
            }
            Event::Body(_) | Event::BodyEnd => unreachable!("no handler has asked for a body"),
        }
    }
    "incomplete".to_owned()
}

fn refusal(status: Status, out: &[u8]) -> String {
    let text = String::from_utf8_lossy(out);
    let sentence = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let reason = sentence.split_once(": ").map_or("", |(_, reason)| reason.trim_end());
    format!("refused {} {reason}", status.code())
}

fn keeps(session: &mut Session) -> &'static str {
    let mut out = Vec::new();
    session.begin_response(Status::OK, DATE, &mut out);
    if String::from_utf8_lossy(&out).contains("Connection: close") { "0" } else { "1" }
}

fn tell(request: &Request<'_>) -> String {
    let method = match request.method {
        Method::Get => 0,
        Method::Head => 1,
        Method::Options => 2,
        Method::Connect => 3,
        Method::Unknown => 5,
        _ => 4,
    };
    let query = request.query.map_or(String::new(), |query| format!("?{}", hex(query)));
    let (framing, bytes) = match request.content {
        BodyIn::None => (0, 0),
        BodyIn::Length(bytes) => (1, bytes),
        BodyIn::Open => (2, 0),
    };
    let fields = [
        request.accept_encoding(),
        request.range(),
        request.if_range(),
        request.if_match(),
        request.if_none_match(),
        request.if_modified_since(),
        request.if_unmodified_since(),
    ];
    let fields: String = fields
        .iter()
        .map(|field| field.map_or(" -".to_owned(), |value| format!(" +{}", hex(value))))
        .collect();
    format!(
        "complete method={method} path={} query={query} host={} head=HEAD http10={} keep=KEEP \
         framing={framing} bytes={bytes}{fields}",
        hex(request.path),
        hex(request.host),
        u8::from(request.version == Version::Http10),
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asks the kernel's parser for the same bytes; what it says of the body is judged elsewhere.
fn by_kernel(driver: &mut Driver, bytes: &[u8], step: usize) -> String {
    let step = u32::try_from(step).expect("a small step").to_le_bytes();
    let said = driver.must(b'q', &[&step[..], bytes].concat());
    said.split_once(" progress=").map_or(said.clone(), |(head, _)| head.to_owned())
}

fn agree(driver: &mut Driver, bytes: &[u8]) {
    // The connection, not the parser, skips an empty line before a request.
    let bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    if bytes.starts_with(b"\r\n") {
        return;
    }
    for step in [0, 1, 7] {
        let (session, kernel) = (by_session(bytes, step), by_kernel(driver, bytes, step));
        // The answer to HEAD has no body, so the session's reason cannot be seen.
        let seen = if bytes.starts_with(b"HEAD ") && session.starts_with("refused") {
            &kernel[..12]
        } else {
            &kernel
        };
        assert_eq!(seen, session, "in steps of {step}: {:?}", String::from_utf8_lossy(bytes));
    }
}

const HEADS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a.txt?x=1&y HTTP/1.0\r\n\r\n",
    "HEAD /%41/../b HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close, TE\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
    "OPTIONS http://a HTTP/1.1\r\nHost: b\r\n\r\n",
    "GET https://[::ffff:1.2.3.4]:1?q HTTP/1.1\r\nHost: [1::2]:80\r\n\r\n",
    "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "POST /f HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\nContent-Length: 4\r\n\r\nabc",
    "PUT /f HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n",
    "PUT /f HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n",
    "PUT /f HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    "PUT /f HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
     3;x=\"y\\\"\"\r\nabc\r\n0\r\nA: b\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;=\"y\"\r\nabc\r\n0\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;\r\nabc\r\n0\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\r\nabc\r\n0\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"c\r\nabc\r\n0\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b ; c = \"d\" \r\nabc\r\n0\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 ; a = b;c\r\nabc\r\n0\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
    "POST /f HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    "PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n",
    "BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\nRange: bytes=2-\r\nIf-Range: \"x\"\r\nIf-Match: *\r\n\
     If-None-Match: W/\"x\"\r\nIf-Modified-Since: x\r\nIf-Unmodified-Since: y\r\n\
     Accept-Encoding:\tgzip \r\n\r\n",
    "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\n Folded: x\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET / HTTP/1.1\r\n: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: y\x7f\r\n\r\n",
    "GET /#f HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a%2fb\r\n\r\n",
    "GET /\r\n\r\n",
    " GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7::]\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:1.2.3.4]\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6::1.2.3.4]\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [:::]\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [::1.2.3.04]\r\n\r\n",
];

#[test]
fn what_is_known_to_be_hard() {
    let Some(mut driver) = driver::start() else { return };
    for head in HEADS {
        agree(&mut driver, head.as_bytes());
    }
    assert!(HEADS.iter().any(|head| by_kernel(&mut driver, head.as_bytes(), 0).starts_with("complete")));
}

#[test]
fn limits_are_the_servers() {
    let Some(mut driver) = driver::start() else { return };
    for bytes in [8170, 8176, 8177, 8178, 8192, 9000, 40_000] {
        agree_in_large(&mut driver, &format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(bytes)));
        agree_in_large(&mut driver, &format!("GET /{}", "x".repeat(bytes)));
    }
    for bytes in [31_000, 32_720, 32_725, 32_730, 32_731, 32_732, 32_733, 33_000] {
        agree_in_large(
            &mut driver,
            &format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(bytes)),
        );
    }
    for count in [98, 99, 100, 101] {
        agree_in_large(
            &mut driver,
            &format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count)),
        );
    }
}

fn agree_in_large(driver: &mut Driver, text: &str) {
    for step in [0, 4093] {
        let (session, kernel) = (by_session(text.as_bytes(), step), by_kernel(driver, text.as_bytes(), step));
        assert_eq!(kernel, session, "{} bytes in steps of {step}", text.len());
    }
}

/// A good or nearly good head with some bytes replaced, left out or put in.
fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    let letter =
        prop_oneof![any::<u8>(), proptest::sample::select(b" \t\r\n:,;/?#%*\"[].-0aZ\x7f\0".to_vec()),];
    let change = (any::<prop::sample::Index>(), 0..4_u8, letter);
    (0..HEADS.len(), prop::collection::vec(change, 0..4)).prop_map(|(head, changes)| {
        let mut bytes = HEADS[head].as_bytes().to_vec();
        for (place, kind, letter) in changes {
            let at = place.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match kind {
                0 if !bytes.is_empty() => bytes[at] = letter,
                1 if !bytes.is_empty() => _ = bytes.remove(at),
                2 => bytes.truncate(at),
                _ => bytes.insert(at, letter),
            }
        }
        bytes
    })
}

#[test]
fn both_understand_alike() {
    let Some(mut driver) = driver::start() else { return };
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(4000));
    let driver = std::cell::RefCell::new(&mut driver);
    let outcome = runner.run(&spoiled(), |bytes| {
        agree(&mut driver.borrow_mut(), &bytes);
        Ok(())
    });
    outcome.expect("the same words of both");
}

/// Of bodies the session tells only what comes behind them, so these have a table.
#[test]
fn bodies_end_where_they_say() {
    let Some(mut driver) = driver::start() else { return };
    let (done, more, lost, broken) = (0, 1, 2, 3);
    let coded = "Transfer-Encoding: chunked";
    let long = format!("{};{}\r\n", "1", "x".repeat(300));
    for (field, body, progress, behind) in [
        ("X: y", "next", done, 4),
        ("Content-Length: 3", "abcnext", done, 4),
        ("Content-Length: 30", "abc", more, 0),
        ("Content-Length: 1048577", "abc", lost, 3),
        (coded, "3\r\nabc\r\n0\r\n\r\nnext", done, 4),
        (coded, "03 ;a=\"\\\"\r\" \r\nabc\r\n0\r\n\r\n", broken, 0),
        (coded, "3 ;a=\"\\\"\"\r\nabc\r\n0\r\nA: b\r\nC:\r\n\r\nnext", done, 4),
        (coded, "3\r\nab", more, 0),
        (coded, "ffff0\r\n", more, 0),
        (coded, "1000000\r\n", lost, 0),
        (coded, "3\r\nabcd", broken, 0),
        (coded, "x", broken, 0),
        (coded, "3 \r\nabc", broken, 0),
        (coded, "0\r\n folded: x\r\n\r\n", broken, 0),
        (coded, &long, broken, 0),
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n{body}");
        let said = driver.must(b'q', &[&0_u32.to_le_bytes()[..], head.as_bytes()].concat());
        if progress == broken {
            assert!(said.starts_with("refused 400 the body is not"), "{head:?}: {said}");
            continue;
        }
        let (_, told) = said.split_once(" progress=").unwrap_or_else(|| panic!("{head:?}: {said}"));
        let (found, left) = told.split_once(" behind=").expect("a number");
        assert_eq!(found, progress.to_string(), "{head:?}");
        assert!(progress != done || left == behind.to_string(), "{head:?}: {left} behind");
    }
}

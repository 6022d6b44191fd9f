//! What must hold of all requests and answers: no split changes a step, and other readers understand the same.

use httparse::{EMPTY_HEADER, Response, Status};
use proptest::prelude::*;

use crate::relay_reading::{Step, answers, read};
use crate::relay_writing::{pass_on_with_host, understand};

#[path = "../reading/mod.rs"]
#[allow(dead_code)]
mod reading;

/// Lines of an answer, most of them good.
fn answer_field() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z-]{1,12}:[ \\t]?[ -~]{0,20}",
        1 => Just("Connection: close".to_owned()),
        1 => Just("Connection: A, b".to_owned()),
        1 => Just("Server: a".to_owned()),
        1 => Just("Content-Length: 4".to_owned()),
        1 => Just("Transfer-Encoding: chunked".to_owned()),
    ]
}

fn answer() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("HTTP/1.1 200 OK"),
        Just("HTTP/1.1 404 Not Found"),
        Just("HTTP/1.0 200 OK"),
        Just("HTTP/1.1 204 No Content"),
        Just("HTTP/1.1 304 x"),
        Just("HTTP/1.1 100 Continue"),
        Just("HTTP/1.1 103 Early Hints"),
    ];
    let framed = prop_oneof![
        Just(("Content-Length: 5\r\n", "01234")),
        Just(("Transfer-Encoding: chunked\r\n", "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: t\r\n\r\n")),
        Just(("", "")),
    ];
    (line, prop::collection::vec(answer_field(), 0..4), framed).prop_map(|(line, fields, (framing, body))| {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        format!("{line}\r\n{fields}{framing}\r\n{body}").into_bytes()
    })
}

/// Bytes with one of them changed, in one case of five.
fn spoil(mut bytes: Vec<u8>, spoilt: Option<(usize, u8)>) -> Vec<u8> {
    if let Some((at, byte)) = spoilt {
        let at = at % bytes.len().max(1);
        bytes.iter_mut().skip(at).take(1).for_each(|spoilt| *spoilt = byte);
    }
    bytes
}

fn one_spoilt() -> impl Strategy<Value = Option<(usize, u8)>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"\r\n\0 :,;0\t".to_vec())];
    prop::option::weighted(0.3, (0usize..500, byte))
}

fn split(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
    cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..cut]);
        from = cut;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]
    #[test]
    fn no_split_changes_what_is_read(
        sent in prop::collection::vec(answer(), 1..4),
        spoilt in one_spoilt(),
        cuts in prop::collection::vec(0usize..900, 0..8),
        heads in prop::collection::vec(any::<bool>(), 1..4),
    ) {
        let bytes = spoil(sent.concat(), spoilt);
        let whole = read([&bytes[..]], &heads);
        prop_assert_eq!(&read(split(&bytes, cuts), &heads), &whole, "{}", bytes.escape_ascii());
        prop_assert_eq!(&read(bytes.chunks(1), &heads), &whole, "{}", bytes.escape_ascii());
    }

    /// A reader that takes more understands every answer that is passed on in the same way.
    #[test]
    fn a_kinder_reader_understands_the_same(
        sent in prop::collection::vec(answer(), 1..4),
        spoilt in one_spoilt(),
        heads in prop::collection::vec(any::<bool>(), 1..4),
    ) {
        let bytes = spoil(sent.concat(), spoilt);
        let strict = answers(&read([&bytes[..]], &heads));
        let kind = reading::read([&bytes[..]], &heads).answers;
        prop_assert!(kind.len() >= strict.len(), "{}", bytes.escape_ascii());
        for (strict, kind) in strict.iter().zip(&kind) {
            prop_assert_eq!((strict.0, &strict.1), (kind.0, &kind.1), "{}", bytes.escape_ascii());
            prop_assert!(kind.2 || !strict.2, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn httparse_reads_the_same_fields(
        fields in prop::collection::vec(answer_field(), 0..6),
        spoilt in one_spoilt(),
    ) {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let bytes = spoil(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes(), spoilt);
        let strict = read([&bytes[..]], &[false]);
        let Some(Step::Head(head)) = strict.steps.first() else { return Ok(()) };
        let mut room = [EMPTY_HEADER; 16];
        let mut response = Response::new(&mut room);
        prop_assert!(matches!(response.parse(&bytes), Ok(Status::Complete(_))), "{}", bytes.escape_ascii());
        prop_assert_eq!(response.code, Some(head.code));
        let theirs: Vec<String> = response.headers.iter().map(|header| {
            format!("{}: {}", header.name, header.value.trim_ascii().escape_ascii())
        }).collect();
        for line in head.fields.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':').expect("a colon"));
            let value = value[1..].trim_ascii().escape_ascii();
            let line = format!("{}: {value}", name.escape_ascii());
            prop_assert!(theirs.contains(&line), "{line:?} is not in {theirs:?}");
        }
    }
}

/// Lines of a request, most of them good.
fn request_field() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z_-]{1,12}:[ \\t]?[ -~]{0,20}",
        1 => "Connection: [A-Za-z-]{1,9}(, [a-z-]{1,9})?",
        1 => "Cookie: [a-z]=[a-z]",
        1 => "X-Forwarded-For: [0-9.]{1,9}",
        1 => "Via: 1.1 [a-z]{1,5}",
        1 => Just("TE: trailers".to_owned()),
        1 => Just("Expect: 100-continue".to_owned()),
        1 => Just("Proxy: a".to_owned()),
    ]
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("GET /a?b HTTP/1.1"),
        Just("POST / HTTP/1.1"),
        Just("PUT http://b:1/c HTTP/1.1"),
        Just("OPTIONS * HTTP/1.1"),
        Just("HEAD /%2e HTTP/1.0"),
    ];
    let framed = prop_oneof![
        Just(("Content-Length: 5\r\n", "01234")),
        Just(("Transfer-Encoding: chunked\r\n", "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: t\r\n\r\n")),
        Just(("", "")),
    ];
    (line, prop::collection::vec(request_field(), 0..5), framed).prop_map(
        |(line, fields, (framing, body))| {
            let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
            format!("{line}\r\nHost: a:1\r\n{fields}{framing}\r\n{body}").into_bytes()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]
    /// As many requests, the same targets, hosts and bodies.
    #[test]
    fn the_application_understands_what_was_understood(
        sent in prop::collection::vec(request(), 1..4),
        spoilt in one_spoilt(),
        trusts in any::<bool>(),
    ) {
        let bytes = spoil(sent.concat(), spoilt);
        let passed = pass_on_with_host(&bytes, |way| (way.trusts, way.upgrades) = (trusts, trusts));
        prop_assert_eq!(&understand(&passed.stream), &passed.requests, "{}", bytes.escape_ascii());
        let mut rest = &passed.stream[..];
        for request in &passed.requests {
            let mut room = [EMPTY_HEADER; 32];
            let mut parsed = httparse::Request::new(&mut room);
            let Ok(Status::Complete(head_bytes)) = parsed.parse(rest) else {
                panic!("httparse does not read {}", rest.escape_ascii())
            };
            let target = [request.path.clone(), request.query.iter().flat_map(|query| [b"?", &query[..]].concat()).collect()].concat();
            prop_assert_eq!(parsed.path.map(str::as_bytes), Some(&target[..]));
            prop_assert_eq!(parsed.version, Some(1));
            let chunked = parsed.headers.iter().any(|header| header.name == "Transfer-Encoding");
            let length = if chunked {
                rest[head_bytes..].windows(5).position(|end| end == b"0\r\n\r\n").map_or(0, |at| at + 5)
            } else {
                request.body.len()
            };
            rest = &rest[head_bytes + length..];
        }
        prop_assert_eq!(rest, b"");
    }
}

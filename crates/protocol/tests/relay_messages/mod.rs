//! Requests and answers as they come: most of them good, some with a byte that was changed.
//!
//! Tests of the relay share it. It must never know what is made of them.

use proptest::prelude::*;

/// Up to three requests of a connection.
pub(crate) fn requests() -> impl Strategy<Value = Vec<u8>> {
    spoilt(prop::collection::vec(request(), 1..4).prop_map(|requests| requests.concat()))
}

/// Up to three answers of a connection.
pub(crate) fn answers() -> impl Strategy<Value = Vec<u8>> {
    spoilt(prop::collection::vec(answer(), 1..4).prop_map(|answers| answers.concat()))
}

/// The head of an answer.
#[allow(dead_code, reason = "not every test looks at heads alone")]
pub(crate) fn head() -> impl Strategy<Value = Vec<u8>> {
    let fields = prop::collection::vec(answer_field(), 0..6).prop_map(lines);
    spoilt(fields.prop_map(|fields| format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes()))
}

/// Changes a byte of some.
fn spoilt(messages: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"\r\n\0 :,;0\t".to_vec())];
    let change = prop::option::weighted(0.3, (any::<prop::sample::Index>(), byte));
    (messages, change).prop_map(|(mut bytes, change)| {
        if let Some((place, byte)) = change {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes
    })
}

fn lines(fields: Vec<String>) -> String {
    fields.iter().map(|field| format!("{field}\r\n")).collect()
}

/// What stands in front of a body, and the body.
fn framed() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        Just(("Content-Length: 5\r\n", "01234")),
        Just(("Transfer-Encoding: chunked\r\n", "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: t\r\n\r\n")),
        Just(("", "")),
    ]
}

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
    prop_oneof![5 => final_answer(), 1 => interim_answer()]
}

fn interim_answer() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![Just("HTTP/1.1 100 Continue"), Just("HTTP/1.1 103 Early Hints")];
    let fields = prop::collection::vec("Link: [a-z]{1,5}", 0..3);
    (line, fields).prop_map(|(line, fields)| format!("{line}\r\n{}\r\n", lines(fields)).into_bytes())
}

fn final_answer() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("HTTP/1.1 200 OK"),
        Just("HTTP/1.1 404 Not Found"),
        Just("HTTP/1.0 200 OK"),
        Just("HTTP/1.1 204 No Content"),
        Just("HTTP/1.1 304 x"),
    ];
    (line, prop::collection::vec(answer_field(), 0..4), framed()).prop_map(
        |(line, fields, (framing, body))| {
            let fields = lines(fields);
            format!("{line}\r\n{fields}{framing}\r\n{body}").into_bytes()
        },
    )
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
    (line, prop::collection::vec(request_field(), 0..5), framed()).prop_map(
        |(line, fields, (framing, body))| {
            let fields = lines(fields);
            format!("{line}\r\nHost: a:1\r\n{fields}{framing}\r\n{body}").into_bytes()
        },
    )
}

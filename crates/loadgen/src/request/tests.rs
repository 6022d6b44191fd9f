//! Requests, byte for byte.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_netio::Part;

use super::*;

const VALUES: Values = Values { serial: 10, thread: 1, connection: 2, unix_ms: 3 };

fn plan(method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> RequestPlan {
    RequestPlan {
        method: method.to_owned(),
        fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        body: body.as_bytes().to_vec(),
        ..RequestPlan::get(target)
    }
}

/// The bytes of everything in `outgoing`.
fn bytes_of(outgoing: &Outgoing) -> Vec<u8> {
    let (mut own, parts) = outgoing.contents();
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Own(count) => {
                bytes.extend_from_slice(&own[..*count]);
                own = &own[*count..];
            }
            Part::Shared(slice) => bytes.extend_from_slice(slice.as_bytes()),
            Part::File(_) => panic!("requests have no files"),
        }
    }
    [&bytes, own].concat()
}

fn write(request: &RenderedRequest, times: usize) -> Outgoing {
    let mut outgoing = Outgoing::default();
    let (mut random, mut scratch) = (Xoshiro256PlusPlus::seed_from_u64(1), Vec::new());
    (0..times).for_each(|_| request.write(&VALUES, &mut random, &mut scratch, &mut outgoing));
    outgoing
}

#[test]
fn requests_byte_for_byte() {
    let cases = [
        (plan("GET", "/", &[], ""), true, "GET / HTTP/1.1\r\nHost: a:8\r\n\r\n"),
        (
            plan("HEAD", "/a?b", &[], ""),
            false,
            "HEAD /a?b HTTP/1.1\r\nHost: a:8\r\nConnection: close\r\n\r\n",
        ),
        (plan("OPTIONS", "*", &[], ""), true, "OPTIONS * HTTP/1.1\r\nHost: a:8\r\n\r\n"),
        (plan("POST", "/", &[], ""), true, "POST / HTTP/1.1\r\nHost: a:8\r\nContent-Length: 0\r\n\r\n"),
        (plan("GET", "/", &[], "abc"), true, "GET / HTTP/1.1\r\nHost: a:8\r\nContent-Length: 3\r\n\r\nabc"),
        (
            plan("PUT", "/", &[("hOST", "b"), ("connection", "Upgrade"), ("X-Y", "\t\u{fc} ")], "abc"),
            false,
            "PUT / HTTP/1.1\r\nhOST: b\r\nconnection: Upgrade\r\nX-Y: \t\u{fc} \r\n\
             Content-Length: 3\r\n\r\nabc",
        ),
        (
            plan("POST", "/", &[("Transfer-Encoding", "chunked")], "0\r\n\r\n"),
            true,
            "POST / HTTP/1.1\r\nHost: a:8\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            plan("POST", "/", &[("content-length", "9")], ""),
            true,
            "POST / HTTP/1.1\r\nHost: a:8\r\ncontent-length: 9\r\n\r\n",
        ),
        (
            plan("GET", "/{{serial}}", &[("A", "{{thread}}{{pick x}}")], ""),
            true,
            "GET /10 HTTP/1.1\r\nHost: a:8\r\nA: 1x\r\n\r\n",
        ),
        (
            plan("POST", "/{{serial}}", &[], "{{{{"),
            true,
            "POST /10 HTTP/1.1\r\nHost: a:8\r\nContent-Length: 2\r\n\r\n{{",
        ),
        (
            plan("POST", "/", &[], "{\"id\":{{serial}},\"at\":{{unix_ms}}}"),
            true,
            "POST / HTTP/1.1\r\nHost: a:8\r\nContent-Length: 16\r\n\r\n{\"id\":10,\"at\":3}",
        ),
        (
            RequestPlan { plain_body: true, ..plan("POST", "/", &[], "{{serial}}") },
            true,
            "POST / HTTP/1.1\r\nHost: a:8\r\nContent-Length: 10\r\n\r\n{{serial}}",
        ),
    ];
    for (plan, keep_alive, expected) in cases {
        let request = RenderedRequest::new(&plan, "a:8", keep_alive).expect(expected);
        assert_eq!(String::from_utf8_lossy(&bytes_of(&write(&request, 1))), expected);
        let twice = write(&request, 2);
        assert_eq!(bytes_of(&twice), expected.repeat(2).as_bytes());
        assert_eq!(twice.length_bytes(), 2 * expected.len() as u64);
        assert!(request.length_bytes().is_none_or(|length_bytes| length_bytes == expected.len()));
        assert_eq!(request.asked_by_head, plan.method == "HEAD");
    }
}

#[test]
fn large_requests_are_shared_and_small_ones_copied() {
    for (body_bytes, shared) in [(100, false), (SHARED_BYTES_MIN, true)] {
        let body = "x".repeat(body_bytes);
        let request = RenderedRequest::new(&plan("POST", "/", &[], &body), "a", true).expect("a request");
        let outgoing = write(&request, 2);
        assert_eq!(outgoing.contents().1.len(), if shared { 2 } else { 0 });
        assert!(bytes_of(&outgoing).ends_with(body.as_bytes()));
        assert_eq!(outgoing.length_bytes(), 2 * request.length_bytes().expect("it is static") as u64);
    }
}

#[test]
fn faults() {
    let known =
        "known are serial, thread, connection, unix_ms, random LOWEST HIGHEST, and pick with its choices";
    let cases = [
        (plan("", "/", &[], ""), "`` is not a method".to_owned()),
        (plan("GE T", "/", &[], ""), "`GE T` is not a method".to_owned()),
        (plan("CONNECT", "/", &[], ""), "CONNECT asks for a tunnel, which cannot be loaded".to_owned()),
        (plan("GET", "", &[], ""), "the target `` does not begin with `/`".to_owned()),
        (plan("GET", "a", &[], ""), "the target `a` does not begin with `/`".to_owned()),
        (plan("GET", "*", &[], ""), "the target `*` does not begin with `/`".to_owned()),
        (plan("GET", "/a b", &[], ""), "`/a b`: a space in a path is written `%20`".to_owned()),
        (
            plan("GET", "/{{x}}", &[], ""),
            format!("the target, character 2: `{{{{x}}}}` is not known: {known}"),
        ),
        (plan("GET", "/", &[("A:", "")], ""), "`A:` is not the name of a field".to_owned()),
        (
            plan("GET", "/", &[("A", "{{x}}")], ""),
            format!("the field A, character 1: `{{{{x}}}}` is not known: {known}"),
        ),
        (
            plan("GET", "/", &[("A", "b\r\nC: d")], ""),
            "the field A has a line break or another control character".to_owned(),
        ),
        (
            plan("GET", "/", &[], "\n{{x}}"),
            format!("the body, character 2: `{{{{x}}}}` is not known: {known}"),
        ),
    ];
    for (plan, sentence) in cases {
        assert_eq!(RenderedRequest::new(&plan, "a", true).expect_err(&sentence).to_string(), sentence);
    }
}

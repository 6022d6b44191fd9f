//! Requests of clients: which fields go to the application, which do not, and what is written in their place.

use std::net::{IpAddr, Ipv6Addr};

use staunch_protocol::Method;
use staunch_protocol::http1::relay::{Forwarding, HostRule, is_idempotent};

use crate::relay_writing::{fields_of, pass_on};

/// Passes on one request, and gives all that was written.
pub(crate) fn written(request: &str, change: impl Fn(&mut Forwarding<'_>)) -> String {
    let passed = pass_on(request.as_bytes(), change);
    assert_eq!(passed.requests.len(), 1, "{passed:?} of {request:?}");
    String::from_utf8(passed.stream).expect("ASCII")
}

/// The field lines of a GET with these, but for those that are written in any case.
fn added(fields: &str) -> Vec<String> {
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut lines = fields_of(written(&request, |_| {}).as_bytes());
    for always in [
        "Host: a",
        "X-Forwarded-For: 192.0.2.7",
        "X-Real-IP: 192.0.2.7",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: a",
    ] {
        let at = lines.iter().position(|line| line == always);
        lines.remove(at.unwrap_or_else(|| panic!("no {always} in {lines:?}")));
    }
    if let Some(at) = lines.iter().position(|line| line == "Via: 1.1 staunch-1") {
        lines.remove(at);
    }
    lines
}

#[test]
fn a_whole_request() {
    assert_eq!(
        written("GET /a?b=c HTTP/1.1\r\nHost: example.org:8443\r\nAccept:  */* \r\nX:\r\n\r\n", |_| {}),
        "GET /a?b=c HTTP/1.1\r\nHost: example.org:8443\r\nAccept: */*\r\nX: \r\n\
         X-Forwarded-For: 192.0.2.7\r\nX-Real-IP: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\
         X-Forwarded-Host: example.org:8443\r\nVia: 1.1 staunch-1\r\n\r\n"
    );
}

#[test]
fn fields_that_are_not_a_clients_to_say() {
    for field in [
        "Connection: keep-alive",
        "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive",
        "Proxy-Authorization: Basic YTpi",
        "TE: gzip",
        "Trailer: X",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
        "Expect: 100-continue",
        "X-Forwarded-For: 198.51.100.1",
        "x-forwarded-proto: http",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Port: 1",
        "X-Forwarded-Prefix: /admin",
        "X-Forwarded: for=198.51.100.1",
        "Forwarded: for=198.51.100.1",
        "X-Real-IP: 198.51.100.1",
        "X-Original-URL: /admin",
        "X-Rewrite-URL: /admin",
        "X-HTTP-Method-Override: DELETE",
        "Client-Cert: :MIIB:",
        "Client-Cert-Chain: :MIIB:",
        "Proxy: http://evil.example",
        "PROXY: http://evil.example",
        "X_Forwarded_For: 198.51.100.1",
        "X-Forwarded_For: 198.51.100.1",
        "Content_Length: 5",
        "Remote_User: admin",
        "_: a",
    ] {
        assert_eq!(added(&format!("{field}\r\n")), [""; 0], "{field}");
    }
}

#[test]
fn fields_that_are_passed_on() {
    for field in [
        "Accept-Encoding: gzip",
        "Authorization: Basic YTpi",
        "Cookie: a=b; c=d",
        "If-None-Match: \"a\"",
        "Origin: https://a",
        "Range: bytes=0-5",
        "User-Agent: \u{fc}",
        "X-Requested-With: XMLHttpRequest",
        "Max-Forwards: 0",
        "Priority: u=1",
        "Sec-Fetch-Site: same-origin",
    ] {
        assert_eq!(added(&format!("{field}\r\n")), [field], "{field}");
    }
    let twice = "Accept: a\r\nX: 1\r\nAccept: b\r\n";
    assert_eq!(added(twice), ["Accept: a", "X: 1", "Accept: b"], "the order stays");
}

#[test]
fn what_connection_names_is_of_that_connection() {
    for (fields, expected) in [
        ("A: 1\r\nConnection: a, close\r\nB: 2\r\na: 3\r\n", &["B: 2"][..]),
        ("Connection: close\r\nConnection: X-Secret\r\nX-Secret: 1\r\n", &[]),
        ("Connection: cookie\r\nCookie: a\r\nCookie: b\r\nA: 1\r\n", &["A: 1"]),
        ("Cookie: a\r\nConnection: x\r\nCookie: b\r\n", &["Cookie: a; b"]),
        // Ours are written whatever a client names.
        ("Connection: host, content-length, x-forwarded-for, x-real-ip, via, forwarded\r\n", &[]),
        ("Connection: ,, \r\nA: 1\r\n", &["A: 1"]),
    ] {
        assert_eq!(added(fields), expected, "{fields:?}");
    }
}

#[test]
fn connection_names_no_more_than_any_honest_client() {
    let refusals = |count: usize| {
        let request =
            format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close{}\r\n\r\n", ", a".repeat(count));
        pass_on(request.as_bytes(), |_| {}).refusals
    };
    assert_eq!(refusals(16), []);
    assert_eq!(refusals(17)[0].status.code(), 400);
}

#[test]
fn cookies_are_one_line() {
    assert_eq!(
        added("Cookie: a=1\r\nA: 1\r\ncookie: b=2\r\nCOOKIE: c=3\r\n"),
        ["Cookie: a=1; b=2; c=3", "A: 1"]
    );
}

#[test]
fn a_cookie_of_ours_is_not_passed_on() {
    let cookies = |lines: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let text = written(&request, |forwarding| forwarding.without_cookie = Some(b"ours"));
        let lines: Vec<String> =
            text.lines().filter(|line| line.starts_with("Cookie")).map(str::to_owned).collect();
        lines
    };
    assert_eq!(cookies("Cookie: a=1; ours=2; b=3\r\n"), ["Cookie: a=1; b=3"]);
    assert_eq!(cookies("Cookie: ours=2\r\nCookie: a=1;ours=\r\n"), ["Cookie: a=1"]);
    assert_eq!(cookies("Cookie: ours=2\r\n"), [""; 0]);
    assert_eq!(cookies("Cookie: yours=1; Ours=2; ours2=3\r\n"), ["Cookie: yours=1; Ours=2; ours2=3"]);
}

#[test]
fn trailers_are_taken_if_the_client_takes_them() {
    for te in ["trailers", "gzip, Trailers"] {
        for connection in ["Connection: TE\r\n", "Connection: te, x\r\nX: y\r\n", ""] {
            let lines = added(&format!("TE: {te}\r\n{connection}"));
            assert_eq!(lines, ["Connection: TE", "TE: trailers"], "{te} {connection}");
        }
    }
}

#[test]
fn an_upgrade_is_passed_on_only_where_that_is_allowed() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    let has_upgrade = |request: &str, upgrades| {
        let text = written(request, |forwarding| forwarding.upgrades = upgrades);
        text.contains("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
    };
    assert!(!has_upgrade(request, false));
    assert!(has_upgrade(request, true));
    assert!(
        !has_upgrade(&request.replace("Connection: Upgrade\r\n", ""), true),
        "Connection does not name it"
    );
    assert!(!has_upgrade(&request.replace("HTTP/1.1", "HTTP/1.0"), true));
}

#[test]
fn hosts() {
    for (line, fields, expected) in [
        ("GET / HTTP/1.1", "Host: a:81\r\n", "a:81"),
        ("GET / HTTP/1.1", "hOST: [::1]:81\r\n", "[::1]:81"),
        ("GET http://b:82/x HTTP/1.1", "Host: a:81\r\n", "b:82"),
        ("GET HTTPS://b?x HTTP/1.1", "Host: a\r\n", "b"),
        ("OPTIONS * HTTP/1.1", "Host: a:81\r\n", "a:81"),
        ("OPTIONS http://b:82 HTTP/1.1", "Host: a:81\r\n", "b:82"),
        ("GET / HTTP/1.0", "", ""),
    ] {
        let request = format!("{line}\r\n{fields}\r\n");
        let kept = fields_of(written(&request, |_| {}).as_bytes());
        assert_eq!(kept[0], format!("Host: {expected}"), "{line}");
        let told = format!("X-Forwarded-Host: {expected}");
        assert_eq!(kept.contains(&told), !expected.is_empty(), "{line}");
        let set = fields_of(written(&request, |way| way.host = HostRule::Set(b"inner:8000")).as_bytes());
        assert_eq!(set[0], "Host: inner:8000");
        assert_eq!(set.contains(&told), !expected.is_empty(), "{line}");
        assert_eq!(kept.iter().filter(|line| line.to_ascii_lowercase().starts_with("host:")).count(), 1);
    }
}

#[test]
fn targets() {
    for (target, expected) in [
        ("/", "/"),
        ("/a/../b%2f?c?d", "/a/../b%2f?c?d"),
        ("/?", "/?"),
        ("//evil.example/", "//evil.example/"),
        ("/\u{fc}\\..?a[]=\"{|}\"&<^`>%7b", "/%C3%BC%5C..?a[]=%22%7B%7C%7D%22&%3C%5E%60%3E%7b"),
        ("http://a", "/"),
        ("http://a?q", "/?q"),
        ("http://a/b?q", "/b?q"),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let line = format!("GET {expected} HTTP/1.1\r\n");
        assert!(written(&request, |_| {}).starts_with(&line), "{target}");
    }
    let moved = written("GET /app/x?y HTTP/1.1\r\nHost: a\r\n\r\n", |way| way.path = b"/x");
    assert!(moved.starts_with("GET /x?y HTTP/1.1\r\n"));
    assert!(written("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", |_| {}).starts_with("OPTIONS * HTTP/1.1\r\n"));
    assert!(written("PROPFIND /d HTTP/1.0\r\n\r\n", |_| {}).starts_with("PROPFIND /d HTTP/1.1\r\n"));
    assert!(written("brew /pot HTTP/1.1\r\nHost: a\r\n\r\n", |_| {}).starts_with("brew /pot HTTP/1.1\r\n"));
}

#[test]
fn bodies_are_framed_by_what_was_understood() {
    for (method, fields, body, expected) in [
        ("GET", "", "", "\r\n\r\n"),
        ("DELETE", "Content-Length: 0\r\n", "", "\r\n\r\n"),
        ("POST", "", "", "\r\nContent-Length: 0\r\n\r\n"),
        ("BREW", "", "", "\r\nContent-Length: 0\r\n\r\n"),
        (
            "POST",
            "Content-Length: 003, 3\r\nContent-Length: 3\r\n",
            "abc",
            "\r\nContent-Length: 3\r\n\r\nabc",
        ),
        ("GET", "Content-Length: 3\r\n", "abc", "\r\nContent-Length: 3\r\n\r\nabc"),
        (
            "POST",
            "Transfer-Encoding: , CHUNKED\r\nExpect: 100-continue\r\n",
            "03;a=\"b\"\r\nabc\r\n000\r\nContent-Length: 7\r\n\r\n",
            "\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
    ] {
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}");
        let text = written(&request, |_| {});
        assert!(text.ends_with(expected), "{request:?}: {text:?}");
        let count = |name: &str| text.to_ascii_lowercase().matches(name).count();
        let framings = count("\r\ncontent-length:") + count("\r\ntransfer-encoding:");
        assert_eq!(framings, usize::from(expected.len() > 4), "{text:?}");
    }
}

#[test]
fn who_asks() {
    let request = "GET / HTTP/1.0\r\n\r\n";
    let fields = |change: &dyn Fn(&mut Forwarding<'_>)| fields_of(written(request, change).as_bytes());
    let unknown = fields(&|way| way.client = None);
    assert_eq!(unknown, ["Host: ", "X-Forwarded-Proto: https", "Via: 1.0 staunch-1"]);
    let plain = fields(&|way| way.is_secured = false);
    assert!(plain.contains(&"X-Forwarded-Proto: http".to_owned()));
    for (address, expected) in [("2001:db8::1", "2001:db8::1"), ("::ffff:192.0.2.1", "192.0.2.1")] {
        let address: Ipv6Addr = address.parse().expect("an address");
        let fields = fields(&|way| way.client = Some(IpAddr::V6(address)));
        assert!(fields.contains(&format!("X-Forwarded-For: {expected}")), "{fields:?}");
        assert!(fields.contains(&format!("X-Real-IP: {expected}")), "{fields:?}");
    }
}

#[test]
fn via_and_loops() {
    for (fields, expected) in [
        ("", Ok("Via: 1.1 staunch-1")),
        ("Via: 1.0 a, 1.1 b (c)\r\nvia: HTTP/2 d\r\n", Ok("Via: 1.0 a, 1.1 b (c), HTTP/2 d, 1.1 staunch-1")),
        ("Via: 1.1 staunch-2\r\n", Ok("Via: 1.1 staunch-2, 1.1 staunch-1")),
        ("Via: \r\n", Ok("Via: 1.1 staunch-1")),
        ("Via: 1.1 a\r\nVia: 1.1 \t Staunch-1 (x), 1.1 b\r\n", Err(508)),
        ("Connection: via\r\nVia: 1.1 staunch-1\r\n", Err(508)),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let passed = pass_on(request.as_bytes(), |_| {});
        let via = fields_of(&passed.stream).into_iter().find(|line| line.starts_with("Via"));
        let refused = passed.refusals.first().map(|refusal| refusal.status.code());
        assert_eq!(via.as_deref().ok_or(refused.unwrap_or(0)), expected, "{fields:?}");
    }
    let hops = |count: usize| {
        let request =
            format!("GET / HTTP/1.1\r\nHost: a\r\nVia: {}\r\n\r\n", vec!["1.1 b"; count].join(", "));
        pass_on(request.as_bytes(), |_| {}).refusals.len()
    };
    assert_eq!((hops(16), hops(17)), (0, 1));
}

#[test]
fn methods_that_are_not_passed_on() {
    for (request, status) in [
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 501),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", 501),
    ] {
        let passed = pass_on(request.as_bytes(), |_| {});
        assert!(passed.stream.is_empty() && passed.part.is_empty(), "{request:?}");
        assert_eq!(passed.refusals[0].status.code(), status, "{request:?}");
    }
    let options = |value: &str| {
        fields_of(
            written(&format!("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: {value}\r\n\r\n"), |_| {})
                .as_bytes(),
        )
        .into_iter()
        .find(|line| line.starts_with("Max"))
    };
    assert_eq!(options("7").as_deref(), Some("Max-Forwards: 6"));
    assert_eq!(options("x"), None);
}

#[test]
fn methods_that_may_be_asked_twice() {
    use Method::{Connect, Delete, Get, Head, Options, Other, Patch, Post, Put, Trace, Unknown};
    assert!([Get, Head, Options, Trace, Put, Delete].into_iter().all(is_idempotent));
    assert!(![Post, Patch, Connect, Other, Unknown].into_iter().any(is_idempotent));
}

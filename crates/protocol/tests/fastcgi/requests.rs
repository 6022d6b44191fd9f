//! Requests: which variables an application gets.

use std::collections::BTreeMap;

use staunch_protocol::fastcgi::{Script, write_end, write_piece, write_request};
use staunch_protocol::http1::relay::{Forwarding, RelayRefusal};
use staunch_protocol::http1::{Event, Session};

use crate::records::{records, variables};
use crate::relay_writing::FROM_CLIENT;

const SCRIPT: Script<'_> = Script {
    root: b"/srv",
    name: b"/index.php",
    path_info: b"/x y",
    client: FROM_CLIENT.client,
    keeps: true,
};

/// What is written of a request.
pub(crate) fn written(
    head: &[u8],
    script: &Script<'_>,
    change: impl Fn(&mut Forwarding<'_>),
) -> Result<Vec<u8>, RelayRefusal> {
    let (mut session, mut answers, mut input) = (Session::new(0), Vec::new(), head);
    match session.poll_event(&mut input, 0, &[b' '; 29], &mut answers) {
        Event::Request(request) => {
            let mut out = Vec::new();
            let mut forwarding = Forwarding { path: request.path, ..FROM_CLIENT };
            change(&mut forwarding);
            write_request(&request, &forwarding, script, request.content, &mut out).map(|()| out)
        }
        other => panic!("{other:?} of {}", head.escape_ascii()),
    }
}

fn variables_of(head: &str, trusts: bool) -> BTreeMap<String, String> {
    let bytes = written(head.as_bytes(), &SCRIPT, |way| way.trusts = trusts).expect("a good request");
    let records = records(&bytes);
    assert_eq!(records[0], (1, vec![0, 1, 1, 0, 0, 0, 0, 0]));
    assert_eq!(records.last(), Some(&(4, vec![])));
    let parameters: Vec<u8> = records[1..]
        .iter()
        .flat_map(|(kind, content)| {
            assert_eq!(*kind, 4);
            content.clone()
        })
        .collect();
    let all = variables(&parameters);
    let map: BTreeMap<_, _> = all.iter().cloned().collect();
    assert_eq!(map.len(), all.len(), "a variable is there twice");
    map
}

#[test]
fn a_whole_request() {
    let head = "POST /index.php/x%20y?a=b HTTP/1.1\r\nHost: a.example:81\r\nContent-Type: text/plain\r\n\
        Content-Length: 3\r\nCookie: a=1\r\nX-Many: 1\r\nx-many: 2\r\nCookie: b=2\r\nAccept: */*\r\n\r\n";
    let expected = [
        ("CONTENT_LENGTH", "3"),
        ("CONTENT_TYPE", "text/plain"),
        ("DOCUMENT_ROOT", "/srv"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("HTTPS", "on"),
        ("HTTP_ACCEPT", "*/*"),
        ("HTTP_COOKIE", "a=1; b=2"),
        ("HTTP_HOST", "a.example:81"),
        ("HTTP_VIA", "1.1 staunch-1"),
        ("HTTP_X_FORWARDED_FOR", "192.0.2.7"),
        ("HTTP_X_FORWARDED_HOST", "a.example:81"),
        ("HTTP_X_FORWARDED_PROTO", "https"),
        ("HTTP_X_MANY", "1, 2"),
        ("HTTP_X_REAL_IP", "192.0.2.7"),
        ("PATH_INFO", "/x y"),
        ("QUERY_STRING", "a=b"),
        ("REDIRECT_STATUS", "200"),
        ("REMOTE_ADDR", "192.0.2.7"),
        ("REQUEST_METHOD", "POST"),
        ("REQUEST_SCHEME", "https"),
        ("REQUEST_URI", "/index.php/x%20y?a=b"),
        ("SCRIPT_FILENAME", "/srv/index.php"),
        ("SCRIPT_NAME", "/index.php"),
        ("SERVER_NAME", "a.example"),
        ("SERVER_PORT", "81"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SERVER_SOFTWARE", "staunch"),
    ];
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(variables_of(head, false), expected);
}

/// Caddy's FastCGI of 2026 and CVE-2016-5385: `Proxy` becomes HTTP_PROXY.
#[test]
fn variables_that_a_client_may_not_write() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nProxy: http://evil.example\r\nX_Forwarded_For: evil\r\n\
        X-Forwarded-For: evil\r\nRemote.Addr: evil\r\nContent_Type: evil\r\nX-Http-Method-Override: evil\r\n\
        Connection: x-hop\r\nX-Hop: evil\r\nExpect: 100-continue\r\n\r\n";
    let map = variables_of(head, false);
    assert!(!map.contains_key("HTTP_PROXY"), "{map:?}");
    assert!(!map.values().any(|value| value.contains("evil")), "{map:?}");
    assert!(!map.contains_key("HTTP_CONNECTION") && !map.contains_key("HTTP_EXPECT"), "{map:?}");
    let trusted = variables_of(head, true);
    assert_eq!(trusted["HTTP_X_FORWARDED_FOR"], "evil, 192.0.2.7", "a trusted proxy's word goes on");
}

#[test]
fn a_program_without_scripts_and_who_has_no_address() {
    let script = Script { root: b"", name: b"", path_info: b"/a", client: None, keeps: false };
    let bytes = written(b"GET /a HTTP/1.0\r\n\r\n", &script, |way| way.is_secured = false);
    let records = records(&bytes.expect("a good request"));
    assert_eq!(records[0], (1, vec![0, 1, 0, 0, 0, 0, 0, 0]), "the connection is not kept");
    let map: BTreeMap<_, _> = variables(&records[1].1).into_iter().collect();
    assert!(!map.contains_key("SCRIPT_FILENAME") && !map.contains_key("DOCUMENT_ROOT"), "{map:?}");
    let told = ["SCRIPT_NAME", "PATH_INFO", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR", "SERVER_PROTOCOL"];
    assert_eq!(told.map(|name| &*map[name]), ["", "/a", "localhost", "80", "unix:", "HTTP/1.0"]);
    assert!(!map.contains_key("HTTPS"), "{map:?}");
}

#[test]
fn a_trusted_proxy_says_by_which_scheme_it_was_asked() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https, http\r\n\r\n";
    for (trusts, port, https) in [(true, "443", Some("on")), (false, "80", None)] {
        let bytes = written(head.as_bytes(), &SCRIPT, |way| (way.trusts, way.is_secured) = (trusts, false));
        let records = records(&bytes.expect("a good request"));
        let map: BTreeMap<_, _> = variables(&records[1].1).into_iter().collect();
        assert_eq!((&*map["SERVER_PORT"], map.get("HTTPS").map(String::as_str)), (port, https));
    }
}

#[test]
fn requests_that_are_not_passed_on() {
    for (head, status) in [
        (&b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"[..], 501),
        (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
    ] {
        let refusal = written(head, &SCRIPT, |_| {}).expect_err("no request for an application");
        assert_eq!(refusal.status.code(), status, "{}", head.escape_ascii());
    }
}

#[test]
fn long_values_and_bodies_are_split_into_records() {
    let long = "x".repeat(20_000);
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\n\r\n");
    assert_eq!(variables_of(&head, false)["HTTP_X_LONG"], long);
    let body = vec![b'b'; 150_000];
    let mut out = Vec::new();
    write_piece(&body, &mut out);
    write_piece(b"", &mut out);
    write_end(&mut out);
    let records = records(&out);
    assert_eq!(
        records.iter().map(|(_, content)| content.len()).collect::<Vec<_>>(),
        [65_535, 65_535, 18_930, 0]
    );
    assert!(records.iter().all(|(kind, _)| *kind == 5));
    assert_eq!(records.into_iter().flat_map(|(_, content)| content).collect::<Vec<_>>(), body);
}

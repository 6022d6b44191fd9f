use super::*;
use crate::http1::{Event, RequestMemory, Session};

/// The request that these bytes are to the session of this server.
fn with_request<T>(head: &str, use_it: impl FnOnce(&Request<'_>) -> T) -> T {
    let mut input = head.as_bytes();
    let mut session = Session::new(0);
    let mut out = Vec::new();
    let mut memory = RequestMemory::default();
    match session.poll_event_with(&mut memory, &mut input, 0, &[b' '; 29], &mut out) {
        Event::Request(request) => use_it(&request),
        other => panic!("{other:?} of {head:?}: {}", out.escape_ascii()),
    }
}

const FROM_CLIENT: Forwarding<'_> = Forwarding {
    client: Some(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))),
    is_secured: true,
    trusts: false,
    host: HostRule::Kept,
    path: b"/",
    upgrades: false,
    pseudonym: b"staunch-1",
};

/// What is written of a request, by its own path and body unless told otherwise.
fn forward(head: &str, change: impl FnOnce(&mut Forwarding<'_>)) -> Result<String, RelayRefusal> {
    with_request(head, |request| {
        let mut forwarding = Forwarding { path: request.path, ..FROM_CLIENT };
        change(&mut forwarding);
        let mut out = b"before".to_vec();
        let written = write_request(request, &forwarding, request.content, &mut out);
        assert!(written.is_ok() || out == b"before", "something was left of a request that was refused");
        let text = String::from_utf8(out.split_off(6)).expect("ASCII");
        written.map(|()| text)
    })
}

fn kept(head: &str) -> String {
    forward(head, |_| {}).unwrap_or_else(|refusal| panic!("{refusal} of {head:?}"))
}

#[test]
fn a_whole_request() {
    assert_eq!(
        kept("GET /a?b=c HTTP/1.1\r\nHost: example.org:8443\r\nAccept:  */* \r\n\r\n"),
        "GET /a?b=c HTTP/1.1\r\nHost: example.org:8443\r\nAccept: */*\r\n\
         X-Forwarded-For: 192.0.2.7\r\nX-Real-IP: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\
         X-Forwarded-Host: example.org:8443\r\nVia: 1.1 staunch-1\r\n\r\n"
    );
}

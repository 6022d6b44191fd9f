//! Passes on what a client sends as a proxy does: each request written anew, its body behind it.
//!
//! Tests and a fuzz target share it. It must never know what the bytes mean.

use std::net::{IpAddr, Ipv4Addr};

use staunch_protocol::http1::relay::{Forwarding, HostRule, RelayRefusal, write_request};
use staunch_protocol::http1::{BodyOut, Event, Session};
use staunch_protocol::{BodyIn, Method, Request, Status};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// A client that is not trusted, by TLS.
pub(crate) const FROM_CLIENT: Forwarding<'_> = Forwarding {
    client: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
    is_secured: true,
    trusts: false,
    host: HostRule::Kept,
    path: b"/",
    socket_key: None,
    upgrades: false,
    without_cookie: None,
    pseudonym: b"staunch-1",
};

/// A request as this server has understood it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Understood {
    pub(crate) method: Method,
    pub(crate) path: Vec<u8>,
    pub(crate) query: Option<Vec<u8>>,
    pub(crate) host: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

/// What went to the application.
#[derive(Debug, Default)]
pub(crate) struct PassedOn {
    /// The requests that were passed on whole.
    pub(crate) requests: Vec<Understood>,
    /// The bytes of these.
    pub(crate) stream: Vec<u8>,
    /// What was written of a request whose body did not come as a whole.
    pub(crate) part: Vec<u8>,
    /// Requests that were not passed on.
    pub(crate) refusals: Vec<RelayRefusal>,
    /// Statuses that the session itself answered with.
    pub(crate) answered: Vec<u16>,
}

/// Passes on all that comes, as from a client, or as `change` has it.
pub(crate) fn pass_on(client_sends: &[u8], change: impl Fn(&mut Forwarding<'_>)) -> PassedOn {
    pass_on_with(client_sends, |_, forwarding| change(forwarding))
}

/// Passes on all that comes, with a Host where there is none, so that every application takes it.
pub(crate) fn pass_on_with_host(client_sends: &[u8], change: impl Fn(&mut Forwarding<'_>)) -> PassedOn {
    pass_on_with(client_sends, |request, forwarding| {
        if request.host.is_empty() {
            forwarding.host = HostRule::Set(b"fallback.example");
        }
        change(forwarding);
    })
}

fn pass_on_with(client_sends: &[u8], change: impl Fn(&Request<'_>, &mut Forwarding<'_>)) -> PassedOn {
    let mut passed = PassedOn::default();
    let mut session = Session::new(0);
    let mut input = client_sends;
    let mut answers = Vec::new();
    let mut framing = BodyOut::Nothing;
    let mut under_way: Option<Understood> = None;
    loop {
        match session.poll_event(&mut input, 0, DATE, &mut answers) {
            Event::Request(request) => {
                let mut forwarding = Forwarding { path: request.path, ..FROM_CLIENT };
                change(&request, &mut forwarding);
                match write_request(&request, &forwarding, request.content, &mut passed.part) {
                    Ok(()) => {
                        framing = framing_of(request.content);
                        let host = match forwarding.host {
                            HostRule::Kept => request.host,
                            HostRule::Set(host) => host,
                        };
                        under_way = Some(Understood { host: host.to_vec(), ..understood(&request) });
                        session.read_body(&request, &mut answers);
                    }
                    Err(refusal) => {
                        assert!(passed.part.is_empty(), "something is left of a request that was refused");
                        passed.refusals.push(refusal);
                        session.begin_response(refusal.status, DATE, &mut answers);
                    }
                }
            }
            Event::Body(piece) => {
                let count = framing.begin_piece(piece.len() as u64, &mut passed.part);
                assert_eq!(count, piece.len() as u64, "more came than was announced");
                passed.part.extend_from_slice(piece);
                framing.end_piece(&mut passed.part);
                under_way.as_mut().expect("a request").body.extend_from_slice(piece);
            }
            Event::BodyEnd => {
                assert!(framing.end(&mut passed.part), "less came than was announced");
                passed.requests.extend(under_way.take());
                passed.stream.append(&mut passed.part);
                session.begin_response(Status::OK, DATE, &mut answers);
            }
            Event::Close { answered, .. } => {
                passed.answered.extend(answered.map(|answered| answered.status.code()));
                return passed;
            }
            Event::NeedInput | Event::Preface => return passed,
        }
    }
}

fn framing_of(content: BodyIn) -> BodyOut {
    match content {
        BodyIn::None => BodyOut::Nothing,
        BodyIn::Length(length_bytes) => BodyOut::Length(length_bytes),
        BodyIn::Open => BodyOut::Chunked,
    }
}

fn understood(request: &Request<'_>) -> Understood {
    Understood {
        method: request.method,
        path: encoded(request.path),
        query: request.query.map(encoded),
        host: request.host.to_vec(),
        body: Vec::new(),
    }
}

/// Bytes that may stand in a URI, and the others percent-encoded, for that is the same. A percent sign may
/// only with two digits behind it.
fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    for (place, byte) in bytes.iter().enumerate() {
        let digits = bytes.get(place + 1..place + 3);
        let is_encoded = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match byte {
            b'%' if is_encoded => text.push('%'),
            b'%' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => {
                text.push_str(&format!("%{byte:02X}"));
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text.into_bytes()
}

/// What an application understands that reads as this server does. It checks what must hold of every request
/// that is passed on. `None`: a request was near the limit of fields, and those that are added were too many.
pub(crate) fn understand(stream: &[u8]) -> Option<Vec<Understood>> {
    let mut session = Session::new(0);
    let (mut input, mut answers, mut requests) = (stream, Vec::new(), Vec::new());
    loop {
        match session.poll_event(&mut input, 0, DATE, &mut answers) {
            Event::Request(request) => {
                check(&request);
                requests.push(understood(&request));
                session.read_body(&request, &mut answers);
            }
            Event::Body(piece) => requests.last_mut().expect("a request").body.extend_from_slice(piece),
            Event::BodyEnd => _ = session.begin_response(Status::OK, DATE, &mut answers),
            Event::NeedInput | Event::Preface => return Some(requests),
            Event::Close { answered: Some(answered), .. } if answered.status.code() == 431 => return None,
            Event::Close { .. } => panic!("refused: {}", answers.escape_ascii()),
        }
    }
}

fn check(request: &Request<'_>) {
    let count = |name: &[u8]| request.values(name).count();
    assert_eq!((count(b"host"), count(b"via")), (1, 1));
    assert_eq!(
        count(b"content-length") + count(b"transfer-encoding") > 0,
        request.content != BodyIn::None || count(b"content-length") == 1
    );
    assert!(count(b"content-length") + count(b"transfer-encoding") <= 1 && count(b"cookie") <= 1);
    for (name, _) in request.fields() {
        let name = name.to_ascii_lowercase();
        assert!(!name.contains(&b'_'), "{}", name.escape_ascii());
        assert!(!matches!(&name[..], b"proxy" | b"expect" | b"x-original-url" | b"keep-alive" | b"trailer"));
    }
}

/// The field lines of the first request of a stream.
#[allow(dead_code, reason = "a fuzz target looks at whole streams")]
pub(crate) fn fields_of(stream: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stream);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    head.split("\r\n").skip(1).map(str::to_owned).collect()
}

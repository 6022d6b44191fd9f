//! A request that is passed on, and its answer, from its first byte to its last.
//!
//! An exchange owns the bytes that are held of both. It must never open a link or take a place.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use staunch_engine::{Open, Piece, PlaceClass, Standing, UNIX_PEER, Upstream};
use staunch_protocol::http1::relay::{
    Forwarding, HostRule, RelayFault, RelayRefusal, is_idempotent, write_request,
};
use staunch_protocol::websocket::accept_key;
use staunch_protocol::{BodyIn, Fields, Method, Request, Status, Version, fastcgi};

use super::application::{Application, ServerName};
use super::config::ProxyServer;
use super::journey::Journey;
use super::shares::{Precedence, ShareOwner};
use super::sticky::{STICKY_COOKIE, Stay};
use super::wire::{Framing, script};
use crate::scripts::ScriptCall;

/// Bytes up to which pieces of an answer that waits are joined: as much as a worker receives at a time.
const KEPT_PIECE_BYTES: usize = 16 * 1024;

/// The name of the field that answers the key of a handshake.
const ACCEPT: &[u8] = b"sec-websocket-accept";

/// A request that is passed on, and what came of its answer.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) application: Arc<Application>,
    /// Field lines that the rules of its path add to the answer.
    pub(super) lines: Vec<u8>,
    pub(super) asker: Asker,
    /// The client, as its share is counted; `None`: it has none.
    pub(super) owner: Option<ShareOwner>,
    /// The standing of the request in line.
    pub(super) standing: Standing,
    /// The share of its client that it holds, if its standing lets it go before others.
    pub(super) precedence: Option<Precedence>,
    /// The script that the application runs, if FastCGI is spoken with it.
    pub(super) call: Option<Box<ScriptCall>>,
    pub(super) is_head: bool,
    pub(super) is_idempotent: bool,
    /// Whether the client has shown credentials here.
    pub(super) is_guarded: bool,
    /// Whether it asks for another protocol (RFC 9110, section 7.8), such as WebSocket.
    pub(super) asks_upgrade: bool,
    /// The key of the handshake that is made for a client that asks on a stream of HTTP/2 (RFC 8441).
    pub(super) socket_key: Option<Box<str>>,
    /// Whether the answer is a stream of events.
    pub(super) is_events: bool,
    /// Whether it is worked on beside the places of its server.
    pub(super) is_beside: bool,
    pub(super) stage: ForwardStage,
    /// By what its client stays with a server, and the cookie for that.
    pub(super) stay: Option<Stay>,
    /// The head as the application gets it, until its answer begins; empty before it is written.
    pub(super) head: Vec<u8>,
    pub(super) body: RequestBody,
    pub(super) answer: RelayedAnswer,
    pub(super) failure: Option<Failure>,
    /// Whether its client is shown how long each part of its way took.
    pub(super) shows_times: bool,
    pub(super) journey: Journey,
    pub(super) has_retried: bool,
    /// Bytes held for the exchange, as they were counted last.
    pub(super) told_bytes: usize,
}

/// Where a request stands.
#[derive(Debug)]
pub(super) enum ForwardStage {
    /// The request has no place and wants none yet: its body is read, or it was answered.
    Apart,
    /// The request stands in a server's line.
    InLine(ServerName),
    /// The request has had a place since then, and no link so far.
    Placed(ServerName, u64),
    /// A server works on it, since then; without a time it does so beside its places.
    AtWork(ServerName, Upstream, Option<u64>),
}

/// The client, as an application is told of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    pub(super) peer: Option<IpAddr>,
    /// The client, as far back as trusted proxies tell.
    pub(super) client: Option<IpAddr>,
    pub(super) is_secured: bool,
    pub(super) is_trusted: bool,
}

impl Asker {
    /// The client, as its share is counted. A proxy that names nobody asks for itself, and has none.
    pub(super) fn owner(&self, ipv6_bits: u8) -> Option<ShareOwner> {
        let is_proxy = self.is_trusted && self.client == self.peer;
        ShareOwner::at(self.client.filter(|_| !is_proxy), ipv6_bits)
    }
}

/// The body of a request.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    /// Bytes of it that were not sent, or may have to be sent again.
    pub(super) kept: Vec<u8>,
    /// Whether it goes on as it comes: nothing is kept to be sent again.
    pub(super) is_streamed: bool,
    /// How it goes to the server.
    pub(super) framing: Framing,
    pub(super) has_ended: bool,
}

/// The part of an answer that came and was not sent yet.
#[derive(Debug, Default)]
pub(super) struct RelayedAnswer {
    pub(super) head: Option<AnswerHead>,
    /// Fields of interim answers (103) that were not sent.
    pub(super) interim: Vec<Vec<u8>>,
    kept: VecDeque<Vec<u8>>,
    kept_bytes: usize,
    pub(super) trailers: Vec<u8>,
    /// All of it has come.
    pub(super) has_ended: bool,
    /// The rest of it will never come.
    pub(super) is_cut: bool,
    /// Whether the client is being sent it.
    pub(super) is_open: bool,
    /// No more of it is taken from the server at present.
    pub(super) is_held: bool,
}

/// The head of an answer.
#[derive(Debug)]
pub(super) struct AnswerHead {
    pub(super) status: Status,
    pub(super) fields: Vec<u8>,
    pub(super) length_bytes: Option<u64>,
    pub(super) has_body: bool,
    /// Whether Connection names Upgrade.
    pub(super) says_upgrade: bool,
}

/// Why there is no answer of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The request could not be answered in time. Clients may come back within so many seconds.
    Crowded { spread_s: u32 },
    /// The request is of low class, and gives way to others. Clients may come back within so many seconds.
    GaveWay { spread_s: u32 },
    /// No server could be reached, or none has answered.
    Unreachable,
    /// The server has not answered in time.
    TimedOut,
    /// The client has its share of links, or of the line, already: so many.
    Excess { held: u32 },
    /// The client has left meanwhile.
    ClientGone,
    /// The answer is not HTTP, or could be read in two ways.
    BadAnswer,
    /// There are as many links as there may be, or nothing to make one of.
    NoLink,
    /// The request is not passed on.
    Refused(RelayRefusal),
}

impl Forwarded {
    pub(super) fn new(
        application: Arc<Application>,
        request: &Request<'_>,
        asker: Asker,
        lines: Vec<u8>,
        call: Option<Box<ScriptCall>>,
    ) -> Box<Self> {
        let has_ended = request.content == BodyIn::None;
        Box::new(Self {
            application,
            lines,
            asker,
            owner: None,
            standing: Standing::default(),
            precedence: None,
            is_head: request.method == Method::Head,
            // To the application a WebSocket is asked for by GET.
            is_idempotent: is_idempotent(request.method) || request.asks_websocket(),
            is_guarded: false,
            asks_upgrade: call.is_none() && asks_upgrade(request),
            socket_key: None,
            call,
            is_events: false,
            is_beside: false,
            stage: ForwardStage::Apart,
            stay: None,
            head: Vec::new(),
            body: RequestBody { has_ended, ..RequestBody::default() },
            answer: RelayedAnswer::default(),
            failure: None,
            shows_times: false,
            journey: Journey::default(),
            has_retried: false,
            told_bytes: 0,
        })
    }

    /// Why it is refused where it could not be answered in time.
    pub(super) fn crowded(&self, spread_s: u32) -> Failure {
        match self.standing.class {
            PlaceClass::Low => Failure::GaveWay { spread_s },
            PlaceClass::Normal | PlaceClass::High => Failure::Crowded { spread_s },
        }
    }

    /// Writes the head for the application, unless it is there already. `keeps`: a link by FastCGI may serve
    /// others behind it.
    pub(super) fn write_head(
        &mut self,
        request: &Request<'_>,
        pseudonym: &[u8],
        keeps: bool,
    ) -> Result<(), RelayRefusal> {
        if !self.head.is_empty() {
            return Ok(());
        }
        let body = match (self.body.has_ended, request.content) {
            (_, BodyIn::None) => BodyIn::None,
            (true, _) => BodyIn::Length(self.body.kept.len() as u64),
            (false, content) => content,
        };
        self.body.framing = match (&self.call, body) {
            (Some(_), _) => Framing::Records,
            (None, BodyIn::Open) => Framing::Chunks,
            (None, BodyIn::None | BodyIn::Length(_)) => Framing::Plain,
        };
        let Asker { peer, is_secured, is_trusted, .. } = self.asker;
        // A client of HTTP/1.0 may name no host, and most applications refuse a request without one. By
        // FastCGI the address is none at which anybody speaks HTTP.
        let address = match self.application.servers.first().map(|server| &server.address) {
            Some(ProxyServer::Internet(address) | ProxyServer::Secured(address, _))
                if self.call.is_none() =>
            {
                address.to_string()
            }
            _ => "localhost".to_owned(),
        };
        let forwarding = Forwarding {
            // Of a socket file there is no address to tell of.
            client: peer.filter(|peer| *peer != UNIX_PEER),
            is_secured,
            trusts: is_trusted,
            host: if request.host.is_empty() { HostRule::Set(address.as_bytes()) } else { HostRule::Kept },
            path: request.path,
            upgrades: self.asks_upgrade,
            socket_key: self.socket_key.as_deref().map(str::as_bytes),
            without_cookie: self.stay.as_ref().filter(|stay| stay.is_by_cookie).map(|_| STICKY_COOKIE),
            pseudonym,
        };
        match &self.call {
            Some(call) => {
                let script = script(call, self.asker.client, keeps);
                fastcgi::write_request(request, &forwarding, &script, body, &mut self.head)
            }
            None => write_request(request, &forwarding, body, &mut self.head),
        }
    }

    /// Whether the rest of the answer takes no place of its server any more: a stream of events, another
    /// protocol, or one that its client takes slowly.
    pub(super) fn is_stream(&self) -> bool {
        let Some(head) = &self.answer.head else { return self.answer.is_held };
        if head.status == Status::SWITCHING_PROTOCOLS {
            return true;
        }
        let mut types =
            Fields::new(&head.fields).iter().filter(|field| field.0.eq_ignore_ascii_case(b"content-type"));
        types.any(|(_, value)| value.to_ascii_lowercase().starts_with(b"text/event-stream"))
    }

    /// Judges an answer whose head is there to a WebSocket of HTTP/2: its handshake was made here, and its
    /// client takes every success for a WebSocket.
    ///
    /// # Errors
    /// The answer may not be shown to the client. The server is well all the same: whoever asks a path of
    /// it without a WebSocket gets such an answer.
    pub(super) fn check_handshake(&self) -> Result<(), RelayFault> {
        let (Some(key), Some(head)) = (&self.socket_key, &self.answer.head) else { return Ok(()) };
        match head.status.code() {
            101 if !(head.says_upgrade && answers_key(&head.fields, key)) => Err(RelayFault::Handshake),
            200..300 => Err(RelayFault::NotSwitched),
            _ => Ok(()),
        }
    }

    /// Bytes that are held for the exchange.
    pub(super) fn held_bytes(&self) -> usize {
        let answer = self.answer.head.as_ref().map_or(0, |head| head.fields.capacity());
        self.head.capacity() + self.body.kept.capacity() + self.answer.kept_bytes + answer
    }
}

/// Whether the fields of 101 begin a WebSocket, and answer this key (RFC 6455, section 4.1).
fn answers_key(fields: &[u8], key: &str) -> bool {
    let values = |wanted: &'static [u8]| {
        let all = Fields::new(fields).iter();
        all.filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    };
    let mut accepts = values(ACCEPT);
    let expected = accept_key(key.as_bytes()).ok();
    let is_right = expected.is_some_and(|expected| accepts.next() == Some(expected.as_bytes()));
    let is_named = values(b"upgrade").any(|value| value.eq_ignore_ascii_case(b"websocket"));
    is_right && accepts.next().is_none() && is_named
}

/// Field lines of 101 without the answer to a key that was ours: on a stream of HTTP/2 there is none.
pub(super) fn without_accept(fields: &[u8]) -> Vec<u8> {
    let is_other =
        |line: &&[u8]| line.get(..ACCEPT.len()).is_none_or(|name| !name.eq_ignore_ascii_case(ACCEPT));
    fields.split_inclusive(|byte| *byte == b'\n').filter(is_other).collect::<Vec<_>>().concat()
}

/// Whether a request asks for a WebSocket on its connection, or its stream. Other protocols are not passed
/// on: by `h2c` a client could speak to the application past all rules.
fn asks_upgrade(request: &Request<'_>) -> bool {
    if request.asks_websocket() {
        return true;
    }
    let mut options = request.values(b"connection").flat_map(|value| value.split(|byte| *byte == b','));
    request.version == Version::Http11
        && request.method == Method::Get
        && request.content == BodyIn::None
        && request.values(b"upgrade").any(|value| value.eq_ignore_ascii_case(b"websocket"))
        && options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
}

impl RelayedAnswer {
    /// Keeps a piece until there is room for it.
    pub(super) fn keep(&mut self, piece: &[u8]) {
        self.kept_bytes += piece.len();
        match self.kept.back_mut() {
            // Small pieces are joined, or each would cost more than its bytes.
            Some(last) if last.len() + piece.len() <= KEPT_PIECE_BYTES => last.extend_from_slice(piece),
            _ => self.kept.push_back(piece.to_vec()),
        }
    }

    /// Sends a piece, or keeps it behind those that wait.
    pub(super) fn pass(&mut self, piece: &[u8], open: &mut Open<'_>) {
        if self.kept.is_empty() && open.has_room() {
            open.push_copied(piece);
        } else {
            self.keep(piece);
        }
    }

    /// Sends of what is kept as much as there is room for, and the end behind all of it.
    pub(super) fn pour(&mut self, open: &mut Open<'_>) {
        while !self.kept.is_empty() && open.has_room() {
            if let Some(piece) = self.kept.pop_front() {
                self.kept_bytes -= piece.len();
                open.push(Piece::Bytes(piece));
            }
        }
        if !self.kept.is_empty() {
            return;
        }
        match (self.is_cut, self.has_ended) {
            (true, _) => open.abort(),
            (false, true) => open.end_with(&std::mem::take(&mut self.trailers)),
            (false, false) => {}
        }
    }

    /// Sends of what is kept as much as there is room for, and takes more from the link if `kept_max` bytes
    /// are not exceeded. Whether nothing more is taken from now on.
    pub(super) fn flow(&mut self, link: Option<Upstream>, kept_max: usize, open: &mut Open<'_>) -> bool {
        self.pour(open);
        open.note_held(self.kept_bytes);
        let Some(link) = link else { return false };
        let was_held = self.is_held;
        if self.kept_bytes > kept_max {
            self.is_held = true;
        } else if self.kept_bytes <= kept_max / 2 {
            self.is_held = false;
        }
        match (was_held, self.is_held) {
            (false, true) => open.outbox().upstreams().hold(link),
            (true, false) => open.outbox().upstreams().go_on(link),
            (true, true) | (false, false) => {}
        }
        !was_held && self.is_held
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Whether there is anything of it that was not passed on or told.
    pub(super) fn holds_anything(&self) -> bool {
        !self.kept.is_empty() || self.has_ended || self.is_cut || self.is_held
    }

    /// Takes all that is kept as one piece.
    pub(super) fn take_kept(&mut self) -> Vec<u8> {
        self.kept_bytes = 0;
        match self.kept.len() {
            1 => self.kept.pop_front().unwrap_or_default(),
            _ => std::mem::take(&mut self.kept).into_iter().collect::<Vec<_>>().concat(),
        }
    }

    /// Drops all that came of it.
    pub(super) fn forget(&mut self) {
        *self = Self { is_open: self.is_open, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_names_nobody_has_no_share() {
        let address = |text: &str| text.parse().ok();
        let (proxy, client) = (address("192.0.2.1"), address("192.0.2.9"));
        let asker = |client, is_trusted| Asker { peer: proxy, client, is_secured: false, is_trusted };
        assert_eq!(asker(proxy, true).owner(64), None);
        assert_eq!(asker(client, true).owner(64), ShareOwner::at(client, 64));
        assert_eq!(asker(proxy, false).owner(64), ShareOwner::at(proxy, 64));
    }

    #[test]
    fn a_handshake_is_answered_by_its_own_key() {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let accept = "Sec-WebSocket-ACCEPT: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
        let upgrade = "Upgrade: WebSocket\r\n";
        for (fields, expected) in [
            (format!("{upgrade}A: b\r\n{accept}"), true),
            (format!("{upgrade}{accept}{accept}"), false),
            (accept.to_owned(), false),
            (format!("Upgrade: h2c\r\n{accept}"), false),
            (upgrade.to_owned(), false),
            (format!("{upgrade}Sec-WebSocket-Accept: AAAA\r\n"), false),
        ] {
            assert_eq!(answers_key(fields.as_bytes(), key), expected, "{fields}");
        }
        let fields = format!("A: b\r\n{accept}C: d\r\n");
        assert_eq!(without_accept(fields.as_bytes()), b"A: b\r\nC: d\r\n");
    }

    #[test]
    fn small_pieces_that_wait_cost_little_more_than_their_bytes() {
        let mut answer = RelayedAnswer::default();
        (0..100_000).for_each(|_| answer.keep(b"x"));
        assert_eq!(answer.kept_bytes(), 100_000);
        let capacity: usize = answer.kept.iter().map(Vec::capacity).sum();
        assert!(answer.kept.len() <= 7 && capacity < 250_000, "{} of {capacity}", answer.kept.len());
        answer.keep(&vec![b'y'; 50_000]);
        assert_eq!((answer.take_kept().len(), answer.kept_bytes()), (150_000, 0));
    }
}

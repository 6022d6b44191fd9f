//! A worker's part of the proxy, which the engine asks about exchanges and links.
//!
//! A worker's part must never wait. `bodies` has the bodies of requests, `placing` asks for places, `hearing`
//! takes what comes on links, `answering` answers clients, `tunnels` has exchanges that speak another
//! protocol, `sharing` counts what clients hold.

mod answering;
mod bodies;
mod hearing;
mod placing;
mod sharing;
mod tunnels;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, Answer, Answered, Body, Open, Outbox, PlaceNews, Reading, Standing};
use staunch_protocol::http1::relay::check_method;
use staunch_protocol::websocket::client_key;
use staunch_protocol::{Request, Status};

use super::application::Application;
use super::exchange::{Asker, Failure, ForwardStage, Forwarded};
use super::journey::Journey;
use super::links::Links;
use super::shared::ProxyShared;
use super::shares::LinkShares;
use super::sticky::Numbers;
use super::tunnel::Tunnel;
use crate::owner::OwnerPart;
use crate::scripts::ScriptCall;

/// A request that is passed on, as the rules of its site have it.
pub(crate) struct ProxyErrand<'a> {
    /// The application, as it was configured.
    pub(crate) application: &'a str,
    /// Field lines for the answer.
    pub(crate) lines: Vec<u8>,
    /// Whether the client has shown credentials here.
    pub(crate) is_guarded: bool,
    /// Whether the client is shown how long each part of its request's way took.
    pub(crate) shows_times: bool,
    /// The standing of the request in line.
    pub(crate) standing: Standing,
    /// The script that it runs, if FastCGI is spoken with it.
    pub(crate) script: Option<Box<ScriptCall>>,
}

/// A worker's part of the proxy.
pub(crate) struct ProxyWorker {
    shared: Arc<ProxyShared>,
    /// Applications that requests have gone to since the settings changed last.
    applications: HashMap<Box<str>, Arc<Application>>,
    changes_seen: u64,
    exchanges: HashMap<Address, Box<Forwarded>>,
    tunnels: HashMap<Address, Box<Tunnel>>,
    links: Links,
    /// Links that serve exchanges, by their clients.
    link_shares: LinkShares,
    /// Chance, for the choice of servers (xorshift64*).
    chance: u64,
    /// Numbers for clients that are to stay with a server, and for keys of handshakes.
    numbers: Numbers,
    /// Exchanges that are worked on beside the places: streams, tunnels, those whose clients are slow.
    beside: u32,
    /// News of places, before they are told.
    news: Vec<PlaceNews>,
    /// The way of the request that was answered last, until it is taken.
    journey: Option<Journey>,
    /// The moment in which the worker's turn began that asked last.
    now_ms: u64,
    /// Seconds since 1970 in that moment, as certificates go by them.
    unix_s: u64,
}

impl ProxyWorker {
    pub(crate) fn new(shared: &Arc<ProxyShared>, worker: u16) -> Self {
        Self {
            shared: Arc::clone(shared),
            applications: HashMap::new(),
            changes_seen: 0,
            exchanges: HashMap::new(),
            tunnels: HashMap::new(),
            links: Links::default(),
            link_shares: LinkShares::new(shared.config.links_max),
            chance: 0x9e37_79b9_7f4a_7c15 ^ (u64::from(worker) + 1),
            numbers: Numbers::default(),
            beside: 0,
            news: Vec::new(),
            journey: None,
            now_ms: 0,
            unix_s: 0,
        }
    }

    /// Links of this worker at a time.
    pub(crate) fn links_max(&self) -> u32 {
        self.shared.config.links_max
    }

    /// A request is to be passed on.
    pub(crate) fn handle(
        &mut self,
        errand: ProxyErrand<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        self.now_ms = answer.outbox().now_ms();
        let Some(application) = self.application(errand.application) else {
            return self.answer_failure(Failure::Unreachable, &errand.lines, request, answer);
        };
        let asker = Asker {
            peer: answer.peer(),
            client: answer.client(request),
            is_secured: answer.is_secured(),
            is_trusted: answer.is_from_trusted(),
        };
        let mut forwarded = Forwarded::new(application, request, asker, errand.lines, errand.script);
        forwarded.owner = asker.owner(self.shared.config.client_ipv6_bits);
        if let Some(owner) = forwarded.owner {
            self.shared.clients_seen.note(owner, self.now_ms);
        }
        if forwarded.asks_upgrade && request.asks_websocket() {
            forwarded.socket_key = Some(client_key(self.numbers.nonce()).into());
        }
        forwarded.is_guarded = errand.is_guarded;
        forwarded.shows_times = errand.shows_times;
        (forwarded.standing, forwarded.journey.standing) = (errand.standing, errand.standing);
        if let Some(sticky) = self.shared.config.sticky {
            let (client, is_secured) = (answer.client(request), answer.is_secured());
            forwarded.stay = sticky.key(request, client, is_secured, &mut self.numbers);
        }
        let (address, owner) = (answer.address(), OwnerPart::Proxy.into());
        if !forwarded.body.has_ended {
            if let Err(refusal) = check_method(request.method) {
                // The body of CONNECT ends when its client likes.
                forwarded.failure = Some(Failure::Refused(refusal));
                return self.advance(forwarded, request, answer).owned_by(owner);
            }
            self.exchanges.insert(address, forwarded);
            return answer.read(request).owned_by(owner);
        }
        self.judge(&mut forwarded, request);
        self.want_place(&mut forwarded, None, address);
        self.advance(forwarded, request, answer).owned_by(owner)
    }

    /// The way of the request that was answered last, once.
    pub(crate) fn take_journey(&mut self) -> Option<Journey> {
        self.journey.take()
    }

    /// The way of a request whose exchange goes on, as the log is told it.
    pub(crate) fn journey_of(&self, address: Address) -> Option<Vec<u8>> {
        let of_tunnel = || self.tunnels.get(&address).map(|tunnel| &tunnel.journey);
        let journey = self.exchanges.get(&address).map(|forwarded| &forwarded.journey).or_else(of_tunnel);
        journey.map(Journey::record)
    }

    /// A request that waits was woken.
    pub(crate) fn woken(&mut self, request: &Request<'_>, mut answer: Answer<'_>) -> Answered {
        self.now_ms = answer.outbox().now_ms();
        let Some(mut forwarded) = self.exchanges.remove(&answer.address()) else {
            return self.answer_failure(Failure::Unreachable, b"", request, answer);
        };
        for fields in std::mem::take(&mut forwarded.answer.interim) {
            answer.interim(request, Status::EARLY_HINTS, &fields);
        }
        self.advance(forwarded, request, answer)
    }

    /// Writes the head for the application before a place is asked for: what is not passed on takes none.
    fn judge(&self, forwarded: &mut Forwarded, request: &Request<'_>) {
        let keeps = self.shared.config.fastcgi_idle_ms.is_some();
        if let Err(refusal) = forwarded.write_head(request, &self.shared.pseudonym, keeps) {
            forwarded.failure = Some(Failure::Refused(refusal));
        }
    }

    /// Answers a request if it can be, begins to have it worked on if it has a place, or waits on.
    fn advance(
        &mut self,
        mut forwarded: Box<Forwarded>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let address = answer.address();
        self.unix_s = answer.unix_ms() / 1_000;
        if forwarded.is_guarded {
            answer.guard();
        }
        self.begin_if_placed(&mut forwarded, request, address, answer.outbox());
        if let Some(failure) = forwarded.failure {
            let lines = std::mem::take(&mut forwarded.lines);
            self.journey = Some(std::mem::take(&mut forwarded.journey));
            self.leave(*forwarded, address);
            return self.answer_failure(failure, &lines, request, answer);
        }
        if forwarded.answer.head.is_some() {
            return self.answer(forwarded, request, answer);
        }
        let held_bytes = self.keep(address, forwarded);
        answer.later_holding(held_bytes)
    }

    /// Some of a request's body has come, or the request was woken.
    pub(crate) fn reading(
        &mut self,
        body: Option<Body<'_>>,
        request: &Request<'_>,
        mut reading: Reading<'_>,
    ) -> Answered {
        (self.now_ms, self.unix_s) = (reading.outbox().now_ms(), reading.unix_ms() / 1_000);
        let address = reading.address();
        let Some(mut forwarded) = self.exchanges.remove(&address) else {
            return self.answer_failure(Failure::Unreachable, b"", request, reading.answer());
        };
        for fields in std::mem::take(&mut forwarded.answer.interim) {
            reading.interim(request, Status::EARLY_HINTS, &fields);
        }
        match body {
            Some(Body::Piece(piece)) => {
                self.take_body(&mut forwarded, piece, request, address, reading.outbox());
            }
            Some(Body::End) => self.end_body(&mut forwarded, request, address, reading.outbox()),
            None => {}
        }
        self.begin_if_placed(&mut forwarded, request, address, reading.outbox());
        if forwarded.failure.is_some() || forwarded.answer.head.is_some() || forwarded.body.has_ended {
            return self.advance(forwarded, request, reading.answer());
        }
        let goes_on = match &forwarded.stage {
            ForwardStage::Apart => true,
            ForwardStage::AtWork(_, link, _) => self.links.has_room(*link, reading.outbox()),
            ForwardStage::InLine(_) | ForwardStage::Placed(..) => false,
        };
        self.keep(address, forwarded);
        if goes_on { reading.go_on() } else { reading.hold() }
    }

    /// An answer has begun, or has room again.
    pub(crate) fn ready(&mut self, open: &mut Open<'_>) {
        if self.ready_tunnel(open) {
            return;
        }
        let Some(mut forwarded) = self.exchanges.remove(&open.address()) else { return };
        self.pour(&mut forwarded, open);
        if forwarded.is_events && open.peer_has_ended() {
            // A stream may be silent for long: that its reader is gone is told here alone.
            open.abort();
        }
        self.keep(open.address(), forwarded);
    }

    /// Sends what is kept, and takes more from the server if there is little.
    fn pour(&mut self, forwarded: &mut Forwarded, open: &mut Open<'_>) {
        let link = match forwarded.stage {
            ForwardStage::AtWork(_, link, _) => Some(link),
            ForwardStage::Apart | ForwardStage::InLine(_) | ForwardStage::Placed(..) => None,
        };
        let begins_to_hold = forwarded.answer.flow(link, self.shared.answer_bytes_max(), open);
        if begins_to_hold {
            self.free_place_beside(forwarded, true);
        }
    }

    /// The client of a request has left.
    pub(crate) fn left(&mut self, address: Address) {
        if let Some(forwarded) = self.exchanges.remove(&address) {
            self.leave(*forwarded, address);
        }
        self.leave_tunnel(address);
    }

    /// The client of a request that is not answered yet sends no more: nearly always it is gone, and nobody
    /// works for it any more.
    pub(crate) fn give_up(&mut self, address: Address, outbox: &Outbox) {
        let Some(mut forwarded) = self.exchanges.remove(&address) else { return };
        self.now_ms = outbox.now_ms();
        if let ForwardStage::AtWork(_, link, _) = forwarded.stage {
            self.links.close(link, outbox);
            forwarded.journey.note_end(self.now_ms);
        }
        forwarded.journey.leave_line(self.now_ms);
        self.abandon(&mut forwarded, address);
        forwarded.failure = Some(Failure::ClientGone);
        outbox.wake(address);
        self.keep(address, forwarded);
    }

    /// An exchange is over for the proxy: what it has is given back.
    fn leave(&mut self, mut forwarded: Forwarded, address: Address) {
        self.shared.hold(forwarded.told_bytes, 0);
        forwarded.application.retries.fetch_sub(u32::from(forwarded.has_retried), Relaxed);
        self.abandon(&mut forwarded, address);
    }

    /// Keeps an exchange, and counts what it holds. Gives that in bytes.
    fn keep(&mut self, address: Address, mut forwarded: Box<Forwarded>) -> usize {
        let held_bytes = forwarded.held_bytes();
        self.shared.hold(std::mem::replace(&mut forwarded.told_bytes, held_bytes), held_bytes);
        self.exchanges.insert(address, forwarded);
        held_bytes
    }

    fn application(&mut self, name: &str) -> Option<Arc<Application>> {
        let changes = self.shared.changes();
        if std::mem::replace(&mut self.changes_seen, changes) != changes {
            self.applications.clear();
        }
        if let Some(application) = self.applications.get(name) {
            return Some(Arc::clone(application));
        }
        let application = self.shared.application(name)?;
        self.applications.insert(name.into(), Arc::clone(&application));
        Some(application)
    }
}

//! A handler whose exchanges stay open: what a body brings goes back, pieces come over time, bodies are
//! collected.
//!
//! | path | answer |
//! |---|---|
//! | `/echo` | the request's body as it comes, in chunks; with `?length=N` under that length |
//! | `/drip?every=100ms&count=50` | so many lines, one per interval |
//! | `/collect?limit=BYTES` | the length of the body and the body, once all of it is there; 413 above |
//! | `/flood?bytes=N` | so many bytes, as fast as they are taken |
//! | `/cut?bytes=N` | so many bytes, and then the answer is given up |
//! | `/raw` | an upgrade to a protocol in which everything comes back as it is |
//! | `/upstream?to=N` | what the upstream of this number sends for the body; with `?length=N` as above |
//!
//! An upstream that cannot be reached makes 502 of it, one that does not answer in time 504, too many 503.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use staunch_engine::{
    Address, Answer, Answered, Body, Departure, Ended, Finished, Handler, Open, Outbox, Owner, Piece, Slice,
    Target, TargetAddress, Upstream, UpstreamEvent, UpstreamLoss, UpstreamTimeouts,
};
use staunch_protocol::{Request, Status, Version};

/// Limit of `/collect` if none is given.
const COLLECTED_BYTES_MAX: usize = 64 * 1024;
/// A piece of `/flood`.
const FLOOD_BYTES: usize = 16 * 1024;
/// Upstreams at a time.
const UPSTREAMS_MAX: u32 = 256;
const EMPTY: &[u8] = b"Content-Length: 0\r\n";

/// The handler of one worker.
pub(crate) struct Echo {
    open: HashMap<Address, Doing>,
    flood: Arc<[u8]>,
    /// Where `/upstream` may lead, by number.
    upstreams: Vec<SocketAddr>,
    timeouts: UpstreamTimeouts,
    /// Drips of all workers: while there are none nobody need send ticks.
    drips: Arc<AtomicUsize>,
    /// Told of what begins and ends, for tests.
    log: Option<Log>,
}

/// How exchanges ended, in order, and how many began.
pub(crate) type Log = Arc<Mutex<(usize, Vec<Ended>)>>;

/// What an open exchange does.
enum Doing {
    Echo,
    Drip(Drip),
    /// So many bytes are left; then the answer ends, or is given up.
    Flood {
        left_bytes: u64,
        cut: bool,
    },
    /// Bytes go to an upstream and come from it, once it is connected; or nothing is to be had of it.
    Tied {
        upstream: Upstream,
        is_connected: bool,
    },
    NotReached(UpstreamLoss),
}

struct Drip {
    every_ms: u64,
    next_ms: u64,
    sent: u64,
    count: u64,
}

/// The engine brings it back with every event of an exchange. A handler with several parts would have one for
/// each of them.
const OWNER: Owner = Owner(7);

/// Time has passed.
pub(crate) struct Tick;

impl Echo {
    /// `drips` counts the drips under way.
    pub(crate) fn new(drips: Arc<AtomicUsize>, log: Option<Log>) -> Self {
        let (flood, timeouts) = (vec![b'f'; FLOOD_BYTES].into(), UpstreamTimeouts::default());
        Self { open: HashMap::new(), flood, upstreams: Vec::new(), timeouts, drips, log }
    }

    /// `/upstream` leads to one of these.
    pub(crate) fn with_upstreams(self, upstreams: Vec<SocketAddr>, timeouts: UpstreamTimeouts) -> Self {
        Self { upstreams, timeouts, ..self }
    }

    fn note(&self, note: impl FnOnce(&mut (usize, Vec<Ended>))) {
        if let Some(log) = &self.log {
            note(&mut log.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn begin(
        &mut self,
        doing: Doing,
        length_bytes: Option<u64>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        if matches!(doing, Doing::Drip(_)) {
            self.drips.fetch_add(1, Relaxed);
        }
        let reads = matches!(doing, Doing::Echo | Doing::Tied { .. });
        self.open.insert(answer.address(), doing);
        self.note(|log| log.0 += 1);
        let fields = b"Content-Type: application/octet-stream\r\n";
        answer.open(request, Status::OK, fields, length_bytes, reads)
    }

    /// Begins to connect to an upstream: the request waits for it.
    fn connect(&mut self, to: u64, answer: Answer<'_>) -> Answered {
        let Some(address) = self.upstreams.get(to as usize) else {
            return answer.bytes(Status::NOT_FOUND, EMPTY, b"");
        };
        let (target, exchange) = (Target::new(TargetAddress::Internet(*address)), answer.address());
        match answer.outbox().upstreams().connect(target, self.timeouts, Some(exchange)) {
            Some(upstream) => {
                self.open.insert(exchange, Doing::Tied { upstream, is_connected: false });
                answer.later()
            }
            None => answer.bytes(Status::SERVICE_UNAVAILABLE, EMPTY, b""),
        }
    }

    /// Records what becomes of the request that waits for an upstream, and wakes its exchange.
    fn decide(&mut self, upstream: Upstream, doing: Doing, outbox: &Outbox) {
        if let Some(exchange) = outbox.upstreams().exchange(upstream) {
            self.open.insert(exchange, doing);
            outbox.wake(exchange);
        }
    }

    /// The upstream of an exchange.
    fn upstream_of(&self, exchange: Address) -> Option<Upstream> {
        match self.open.get(&exchange) {
            Some(Doing::Tied { upstream, .. }) => Some(*upstream),
            _ => None,
        }
    }
}

impl Handler for Echo {
    type Mail = Tick;

    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let number = |name| query(request, name).and_then(|text| text.parse::<u64>().ok());
        let answered = match request.path {
            b"/echo" => self.begin(Doing::Echo, number("length"), request, answer),
            b"/drip" => {
                let every = query(request, "every").unwrap_or("100ms");
                let every_ms = every.trim_end_matches("ms").parse().unwrap_or(100);
                let (next_ms, count) = (answer.unix_ms() + every_ms, number("count").unwrap_or(50));
                let drip = Drip { every_ms, next_ms, sent: 0, count };
                self.begin(Doing::Drip(drip), None, request, answer)
            }
            b"/flood" | b"/cut" => {
                let (left_bytes, cut) = (number("bytes").unwrap_or(1 << 20), request.path == b"/cut");
                self.begin(Doing::Flood { left_bytes, cut }, None, request, answer)
            }
            b"/raw" if request.version != Version::Http2 => {
                self.open.insert(answer.address(), Doing::Echo);
                self.note(|log| log.0 += 1);
                answer.upgrade(b"Upgrade: raw\r\n")
            }
            b"/collect" => {
                answer.collect(request, number("limit").map_or(COLLECTED_BYTES_MAX, |limit| limit as usize))
            }
            b"/upstream" => self.connect(number("to").unwrap_or(0), answer),
            b"/" => answer.bytes(Status::OK, b"Content-Length: 6\r\n", b"plain\n"),
            _ => answer.bytes(Status::NOT_FOUND, EMPTY, b""),
        };
        answered.owned_by(OWNER)
    }

    fn resume(&mut self, _: Tick, _: &Request<'_>, answer: Answer<'_>) -> Answered {
        answer.bytes(Status::INTERNAL_SERVER_ERROR, EMPTY, b"")
    }

    /// Answers a request once its upstream is connected or could not be reached.
    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        assert_eq!(answer.owner(), OWNER);
        let exchange = answer.address();
        match self.open.remove(&exchange) {
            Some(tied @ Doing::Tied { is_connected: true, .. }) => {
                let length_bytes = query(request, "length").and_then(|text| text.parse().ok());
                self.begin(tied, length_bytes, request, answer)
            }
            Some(Doing::NotReached(UpstreamLoss::TimedOut(_))) => {
                answer.bytes(Status::GATEWAY_TIMEOUT, EMPTY, b"")
            }
            _ => answer.bytes(Status::BAD_GATEWAY, EMPTY, b""),
        }
    }

    fn left(&mut self, owner: Owner, address: Address, departure: Departure) {
        assert_eq!(owner, OWNER);
        if departure == Departure::Gone {
            self.open.remove(&address);
        }
    }

    fn collected(&mut self, body: Vec<u8>, _: &Request<'_>, answer: Answer<'_>) -> Answered {
        assert_eq!(answer.owner(), OWNER);
        let text = [format!("{} ", body.len()).as_bytes(), &body].concat();
        answer.bytes(Status::OK, &format!("Content-Length: {}\r\n", text.len()).into_bytes(), &text)
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        assert_eq!(open.owner(), OWNER);
        let upstream = self.upstream_of(open.address());
        match (body, upstream) {
            (Body::Piece(piece), None) => _ = open.push(Piece::Bytes(piece.to_vec())),
            (Body::End, None) => open.end(),
            (Body::Piece(piece), Some(upstream)) => {
                if !open.outbox().upstreams().send(upstream, Piece::Bytes(piece.to_vec())) {
                    open.hold();
                }
            }
            (Body::End, Some(upstream)) => open.outbox().upstreams().end(upstream),
        }
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        assert_eq!(open.owner(), OWNER);
        match self.open.get_mut(&open.address()) {
            Some(Doing::Drip(drip)) => drip.go_on(open),
            Some(Doing::Flood { left_bytes, cut }) => {
                while *left_bytes > 0 && open.has_room() {
                    let end = self.flood.len().min(usize::try_from(*left_bytes).unwrap_or(usize::MAX));
                    *left_bytes -= end as u64;
                    open.push(Piece::Shared(Slice { bytes: Arc::clone(&self.flood), start: 0, end }));
                }
                match (*left_bytes, *cut) {
                    (0, true) => open.abort(),
                    (0, false) => open.end(),
                    _ => {}
                }
            }
            Some(Doing::Tied { upstream, .. }) => open.outbox().upstreams().go_on(*upstream),
            Some(Doing::Echo | Doing::NotReached(_)) | None => {}
        }
    }

    fn upstreams_max(&self) -> u32 {
        if self.upstreams.is_empty() { 0 } else { UPSTREAMS_MAX }
    }

    fn upstream(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        assert!(open.as_ref().is_none_or(|open| open.owner() == OWNER));
        match (event, open) {
            (UpstreamEvent::Received(bytes), Some(open)) => {
                if !open.push(Piece::Bytes(bytes.to_vec())) {
                    outbox.upstreams().hold(upstream);
                }
            }
            (UpstreamEvent::Room, Some(open)) => open.go_on(),
            (UpstreamEvent::Ended, Some(open)) => open.end(),
            (UpstreamEvent::Lost(_), Some(open)) => open.abort(),
            (UpstreamEvent::Connected, None) => {
                // Nothing is to come before the answer has begun.
                outbox.upstreams().hold(upstream);
                self.decide(upstream, Doing::Tied { upstream, is_connected: true }, outbox);
            }
            (UpstreamEvent::Lost(loss), None) => self.decide(upstream, Doing::NotReached(loss), outbox),
            _ => unreachable!("an upstream that is held tells nothing, and one that is closed neither"),
        }
    }

    fn mail(&mut self, _: Owner, _: Tick, outbox: &Outbox) {
        let drips = self.open.iter().filter(|(_, doing)| matches!(doing, Doing::Drip(_)));
        drips.for_each(|(address, _)| outbox.wake(*address));
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        assert_eq!(finished.owner, OWNER);
        let doing = self.open.remove(&finished.address);
        assert!(doing.is_some(), "an exchange is finished twice, or was never open");
        if let Some(Doing::Drip(_)) = doing {
            self.drips.fetch_sub(1, Relaxed);
        }
        self.note(|log| log.1.push(finished.why));
    }
}

impl Drip {
    /// Sends the lines that are due.
    fn go_on(&mut self, open: &mut Open<'_>) {
        while self.sent < self.count && self.next_ms <= open.unix_ms() && open.has_room() {
            self.sent += 1;
            self.next_ms += self.every_ms;
            open.push(Piece::Bytes(format!("drop {}\n", self.sent).into_bytes()));
        }
        if self.sent == self.count {
            open.end();
        }
    }
}

/// The value of a parameter.
fn query<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    let query = std::str::from_utf8(request.query?).ok()?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

//! A handler whose exchanges stay open: what a body brings goes back, pieces come over time, bodies are read
//! or collected.
//!
//! | path | answer |
//! |---|---|
//! | `/echo` | the request's body as it comes, in chunks; with `?length=N` under that length |
//! | `/read?at=N` | the first N bytes of the body, as soon as they are there; without `at` all of it |
//! | `/drip?every=100ms&count=50` | so many lines, one per interval |
//! | `/collect?limit=BYTES` | the length of the body and the body, once all of it is there; 413 above |
//! | `/flood?bytes=N` | so many bytes, as fast as they are taken |
//! | `/cut?bytes=N` | so many bytes, and then the answer is given up |
//! | `/raw` | an upgrade to a protocol in which everything comes back as it is |
//! | `/upstream?to=N` | what the upstream of this number sends for the body; with `?length=N` as above |
//!
//! `/read` takes nothing of the body for `hold=100ms`, and then `step=N` bytes at a time. With `then=echo`
//! the body comes back as a whole, with `then=wait` the request waits before it is answered, with `hints=1`
//! an interim answer comes first. With `trailers=1` a field stands behind a body that comes back in chunks.
//!
//! An upstream that cannot be reached makes 502 of it, one that does not answer in time 504, too many 503.

mod bodies;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use staunch_engine::{
    Address, Answer, Answered, Body, Departure, Ended, Finished, Handler, Open, Outbox, Owner, Piece,
    Reading, Slice, Target, TargetAddress, Upstream, UpstreamEvent, UpstreamLoss, UpstreamTimeouts,
};
use staunch_protocol::{Request, Status, Version};

use self::bodies::{Echoing, Read, Then, milliseconds, query};

/// Limit of `/collect` if none is given.
const COLLECTED_BYTES_MAX: usize = 64 * 1024;
/// A piece of `/flood`.
const FLOOD_BYTES: usize = 16 * 1024;
/// Upstreams at a time.
const UPSTREAMS_MAX: u32 = 256;
const EMPTY: &[u8] = b"Content-Length: 0\r\n";
/// Fields of an answer that goes on.
const OCTETS: &[u8] = b"Content-Type: application/octet-stream\r\n";

/// The handler of one worker.
pub(crate) struct Echo {
    open: HashMap<Address, Doing>,
    flood: Arc<[u8]>,
    /// Where `/upstream` may lead, by number.
    upstreams: Vec<SocketAddr>,
    timeouts: UpstreamTimeouts,
    /// Exchanges of all workers that wait for some time: while there are none nobody need send ticks.
    drips: Arc<AtomicUsize>,
    /// Told of what begins and ends, for tests.
    log: Option<Log>,
}

/// How exchanges ended, in order, and how many began.
pub(crate) type Log = Arc<Mutex<(usize, Vec<Ended>)>>;

/// What an open exchange does.
enum Doing {
    Read(Read),
    Echo(Echoing),
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
        let reads = matches!(doing, Doing::Tied { .. });
        self.open.insert(answer.address(), doing);
        self.note(|log| log.0 += 1);
        answer.open(request, Status::OK, OCTETS, length_bytes, reads)
    }

    /// Begins to read the body of a request.
    fn read(&mut self, read: Read, request: &Request<'_>, mut answer: Answer<'_>) -> Answered {
        if query(request, "hints").is_some() {
            answer.interim(request, Status::EARLY_HINTS, b"Link: </style.css>\r\n");
        }
        if read.at_bytes == 0 {
            answer.outbox().wake(answer.address());
        }
        self.drips.fetch_add(usize::from(read.held_until_ms.is_some()), Relaxed);
        self.open.insert(answer.address(), Doing::Read(read));
        self.note(|log| log.0 += 1);
        answer.read(request)
    }

    /// A body is held no more, if it was.
    fn release(&self, read: &mut Read) {
        self.drips.fetch_sub(usize::from(read.held_until_ms.take().is_some()), Relaxed);
    }

    /// Answers by what was read.
    fn tell(&mut self, read: Read, answer: Answer<'_>) -> Answered {
        self.note(|log| log.1.push(Ended::Complete));
        let body = &read.kept[..read.kept.len().min(read.at_bytes)];
        answer.bytes(Status::OK, &format!("Content-Length: {}\r\n", body.len()).into_bytes(), body)
    }

    /// Answers a request that was read so far, with what has come behind that.
    fn answer(&mut self, read: Read, rest: &[u8], request: &Request<'_>, reading: Reading<'_>) -> Answered {
        let address = reading.address();
        match read.then {
            Then::Stop => self.tell(read, reading.answer()),
            Then::Wait => {
                reading.outbox().wake(address);
                self.open.insert(address, Doing::Read(read));
                reading.answer().later()
            }
            Then::Echo { length_bytes, has_trailers } => {
                let (kept, has_ended) = ([&read.kept, rest].concat(), read.has_ended);
                self.open.insert(address, Doing::Echo(Echoing { kept, has_ended, has_trailers }));
                reading.answer().open(request, Status::OK, OCTETS, length_bytes, true)
            }
        }
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
            b"/echo" => self.read(Read::echo(request), request, answer),
            b"/read" => self.read(Read::new(request, answer.unix_ms()), request, answer),
            b"/drip" => {
                let every_ms = milliseconds(request, "every").unwrap_or(100);
                let (next_ms, count) = (answer.unix_ms() + every_ms, number("count").unwrap_or(50));
                let drip = Drip { every_ms, next_ms, sent: 0, count };
                self.begin(Doing::Drip(drip), None, request, answer)
            }
            b"/flood" | b"/cut" => {
                let (left_bytes, cut) = (number("bytes").unwrap_or(1 << 20), request.path == b"/cut");
                self.begin(Doing::Flood { left_bytes, cut }, None, request, answer)
            }
            b"/raw" if request.version != Version::Http2 || request.asks_websocket() => {
                self.open.insert(answer.address(), Doing::Echo(Echoing::default()));
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

    /// Reads on until it is time for the answer.
    fn reading(&mut self, body: Option<Body<'_>>, request: &Request<'_>, reading: Reading<'_>) -> Answered {
        assert_eq!(reading.owner(), OWNER);
        let address = reading.address();
        let Some(Doing::Read(mut read)) = self.open.remove(&address) else {
            panic!("a request is read that was answered, or has gone");
        };
        let piece = if let Some(Body::Piece(piece)) = body { piece } else { &[] };
        read.has_ended |= body == Some(Body::End);
        if read.held_until_ms.is_some_and(|until_ms| reading.unix_ms() < until_ms) {
            self.open.insert(address, Doing::Read(read));
            return reading.take(0);
        }
        self.release(&mut read);
        let (taken, rest) = piece.split_at(piece.len().min(read.step_bytes));
        read.kept.extend_from_slice(taken);
        if read.kept.len() >= read.at_bytes || read.has_ended {
            return self.answer(read, rest, request, reading);
        }
        if !rest.is_empty() {
            reading.outbox().wake(address);
        }
        self.open.insert(address, Doing::Read(read));
        reading.take(taken.len())
    }

    /// Answers a request once its upstream is connected or could not be reached, or that has waited after it
    /// was read.
    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        assert_eq!(answer.owner(), OWNER);
        let exchange = answer.address();
        match self.open.remove(&exchange) {
            Some(tied @ Doing::Tied { is_connected: true, .. }) => {
                let length_bytes = query(request, "length").and_then(|text| text.parse().ok());
                self.begin(tied, length_bytes, request, answer)
            }
            Some(Doing::Read(read)) => self.tell(read, answer),
            Some(Doing::NotReached(UpstreamLoss::TimedOut(_))) => {
                answer.bytes(Status::GATEWAY_TIMEOUT, EMPTY, b"")
            }
            _ => answer.bytes(Status::BAD_GATEWAY, EMPTY, b""),
        }
    }

    fn left(&mut self, owner: Owner, address: Address, departure: Departure, _outbox: &Outbox) {
        assert_eq!(owner, OWNER);
        if departure == Departure::Gone
            && let Some(Doing::Read(mut read)) = self.open.remove(&address)
        {
            self.release(&mut read);
            self.note(|log| log.1.push(Ended::Gone));
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
        if let Some(Doing::Echo(echoing)) = self.open.get_mut(&open.address()) {
            return echoing.take(body, open);
        }
        match (body, upstream) {
            (_, None) => unreachable!("bodies go back or to an upstream"),
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
            Some(Doing::Echo(echoing)) => echoing.go_on(open),
            Some(Doing::Read(_) | Doing::NotReached(_)) | None => {}
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
        let waits = |doing: &Doing| match doing {
            Doing::Drip(_) => true,
            Doing::Read(read) => read.held_until_ms.is_some(),
            _ => false,
        };
        let drips = self.open.iter().filter(|(_, doing)| waits(doing));
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

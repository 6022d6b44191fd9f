//! A connection of a truth server, request by request.
//!
//! It owns the deeds: what each behaviour does to the peer, and that it is counted. It must never let a
//! request end twice or not at all in the books (see [`Counts`]).

use std::time::{Duration, Instant};

use super::answer::{self, Framing};
use super::behaviour::Behaviour;
use super::counts::Counts;
use super::house::House;
use super::pace::Ended;
use super::request::{Inbox, Nothing, Request};
use super::stream::Stream;

/// Pieces of a slow body.
const PIECES: usize = 10;

/// What follows a request.
enum Next {
    /// The next one.
    Another,
    /// An orderly close.
    Finish,
    /// The connection is reset.
    Reset,
    /// A close, however it comes: there is no peer any more, or no server.
    Drop,
}

/// Why an answer could not be given.
enum Stop {
    /// The peer is gone.
    Gone,
    /// The server ends.
    Ended,
}

impl From<Ended> for Stop {
    fn from(Ended: Ended) -> Self {
        Self::Ended
    }
}

/// How a request ends with the bytes being sent.
#[derive(Clone, Copy)]
enum Ending {
    /// The request does not end with these bytes.
    Open,
    /// With an answer of this status.
    Answer(u16),
    /// With something else on purpose.
    Broken,
}

impl Ending {
    fn enter(self, counts: &mut Counts) {
        match self {
            Self::Open => {}
            Self::Answer(status) => *counts.answers.entry(status).or_default() += 1,
            Self::Broken => counts.broken += 1,
        }
    }

    fn take_back(self, counts: &mut Counts) {
        match self {
            Self::Open => {}
            Self::Answer(status) => *counts.answers.entry(status).or_default() -= 1,
            Self::Broken => counts.broken -= 1,
        }
    }
}

/// Serves a connection to its end.
pub(crate) fn converse(house: &House, stream: &Stream) {
    let mut inbox = Inbox::default();
    loop {
        let next = match inbox.next(stream) {
            Ok(request) => respond(house, stream, &request),
            Err(Nothing::End) => Next::Drop,
            Err(Nothing::Incomplete) => {
                if !house.pace.has_ended() {
                    house.ledger.note(|counts| counts.requests_incomplete += 1);
                }
                Next::Drop
            }
            Err(Nothing::Bad(status, why)) => refuse(house, stream, status, &why),
        };
        match next {
            Next::Another => {}
            Next::Finish => return stream.finish(),
            Next::Reset => return stream.reset_on_close(),
            Next::Drop => return,
        }
    }
}

/// Answers what is no request, and ends.
fn refuse(house: &House, stream: &Stream, status: u16, why: &str) -> Next {
    house.ledger.note(|counts| *counts.requests.entry("bad").or_default() += 1);
    let exchange = Exchange { house, stream, is_head: false, closes: true };
    exchange.settle(exchange.whole(status, why.as_bytes()))
}

fn respond(house: &House, stream: &Stream, request: &Request) -> Next {
    let arrival = Instant::now();
    let behaviour = Behaviour::of(&request.target);
    let closes = request.wants_close || matches!(behaviour, Ok(Behaviour::Close { .. }));
    let exchange = Exchange { house, stream, is_head: request.method == "HEAD", closes };
    if behaviour == Ok(Behaviour::Truth) {
        return exchange.tell_the_truth();
    }
    let kind = match &behaviour {
        Ok(behaviour) => behaviour.kind(),
        Err((404, _)) => "unknown",
        Err(_) => "bad",
    };
    house.ledger.note(|counts| *counts.requests.entry(kind).or_default() += 1);
    if let Err(ended) = house.pool.serve(arrival, &house.pace) {
        return exchange.settle(Err(ended.into()));
    }
    exchange.settle(match behaviour {
        Ok(behaviour) => exchange.perform(&behaviour, request),
        Err((status, why)) => exchange.whole(status, why.as_bytes()),
    })
}

/// A request and its answer.
struct Exchange<'a> {
    house: &'a House,
    stream: &'a Stream,
    /// The answer has no body (RFC 9110, section 9.3.2).
    is_head: bool,
    /// The answer says `Connection: close`.
    closes: bool,
}

impl Exchange<'_> {
    fn perform(&self, behaviour: &Behaviour, request: &Request) -> Result<Next, Stop> {
        match *behaviour {
            Behaviour::Ok { bytes } | Behaviour::Close { bytes } => self.whole(200, &answer::body(bytes)),
            Behaviour::Status(status) => self.whole(status, b"as asked for\n"),
            Behaviour::Delay(length) => {
                self.house.pace.sleep(length)?;
                self.whole(200, &answer::body(100))
            }
            Behaviour::WrongBody { bytes } => self.whole(200, &answer::wrong_body(bytes)),
            Behaviour::Echo => self.whole(200, &request.bytes),
            Behaviour::Interim => {
                self.send(answer::INTERIM, Ending::Open)?;
                self.whole(200, &answer::body(100))
            }
            Behaviour::Chunked { bytes, chunk } => {
                let body = answer::chunked(&answer::body(bytes), chunk);
                self.framed(200, Framing::Chunked, &body)
            }
            Behaviour::NoLength { bytes } => {
                self.framed(200, Framing::Close, &answer::body(bytes))?;
                Ok(Next::Finish)
            }
            Behaviour::SlowBody { bytes, over } => self.slow(bytes, over / PIECES as u32),
            Behaviour::Stall => self.hang(),
            Behaviour::HangAfterHead { bytes } => {
                self.send(&answer::head(200, Framing::Length(bytes), self.closes), Ending::Open)?;
                self.hang()
            }
            Behaviour::Reset => self.reset(),
            Behaviour::ResetInBody { bytes } => {
                self.send(&self.half(bytes), Ending::Open)?;
                self.reset()
            }
            Behaviour::Short { bytes } => {
                self.send(&self.half(bytes.max(1)), Ending::Broken)?;
                Ok(Next::Finish)
            }
            Behaviour::Garbage => {
                self.send(answer::GARBAGE, Ending::Broken)?;
                Ok(Next::Finish)
            }
            Behaviour::Truth => Ok(self.tell_the_truth()),
        }
    }

    /// A right answer with a length.
    fn whole(&self, status: u16, body: &[u8]) -> Result<Next, Stop> {
        match status {
            204 | 304 => self.framed(status, Framing::Nothing, b""),
            _ => self.framed(status, Framing::Length(body.len()), body),
        }
    }

    fn framed(&self, status: u16, framing: Framing, body: &[u8]) -> Result<Next, Stop> {
        let mut bytes = answer::head(status, framing, self.closes || framing == Framing::Close);
        if !self.is_head {
            bytes.extend_from_slice(body);
        }
        self.send(&bytes, Ending::Answer(status))?;
        Ok(self.after_answer())
    }

    fn slow(&self, bytes: usize, pause: Duration) -> Result<Next, Stop> {
        let (head, body) = (answer::head(200, Framing::Length(bytes), self.closes), answer::body(bytes));
        if self.is_head || bytes == 0 {
            self.send(&head, Ending::Answer(200))?;
            return Ok(self.after_answer());
        }
        self.send(&head, Ending::Open)?;
        let mut sent = 0;
        for piece in body.chunks(bytes.div_ceil(PIECES)) {
            self.house.pace.sleep(pause)?;
            sent += piece.len();
            let ending = if sent == bytes { Ending::Answer(200) } else { Ending::Open };
            self.send(piece, ending)?;
        }
        Ok(self.after_answer())
    }

    /// A head and half of the body it promises.
    fn half(&self, bytes: usize) -> Vec<u8> {
        let mut part = answer::head(200, Framing::Length(bytes), self.closes);
        part.extend_from_slice(&answer::body(bytes)[..bytes / 2]);
        part
    }

    fn reset(&self) -> Result<Next, Stop> {
        self.house.pace.pass()?;
        if self.stream.is_gone() {
            return Err(Stop::Gone);
        }
        let is_tcp = matches!(self.stream, Stream::Tcp(_));
        self.house.ledger.note(|counts| {
            counts.broken += 1;
            counts.resets += u64::from(is_tcp);
        });
        Ok(Next::Reset)
    }

    /// Waits until the peer goes; what it still sends is thrown away.
    fn hang(&self) -> Result<Next, Stop> {
        let mut ignored = [0; 4096];
        while matches!(self.stream.read(&mut ignored), Ok(1..)) {}
        Err(if self.house.pace.has_ended() { Stop::Ended } else { Stop::Gone })
    }

    fn after_answer(&self) -> Next {
        if self.closes || self.house.plan.answer_then_close { Next::Finish } else { Next::Another }
    }

    /// Sends and counts, in this order for the peer: what it can see has been counted.
    fn send(&self, bytes: &[u8], ending: Ending) -> Result<(), Stop> {
        self.house.pace.pass()?;
        if self.stream.is_gone() {
            return Err(Stop::Gone);
        }
        self.house.ledger.note(|counts| {
            counts.bytes_sent += bytes.len() as u64;
            ending.enter(counts);
        });
        self.stream.write_all(bytes).map_err(|(written, _)| {
            self.house.ledger.note(|counts| {
                counts.bytes_sent -= (bytes.len() - written) as u64;
                ending.take_back(counts);
            });
            if self.house.pace.has_ended() { Stop::Ended } else { Stop::Gone }
        })
    }

    /// Enters into the books what became of the request if there was no answer.
    fn settle(&self, outcome: Result<Next, Stop>) -> Next {
        match outcome {
            Ok(next) => next,
            Err(Stop::Ended) => Next::Drop,
            Err(Stop::Gone) => {
                self.house.ledger.note(|counts| counts.peers_gone += 1);
                Next::Drop
            }
        }
    }

    /// Answers with the counts, at once: no worker, no stall, no counting but of the question.
    fn tell_the_truth(&self) -> Next {
        self.house.ledger.note(|counts| counts.truth_asked += 1);
        let body = serde_json::to_vec(&self.house.ledger.counts()).expect("counts can be written as JSON");
        let mut bytes = answer::head(200, Framing::Length(body.len()), self.closes);
        bytes.extend_from_slice(&body);
        match self.stream.write_all(&bytes) {
            Ok(()) if self.closes => Next::Finish,
            Ok(()) => Next::Another,
            Err(_) => Next::Drop,
        }
    }
}

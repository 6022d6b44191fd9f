//! `staunch dostp stream receive`: counts what comes of streams, and answers their senders.
//!
//! It must never hold more than so many streams, nor end because of what a sender sends.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use staunch_dostp::{Received, Socket, Wait};
use staunch_netio::clock;
use staunch_program::output;

use super::super::link::{self, NodeLink};
use super::super::service::TURN_COUNT;
use super::super::waiting::{ended, ready};
use super::report::StreamReport;
use super::score::Score;
use super::words::{self, Asks, PORT, StreamAnswer, StreamQuestion};
use crate::config::Failure;

/// Streams that are counted at a time.
const STREAMS_MAX: usize = 64;

/// A stream of which nothing came for so long is over.
const SILENCE_MS: u64 = 10_000;

/// How often it is looked for such.
const LOOK: Duration = Duration::from_secs(1);

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    link: NodeLink,

    /// Port that streams come to
    #[arg(long, value_name = "PORT", default_value_t = PORT,
          value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// End after so many streams [default: when it is ended]
    #[arg(long, short, value_name = "NUMBER")]
    count: Option<u64>,

    /// Print a JSON object a line
    #[arg(long)]
    json: bool,
}

/// Counts until it is ended by TERM or INT, or has counted as many streams as were asked for.
///
/// # Errors
/// The interface cannot be used, or a right is missing.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let failure = |error: io::Error| arguments.link.failure(&error);
    let ended = ended().map_err(|error| format!("signals: {error}"))?;
    let socket = arguments.link.open(arguments.port, |_| {}).map_err(failure)?;
    socket.set_nonblocking(true).map_err(failure)?;
    let address = socket.local_addr().map_err(failure)?;
    let how = link::describe(&socket);
    output::remark(&format!("staunch: dostp: streams to {address} are counted, {how}\n"));
    let mut streams = Streams { clock: words::clock_name(), json: arguments.json, ..Streams::default() };
    turns(arguments, &socket, &ended, &mut streams).map_err(failure)?;
    streams.conclude(u64::MAX);
    socket.leave().ok();
    Ok(ExitCode::SUCCESS)
}

fn turns(
    arguments: &Arguments,
    socket: &Socket,
    ended: &UnixStream,
    streams: &mut Streams,
) -> io::Result<()> {
    let spins = matches!(arguments.link.wait(), Wait::Spin);
    loop {
        let may_be_more = take(socket, streams)?;
        streams.conclude(clock::now_ms());
        if arguments.count.is_some_and(|count| streams.told >= count) {
            return Ok(());
        }
        let due = socket.due_ms().map(|due_ms| Duration::from_millis(due_ms.saturating_sub(clock::now_ms())));
        let look = streams.is_any_open().then_some(LOOK);
        let until =
            if may_be_more || spins { Some(Duration::ZERO) } else { due.into_iter().chain(look).min() };
        if !ready(&[ended.as_fd(), socket.as_fd()], until)?[0].is_empty() {
            return Ok(());
        }
        while socket.poll_event().is_some() {}
    }
}

/// Takes what has come. Whether there may be more.
fn take(socket: &Socket, streams: &mut Streams) -> io::Result<bool> {
    for _ in 0..TURN_COUNT {
        let received = match socket.receive() {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some(answer) = streams.take(&received, clock::now_ns()) {
            // A sender that does not hear this asks again.
            socket.send_to(&words::write(&answer), received.from).ok();
        }
    }
    Ok(true)
}

/// A stream that was begun.
#[derive(Debug)]
struct Stream {
    score: Score,
    heard_ms: u64,
    /// What was told of it, once it is over.
    report: Option<StreamReport>,
}

/// All of them, by their senders.
#[derive(Debug, Default)]
struct Streams {
    clock: String,
    json: bool,
    known: HashMap<SocketAddrV4, Stream>,
    /// Streams that were told of.
    told: u64,
}

impl Streams {
    /// Takes a message; gives the answer to a question.
    fn take(&mut self, received: &Received, now_ns: u64) -> Option<StreamAnswer> {
        let (from, now_ms) = (received.from, now_ns / 1_000_000);
        if received.to_all {
            return None;
        }
        if let Some(question) = words::read::<StreamQuestion>(&received.payload) {
            return self.answer(from, &question, now_ms);
        }
        let stream = self.known.get_mut(&from).filter(|stream| stream.report.is_none())?;
        if stream.score.take(&received.payload, now_ns / 1_000) {
            stream.heard_ms = now_ms;
        }
        None
    }

    fn answer(&mut self, from: SocketAddrV4, question: &StreamQuestion, now_ms: u64) -> Option<StreamAnswer> {
        let number = question.stream;
        match &question.asks {
            Asks::Begin { clock } => {
                let is_known = self.known.get(&from).is_some_and(|known| known.score.stream() == number);
                if !is_known {
                    self.begin(from, number, clock, now_ms)?;
                }
                Some(StreamAnswer { stream: number, report: None })
            }
            Asks::End { sent } => {
                let known = self.known.get_mut(&from).filter(|known| known.score.stream() == number)?;
                known.heard_ms = now_ms;
                if known.report.is_none() {
                    let report = known.score.report(Some(*sent));
                    known.report = Some(report.clone());
                    self.tell(&report);
                }
                let report = self.known.get(&from).and_then(|known| known.report.clone());
                Some(StreamAnswer { stream: number, report })
            }
        }
    }

    /// Begins a stream, if there is room for one more.
    fn begin(&mut self, from: SocketAddrV4, number: u64, clock: &str, now_ms: u64) -> Option<()> {
        if let Some(former) = self.known.remove(&from).filter(|former| former.report.is_none()) {
            self.tell(&former.score.report(None));
        }
        if self.known.len() >= STREAMS_MAX {
            let over = self.known.iter().filter(|(_, stream)| stream.report.is_some());
            let oldest = over.min_by_key(|(_, stream)| stream.heard_ms).map(|(from, _)| *from)?;
            self.known.remove(&oldest);
        }
        let has_one_clock = !clock.is_empty() && clock == self.clock;
        let score = Score::new(number, from.to_string(), has_one_clock);
        self.known.insert(from, Stream { score, heard_ms: now_ms, report: None });
        Some(())
    }

    fn is_any_open(&self) -> bool {
        self.known.values().any(|stream| stream.report.is_none())
    }

    /// Tells of streams that are over although nobody said so.
    fn conclude(&mut self, now_ms: u64) {
        let mut reports = Vec::new();
        let is_silent = |stream: &&mut Stream| {
            stream.report.is_none() && now_ms.saturating_sub(stream.heard_ms) > SILENCE_MS
        };
        for stream in self.known.values_mut().filter(is_silent) {
            let report = stream.score.report(None);
            stream.report = Some(report.clone());
            reports.push(report);
        }
        reports.iter().for_each(|report| self.tell(report));
    }

    fn tell(&mut self, report: &StreamReport) {
        self.told += 1;
        output::print(&report.shown(self.json));
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use staunch_dostp::Kind;

    use super::*;

    fn received(port: u16, payload: Vec<u8>) -> Received {
        let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        Received { from, kind: Kind::Data, to_all: false, message_id: 1, payload }
    }

    fn ask(streams: &mut Streams, port: u16, stream: u64, asks: Asks) -> Option<StreamAnswer> {
        streams.take(&received(port, words::write(&StreamQuestion { stream, asks })), 0)
    }

    #[test]
    fn senders_beyond_those_that_are_counted_get_no_answer_until_one_has_ended() {
        let mut streams = Streams::default();
        let begin = || Asks::Begin { clock: String::new() };
        for port in 1..=STREAMS_MAX as u16 {
            assert!(ask(&mut streams, port, 7, begin()).is_some());
        }
        assert_eq!(ask(&mut streams, 1_000, 7, begin()), None);
        assert!(ask(&mut streams, 1, 7, begin()).is_some(), "asked again");
        streams.take(&received(1, words::message(7, 0, 64, 5, 0)), 0);
        // The answer to the end is as it was, however often it is asked for.
        let end = || Asks::End { sent: 2 };
        let report = ask(&mut streams, 1, 7, end()).and_then(|answer| answer.report).expect("a report");
        assert_eq!((report.sent, report.in_time, report.lost), (2, 1, 1));
        assert_eq!(ask(&mut streams, 1, 7, end()).and_then(|answer| answer.report), Some(report));
        assert_eq!(ask(&mut streams, 1, 8, end()), None, "a stream that was never begun");
        assert!(ask(&mut streams, 1_000, 7, begin()).is_some());
        assert_eq!((streams.known.len(), streams.told), (STREAMS_MAX, 1));
        streams.conclude(SILENCE_MS + 1);
        assert_eq!((streams.told, streams.is_any_open()), (1 + STREAMS_MAX as u64, false));
    }
}

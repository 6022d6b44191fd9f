//! `staunch dostp stream receive`: counts what comes of streams, and answers their senders.
//!
//! A receiver must never hold more than `STREAMS_MAX` streams, nor end because of what a sender sends.

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
use staunch_program::{Failure, output};

use super::super::link::{self, NodeLink};
use super::super::service::TURN_COUNT;
use super::super::waiting::{ended, ready};
use super::bound::PerSecond;
use super::report::StreamReport;
use super::score::Score;
use super::words::{self, Asks, PORT, StreamAnswer, StreamQuestion};

/// Streams that are counted at a time.
const STREAMS_MAX: usize = 64;

/// A stream of which nothing came for so long is over.
const SILENCE_MS: u64 = 10_000;

/// Lines in a second: all streams can end at once, and strangers can cause more.
const TOLD_PER_SECOND_MAX: u32 = STREAMS_MAX as u32;

/// Answers in a second: more than all senders ask for who ask again each 100 ms.
const ANSWERS_PER_SECOND_MAX: u32 = 1_000;

/// The time for which senders get answers after the last stream of `--count`: an answer can be lost.
const LINGER_MS: u64 = 1_000;

/// The pause between two looks for streams that have ended.
const LOOK: Duration = Duration::from_secs(1);

/// The command line of `staunch dostp stream receive`.
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
    let mut streams = Streams::new(words::clock_name(), arguments.json);
    turns(arguments, &socket, &ended, &mut streams).map_err(failure)?;
    streams.conclude(u64::MAX);
    streams.turn(u64::MAX);
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
        let now_ms = clock::now_ms();
        streams.turn(now_ms);
        streams.conclude(now_ms);
        if arguments.count.is_some_and(|count| streams.counted >= count) {
            streams.close(now_ms);
        }
        if streams.closes_ms.is_some_and(|closes_ms| now_ms >= closes_ms) {
            return Ok(());
        }
        let due = socket.due_ms().map(|due_ms| Duration::from_millis(due_ms.saturating_sub(clock::now_ms())));
        let look = streams.is_to_be_looked_at().then_some(LOOK);
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
    /// The report of the stream, once it is over.
    report: Option<StreamReport>,
    /// Whether it is one of those that were counted.
    is_counted: bool,
}

impl Stream {
    /// Whether it is over because nothing came, and not because its sender said so.
    fn is_over_by_silence(&self) -> bool {
        self.report.as_ref().is_some_and(|report| !report.is_whole)
    }
}

/// All of them, by their senders.
#[derive(Debug)]
struct Streams {
    clock: String,
    json: bool,
    known: HashMap<SocketAddrV4, Stream>,
    /// Streams that are over and of which a message came, each once.
    counted: u64,
    /// When the receiver ends, once it begins no more streams.
    closes_ms: Option<u64>,
    lines: PerSecond,
    answers: PerSecond,
}

impl Streams {
    fn new(clock: String, json: bool) -> Self {
        let (lines, answers) = (PerSecond::new(TOLD_PER_SECOND_MAX), PerSecond::new(ANSWERS_PER_SECOND_MAX));
        Self { clock, json, known: HashMap::new(), counted: 0, closes_ms: None, lines, answers }
    }

    /// Begins another second of the bounds for lines and answers, if the present one is over.
    fn turn(&mut self, now_ms: u64) {
        self.answers.turn(now_ms);
        let untold = self.lines.turn(now_ms);
        if untold > 0 {
            output::remark(&format!("staunch: dostp: {untold} more such lines\n"));
        }
    }

    /// Whether the receiver begins no more streams, and soon ends.
    fn close(&mut self, now_ms: u64) {
        self.closes_ms.get_or_insert(now_ms.saturating_add(LINGER_MS));
    }

    /// Takes a message; gives the answer to a question.
    fn take(&mut self, received: &Received, now_ns: u64) -> Option<StreamAnswer> {
        let (from, now_ms) = (received.from, now_ns / 1_000_000);
        if received.to_all {
            return None;
        }
        if let Some(question) = words::read::<StreamQuestion>(&received.payload) {
            return if self.answers.admits() { self.answer(from, &question, now_ns) } else { None };
        }
        let stream = self.known.get_mut(&from)?;
        let is_open = stream.report.is_none() || stream.is_over_by_silence();
        if is_open && stream.score.take(&received.payload, now_ns / 1_000) {
            // After a long pause the stream goes on.
            stream.report = None;
            stream.heard_ms = now_ms;
        }
        None
    }

    fn answer(&mut self, from: SocketAddrV4, question: &StreamQuestion, now_ns: u64) -> Option<StreamAnswer> {
        let (number, now_ms) = (question.stream, now_ns / 1_000_000);
        match &question.asks {
            Asks::Begin { clock } => {
                let is_known = self.known.get(&from).is_some_and(|known| known.score.stream() == number);
                if !is_known && self.closes_ms.is_some() {
                    return None;
                }
                let is_full = !is_known && self.begin(from, number, clock, now_ns).is_none();
                Some(StreamAnswer { stream: number, report: None, is_full })
            }
            Asks::End { sent } => {
                let known = self.known.get_mut(&from).filter(|known| known.score.stream() == number)?;
                known.heard_ms = now_ms;
                if known.report.is_none() || known.is_over_by_silence() {
                    if !known.score.end(*sent, now_ns / 1_000) {
                        return None;
                    }
                    self.finish(from);
                }
                let report = self.known.get(&from).and_then(|known| known.report.clone());
                Some(StreamAnswer { stream: number, report, is_full: false })
            }
        }
    }

    /// Begins a stream, if there is room for one more.
    fn begin(&mut self, from: SocketAddrV4, number: u64, clock: &str, now_ns: u64) -> Option<()> {
        if self.known.get(&from).is_some_and(|former| former.report.is_none()) {
            self.finish(from);
        }
        self.known.remove(&from);
        if self.known.len() >= STREAMS_MAX {
            let over = self.known.iter().filter(|(_, stream)| stream.report.is_some());
            let oldest = over.min_by_key(|(_, stream)| stream.heard_ms).map(|(from, _)| *from)?;
            self.known.remove(&oldest);
        }
        let has_one_clock = !clock.is_empty() && clock == self.clock;
        let score = Score::new(number, from.to_string(), has_one_clock, now_ns / 1_000);
        let heard_ms = now_ns / 1_000_000;
        self.known.insert(from, Stream { score, heard_ms, report: None, is_counted: false });
        Some(())
    }

    fn is_any_open(&self) -> bool {
        self.known.values().any(|stream| stream.report.is_none())
    }

    /// Whether there is something to do although nothing comes.
    fn is_to_be_looked_at(&self) -> bool {
        self.is_any_open() || self.closes_ms.is_some() || self.lines.has_refused()
    }

    /// Tells of streams that are over although nobody said so.
    fn conclude(&mut self, now_ms: u64) {
        let is_silent =
            |stream: &Stream| stream.report.is_none() && now_ms.saturating_sub(stream.heard_ms) > SILENCE_MS;
        let silent = self.known.iter().filter(|(_, stream)| is_silent(stream));
        let silent: Vec<_> = silent.map(|(from, _)| *from).collect();
        silent.into_iter().for_each(|from| self.finish(from));
    }

    /// Reports on a stream. One of which no message came is neither shown nor counted: anybody can ask.
    fn finish(&mut self, from: SocketAddrV4) {
        let Some(stream) = self.known.get_mut(&from) else { return };
        let report = stream.report.insert(stream.score.report());
        if !stream.score.has_any() {
            return;
        }
        self.counted += u64::from(!stream.is_counted);
        stream.is_counted = true;
        if self.lines.admits() {
            output::print(&report.shown(self.json));
        }
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

    fn streams() -> Streams {
        Streams::new(String::new(), false)
    }

    fn begin() -> Asks {
        Asks::Begin { clock: String::new() }
    }

    #[test]
    fn senders_beyond_those_that_are_counted_are_told_so_until_one_has_ended() {
        let mut streams = streams();
        for port in 1..=STREAMS_MAX as u16 {
            assert!(ask(&mut streams, port, 7, begin()).is_some());
        }
        assert!(ask(&mut streams, 1_000, 7, begin()).is_some_and(|answer| answer.is_full));
        assert!(ask(&mut streams, 1, 7, begin()).is_some(), "asked again");
        streams.take(&received(1, words::message(7, 0, 64, 5, 0)), 0);
        // The answer to the end is as it was, however often it is asked for.
        let end = || Asks::End { sent: 2 };
        let report = ask(&mut streams, 1, 7, end()).and_then(|answer| answer.report).expect("a report");
        assert_eq!((report.sent, report.in_time, report.lost), (2, 1, 1));
        assert_eq!(ask(&mut streams, 1, 7, end()).and_then(|answer| answer.report), Some(report));
        assert_eq!(ask(&mut streams, 1, 8, end()), None, "a stream that was never begun");
        assert!(ask(&mut streams, 1_000, 7, begin()).is_some_and(|answer| !answer.is_full));
        assert_eq!((streams.known.len(), streams.counted), (STREAMS_MAX, 1));
        // Streams of which no message came are over, and not counted.
        streams.conclude(SILENCE_MS + 1);
        assert_eq!((streams.counted, streams.is_any_open()), (1, false));
    }

    #[test]
    fn strangers_end_nothing_and_get_so_many_answers_a_second() {
        let mut streams = streams();
        let answered = (0..2 * u64::from(ANSWERS_PER_SECOND_MAX)).filter(|stream| {
            let begun = ask(&mut streams, 1, *stream, begin()).is_some();
            begun && *stream % 2 == 0 && ask(&mut streams, 1, *stream, Asks::End { sent: 9 }).is_some()
        });
        assert!(answered.count() < ANSWERS_PER_SECOND_MAX as usize);
        assert_eq!(ask(&mut streams, 2, 1, begin()), None);
        assert_eq!((streams.counted, streams.known.len()), (0, 1));
        streams.turn(1_000);
        assert!(ask(&mut streams, 2, 1, begin()).is_some());
        streams.close(1_000);
        assert_eq!(ask(&mut streams, 3, 1, begin()), None, "no more are begun");
        assert!(ask(&mut streams, 2, 1, Asks::End { sent: 9 }).is_some(), "the others are answered");
    }

    #[test]
    fn a_stream_goes_on_after_a_pause_and_is_counted_once() {
        let mut streams = streams();
        ask(&mut streams, 1, 7, begin());
        let take = |streams: &mut Streams, number: u64, at_ms: u64| {
            let message = words::message(7, number, 64, 5, at_ms * 1_000);
            streams.take(&received(1, message), at_ms * 1_000_000);
        };
        take(&mut streams, 0, 0);
        streams.conclude(SILENCE_MS + 1);
        assert_eq!((streams.counted, streams.is_any_open()), (1, false));
        take(&mut streams, 1, SILENCE_MS + 2);
        assert!(streams.is_any_open());
        streams.conclude(3 * SILENCE_MS);
        assert!(!streams.is_any_open());
        let answer = ask(&mut streams, 1, 7, Asks::End { sent: 3 });
        let report = answer.and_then(|answer| answer.report).expect("a report");
        assert_eq!((report.sent, report.is_whole, report.lost, streams.counted), (3, true, 1, 1));
        // A message that comes after the end of a stream is no part of it.
        take(&mut streams, 2, 3 * SILENCE_MS);
        assert!(!streams.is_any_open());
    }
}

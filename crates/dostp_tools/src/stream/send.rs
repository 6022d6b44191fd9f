//! `staunch dostp stream send`: messages by a schedule, each with the time at which it went.
//!
//! A sender must never send before its schedule, nor take for received what the receiver has not counted.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use staunch_config::units;
use staunch_dostp::Socket;
use staunch_netio::clock;
use staunch_program::{Failure, output};

use super::super::link::{self, NodeLink};
use super::super::trips;
use super::super::waiting::{ended, ready};
use super::words::{self, Asks, HEAD_BYTES, PORT, StreamAnswer, StreamQuestion};

/// The longest message: what a node holds of one.
const SIZE_MAX: u64 = 256 << 10;

/// Messages a second at most: more is no schedule but as fast as possible, which `bench --one-way` does.
const RATE_MAX: u64 = 1_000_000;

/// The time for which an answer is waited for before the question is repeated, and how often it is sent.
const ANSWER_PATIENCE: Duration = Duration::from_millis(100);
const QUESTIONS_MAX: u32 = 20;

/// The sentence for a receiver that begins no stream.
const FULL: &str = "the receiver there counts as many streams as it can: try again when one has ended";

/// The command line of `staunch dostp stream send`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// IPv4 address of the node that receives
    #[arg(value_name = "ADDRESS")]
    address: Ipv4Addr,

    #[command(flatten)]
    link: NodeLink,

    /// Its port for streams
    #[arg(long, value_name = "PORT", default_value_t = PORT,
          value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// Messages a second
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = rate)]
    rate: u64,

    /// Bytes of each message, 32 at least
    #[arg(long, short, value_name = "BYTES", default_value = "64",
          value_parser = clap::value_parser!(u64).range(HEAD_BYTES as u64..=SIZE_MAX))]
    size: u64,

    /// How long a message may be held up on its way
    #[arg(long, value_name = "TIME", value_parser = deadline, default_value = "5ms")]
    deadline: Duration,

    /// Messages to send [default: as many as the duration takes]
    #[arg(long, short, value_name = "NUMBER", value_parser = units::count)]
    count: Option<u64>,

    /// How long to send
    #[arg(long, short, value_name = "TIME", value_parser = units::duration, default_value = "10s",
          conflicts_with = "count")]
    duration: Duration,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// How many messages the whole stream has.
    fn messages(&self) -> u64 {
        let in_time = u128::from(self.rate) * self.duration.as_nanos() / 1_000_000_000;
        self.count.unwrap_or(u64::try_from(in_time).unwrap_or(u64::MAX))
    }
}

/// Sends, and prints what was received.
///
/// # Errors
/// The interface cannot be used, a right is missing, or nobody receives there.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let failure = |error: io::Error| arguments.link.failure(&error);
    let ended = ended().map_err(|error| format!("signals: {error}"))?;
    // Where it is refused the schedule is kept a little worse, and receivers tell how well.
    clock::fine_timers().ok();
    let socket = arguments.link.open(0, |options| options.is_quiet = true).map_err(failure)?;
    let to = SocketAddrV4::new(arguments.address, arguments.port);
    socket.connect(to).map_err(failure)?;
    socket.set_read_timeout(Some(ANSWER_PATIENCE)).map_err(failure)?;
    let said = |error: io::Error| Failure { code: 1, text: trips::said(&error, arguments.address) };
    let stream = clock::now_ns() ^ (u64::from(std::process::id()) << 40);
    let begin = Asks::Begin { clock: words::clock_name() };
    ask(&socket, &StreamQuestion { stream, asks: begin }).map_err(said)?;
    if !arguments.json {
        let (rate, size, how) = (arguments.rate, arguments.size, link::describe(&socket));
        output::print(&format!("stream to {to} {how}: {rate} messages of {size} bytes a second\n"));
    }
    let sent = send(arguments, &socket, (stream, to), &ended).map_err(said)?;
    let unreported = |error: io::Error| match error.kind() {
        ErrorKind::TimedOut => Failure { code: 1, text: "the stream was sent; no report came".to_owned() },
        _ => said(error),
    };
    let answer = ask(&socket, &StreamQuestion { stream, asks: Asks::End { sent } }).map_err(unreported)?;
    let report = answer.report.ok_or_else(|| "the receiver tells nothing of this stream".to_owned())?;
    output::print(&report.shown(arguments.json));
    Ok(ExitCode::SUCCESS)
}

/// Sends by the schedule until all were sent or the process is to end. Says how many.
fn send(
    arguments: &Arguments,
    socket: &Socket,
    (stream, to): (u64, SocketAddrV4),
    ended: &UnixStream,
) -> io::Result<u64> {
    let (messages, rate) = (arguments.messages(), u128::from(arguments.rate));
    let deadline_us = arguments.deadline.as_micros() as u32;
    let begun_ns = clock::now_ns();
    for number in 0..messages {
        let due_ns = begun_ns.saturating_add((u128::from(number) * 1_000_000_000 / rate) as u64);
        let left = Duration::from_nanos(due_ns.saturating_sub(clock::now_ns()));
        if !ready(&[ended.as_fd()], Some(left))?[0].is_empty() {
            return Ok(number);
        }
        let size = arguments.size as usize;
        let message = words::message(stream, number, size, deadline_us, clock::now_ns() / 1_000);
        socket.send_with_priority(&message, to)?;
    }
    Ok(messages)
}

/// Asks until an answer to this question comes.
fn ask(socket: &Socket, question: &StreamQuestion) -> io::Result<StreamAnswer> {
    let words = words::write(question);
    for _ in 0..QUESTIONS_MAX {
        socket.send(&words)?;
        let Some(answer) = await_answer(socket, question)? else { continue };
        return if answer.is_full { Err(io::Error::other(FULL)) } else { Ok(answer) };
    }
    Err(io::Error::new(ErrorKind::TimedOut, "no answer of `staunch dostp stream receive` there"))
}

/// Waits for the answer to a question, whatever else comes meanwhile; `None` if it does not come soon.
fn await_answer(socket: &Socket, question: &StreamQuestion) -> io::Result<Option<StreamAnswer>> {
    let until_ms = clock::now_ms() + ANSWER_PATIENCE.as_millis() as u64;
    while clock::now_ms() < until_ms {
        match socket.receive() {
            Ok(received) => {
                let answer = words::read::<StreamAnswer>(&received.payload);
                if let Some(answer) = answer.filter(|answer| is_answer(answer, question)) {
                    return Ok(Some(answer));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn is_answer(answer: &StreamAnswer, question: &StreamQuestion) -> bool {
    let is_end = matches!(question.asks, Asks::End { .. });
    answer.stream == question.stream && answer.report.is_some() == is_end
}

fn rate(text: &str) -> Result<u64, String> {
    units::count(text).ok().filter(|rate| *rate <= RATE_MAX).ok_or("write a number up to 1m".to_owned())
}

fn deadline(text: &str) -> Result<Duration, String> {
    let longest = Duration::from_secs(60);
    let time = units::duration(text)?;
    if time > longest { Err("write a time up to 60s".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_a_deadline_have_bounds() {
        assert_eq!((rate("20k"), rate("1m")), (Ok(20_000), Ok(1_000_000)));
        assert!(rate("0").is_err() && rate("1000001").is_err());
        assert_eq!(deadline("5ms"), Ok(Duration::from_millis(5)));
        assert!(deadline("61s").is_err());
        assert!(deadline("0").is_err_and(|error| error.contains("above 0")));
    }
}

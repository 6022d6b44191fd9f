//! `staunch dostp ping`: as ping(8), by DOSTP.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use staunch_config::units;
use staunch_dostp::Socket;
use staunch_netio::clock;
use staunch_program::{Failure, output};

use super::link::{self, NodeLink};
use super::service::ECHO_PORT;

/// The longest message: what a node holds of one.
const SIZE_MAX: u64 = 256 << 10;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// IPv4 address of the node
    #[arg(value_name = "ADDRESS")]
    address: Ipv4Addr,

    #[command(flatten)]
    link: NodeLink,

    /// How often it is asked
    #[arg(long, short, value_name = "NUMBER", default_value = "5")]
    count: u32,

    /// Time between two questions
    #[arg(long, short, value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    interval: Duration,

    /// Bytes of each question, 8 at least
    #[arg(long, short, value_name = "BYTES", default_value = "56",
          value_parser = clap::value_parser!(u64).range(8..=SIZE_MAX))]
    size: u64,

    /// How long an answer is waited for
    #[arg(long, short = 'W', value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    timeout: Duration,

    /// Only the summary
    #[arg(long, short)]
    quiet: bool,
}

/// Asks, and says what came of it.
///
/// # Errors
/// The interface cannot be used, or a right is missing.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let socket = arguments
        .link
        .open(0, |options| options.is_quiet = true)
        .map_err(|error| arguments.link.failure(&error))?;
    let address = arguments.address;
    output::print(&format!("PING {address} {}: {} bytes\n", link::describe(&socket), arguments.size));
    let mut times_ns = Vec::new();
    for sequence in 1..=u64::from(arguments.count) {
        let begun_ns = clock::now_ns();
        let answer = ask(&socket, arguments, sequence).map_err(|error| arguments.link.failure(&error))?;
        let line = match answer {
            Answer::Came(time_ns) => {
                times_ns.push(time_ns);
                format!("{} bytes from {address}: seq={sequence} time={}", arguments.size, time(time_ns))
            }
            Answer::Silence => format!("no answer from {address}: seq={sequence}"),
            Answer::Unreachable => format!("{address} is not on this LAN: seq={sequence}"),
        };
        if !arguments.quiet {
            output::print(&format!("{line}\n"));
        }
        if sequence < u64::from(arguments.count) {
            let passed = Duration::from_nanos(clock::now_ns() - begun_ns);
            clock::pause(arguments.interval.saturating_sub(passed));
        }
    }
    output::print(&summary(address, arguments.count as usize, &mut times_ns));
    Ok(if times_ns.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

enum Answer {
    Came(u64),
    Silence,
    Unreachable,
}

fn ask(socket: &Socket, arguments: &Arguments, sequence: u64) -> io::Result<Answer> {
    let mut question = vec![0; arguments.size as usize];
    question[..8].copy_from_slice(&sequence.to_be_bytes());
    let begun_ns = clock::now_ns();
    match socket.send_to(&question, SocketAddrV4::new(arguments.address, ECHO_PORT)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::HostUnreachable => return Ok(Answer::Unreachable),
        Err(error) => return Err(error),
    }
    loop {
        let passed = Duration::from_nanos(clock::now_ns() - begun_ns);
        let left = arguments.timeout.saturating_sub(passed);
        if left.is_zero() {
            return Ok(Answer::Silence);
        }
        socket.set_read_timeout(Some(left))?;
        match socket.receive() {
            // An answer that comes late bears another number.
            Ok(received) if received.payload == question => {
                return Ok(Answer::Came(clock::now_ns() - begun_ns));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Answer::Silence),
            Err(error) => return Err(error),
        }
    }
}

fn summary(address: Ipv4Addr, sent: usize, times_ns: &mut [u64]) -> String {
    times_ns.sort_unstable();
    let received = times_ns.len();
    let loss = 100.0 * (sent - received) as f64 / sent.max(1) as f64;
    let mut text = format!("--- {address}\n{sent} sent, {received} received, {loss:.0}% loss\n");
    if let (Some(least), Some(most)) = (times_ns.first(), times_ns.last()) {
        let mean = times_ns.iter().sum::<u64>() / received as u64;
        let rank = (received * 99).div_ceil(100);
        let (least, mean, p99, most) = (time(*least), time(mean), time(times_ns[rank - 1]), time(*most));
        writeln!(text, "round trip min {least}, avg {mean}, p99 {p99}, max {most}").ok();
    }
    text
}

/// A length of time with a unit that fits.
pub(super) fn time(length_ns: u64) -> String {
    match length_ns {
        0..1_000_000 => format!("{:.1} us", length_ns as f64 / 1e3),
        _ => format!("{:.2} ms", length_ns as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_what_was_lost() {
        let mut times_ns = [3_000_000, 1_000, 2_500];
        let text = summary(Ipv4Addr::new(10, 0, 0, 7), 4, &mut times_ns);
        assert_eq!(
            text,
            "--- 10.0.0.7\n4 sent, 3 received, 25% loss\n\
             round trip min 1.0 us, avg 1.00 ms, p99 3.00 ms, max 3.00 ms\n"
        );
        assert_eq!(
            summary(Ipv4Addr::LOCALHOST, 2, &mut []),
            "--- 127.0.0.1\n2 sent, 0 received, 100% loss\n"
        );
    }
}

//! `staunch dostp bench`: round trips by DOSTP and by UDP of the same shape, in turn.
//!
//! The other side is `staunch dostp serve --udp-echo PORT`. It must never compare runs that were made apart.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use staunch_dostp::Socket;
use staunch_netio::clock;

use super::link::{self, NodeLink};
use super::ping::time;
use super::serve::ECHO_PORT;
use crate::config::Failure;
use crate::output;

/// How long an answer is waited for; beyond, it is lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// IPv4 address of the node
    #[arg(value_name = "ADDRESS")]
    address: Ipv4Addr,

    #[command(flatten)]
    link: NodeLink,

    /// UDP port that answers there: `--udp-echo` of `staunch dostp serve`
    #[arg(long, value_name = "PORT", default_value = "5289")]
    udp_echo: u16,

    /// Sizes of messages in bytes
    #[arg(long, short, value_name = "BYTES,...", value_delimiter = ',', default_value = "64,1024,4096,16384",
          value_parser = clap::value_parser!(u32).range(1..=65_507))]
    size: Vec<u32>,

    /// Rounds, in each of which both are measured
    #[arg(long, value_name = "NUMBER", default_value = "10",
          value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Round trips a round
    #[arg(long, short, value_name = "NUMBER", default_value = "2000",
          value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
}

/// Measures, and prints a line for each size.
///
/// # Errors
/// The interface cannot be used, or nobody answers.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let socket = arguments
        .link
        .open(0, |options| options.is_quiet = true)
        .map_err(|error| arguments.link.failure(&error))?;
    socket
        .connect(SocketAddrV4::new(arguments.address, ECHO_PORT))
        .and_then(|()| socket.set_read_timeout(Some(PATIENCE)))
        .map_err(|error| arguments.link.failure(&error))?;
    let udp = udp(arguments).map_err(|error| format!("UDP: {error}"))?;
    output::print(&format!(
        "round trips to {} {}, beside connected UDP\n",
        arguments.address,
        link::describe(&socket)
    ));
    output::print("bytes   DOSTP p50     p99  lost    UDP p50     p99  lost   ratio\n");
    for &size in &arguments.size {
        let payload = vec![0x5a; size as usize];
        let (mut ours, mut theirs) = (Trips::default(), Trips::default());
        for _ in 0..arguments.rounds {
            ours.run(arguments.count, || by_dostp(&socket, &payload))
                .map_err(|error| format!("DOSTP: {error}"))?;
            theirs
                .run(arguments.count, || by_udp(&udp, &payload))
                .map_err(|error| format!("UDP: {error}"))?;
        }
        if ours.times_ns.is_empty() {
            return Err(Failure { code: 1, text: format!("{} does not answer", arguments.address) });
        }
        output::print(&line(size, &mut ours, &mut theirs));
    }
    Ok(ExitCode::SUCCESS)
}

fn udp(arguments: &Arguments) -> io::Result<UdpSocket> {
    let udp = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    udp.connect((arguments.address, arguments.udp_echo))?;
    udp.set_read_timeout(Some(PATIENCE))?;
    Ok(udp)
}

fn by_dostp(socket: &Socket, payload: &[u8]) -> io::Result<()> {
    socket.send(payload)?;
    socket.receive().map(|_| ())
}

fn by_udp(udp: &UdpSocket, payload: &[u8]) -> io::Result<()> {
    // Any UDP datagram fits.
    let mut buffer = [0; 65_536];
    udp.send(payload)?;
    udp.recv(&mut buffer).map(|_| ())
}

#[derive(Default)]
struct Trips {
    times_ns: Vec<u64>,
    lost: u32,
}

impl Trips {
    fn run(&mut self, count: u32, mut trip: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        for _ in 0..count {
            let begun_ns = clock::now_ns();
            match trip() {
                Ok(()) => self.times_ns.push(clock::now_ns() - begun_ns),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) =>
                {
                    self.lost += 1;
                    // Nobody is there: the rest of the round would only take its time.
                    if self.times_ns.is_empty() {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The value below which so many of a hundred are.
    fn quantile(&mut self, percent: usize) -> Option<u64> {
        self.times_ns.sort_unstable();
        let rank = (self.times_ns.len() * percent).div_ceil(100);
        self.times_ns.get(rank.saturating_sub(1)).copied()
    }
}

fn line(size: u32, ours: &mut Trips, theirs: &mut Trips) -> String {
    let shown = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), time);
    let (p50, udp_p50) = (ours.quantile(50), theirs.quantile(50));
    let ratio = p50
        .zip(udp_p50)
        .map_or_else(|| "-".to_owned(), |(p50, udp)| format!("{:.2}", p50 as f64 / udp as f64));
    format!(
        "{size:<7} {:>9} {:>8} {:>5}  {:>9} {:>8} {:>5}   {ratio:>5}\n",
        shown(p50),
        shown(ours.quantile(99)),
        ours.lost,
        shown(udp_p50),
        shown(theirs.quantile(99)),
        theirs.lost,
    )
}

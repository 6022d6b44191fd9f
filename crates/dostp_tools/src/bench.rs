//! `staunch dostp bench`: round trips by DOSTP and by UDP of the same shape, in turn.
//!
//! The other side is `staunch dostp serve --udp-echo PORT`. Its other two modes stand in files of their own.
//! Runs that were made apart must never be compared.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use staunch_config::units;
use staunch_dostp::{SPIN_NS, Wait};
use staunch_netio::clock;
use staunch_program::{Failure, output};

use super::link::{self, NodeLink};
use super::service::ECHO_PORT;
use super::trips::{self, PATIENCE, Trips, shown};
use super::{choose, one_way};

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// IPv4 address of the node
    #[arg(value_name = "ADDRESS")]
    address: Ipv4Addr,

    #[command(flatten)]
    link: NodeLink,

    /// UDP port that answers or counts there: `--udp-echo` of `staunch dostp serve`
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

    /// Measure every backend of Ethernet that opens here, and remember the fastest for this interface
    #[arg(long, conflicts_with_all = ["backend", "udp_echo"])]
    choose: bool,

    /// Send as fast as possible, and count what arrives; there, `staunch dostp serve --discard`
    #[arg(long, conflicts_with_all = ["choose", "count"])]
    one_way: bool,

    /// With `--one-way`: how long each is sent in a round
    #[arg(long, short, value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    duration: Duration,
}

/// Measures, and prints a line for each size.
///
/// # Errors
/// The interface cannot be used, or nobody answers.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.choose {
        let Arguments { address, link, size, rounds, count, .. } = arguments;
        return choose::run(*address, link, size[0] as usize, *rounds, *count);
    }
    if arguments.one_way {
        return one_way::run(&one_way::Plan {
            link: &arguments.link,
            address: arguments.address,
            udp_port: arguments.udp_echo,
            sizes: &arguments.size,
            rounds: arguments.rounds,
            duration: arguments.duration,
        });
    }
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
    // Any UDP datagram fits.
    let mut buffer = vec![0; 65_536];
    let mut udp_answered = true;
    for &size in &arguments.size {
        let payload = vec![0x5a; size as usize];
        let (mut ours, mut theirs) = (Trips::default(), Trips::default());
        for _ in 0..arguments.rounds {
            ours.run(arguments.count, || trips::by_dostp(&socket, &payload))
                .map_err(|error| trips::said(&error, arguments.address))?;
            theirs
                .run(arguments.count, || by_udp(&udp, &payload, &mut buffer, arguments.link.wait()))
                .map_err(|error| format!("UDP: {error}"))?;
        }
        if ours.is_empty() {
            let text = format!("{} does not answer; there: `staunch dostp serve`", arguments.address);
            return Err(Failure { code: 1, text });
        }
        udp_answered &= !theirs.is_empty();
        output::print(&line(size, &mut ours, &mut theirs));
    }
    if !udp_answered {
        let Arguments { address, udp_echo, .. } = arguments;
        output::remark(&format!(
            "staunch: dostp: {address} does not answer UDP to port {udp_echo}, so nothing is compared; \
             there: `staunch dostp serve --udp-echo {udp_echo}`\n"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn udp(arguments: &Arguments) -> io::Result<UdpSocket> {
    let udp = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    udp.connect((arguments.address, arguments.udp_echo))?;
    udp.set_read_timeout(Some(PATIENCE))?;
    Ok(udp)
}

/// A round trip by a socket that waits as that of DOSTP does.
fn by_udp(udp: &UdpSocket, payload: &[u8], buffer: &mut [u8], wait: Wait) -> io::Result<()> {
    udp.send(payload)?;
    let spin_ns = match wait {
        Wait::Spin => PATIENCE.as_nanos() as u64,
        Wait::Adaptive => SPIN_NS,
        Wait::Sleep => 0,
    };
    let end_ns = clock::now_ns() + spin_ns;
    while clock::now_ns() < end_ns {
        match recv(udp, &mut *buffer, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => {}
            result => return Ok(result.map(|_| ())?),
        }
    }
    match wait {
        Wait::Spin => Err(ErrorKind::WouldBlock.into()),
        Wait::Adaptive | Wait::Sleep => udp.recv(buffer).map(|_| ()),
    }
}

fn line(size: u32, ours: &mut Trips, theirs: &mut Trips) -> String {
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

//! `staunch load flood`: SYN segments with forged sources, into a network namespace or over loopback.
//!
//! It must never widen what the library's guard allows.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use staunch_loadgen::RunControl;
use staunch_loadgen::flood::{self, FloodOutcome, FloodPlan, Method, Prefix};
use staunch_netio::clock;
use staunch_program::output;

use super::files::Sink;
use super::keys;
use crate::units;

/// How often it is looked whether the flood is over or was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Interface to send by: one end of a veth pair inside a network namespace, or lo
    #[arg(long, value_name = "NAME")]
    interface: String,

    /// Whom to flood, such as 10.0.0.1:80
    #[arg(long, value_name = "IP:PORT")]
    to: SocketAddr,

    /// Private network the segments seem to come from [default: 10.9.0.0/16; by lo 127.9.0.0/16]
    #[arg(long, value_name = "NETWORK")]
    from: Option<Prefix>,

    /// Segments a second [default: as many as possible]
    #[arg(long, short, value_name = "RATE", value_parser = units::rate)]
    rate: Option<f64>,

    /// For how long
    #[arg(long, short, value_name = "TIME", value_parser = units::duration, default_value = "10s")]
    duration: Duration,

    /// Seed of the forged sources: with an equal one they are equal
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,

    /// Processor to send from
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Way to the network
    #[arg(
        long,
        value_name = "auto|frames|socket",
        value_enum,
        hide_possible_values = true,
        default_value = "auto"
    )]
    by: Way,

    /// Write the result as JSON
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// Way to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// The fastest that works
    Auto,
    /// A BPF program that sends live frames
    Frames,
    /// A packet socket, from user space
    Socket,
}

/// Floods.
///
/// # Errors
/// Why this must not, or cannot, be flooded; and when nothing was sent.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let plan = plan(arguments);
    flood::check(&plan).map_err(|fault| fault.to_string())?;
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let control = RunControl::default();
    keys::end_on_signal(&control)?;
    let flood = flood::start(plan).map_err(|fault| fault.to_string())?;
    while !flood.is_over() && !control.is_stopped() {
        clock::pause(LOOK_EVERY);
    }
    let outcome = flood.stop();
    output::remark(&words(&outcome));
    if let Some(sink) = &mut sink {
        let json = serde_json::to_string_pretty(&outcome).map_err(|error| error.to_string())?;
        sink.write(&format!("{json}\n"))?;
    }
    if outcome.sent == 0 {
        return Err("no segment was sent".into());
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(arguments: &Arguments) -> FloodPlan {
    let by_loopback = arguments.to.ip().is_loopback();
    let method = match arguments.by {
        Way::Auto => None,
        Way::Frames => Some(Method::LiveFrames),
        Way::Socket if by_loopback => Some(Method::RawSocket),
        Way::Socket => Some(Method::PacketSocket),
    };
    FloodPlan {
        source_prefix: arguments.from,
        rate_per_s: arguments.rate,
        duration: Some(arguments.duration),
        seed: arguments.seed,
        cpu: arguments.cpu,
        method,
        ..FloodPlan::new(&arguments.interface, arguments.to)
    }
}

fn words(outcome: &FloodOutcome) -> String {
    let notes: String = outcome.notes.iter().map(|note| format!("{note}\n")).collect();
    let FloodOutcome { sent, seconds, rate_per_s, method, dropped_by_ring, given_up, .. } = outcome;
    let mut words =
        format!("{notes}sent      {sent} SYN in {seconds:.2} s, {rate_per_s:.0}/s, by {method}\n");
    if *dropped_by_ring > 0 {
        words += &format!("dropped   {dropped_by_ring} of them by the interface: the receiver is slower\n");
    }
    if *given_up > 0 {
        words += &format!("given up  {given_up}: this thread was too late for them\n");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_said_only_if_something_was() {
        let mut outcome = FloodOutcome {
            sent: 500_000,
            dropped_by_ring: 0,
            given_up: 0,
            seconds: 5.0,
            rate_per_s: 100_000.0,
            method: Method::LiveFrames,
            notes: vec![],
        };
        assert_eq!(words(&outcome), "sent      500000 SYN in 5.00 s, 100000/s, by live frames\n");
        outcome.dropped_by_ring = 7;
        outcome.given_up = 9;
        outcome.notes = vec!["no live frames: because".into()];
        let words = words(&outcome);
        assert!(words.starts_with("no live frames: because\nsent "), "{words}");
        assert!(words.contains("dropped   7 ") && words.contains("given up  9:"), "{words}");
    }
}

//! `staunch lab serve`: one model, until SIGTERM or SIGINT.
//!
//! It must never start a thread: a model may copy its process (`fork`), and only the thread that does it is
//! in the copy.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use clap::builder::PossibleValuesParser;
use staunch_lab::{MODELS, Model, Options, pin};
use staunch_netio::descriptors;
use staunch_netio::host::cpu;

use crate::units::{self, CpuList};

/// Processes or threads of a pool when nobody says how many.
const POOL_DEFAULT: &str = "8";

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which model, see `staunch lab list`
    #[arg(value_name = "MODEL", value_parser = names(), hide_possible_values = true)]
    model: String,

    /// Address to listen at
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,

    /// Port to listen at; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,

    /// How many processes or threads a pool has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=5000))]
    #[arg(default_value = POOL_DEFAULT)]
    pool: u16,

    /// How many connections may wait to be accepted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..), default_value_t = 4096)]
    backlog: i32,

    /// Processor time to spend on each request beside serving it, such as 300us
    #[arg(long, value_name = "TIME", value_parser = work_ns, default_value = "0us")]
    work: u64,

    /// Processors to run on, such as 0,2-5 [default: all]
    #[arg(long, value_name = "LIST", value_parser = units::cpu_list)]
    cpus: Option<CpuList>,
}

/// The names of all models.
pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(MODELS.iter().map(|model| model.name))
}

/// Serves until the process is told to end.
///
/// # Errors
/// Whatever keeps it from serving, in one sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let model = Model::find(MODELS, &arguments.model)
        .ok_or_else(|| format!("{}: there is no such model; see `staunch lab list`", arguments.model))?;
    let cpus = cpus(arguments.cpus.as_ref())?;
    // To fail is no harm: then there are fewer descriptors.
    let _ = descriptors::raise_descriptor_limit();
    let address = SocketAddr::new(arguments.address, arguments.port);
    let options = Options {
        address,
        backlog: arguments.backlog,
        pool: usize::from(arguments.pool),
        work_ns: arguments.work,
        cpus,
        announce,
    };
    (model.serve)(&options).map_err(|error| format!("{} at {address}: {error}", model.name))
}

/// Where it listens. A port of which nobody is told is none.
fn announce(address: SocketAddr) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "listening on http://{address}").and_then(|()| out.flush());
}

/// The processors to run on, to which this process is tied if it was asked for.
pub(super) fn cpus(wanted: Option<&CpuList>) -> Result<Vec<usize>, String> {
    let allowed = cpu::available_cpus().map_err(|error| format!("cannot list the processors: {error}"))?;
    let Some(CpuList(wanted)) = wanted else { return Ok(allowed) };
    if let Some(cpu) = wanted.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(format!("--cpus: processor {cpu} is not one this process may use ({allowed:?})"));
    }
    pin(wanted).map_err(|error| format!("--cpus: {error}"))?;
    Ok(wanted.clone())
}

/// A processor time such as `300us`, `2ms` or `500ns`, in nanoseconds.
fn work_ns(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        _ => None,
    };
    let value = factor.and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor));
    value.ok_or_else(|| "write a time such as 300us, 2ms or 500ns".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_a_time() {
        for (text, ns) in [("0us", 0), ("500ns", 500), ("300us", 300_000), ("2ms", 2_000_000)] {
            assert_eq!(work_ns(text), Ok(ns), "{text}");
        }
        for text in ["", "300", "us", "-1us", "1.5ms", "3 us", "99999999999999999999ns", "9999999999999999ms"]
        {
            assert!(work_ns(text).is_err(), "{text}");
        }
    }
}

//! The host and the gate before it, as the command line gives them: by flags, or by a file of a fit.
//!
//! It owns what is taken when nothing is said. It must never guess mu2: that is the server's own figure, and
//! who leaves it out is told what it is.
use std::path::PathBuf;

use clap::Args;
use clap::error::ErrorKind;
use staunch_figures::words;
use staunch_queueing::batching::Reception;
use staunch_queueing::{Admission, Gate, Host, Service};

use super::fitted;
use super::service::{service, service_word};
use crate::units;

/// What stands at the end of the help.
pub(crate) const USUAL: &str = "\
What is not said: --reception-rate 200k/s --backlog 4096 --patience 1s --service deterministic
and no interrupts, or what the file of --fit has. docs/overload.md says what each figure means.";

/// What is said when nothing tells how fast the server is.
const MISSING: &str = "\
--service-rate is missing: how many requests a second the application could answer if it had the processor
to itself, for example --service-rate 1800; `staunch load URL --no-keep-alive` measures nearly that, and
--fit FILE takes it from a file of `staunch model fit --json`

For more information, try '--help'.
";

/// SYN segments a second that one processor receives when nothing else is said: 4.5 to 5 us each on the
/// machines of 2026.
const MU1_USUAL_PER_S: f64 = 200_000.0;
/// What a server asks of `listen` when nothing else is said: Linux's `net.core.somaxconn`.
const BACKLOG_USUAL: u32 = 4096;
/// How long a client waits when nothing else is said: as in `staunch load sweep`.
const PATIENCE_USUAL_S: f64 = 1.0;

/// Rates and queues of the host, and its gate.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Host")]
pub(crate) struct HostArguments {
    /// Take it from a file that `staunch model fit --json` wrote; other flags go before
    #[arg(long, value_name = "FILE")]
    fit: Option<PathBuf>,

    /// Which server of that file
    #[arg(long, value_name = "NAME", requires = "fit")]
    server: Option<String>,

    /// Requests a second of the application alone, had it the processor to itself (mu2)
    #[arg(long = "service-rate", visible_alias = "mu2", value_name = "RATE", value_parser = units::rate)]
    mu2: Option<f64>,

    #[command(flatten)]
    known: KnownArguments,

    #[command(flatten)]
    gate: GateArguments,
}

/// What is known of a host without having measured it.
#[derive(Args, Debug, Clone)]
pub(crate) struct KnownArguments {
    /// SYN segments a second that the kernel can receive when it does nothing else (mu1)
    #[arg(long = "reception-rate", visible_alias = "mu1", value_name = "RATE", value_parser = units::rate)]
    pub(crate) mu1: Option<f64>,

    /// Work of the kernel for each interrupt, however many packets it finds
    #[arg(long, value_name = "TIME", value_parser = units::span_s)]
    pub(crate) interrupt_cost: Option<f64>,

    /// How long the network card waits for more packets before it interrupts; with it the cost of an
    /// interrupt can be fitted
    #[arg(long, value_name = "TIME", value_parser = units::span_s)]
    pub(crate) coalescing: Option<f64>,

    /// How much of a SYN's own cost, the interrupt's not included, is left when it is dropped because no more
    /// connections may wait; all of it if not said
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(crate) full_cost: Option<f64>,

    /// Connections that may wait to be accepted: the smaller of the server's backlog and somaxconn (K - 1)
    #[arg(long, visible_alias = "queue", value_name = "N", value_parser = backlog)]
    pub(crate) backlog: Option<u32>,

    /// How long a client waits for its answer, or off (T)
    #[arg(long, value_name = "TIME|off", value_parser = patience)]
    pub(crate) patience: Option<f64>,

    /// When a client tries again whose handshake found no place; then twice, four times as long after its
    /// first try (Linux: 200ms); never if not said
    #[arg(long, value_name = "TIME", value_parser = units::span_s)]
    pub(crate) retry: Option<f64>,

    /// How the time of a request varies: always the same, or as in the paper
    #[arg(long, value_name = "deterministic|exponential", value_parser = service)]
    pub(crate) service: Option<Service>,
}

/// The gate before the host.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Gate")]
pub(crate) struct GateArguments {
    /// What the gate costs for each SYN, let in or not
    #[arg(long, value_name = "TIME", value_parser = units::span_s, default_value = "0.6us")]
    gate_cost: f64,

    /// How much of what the host can do is let in
    #[arg(long, value_name = "PERCENT", value_parser = share, default_value = "97%")]
    gate_share: f64,

    /// Forged SYN a second that are let in, at most [default: none]
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    gate_flood: Option<f64>,
}

impl KnownArguments {
    /// K: who waits to be accepted, and the one being served.
    pub(crate) fn places(&self) -> Option<u32> {
        self.backlog.map(|backlog| backlog + 1)
    }
}

impl HostArguments {
    /// The host without a gate.
    ///
    /// # Errors
    /// The file of the fit cannot be read, or has no such server.
    pub(crate) fn host(&self) -> Result<Host, String> {
        let fitted = match &self.fit {
            Some(file) => Some(fitted::host(file, self.server.as_deref())?),
            None => None,
        };
        if fitted.is_none() && self.mu2.is_none() {
            clap::Error::raw(ErrorKind::MissingRequiredArgument, MISSING).exit();
        }
        let mut host = fitted.unwrap_or_else(usual);
        host.mu2_per_s = self.mu2.unwrap_or(host.mu2_per_s);
        host.places = self.known.places().unwrap_or(host.places);
        host.patience_s = self.known.patience.unwrap_or(host.patience_s);
        host.retry_s = self.known.retry.unwrap_or(host.retry_s);
        host.service = self.known.service.unwrap_or(host.service);
        if let Some(mu1) = self.known.mu1 {
            let full_share = host.reception.full_share;
            host.reception = Reception { full_share, ..Reception::constant(mu1) };
        }
        host.reception.interrupt_s = self.known.interrupt_cost.unwrap_or(host.reception.interrupt_s);
        host.reception.window_s = self.known.coalescing.unwrap_or(host.reception.window_s);
        host.reception.full_share = self.known.full_cost.unwrap_or(host.reception.full_share);
        Ok(host)
    }

    /// The gate that these arguments describe.
    pub(crate) fn gate(&self) -> Gate {
        self.gate.gate()
    }
}

impl GateArguments {
    /// The gate that these arguments describe.
    pub(crate) fn gate(&self) -> Gate {
        Gate {
            residual_s: self.gate_cost,
            admission: Admission::Share(self.gate_share),
            flood_passed_per_s: self.gate_flood.unwrap_or(0.0),
        }
    }
}

/// What is taken when nothing is said; mu2 is always said.
fn usual() -> Host {
    Host {
        reception: Reception::constant(MU1_USUAL_PER_S),
        mu2_per_s: 0.0,
        places: BACKLOG_USUAL + 1,
        patience_s: PATIENCE_USUAL_S,
        retry_s: 0.0,
        service: Service::Deterministic,
        gate: None,
    }
}

/// The host with that gate before it.
pub(crate) fn behind(host: &Host, gate: Gate) -> Host {
    Host { gate: Some(gate), ..host.clone() }
}

/// The host in a line, for people.
pub(crate) fn sentence(host: &Host) -> String {
    let reception = &host.reception;
    let interrupts = match reception.interrupt_s > 0.0 {
        true => format!(
            " ({} for each interrupt, {} of coalescing)",
            words::time_ns(reception.interrupt_s * 1e9),
            words::time_ns(reception.window_s * 1e9)
        ),
        false => String::new(),
    };
    let full = match reception.full_share < 1.0 {
        true => {
            format!(" ({} of a SYN's own cost when no place is left)", words::percent(reception.full_share))
        }
        false => String::new(),
    };
    let retry = match host.retry_s > 0.0 {
        true => format!(" (tries again after {})", words::time_ns(host.retry_s * 1e9)),
        false => String::new(),
    };
    format!(
        "mu1 {}{interrupts}{full}, mu2 {}, K {}, T {}{retry}, {} service",
        words::per_s(reception.packet_s.recip()),
        words::per_s(host.mu2_per_s),
        words::count(u64::from(host.places)),
        patience_words(host.patience_s),
        service_word(host.service)
    )
}

/// The gate in a line, for people.
pub(crate) fn gate_sentence(gate: &Gate) -> String {
    let admission = match gate.admission {
        Admission::Share(share) => format!("{} of what the host can do", words::percent(share)),
        Admission::PerSecond(rate) => format!("{} requests", words::per_s(rate)),
    };
    let flood = match gate.flood_passed_per_s {
        0.0 => String::new(),
        rate => format!(" and {} forged SYN", words::per_s(rate)),
    };
    format!("{} for each SYN, lets in {admission}{flood}", words::time_ns(gate.residual_s * 1e9))
}

/// A patience for people.
pub(crate) fn patience_words(patience_s: f64) -> String {
    if patience_s.is_finite() { words::time_ns(patience_s * 1e9) } else { "for ever".to_owned() }
}

fn patience(text: &str) -> Result<f64, String> {
    if text == "off" { Ok(f64::INFINITY) } else { units::span_s(text) }
}

fn backlog(text: &str) -> Result<u32, String> {
    let number = units::count(text).ok().and_then(|count| u32::try_from(count).ok());
    // The queue of the kernel has a number of 32 bits; the model says itself what is too many for it.
    number.filter(|number| *number < u32::MAX).ok_or_else(|| "write a number such as 128, 4096 or 64k".into())
}

/// A rate that may be none at all: `0/s` or `0`.
pub(crate) fn rate_or_none(text: &str) -> Result<f64, String> {
    if matches!(text.trim(), "0" | "0/s") { Ok(0.0) } else { units::rate(text) }
}

/// `97%` or `97`, as a share of 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("write a percentage above 0 and up to 100 such as 97%".into()),
    }
}

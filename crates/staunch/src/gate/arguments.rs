//! The words of `staunch gate`, as clap reads them.
//!
//! It must never open or decide anything.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use staunch_config::units;
use staunch_gate::controller::{Policy, Settings};
use staunch_gate::daemon::Plan;
use staunch_gate::program::{Prefix, Reject, Way};

/// What is to be protected, and how.
#[derive(Args, Debug, Clone)]
pub(super) struct Protection {
    /// Network interfaces by which clients come
    #[arg(long, short, value_name = "NAME,...", value_delimiter = ',', required = true)]
    interface: Vec<String>,

    /// TCP ports to protect, each with a line of people and a rate of its own
    #[arg(
        long,
        short,
        value_name = "PORT,...",
        value_delimiter = ',',
        default_value = "80,443",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    port: Vec<u16>,

    /// What a SYN gets that is shed: nothing, a reset, or a SYN cookie
    #[arg(
        long,
        value_name = "drop|reset|cookie",
        value_enum,
        hide_possible_values = true,
        default_value = "drop"
    )]
    mode: Mode,

    /// How the program is put on an interface
    #[arg(
        long,
        value_name = "auto|native|generic",
        value_enum,
        hide_possible_values = true,
        default_value = "auto"
    )]
    xdp: Xdp,

    /// By what overload is known: the wait of connections, or the kernel's share of the processor and sockets
    #[arg(
        long,
        value_name = "queue|paper|either",
        value_enum,
        hide_possible_values = true,
        default_value = "queue"
    )]
    policy: PolicyWord,

    /// The wait of connections that is kept while shedding; it begins at twice as much
    #[arg(long, value_name = "TIME", value_parser = target, default_value = "25ms")]
    target: Duration,

    /// Networks that are always let in
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    allow: Vec<Prefix>,

    /// Networks that never are, unless they are allowed
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    deny: Vec<Prefix>,

    /// Addresses to which connections are judged, in place of those this host has; others pass
    #[arg(long, value_name = "ADDR[/LEN],...", value_delimiter = ',')]
    address: Vec<Prefix>,

    /// For how long, at most, packets are left lying while a flood or a large crowd comes, or people wait for
    /// the server anyhow, so that many are taken at once; 0 changes nothing about the interface
    #[arg(long, value_name = "TIME", value_parser = coalescing, default_value = "500us")]
    coalescing: Duration,

    /// Only count what would be shed
    #[arg(long)]
    dry_run: bool,

    /// Address for /metrics, /healthz and /status.json
    #[arg(long, value_name = "ADDR")]
    pub(super) metrics: Option<SocketAddr>,

    /// Names by which that address may be asked for, beside localhost and any IP address
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', requires = "metrics")]
    pub(super) metrics_hosts: Vec<String>,

    /// Write what happens as lines of JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Drop,
    Reset,
    Cookie,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Xdp {
    Auto,
    Native,
    Generic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyWord {
    Queue,
    Paper,
    Either,
}

impl Protection {
    /// These settings for the library.
    pub(super) fn plan(&self) -> Plan {
        let target_ns = self.target.as_nanos() as u64;
        let policy = match self.policy {
            PolicyWord::Queue => Policy::Queue,
            PolicyWord::Paper => Policy::Paper,
            PolicyWord::Either => Policy::Either,
        };
        Plan {
            interfaces: without_doubles(&self.interface),
            ports: without_doubles(&self.port),
            way: match self.xdp {
                Xdp::Auto => Way::Auto,
                Xdp::Native => Way::Native,
                Xdp::Generic => Way::Generic,
            },
            reject: match self.mode {
                Mode::Drop => Reject::Drop,
                Mode::Reset => Reject::Reset,
                Mode::Cookie => Reject::Cookie,
            },
            dry_run: self.dry_run,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            addresses: self.address.clone(),
            coalescing: self.coalescing,
            settings: Settings { policy, target_ns, trigger_ns: 2 * target_ns, ..Settings::default() },
            comes_back: true,
        }
    }
}

fn without_doubles<T: Clone + PartialEq>(values: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for value in values {
        if !kept.contains(value) {
            kept.push(value.clone());
        }
    }
    kept
}

/// A flood of 200 000 a second fills a veth in 1.3 ms; a look costs some 20 us.
fn coalescing(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let length_s = units::span_s(text).ok().filter(|length_s| (20e-6..=1e-3).contains(length_s));
    let length = length_s.map(Duration::from_secs_f64);
    length.ok_or_else(|| "write a time from 20us to 1ms, or 0".to_owned())
}

/// Below a few ticks nothing can be kept; above a second clients have sent their SYN again.
fn target(text: &str) -> Result<Duration, String> {
    let length = units::duration(text)?;
    let bounds = Duration::from_millis(5)..=Duration::from_secs(1);
    if bounds.contains(&length) { Ok(length) } else { Err("write a time from 5ms to 1s".to_owned()) }
}

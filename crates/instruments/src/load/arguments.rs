//! The words of `staunch load` and its subcommands, as clap reads them.
//!
//! It must never open or decide anything: `plan.rs` makes a plan of it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use staunch_loadgen::check::{BodyCheck, StatusSet};
use staunch_loadgen::schedule::{Arrivals, Profile};
use staunch_loadgen::threshold::Threshold;

use crate::units::{self, CpuList};

/// What is asked for, of whom, and which answer is right.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Requests")]
pub(crate) struct Requests {
    /// Method of the request
    #[arg(long, short = 'X', value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// A header field such as 'Accept: text/html'; may be repeated
    #[arg(long, short = 'H', value_name = "FIELD")]
    pub(crate) header: Vec<String>,

    /// Body of the request, or @FILE
    #[arg(long, short = 'b', visible_alias = "data", value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,

    /// Ask for the paths in this file
    #[arg(
        long,
        help = "Ask for the paths in this file, one a line: [WEIGHT] PATH [#SIZE]",
        value_name = "FILE",
        conflicts_with = "webstone"
    )]
    pub(crate) urls: Option<PathBuf>,

    /// Ask for the five files that webstone-files makes
    #[arg(long)]
    pub(crate) webstone: bool,

    /// Popularity of the paths after Zipf, with this exponent
    #[arg(long, value_name = "EXPONENT", requires = "urls")]
    pub(crate) zipf: Option<f64>,

    /// Ask for the paths in their order
    #[arg(long, requires = "urls", conflicts_with = "zipf")]
    pub(crate) in_order: bool,

    /// Statuses that are right, such as 200 or 2xx,404 [default: 200-399]
    #[arg(long, value_name = "LIST")]
    pub(crate) expect_status: Option<StatusSet>,

    /// What a right body is like: length:BYTES, contains:TEXT or file:PATH
    #[arg(long, value_name = "CHECK")]
    pub(crate) expect_body: Option<BodyCheck>,
}

/// How connections are made and closed.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Connections")]
pub(crate) struct Connections {
    /// A connection per request
    #[arg(long)]
    pub(crate) no_keep_alive: bool,

    /// Give a request up so long after its intended start
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) patience: Option<Duration>,

    /// Right answers after more than this are late [default: --patience]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) late_after: Option<Duration>,

    /// How connections are closed: auto is rst when an open loop has a connection per request
    #[arg(
        long,
        value_name = "auto|fin|rst",
        value_enum,
        hide_possible_values = true,
        default_value = "auto"
    )]
    pub(crate) close: Close,

    /// Connect from these addresses in turn
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    pub(crate) source: Vec<IpAddr>,

    /// Connect to this Unix socket; the URL gives host and path
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,

    /// https: verify neither the server's certificate nor its name
    #[arg(long, short = 'k', conflicts_with = "cacert")]
    pub(crate) insecure: bool,

    /// https: trust the authorities in this file (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,

    /// https: a full handshake on each connection, no resumed session
    #[arg(long)]
    pub(crate) no_resumption: bool,
}

/// How connections are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Close {
    /// By what the lane needs
    Auto,
    /// In the ordinary way
    Fin,
    /// By a reset, which leaves no port in TIME_WAIT
    Rst,
}

/// What carries the load.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Generator")]
pub(crate) struct Generator {
    /// How many threads [default: half of the processors]
    #[arg(long, short, value_name = "N")]
    pub(crate) threads: Option<u16>,

    /// Processors to run on, such as 0,2-5
    #[arg(long, value_name = "LIST", value_parser = units::cpu_list)]
    pub(crate) cpus: Option<CpuList>,

    /// Way to the network
    #[arg(
        long,
        value_name = "auto|uring|epoll",
        value_enum,
        hide_possible_values = true,
        default_value = "auto"
    )]
    pub(crate) io: Io,

    /// Seed of the schedule: with an equal one, equal requests are offered at equal times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Sample the server's side on this machine too: its process, or only the machine and the port
    #[arg(long, value_name = "PID", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) probe: Option<u32>,
}

/// Way to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Io {
    /// io_uring where it works
    Auto,
    /// io_uring, or an error where it does not work
    Uring,
    /// epoll, which works everywhere
    Epoll,
}

/// Where results go.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Results")]
pub(crate) struct Results {
    /// Write everything as JSON
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,

    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write times by percentile as a picture
    #[arg(long, value_name = "FILE|-")]
    pub(crate) svg: Option<PathBuf>,

    /// Write a row every 100 ms
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a line of JSON every 100 ms, while it runs
    #[arg(long, value_name = "FILE|-")]
    pub(crate) ndjson: Option<PathBuf>,

    /// Write the times as an HdrHistogram log (V2)
    #[arg(long, value_name = "FILE|-")]
    pub(crate) hdr: Option<PathBuf>,

    /// Exit with 3 if this holds, such as 'p99>20ms' or 'errors>1%'; may be repeated
    #[arg(long, value_name = "EXPRESSION", value_parser = Threshold::parse)]
    pub(crate) fail_if: Vec<Threshold>,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What the main lane does.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArguments {
    /// How many connections; with --rate, at most so many kept ones [default: 64, with --rate 10000]
    #[arg(long, short, value_name = "N")]
    pub(crate) connections: Option<u32>,

    /// How long [default: what --rate says, else 10s]
    #[arg(long, short, value_name = "TIME", value_parser = units::duration)]
    pub(crate) duration: Option<Duration>,

    /// How many requests, instead of how long
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["duration", "rate", "slow", "trace"])]
    pub(crate) requests: Option<u64>,

    /// How many requests are under way on a connection
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["rate", "trace", "slow"])]
    pub(crate) pipeline: u32,

    /// Close a connection after so many requests
    #[arg(long, value_name = "N", conflicts_with_all = ["no_keep_alive", "rate", "trace", "slow"])]
    pub(crate) requests_per_connection: Option<u32>,

    /// Offer so many a second whatever the server does: 10000/s, '100/s..10k/s over 30s',
    /// '100/s for 10s, 1k/s for 10s'
    #[arg(long, short, value_name = "RATE", value_parser = units::profile)]
    pub(crate) rate: Option<Profile>,

    /// How the starts are spread: constant, poisson, self-similar:HURST
    #[arg(long, value_name = "HOW", value_parser = units::arrivals, requires = "rate")]
    pub(crate) arrivals: Option<Arrivals>,

    /// Offer requests at the times in this file, in seconds, one per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "slow"])]
    pub(crate) trace: Option<PathBuf>,

    /// Be slow: in sending the head, in sending a body, or in reading
    #[arg(
        long,
        value_name = "headers|body|reader",
        value_enum,
        hide_possible_values = true,
        conflicts_with = "rate"
    )]
    pub(crate) slow: Option<Slow>,

    /// Pause between two bytes sent, or two reads
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s", requires = "slow")]
    pub(crate) interval: Duration,

    /// A lane beside the main one: closed:N, open:RATE, slow-headers:N, slow-body:N, slow-reader:N, hold:N,
    /// flood:INTERFACE:RATE; may be repeated
    #[arg(long = "with", value_name = "LANE")]
    pub(crate) beside: Vec<String>,
}

/// In what a client is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Slow {
    /// The head comes byte by byte and never ends
    Headers,
    /// The body comes byte by byte
    Body,
    /// The answer is taken a buffer at a time
    Reader,
}

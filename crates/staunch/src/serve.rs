//! `staunch serve`: a directory over HTTP/1.1.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use staunch_engine::{Engine, IoChoice, Settings};
use staunch_netio::cpu;
use staunch_protocol::Timeouts;
use staunch_server::{About, Encoding, Reporting, SiteConfig, SiteShared, StatusPage};

use crate::banner;
use crate::units::{self, CpuList};

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Directory to serve
    #[arg(value_name = "DIR", default_value = ".")]
    root: PathBuf,

    /// Address and port, or a port alone; may be given several times
    #[arg(long, short, value_name = "ADDR", value_parser = units::address, default_value = "127.0.0.1:8080")]
    listen: Vec<SocketAddr>,

    /// How many workers: auto is one a processor
    #[arg(long, value_name = "N|auto", value_parser = units::count_or_auto, default_value = "auto")]
    workers: CountOrAuto,

    /// Processors to run on, such as 0,2-5; default is all that are allowed
    #[arg(long, value_name = "LIST", value_parser = units::cpu_list)]
    cpus: Option<CpuList>,

    /// Leave processor 0 to the network card's interrupts
    #[arg(long)]
    leave_cpu0: bool,

    /// Way to the network
    #[arg(long, value_name = "WAY", value_enum, default_value = "auto")]
    io: Io,

    /// Most connections at a time: auto is what descriptors or memory allow
    #[arg(long, value_name = "N|auto", value_parser = units::count_or_auto, default_value = "auto")]
    max_connections: CountOrAuto,

    /// Close a connection that has been idle between two requests for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "15s")]
    keep_alive: Duration,

    /// Close a connection whose request is not complete after so long
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "15s")]
    header_timeout: Duration,

    /// Close a connection whose request body has made no progress for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "15s")]
    body_timeout: Duration,

    /// Close a connection that has taken nothing of its answer for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "30s")]
    send_timeout: Duration,

    /// List folders that have no index file
    #[arg(long, value_enum, value_name = "on|off", default_value = "off")]
    listing: Switch,

    /// Names of a folder's index file, first found first served
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "index.html")]
    index: Vec<String>,

    /// Encodings to prepare, best first, or off
    #[arg(long, value_name = "LIST|off", value_delimiter = ',', default_value = "br,zstd,gzip")]
    encodings: Vec<Coding>,

    /// Memory for prepared content
    #[arg(long, value_name = "SIZE", value_parser = units::size_bytes, default_value = "256MiB")]
    cache_size: u64,

    /// Hold nothing: read from disk for every request (for comparison)
    #[arg(long)]
    no_cache: bool,

    /// Serve files whose names begin with a dot
    #[arg(long)]
    dotfiles: bool,

    /// Serve what the server knows about itself, as JSON, at this path
    #[arg(long, value_name = "PATH", value_parser = status_path)]
    status: Option<String>,
}

/// `None` is auto. An alias, so that clap sees one value and not an optional one.
type CountOrAuto = Option<u64>;

#[derive(Clone, Copy, ValueEnum)]
enum Io {
    /// The one the evidence speaks for
    Auto,
    /// io_uring
    Uring,
    /// epoll
    Epoll,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Coding {
    Br,
    Zstd,
    Gzip,
    Off,
}

/// Serves until it is ended.
///
/// # Errors
/// Whatever keeps it from serving, in one sentence.
pub(crate) fn run(arguments: Arguments) -> Result<(), String> {
    // tidy: allow(clock): the status page tells for how long it has been up.
    let started = Instant::now();
    let workers = workers(&arguments)?;
    let encodings = encodings(&arguments.encodings)?;
    let site = SiteShared::open(SiteConfig {
        root: arguments.root.clone(),
        encodings,
        cache_bytes_max: arguments.cache_size,
        no_cache: arguments.no_cache,
        listing: arguments.listing == Switch::On,
        index: arguments.index.clone(),
        dotfiles: arguments.dotfiles,
    })
    .map_err(|error| error.to_string())?;
    let engine = Engine::bind(Settings {
        listen: arguments.listen.clone(),
        workers,
        io: match arguments.io {
            Io::Auto => IoChoice::Auto,
            Io::Uring => IoChoice::Uring,
            Io::Epoll => IoChoice::Epoll,
        },
        connections_max: arguments.max_connections,
        timeouts: timeouts(&arguments),
    })
    .map_err(|error| error.to_string())?;
    site.start(&engine.post()).map_err(|error| error.to_string())?;
    let about = About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
    let page = arguments
        .status
        .clone()
        .map(|path| Arc::new(StatusPage::new(path, about, Arc::clone(&site), started)));
    banner::print(&arguments.root, &engine, &arguments.describe_content());
    banner::watch_preparation(&site);
    engine.run(|_| Reporting::new(site.handler(), page.clone())).map_err(|error| error.to_string())
}

impl Arguments {
    fn describe_content(&self) -> String {
        if self.no_cache {
            return "read from disk for every request (--no-cache)".into();
        }
        let size = units::show_size(self.cache_size);
        let codings: Vec<&str> = self.encodings.iter().filter_map(Coding::name).collect();
        if codings.is_empty() {
            format!("held in memory up to {size}, not encoded")
        } else {
            format!("held in memory up to {size}; {} prepared in the background", codings.join(", "))
        }
    }
}

impl Coding {
    fn name(&self) -> Option<&'static str> {
        match self {
            Self::Br => Some("br"),
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Off => None,
        }
    }
}

/// One worker a processor, or as many as asked for on the processors there are.
fn workers(arguments: &Arguments) -> Result<Vec<Option<usize>>, String> {
    let allowed = cpu::available_cpus().map_err(|error| format!("cannot list the processors: {error}"))?;
    let mut cpus = match &arguments.cpus {
        Some(CpuList(wanted)) => match wanted.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => {
                return Err(format!("--cpus: processor {cpu} is not one this process may use ({allowed:?})"));
            }
            None => wanted.clone(),
        },
        None => allowed,
    };
    if arguments.leave_cpu0 && cpus.len() > 1 {
        cpus.retain(|&cpu| cpu != 0);
    }
    let count = arguments.workers.map_or(cpus.len(), |count| count.min(1024) as usize);
    Ok((0..count).map(|worker| Some(cpus[worker % cpus.len()])).collect())
}

fn encodings(wanted: &[Coding]) -> Result<Vec<Encoding>, String> {
    if wanted.contains(&Coding::Off) && wanted.len() > 1 {
        return Err("--encodings: `off` stands alone".into());
    }
    let encoding = |coding: &Coding| match coding {
        Coding::Br => Some(Encoding::Brotli),
        Coding::Zstd => Some(Encoding::Zstd),
        Coding::Gzip => Some(Encoding::Gzip),
        Coding::Off => None,
    };
    Ok(wanted.iter().filter_map(encoding).collect())
}

fn timeouts(arguments: &Arguments) -> Timeouts {
    let ms = |duration: Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
    Timeouts {
        header_ms: ms(arguments.header_timeout),
        keep_alive_ms: ms(arguments.keep_alive),
        body_ms: ms(arguments.body_timeout),
        send_ms: ms(arguments.send_timeout),
        ..Timeouts::default()
    }
}

fn status_path(text: &str) -> Result<String, String> {
    if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"%?#".contains(&byte)) {
        Ok(text.into())
    } else {
        Err("write a path such as /status.json".into())
    }
}

//! Which servers are compared, and what one of them is told to do.
//!
//! It owns names and choices. It must never start a process or write a file.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::machine;
use super::pair::Pair;

/// A server that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// nginx with sendfile and open_file_cache.
    Nginx,
    /// lighttpd with its stat cache.
    Lighttpd,
    /// h2o with one thread.
    H2o,
    /// HAProxy with one thread, which answers from a file it holds; measured over TLS only.
    Haproxy,
    /// Caddy on one processor; measured under pressure and over TLS only.
    Caddy,
    /// `bench/floor.c`.
    Floor,
    /// Ours on io_uring.
    Uring,
    /// Ours on epoll.
    Epoll,
}

impl ServerKind {
    /// All, in the order in which they are measured and shown.
    pub(super) const ALL: [Self; 8] = [
        Self::Nginx,
        Self::Lighttpd,
        Self::H2o,
        Self::Haproxy,
        Self::Caddy,
        Self::Floor,
        Self::Uring,
        Self::Epoll,
    ];
    /// The servers people use today.
    pub(super) const PEERS: [Self; 3] = [Self::Nginx, Self::Lighttpd, Self::H2o];
    /// Those that are compared over TLS.
    pub(super) const SECURED_PEERS: [Self; 4] = [Self::Nginx, Self::H2o, Self::Haproxy, Self::Caddy];
    /// Our own.
    pub(super) const OURS: [Self; 2] = [Self::Uring, Self::Epoll];

    /// Name in tables and plots.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Lighttpd => "lighttpd",
            Self::H2o => "h2o",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddy",
            Self::Floor => "floor",
            Self::Uring => "staunch uring",
            Self::Epoll => "staunch epoll",
        }
    }

    /// Name on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Uring => "uring",
            Self::Epoll => "epoll",
            other => other.name(),
        }
    }

    /// Whether it is ours.
    pub(super) fn is_ours(self) -> bool {
        Self::OURS.contains(&self)
    }

    /// What it says about its version.
    pub(super) fn version(self, programs: &Programs) -> String {
        match self {
            Self::Nginx => machine::version("nginx", "-v"),
            Self::Lighttpd => machine::version("lighttpd", "-v"),
            Self::H2o => machine::version("h2o", "-v"),
            Self::Haproxy => machine::version("haproxy", "-v"),
            Self::Caddy => machine::version("caddy", "version"),
            Self::Floor => "bench/floor.c, level triggered, one recv and one send a request".to_owned(),
            Self::Uring | Self::Epoll => machine::version(&programs.staunch.to_string_lossy(), "--version"),
        }
    }
}

/// Programs that the benchmark or `cargo xtask install` builds.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// The command `staunch`, with `staunch-load` beside it.
    pub(super) staunch: PathBuf,
    /// The command `floor`: a server that does no more than it must.
    pub(super) floor: PathBuf,
    /// `fan`, the floor of fan-out.
    pub(super) fan: PathBuf,
    /// `truth-server`, whose service time is known.
    pub(super) truth: PathBuf,
    /// `oha`, a load generator to compare with; may not be there.
    pub(super) oha: PathBuf,
    /// Where further load generators stand, some of which may not be there.
    pub(super) tools: PathBuf,
}

/// What a server is to do.
#[derive(Debug, Clone)]
pub(super) struct Setup<'a> {
    /// Which server.
    pub(super) kind: ServerKind,
    /// The directory it serves.
    pub(super) directory: &'a Path,
    /// What it listens on: 127.0.0.1, or 0.0.0.0 when clients need many addresses.
    pub(super) address: Ipv4Addr,
    /// How many connections it must hold.
    pub(super) connections_max: u32,
    /// The file that is asked for, which the floor answers with.
    pub(super) file: &'a str,
    /// How many requests come in one piece.
    pub(super) pipelined: u32,
    /// Whether each connection ends after its first answer.
    pub(super) close: bool,
    /// Processor time that each answer is made to cost, in us: what an application behind the server would
    /// take. 0 for none. Not for the floor.
    pub(super) work_us: u32,
    /// nginx only: texts are compressed at this level for each client that takes gzip; 0 for not at all.
    pub(super) gzip_level: u8,
    /// Ours only: further arguments.
    pub(super) arguments: &'a [&'a str],
    /// TLS 1.3 is spoken with this certificate, and HTTP/2 with who asks for it; `None` for plain HTTP.
    pub(super) pair: Option<&'a Pair>,
}

impl<'a> Setup<'a> {
    /// A server of one directory on 127.0.0.1 with some thousand connections.
    pub(super) fn new(kind: ServerKind, directory: &'a Path, file: &'a str) -> Self {
        Self {
            kind,
            directory,
            address: Ipv4Addr::LOCALHOST,
            connections_max: 4096,
            file,
            pipelined: 1,
            close: false,
            work_us: 0,
            gzip_level: 0,
            arguments: &[],
            pair: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        for (index, kind) in ServerKind::ALL.iter().enumerate() {
            assert!(ServerKind::ALL[..index].iter().all(|other| other.name() != kind.name()));
            assert!(ServerKind::ALL[..index].iter().all(|other| other.word() != kind.word()));
        }
    }
}

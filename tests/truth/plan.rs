//! What a truth server is asked to be, and how that is written on a command line.
//!
//! It owns the meaning of the words; it must never open a socket.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6; port 0 lets the kernel choose.
    Internet(SocketAddr),
    /// A Unix socket, made at the start and removed at the end.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    /// `127.0.0.1:0`, `[::1]:8080` or `unix:/some/path`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.parse().map_err(|_| format!("`{text}` is neither ADDRESS:PORT nor unix:PATH"))?;
        Ok(Self::Internet(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => write!(formatter, "http://{address}"),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// Where requests wait when every worker is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Every connection is accepted at once and read; requests wait in the order they were complete.
    Connection,
    /// A worker accepts one connection and serves it to its end, as many an Apache does: the others wait in
    /// the kernel's accept queue, which is as long as the backlog.
    Accept,
}

impl FromStr for Queue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "connection" => Ok(Self::Connection),
            "accept" => Ok(Self::Accept),
            _ => Err(format!("`{text}` is neither `connection` nor `accept`")),
        }
    }
}

/// What a worker does during the service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Uses the processor.
    Burn,
    /// Leaves it to others.
    Sleep,
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "burn" => Ok(Self::Burn),
            "sleep" => Ok(Self::Sleep),
            _ => Err(format!("`{text}` is neither `burn` nor `sleep`")),
        }
    }
}

/// A time in which nothing is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When it begins, after the start.
    pub after: Duration,
    /// How long it is.
    pub length: Duration,
}

/// Another number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkersChange {
    /// From then on, after the start.
    pub after: Duration,
    /// So many; those in work end it first.
    pub workers: usize,
}

impl FromStr for WorkersChange {
    type Err = String;

    /// `2@12s`: two workers from the twelfth second on.
    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || format!("`{text}` is no change such as 2@12s");
        let (workers, after) = text.split_once('@').ok_or_else(fault)?;
        Ok(Self { after: duration(after)?, workers: workers.parse().map_err(|_| fault())? })
    }
}

/// All of it. The default serves at once what it can, on a free port of 127.0.0.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Where to listen.
    pub address: Address,
    /// Connections the kernel may keep for us; it caps them at `net.core.somaxconn`.
    pub backlog: i32,
    /// How long a worker is busy with one request; zero: no worker is needed to serve one.
    pub service_time: Duration,
    /// Workers: the capacity is `workers / service_time`.
    pub workers: usize,
    /// What they do meanwhile.
    pub work: Work,
    /// Where requests wait for a worker.
    pub queue: Queue,
    /// When nothing is served.
    pub stall: Option<Stall>,
    /// Other numbers of workers, in order of time.
    pub changes: Vec<WorkersChange>,
    /// Close after every answer without having announced it.
    pub answer_then_close: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            address: Address::Internet((Ipv4Addr::LOCALHOST, 0).into()),
            backlog: 4096,
            service_time: Duration::ZERO,
            workers: 1,
            work: Work::Sleep,
            queue: Queue::Connection,
            stall: None,
            changes: Vec::new(),
            answer_then_close: false,
        }
    }
}

impl Plan {
    /// The most workers at any time.
    pub(crate) fn workers_max(&self) -> usize {
        self.changes.iter().map(|change| change.workers).fold(self.workers, usize::max)
    }
}

/// A length of time: `20ms`, `1s`, `0.5s`, `300us`.
///
/// # Errors
/// A sentence about what is wrong with the text.
pub fn duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("`{text}` is no length of time such as 300us, 20ms or 0.5s");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(fault)?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| fault())?;
    let second = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(fault()),
    };
    Duration::try_from_secs_f64(number * second).map_err(|_| fault())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let cases = [
            ("300us", Some(Duration::from_micros(300))),
            ("20ms", Some(Duration::from_millis(20))),
            ("0.5s", Some(Duration::from_millis(500))),
            ("0s", Some(Duration::ZERO)),
            ("20", None),
            ("ms", None),
            ("", None),
            ("-1s", None),
            ("1.2.3s", None),
            ("9999999999999999999999999s", None),
            ("5 s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn addresses_are_written_as_they_are_read() {
        let unix: Address = "unix:/run/a socket".parse().unwrap();
        assert_eq!(unix, Address::Unix("/run/a socket".into()));
        assert_eq!(unix.to_string(), "unix:/run/a socket");
        let six: Address = "[::1]:80".parse().unwrap();
        assert_eq!(six.to_string(), "http://[::1]:80");
        assert!("localhost".parse::<Address>().unwrap_err().contains("`localhost`"));
    }

    #[test]
    fn words_that_mean_nothing_are_named() {
        assert!("burned".parse::<Work>().unwrap_err().contains("`burned`"));
        assert!("both".parse::<Queue>().unwrap_err().contains("`both`"));
        for wrong in ["2", "2@", "@1s", "x@1s", "2@1"] {
            assert!(wrong.parse::<WorkersChange>().is_err(), "{wrong}");
        }
        assert_eq!("2@1s".parse(), Ok(WorkersChange { after: Duration::from_secs(1), workers: 2 }));
    }
}

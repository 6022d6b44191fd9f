//! The module under strain: loaded, asked, unloaded.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

/// Where the module listens: the machine is its own.
pub(crate) const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7007);
/// How long an answer may take: an emulated machine on a busy host is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// What a small file holds.
const SMALL: &[u8] = b"a file\n";
/// Bytes of a large file: more than any socket keeps.
pub(crate) const LARGE_BYTES: usize = 6_000_000;
/// Bytes that are echoed, zeros among them.
pub(crate) const ECHOED: &[u8; 16] = b"one\0two\0\0three\n\0";

/// Which module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Kecho,
    Khttpd,
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "kecho" => Ok(Self::Kecho),
            "khttpd" => Ok(Self::Khttpd),
            _ => Err(format!("{text:?} is neither kecho nor khttpd")),
        }
    }
}

/// The folder that is served.
pub(crate) fn root() -> PathBuf {
    std::env::temp_dir().join("strain")
}

/// A module in one of its modes.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Name,
    /// Behind it, further parameters may stand.
    pub(crate) mode: String,
}

impl Server {
    /// The file's name without its end.
    pub(crate) fn module(&self) -> &'static str {
        match self.name {
            Name::Kecho => "kecho",
            Name::Khttpd => "khttpd",
        }
    }

    /// Makes the folder that khttpd serves.
    pub(crate) fn prepare() -> Result<(), String> {
        let made = || {
            std::fs::create_dir_all(root())?;
            std::fs::write(root().join("small.txt"), SMALL)?;
            std::fs::write(root().join("large.bin"), large())
        };
        made().map_err(|error: std::io::Error| format!("{}: {error}", root().display()))
    }

    /// Loads the module with further parameters.
    pub(crate) fn load(&self, parameters: &str) -> Result<(), String> {
        let mut words = format!("mode={} {parameters} ", self.mode);
        let _ = match self.name {
            Name::Kecho => write!(words, "port={}", ADDRESS.port()),
            Name::Khttpd => write!(words, "root={} listen={ADDRESS} listing=1", root().display()),
        };
        let file = format!("/modules/{}.ko", self.module());
        run(Command::new("insmod").arg(file).args(words.split_ascii_whitespace()))
    }

    /// Unloads the module.
    pub(crate) fn unload(&self) -> Result<(), String> {
        run(Command::new("rmmod").arg(self.module()))
    }

    /// How many connections the module has now.
    pub(crate) fn connections(&self) -> Result<usize, String> {
        let path = format!("/sys/module/{}/parameters/counts", self.module());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let value = text.lines().find_map(|line| line.strip_prefix("connections "));
        value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("{path}: {text}"))
    }

    /// The bytes that ask for a small answer on a connection that stays.
    pub(crate) fn request(&self) -> &'static [u8] {
        match self.name {
            Name::Kecho => ECHOED,
            Name::Khttpd => b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        }
    }

    /// The bytes that ask for more than the peer will take.
    pub(crate) fn large_request(&self) -> Vec<u8> {
        match self.name {
            Name::Kecho => vec![0; 256 * 1024],
            Name::Khttpd => b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20),
        }
    }

    /// Asks once on a connection that stays, and reads the whole answer.
    pub(crate) fn ask_on(&self, stream: &mut TcpStream) -> Result<(), String> {
        stream.write_all(self.request()).map_err(|error| format!("request: {error}"))?;
        self.hear_on(stream)
    }

    /// Reads the whole answer to one request.
    pub(crate) fn hear_on(&self, stream: &mut TcpStream) -> Result<(), String> {
        let mut heard = Vec::new();
        let mut room = [0; 4096];
        while !self.is_answer(&heard) {
            match stream.read(&mut room).map_err(|error| format!("answer: {error}"))? {
                0 => return Err(format!("the answer ends: {:?}", String::from_utf8_lossy(&heard))),
                count => heard.extend_from_slice(&room[..count]),
            }
        }
        Ok(())
    }

    /// Whether these bytes are the answer to `request`.
    fn is_answer(&self, heard: &[u8]) -> bool {
        match self.name {
            Name::Kecho => heard == ECHOED,
            Name::Khttpd => heard.starts_with(b"HTTP/1.1 200 OK\r\n") && heard.ends_with(SMALL),
        }
    }

    /// Asks once on a connection of its own.
    pub(crate) fn ask(&self) -> Result<(), String> {
        let mut stream = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
        self.ask_on(&mut stream)
    }

    /// Asks for much, reads all of it, and compares.
    pub(crate) fn ask_much(&self) -> Result<usize, String> {
        let mut stream = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
        let sent = match self.name {
            Name::Kecho => large()[..100_000].to_vec(),
            Name::Khttpd => b"GET /large.bin HTTP/1.0\r\n\r\n".to_vec(),
        };
        let mut heard = Vec::new();
        std::thread::scope(|scope| {
            let mut writing = stream.try_clone().map_err(|error| error.to_string())?;
            let sent = &sent;
            // Both directions at once: an echo server that is not read from stops reading.
            scope.spawn(move || {
                let _ = writing.write_all(sent);
                let _ = writing.shutdown(std::net::Shutdown::Write);
            });
            stream.read_to_end(&mut heard).map_err(|error| format!("answer: {error}"))
        })?;
        let is_whole = match self.name {
            Name::Kecho => heard == sent,
            Name::Khttpd => heard.ends_with(&large()) && heard.starts_with(b"HTTP/1.1 200 OK\r\n"),
        };
        if is_whole { Ok(heard.len()) } else { Err(format!("{} bytes, and not those", heard.len())) }
    }
}

/// Bytes in which no two neighbourhoods are alike.
fn large() -> Vec<u8> {
    (0..LARGE_BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A connection on which no operation takes longer.
pub(crate) fn connect(patience: Duration) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&ADDRESS, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Runs a command; its words where it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

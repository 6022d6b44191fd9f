//! A crowd of idle connections, held by several processes because one may not open enough descriptors.
//!
//! It owns the holding processes and what they are told: each connects, makes one request on every
//! connection, says `held N`, waits until its input ends, says `alive N`, and ends. Holders connect to
//! different addresses of 127.0.0.0/8, because one pair of addresses has only some 28 000 ports.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use super::client::HttpClient;
use super::http2::Http2Client;
use super::pair::Pair;
use super::servers::pinned;
use super::tls::{Dialer, Protocol, TlsStream};

/// Connections of one holder: below the usual hard limit of 20 000 descriptors, and below the number of
/// ports.
const HOLDER_CONNECTIONS_MAX: u32 = 17_000;

/// How the clients of a crowd speak with their server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Speech<'p> {
    /// Plain HTTP/1.1.
    Plain,
    /// HTTP/1.1 over TLS.
    Http1(&'p Pair),
    /// HTTP/2 over TLS, with the fields of a browser.
    Http2(&'p Pair),
    /// As [`Speech::Http2`], and with a cookie that no other client has.
    Http2Cookie(&'p Pair),
}

impl Speech<'_> {
    fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Http1(_) => "http1",
            Self::Http2(_) => "http2",
            Self::Http2Cookie(_) => "http2-cookie",
        }
    }

    fn pair(&self) -> Option<&Pair> {
        match self {
            Self::Plain => None,
            Self::Http1(pair) | Self::Http2(pair) | Self::Http2Cookie(pair) => Some(pair),
        }
    }
}

/// The holding processes.
#[derive(Debug)]
pub(super) struct Crowd {
    holders: Vec<(Child, BufReader<ChildStdout>)>,
}

impl Crowd {
    /// Opens `count` connections to a port of this machine, with one answered request each, and keeps them.
    ///
    /// # Errors
    /// Any connection that cannot be opened or is not answered.
    pub(super) fn gather(port: u16, speech: Speech<'_>, path: &str, count: u32) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| format!("own program: {error}"))?;
        let mut crowd = Self { holders: Vec::new() };
        let mut left = count;
        while left > 0 {
            let share = left.min(HOLDER_CONNECTIONS_MAX);
            left -= share;
            let address = Ipv4Addr::new(127, 0, 0, 1 + crowd.holders.len() as u8);
            let mut command = pinned(1);
            let words = format!("{address}:{port},{share},{},{path}", speech.word());
            command.arg(&own).args(["bench", "--hold", &words]);
            if let Some(pair) = speech.pair() {
                command.arg("--hold-certificate").arg(&pair.certificate);
            }
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| format!("holder: {error}"))?;
            let output = child.stdout.take().ok_or("holder without output")?;
            crowd.holders.push((child, BufReader::new(output)));
        }
        let held: u32 = crowd.holders.iter_mut().map(|(_, output)| read_number(output, "held ")).sum();
        if held == count { Ok(crowd) } else { Err(format!("{held} of {count} connections could be opened")) }
    }

    /// Ends the crowd. Gives how many connections were still open and silent.
    pub(super) fn disperse(mut self) -> u32 {
        let mut alive = 0;
        for (child, output) in &mut self.holders {
            drop(child.stdin.take());
            alive += read_number(output, "alive ");
        }
        alive
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for (child, _) in &mut self.holders {
            drop(child.stdin.take());
            // Collects the ended child; there is nothing to do about a failure.
            let _ = child.wait();
        }
    }
}

/// The holder's side: `ADDRESS:PORT,COUNT,SPEECH,PATH`, and where TLS is spoken the server's certificate.
///
/// # Errors
/// The words are malformed, or a connection fails.
pub(super) fn hold(words: &str, certificate: Option<&Path>) -> Result<(), String> {
    let mut parts = words.splitn(4, ',');
    let mut part = || parts.next().ok_or("ADDRESS:PORT,COUNT,SPEECH,PATH is needed");
    let address: SocketAddr = part()?.parse().map_err(|_| "an address and port are needed")?;
    let count: u32 = part()?.parse().map_err(|_| "a count is needed")?;
    let speech = part()?;
    let path = part()?;
    let dialer = certificate.map(|certificate| {
        let protocol = if speech == "http1" { Protocol::Http1 } else { Protocol::Http2 };
        Dialer::new(certificate, protocol, false)
    });
    let dialer = dialer.transpose()?;
    let mut clients = Vec::new();
    for number in 0..count {
        let client = match &dialer {
            None => Held::plain(address, path),
            Some(dialer) => {
                // As long as a session's usual number.
                let cookie = (speech == "http2-cookie").then(|| format!("session={number:032x}"));
                Held::secured(dialer, address, path, speech == "http1", cookie.as_deref())
            }
        };
        clients.push(client.map_err(|error| format!("connection {number}: {error}"))?);
    }
    println!("held {count}");
    // Nothing comes: the end of the input is the sign to stop, and a failure is as good a sign.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    println!("alive {}", clients.iter_mut().filter_map(|client| client.is_alive().then_some(())).count());
    Ok(())
}

/// A connection that is kept.
enum Held {
    Plain(HttpClient),
    Http1(HttpClient<TlsStream>),
    Http2(Http2Client<TlsStream>),
}

impl Held {
    fn plain(address: SocketAddr, path: &str) -> Result<Self, String> {
        let mut client = HttpClient::connect(address)?;
        let reply = client.get(path)?;
        if reply.status != 200 || reply.close {
            return Err(format!("status {}, close: {}", reply.status, reply.close));
        }
        Ok(Self::Plain(client))
    }

    fn secured(
        dialer: &Dialer,
        address: SocketAddr,
        path: &str,
        is_http1: bool,
        cookie: Option<&str>,
    ) -> Result<Self, String> {
        let (stream, _) = dialer.dial(address)?;
        if !is_http1 {
            let mut client = Http2Client::over(stream);
            client.get(path, cookie)?;
            return Ok(Self::Http2(client));
        }
        let mut client = HttpClient::over(stream);
        let reply = client.get(path)?;
        if reply.status != 200 || reply.close {
            return Err(format!("status {}, close: {}", reply.status, reply.close));
        }
        Ok(Self::Http1(client))
    }

    /// Whether the server has not closed. On a plain connection it has said nothing more either; over TLS a
    /// ticket, or what acknowledges settings, may have come behind the answer.
    fn is_alive(&mut self) -> bool {
        match self {
            Self::Plain(client) => client.is_quiet(),
            Self::Http1(client) => is_open(&client.stream().sock),
            Self::Http2(client) => is_open(&client.stream().sock),
        }
    }
}

fn is_open(mut socket: &TcpStream) -> bool {
    let mut part = [0; 4096];
    if socket.set_nonblocking(true).is_err() {
        return false;
    }
    loop {
        match socket.read(&mut part) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// The number behind a word on the next line; 0 when the holder ended without saying it.
fn read_number(output: &mut impl BufRead, word: &str) -> u32 {
    let mut line = String::new();
    let read = output.read_line(&mut line);
    read.ok().and_then(|_| line.trim().strip_prefix(word)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_holder_holds_nothing() {
        assert_eq!(read_number(&mut "held 17\n".as_bytes(), "held "), 17);
        assert_eq!(read_number(&mut "".as_bytes(), "held "), 0);
        assert!(hold("127.0.0.1:1,x,plain,/", None).is_err());
    }
}

//! A crowd of idle connections, held by several processes because one may not open enough descriptors.
//!
//! It owns the holding processes and what they are told: each connects, makes one request on every
//! connection, says `held N`, waits until its input ends, says `alive N`, and ends. Holders connect to
//! different addresses of 127.0.0.0/8, because one pair of addresses has only some 28 000 ports.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Stdio};

use super::client::HttpClient;
use super::servers::pinned;

/// Connections of one holder: below the usual hard limit of 20 000 descriptors, and below the number of
/// ports.
const HOLDER_CONNECTIONS_MAX: u32 = 17_000;

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
    pub(super) fn gather(port: u16, path: &str, count: u32) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| format!("own program: {error}"))?;
        let mut crowd = Self { holders: Vec::new() };
        let mut left = count;
        while left > 0 {
            let share = left.min(HOLDER_CONNECTIONS_MAX);
            left -= share;
            let address = Ipv4Addr::new(127, 0, 0, 1 + crowd.holders.len() as u8);
            let mut child = pinned(1)
                .arg(&own)
                .args(["bench", "--hold", &format!("{address}:{port},{share},{path}")])
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

/// The holder's side: `ADDRESS:PORT,COUNT,PATH`.
///
/// # Errors
/// The words are malformed, or a connection fails.
pub(super) fn hold(words: &str) -> Result<(), String> {
    let mut parts = words.splitn(3, ',');
    let mut part = || parts.next().ok_or("ADDRESS:PORT,COUNT,PATH is needed");
    let address: SocketAddr = part()?.parse().map_err(|_| "an address and port are needed")?;
    let count: u32 = part()?.parse().map_err(|_| "a count is needed")?;
    let path = part()?;
    let mut clients = Vec::new();
    for number in 0..count {
        let mut client =
            HttpClient::connect(address).map_err(|error| format!("connection {number}: {error}"))?;
        let reply = client.get(path).map_err(|error| format!("connection {number}: {error}"))?;
        if reply.status != 200 || reply.close {
            return Err(format!("connection {number} got status {}, close: {}", reply.status, reply.close));
        }
        clients.push(client);
    }
    println!("held {count}");
    // Nothing comes: the end of the input is the sign to stop, and a failure is as good a sign.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    println!("alive {}", clients.iter_mut().filter_map(|client| client.is_quiet().then_some(())).count());
    Ok(())
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
        assert!(hold("127.0.0.1:1,x,/").is_err());
    }
}

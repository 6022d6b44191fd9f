//! The kernel's memory of a server's sockets, as `ss` of iproute2 tells it.
//!
//! This file owns the words of `ss`. What `ss` counts is data and its bookkeeping; the socket itself, some 2
//! KB, is the same whatever a reader does.
use std::process::Command;

/// Sockets of a port that have unsent or unread bytes, or memory set aside for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BufferedSockets {
    /// Sockets with bytes that the peer has not taken.
    pub(crate) waiting: u64,
    /// Memory of all of the port, in bytes.
    pub(crate) bytes: u64,
}

impl BufferedSockets {
    /// Of the connections that a port of this machine has accepted.
    ///
    /// # Errors
    /// `ss` is missing or fails.
    pub(crate) fn of_port(port: u16) -> Result<Self, String> {
        Self::of(&format!("( sport = :{port} )"))
    }

    /// Of the connections that this machine has opened to a port.
    ///
    /// # Errors
    /// As [`BufferedSockets::of_port`].
    pub(crate) fn to_port(port: u16) -> Result<Self, String> {
        Self::of(&format!("( dport = :{port} )"))
    }

    fn of(filter: &str) -> Result<Self, String> {
        let mut command = Command::new("ss");
        command.args(["-tmnHO", "state", "established", filter]);
        let output = command.output().map_err(|error| format!("ss (iproute2): {error}"))?;
        if !output.status.success() {
            return Err(format!("ss: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(Self::read(&String::from_utf8_lossy(&output.stdout)))
    }

    fn read(text: &str) -> Self {
        let mut sum = Self::default();
        for line in text.lines() {
            let Some((_, memory)) = line.split_once("skmem:(") else { continue };
            let parts = memory.split(')').next().unwrap_or_default().split(',');
            let figures: Vec<(&str, u64)> = parts.filter_map(part).collect();
            let of = |name: &str| -> u64 {
                figures.iter().filter(|(own, _)| *own == name).map(|(_, bytes)| bytes).sum()
            };
            sum.waiting += u64::from(of("w") > 0);
            sum.bytes += ["r", "w", "f", "o", "bl"].into_iter().map(of).sum::<u64>();
        }
        sum
    }
}

/// A figure such as `rb87380`.
fn part(text: &str) -> Option<(&str, u64)> {
    let digits = text.find(|c: char| c.is_ascii_digit())?;
    Some((&text[..digits], text[digits..].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_sockets_is_summed() {
        let text = "0 4000 127.0.0.1:80 127.0.0.1:4000 skmem:(r0,rb131072,t0,tb32768,f1024,w5120,o0,bl0,d0)\n\
            0 0 127.0.0.1:80 127.0.0.1:4001 skmem:(r256,rb131072,t0,tb32768,f0,w0,o0,bl0,d0)\n";
        assert_eq!(BufferedSockets::read(text), BufferedSockets { waiting: 1, bytes: 6400 });
        assert_eq!(BufferedSockets::read("nothing of the kind\n"), BufferedSockets::default());
    }
}

//! How many TCP sockets are in use, and the memory they hold (`/proc/net/sockstat`, `sockstat6`).
//!
//! Sockets are those of this network namespace; their memory is that of all, which is what the kernel limits.

use std::path::Path;

use super::kept::{Kept, number_after};

/// A few lines.
const TEXT_BYTES: usize = 2048;

/// The files that tell of TCP sockets.
pub(super) struct Sockets {
    first: Kept,
    /// Of IPv6, which counts those of its listeners that serve IPv4 too. Not there without IPv6.
    second: Option<Kept>,
}

/// A reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SocketFigures {
    pub(super) in_use: u64,
    pub(super) memory_pages: u64,
}

impl Sockets {
    pub(super) fn open(proc: &Path) -> Result<Self, String> {
        let lost = |error| format!("{error}; sockets in use are not seen");
        let first = Kept::open(&proc.join("net/sockstat"), TEXT_BYTES).map_err(lost)?;
        Ok(Self { first, second: Kept::open(&proc.join("net/sockstat6"), TEXT_BYTES).ok() })
    }

    pub(super) fn read(&mut self) -> Option<SocketFigures> {
        let second = self.second.as_mut().and_then(Kept::read).and_then(|text| in_use(text, "TCP6:"));
        let text = self.first.read()?;
        let line = text.lines().find(|line| line.starts_with("TCP:"))?;
        Some(SocketFigures {
            in_use: in_use(text, "TCP:")? + second.unwrap_or(0),
            memory_pages: number_after(line, "mem")?,
        })
    }
}

fn in_use(text: &str, name: &str) -> Option<u64> {
    number_after(text.lines().find(|line| line.starts_with(name))?, "inuse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_count_and_memory_is_that_of_tcp() {
        let root = std::env::temp_dir().join(format!("staunch-sockets-{}", std::process::id()));
        std::fs::create_dir_all(root.join("net")).unwrap();
        let text = "sockets: used 9\nTCP: inuse 5 orphan 0 tw 3 alloc 8 mem 17\nUDP: inuse 1 mem 2\n";
        std::fs::write(root.join("net/sockstat"), text).unwrap();
        let mut sockets = Sockets::open(&root).unwrap();
        assert_eq!(sockets.read(), Some(SocketFigures { in_use: 5, memory_pages: 17 }));
        std::fs::write(root.join("net/sockstat6"), "TCP6: inuse 30\nUDP6: inuse 4\n").unwrap();
        let mut sockets = Sockets::open(&root).unwrap();
        assert_eq!(sockets.read(), Some(SocketFigures { in_use: 35, memory_pages: 17 }));
        std::fs::write(root.join("net/sockstat"), "sockets: used 9\n").unwrap();
        assert_eq!(sockets.read(), None);
        std::fs::remove_dir_all(&root).unwrap();
    }
}

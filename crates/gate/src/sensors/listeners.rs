//! What waits at listeners (sock_diag(7)), and what they threw away (`/proc/net/netstat`).

use std::path::Path;

use staunch_netio::sock_diag::SockDiag;

use super::kept::{Kept, numbers};
use crate::observation::Queue;

/// Some 150 names and numbers, with room for those of later kernels.
const TEXT_BYTES: usize = 16 * 1024;
const NAME: &str = "ListenDrops";

/// The accept queues of the protected ports, of all listeners in this network namespace.
pub(super) struct Listeners {
    diag: SockDiag,
    ports: Vec<u16>,
}

impl Listeners {
    pub(super) fn open(ports: &[u16]) -> Result<Self, String> {
        let opened = SockDiag::open().and_then(|mut diag| diag.accept_queues(ports).map(|_| diag));
        let lost = |error| format!("sock_diag (tcp_diag): {error}; accept queues are not seen");
        Ok(Self { diag: opened.map_err(lost)?, ports: ports.to_vec() })
    }

    pub(super) fn read(&mut self) -> Option<Queue> {
        let queue = self.diag.accept_queues(&self.ports).ok()?;
        Some(Queue {
            listeners: queue.listeners,
            waiting: queue.waiting,
            limit: queue.limit,
            fullest_share: queue.fullest_share,
        })
    }
}

/// Connections thrown away at listeners of this network namespace, whatever their port.
pub(super) struct ListenDrops {
    statistics: Kept,
    column: usize,
    before: u64,
}

impl ListenDrops {
    pub(super) fn open(proc: &Path) -> Result<Self, String> {
        let lost = |error| format!("{error}; what listeners throw away is not seen");
        let mut statistics = Kept::open(&proc.join("net/netstat"), TEXT_BYTES).map_err(lost)?;
        let text = statistics.read().unwrap_or_default();
        let found = column(text).and_then(|column| Some((column, count(text, column)?)));
        let (column, before) = found.ok_or_else(|| lost(format!("net/netstat has no {NAME}")))?;
        Ok(Self { statistics, column, before })
    }

    /// How many since the reading before.
    pub(super) fn read(&mut self) -> Option<u64> {
        let now = count(self.statistics.read()?, self.column)?;
        Some(now.saturating_sub(std::mem::replace(&mut self.before, now)))
    }
}

/// Lines come in pairs: names, then numbers.
fn column(text: &str) -> Option<usize> {
    let names = text.lines().find_map(|line| line.strip_prefix("TcpExt:"))?;
    names.split_ascii_whitespace().position(|name| name == NAME)
}

fn count(text: &str, column: usize) -> Option<u64> {
    numbers(text.lines().filter_map(|line| line.strip_prefix("TcpExt:")).nth(1)?).nth(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_from_one_reading_to_the_next() {
        let root = std::env::temp_dir().join(format!("staunch-drops-{}", std::process::id()));
        let say = |drops: u64| {
            let text = format!("TcpExt: A ListenDrops B\nTcpExt: 3 {drops} 9\nIpExt: C\nIpExt: 1\n");
            std::fs::create_dir_all(root.join("net")).unwrap();
            std::fs::write(root.join("net/netstat"), text).unwrap();
        };
        say(70);
        let mut drops = ListenDrops::open(&root).unwrap();
        say(75);
        assert_eq!((drops.read(), drops.read()), (Some(5), Some(0)));
        std::fs::write(root.join("net/netstat"), "TcpExt: A B\nTcpExt: 3 9\n").unwrap();
        assert!(ListenDrops::open(&root).is_err_and(|note| note.contains(NAME)));
        std::fs::remove_dir_all(&root).unwrap();
    }
}

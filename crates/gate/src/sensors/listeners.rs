//! What waits at listeners, and what they throw away (sock_diag(7)).

use staunch_netio::host::sock_diag::{AcceptQueue, SockDiag};

use crate::observation::Queue;

/// The listeners of the protected ports in this network namespace.
pub(super) struct Listeners {
    diag: SockDiag,
    ports: Vec<u16>,
    before: Vec<AcceptQueue>,
}

/// What the listeners of a port say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PortQueue {
    /// Their accept queues.
    pub queue: Queue,
    /// SYN, connections and stray RST that they threw away since the reading before.
    pub drops: u64,
}

impl Listeners {
    pub(super) fn open(ports: &[u16]) -> Result<Self, String> {
        let lost = |error| format!("sock_diag (tcp_diag): {error}; accept queues are not seen");
        let mut diag = SockDiag::open().map_err(lost)?;
        let before = diag.accept_queues(ports).map_err(lost)?;
        Ok(Self { diag, ports: ports.to_vec(), before })
    }

    /// Those of each port, in the order in which these were given.
    pub(super) fn read(&mut self) -> Option<Vec<PortQueue>> {
        let now = self.diag.accept_queues(&self.ports).ok()?;
        let before = std::mem::replace(&mut self.before, now);
        Some(before.iter().zip(&self.before).map(|(before, now)| said(before, now)).collect())
    }
}

fn said(before: &AcceptQueue, now: &AcceptQueue) -> PortQueue {
    let queue = Queue {
        listeners: now.listeners,
        waiting: now.waiting,
        limit: now.limit,
        fullest_share: now.fullest_share,
    };
    PortQueue { queue, drops: dropped(before, now) }
}

/// Nothing when others listen now: each counts from when it began.
fn dropped(before: &AcceptQueue, now: &AcceptQueue) -> u64 {
    if now.listeners == before.listeners { now.drops.saturating_sub(before.drops) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_from_one_reading_to_the_next() {
        let seen = |listeners, drops| AcceptQueue { listeners, drops, ..AcceptQueue::default() };
        assert_eq!(dropped(&seen(2, 70), &seen(2, 75)), 5);
        assert_eq!(dropped(&seen(1, 70), &seen(2, 75)), 0);
        assert_eq!(dropped(&seen(2, 70), &seen(2, 3)), 0);
    }
}

//! How busy this server is, second by second.

use std::sync::Arc;

use staunch_dostp::fabric::NodeLoad;
use staunch_engine::Stats;
use staunch_netio::clock;
use staunch_server::LiveSites;

/// Measures the load of this server, from one look to the next.
pub(super) struct LoadMeter {
    stats: Vec<Arc<Stats>>,
    live: Option<Arc<LiveSites>>,
    /// Requests, processor time and the clock at the last look.
    last: (u64, u64, u64),
}

impl LoadMeter {
    pub(super) fn new(stats: Vec<Arc<Stats>>, live: Option<Arc<LiveSites>>) -> Self {
        let mut meter = Self { stats, live, last: (0, 0, 0) };
        meter.last = meter.look();
        meter
    }

    /// The load since it was measured last.
    pub(super) fn measure(&mut self) -> NodeLoad {
        let (requests_before, busy_before_ns, before_ns) = self.last;
        self.last = self.look();
        let (requests, busy_ns, now_ns) = self.last;
        let passed_ns = now_ns.saturating_sub(before_ns).max(1);
        let per_second =
            u128::from(requests.saturating_sub(requests_before)) * 1_000_000_000 / u128::from(passed_ns);
        let of_workers_ns = u128::from(passed_ns) * self.stats.len().max(1) as u128;
        let busy = u128::from(busy_ns.saturating_sub(busy_before_ns)) * 1_000 / of_workers_ns;
        let connections = self
            .stats
            .iter()
            .map(|stats| stats.connections.accepted.get().saturating_sub(stats.connections.closed.get()))
            .sum::<u64>();
        let readers = self.live.as_ref().map_or(0, |live| live.readers());
        NodeLoad {
            requests_per_second: u32::try_from(per_second).unwrap_or(u32::MAX),
            busy_permille: busy.min(1_000) as u16,
            workers: u16::try_from(self.stats.len()).unwrap_or(u16::MAX),
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            readers: u32::try_from(readers).unwrap_or(u32::MAX),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn look(&self) -> (u64, u64, u64) {
        let requests = self.stats.iter().map(|stats| stats.requests.answered.get()).sum();
        (requests, clock::process_busy_ns(), clock::now_ns())
    }
}

//! Load that no gate for connections can shed: requests on connections that stand already.
//!
//! It says so, once for each time it comes; it changes no order.

use super::history::History;
use super::line::{Corrected, Line};
use super::settings::Settings;
use crate::observation::Observation;

/// What is looked at.
const LOOK_NS: u64 = 1_000_000_000;
/// A processor is full above this, with its two kinds of time.
const FULL_SHARE: f64 = 0.9;
/// Reads a SYN: connections with fewer can be held off at the gate.
const READS_EACH: u64 = 10;
/// Fewer reads a second are no load.
const READS_LEAST: u64 = 1_000;
/// After so long without, it is said again.
const AGAIN_NS: u64 = 60_000_000_000;

/// What the one who runs the server should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The server is at its limit by requests on standing connections, which shedding SYN does not lighten.
    LoadWithoutSyn {
        /// Reads in the last second.
        reads_per_s: u64,
        /// SYN in the last second.
        syn_per_s: u64,
    },
    /// The accept queue is short and full: it bounds the server, and the gate stands aside.
    SmallQueue {
        /// Places of a listener.
        places: u64,
    },
    /// So many forged SYN come a second, and hinder nobody: they are left to the kernel's cookies.
    FloodPassed {
        /// SYN in the last second.
        syn_per_s: u64,
    },
    /// A line did not move, and the sockets say who really stands in it.
    Corrected(Corrected),
}

/// Whether such load is there.
#[derive(Debug)]
pub(crate) struct Load {
    since_said_ns: u64,
}

impl Default for Load {
    fn default() -> Load {
        Load { since_said_ns: AGAIN_NS }
    }
}

impl Load {
    /// Takes a tick in.
    pub(crate) fn see(
        &mut self,
        o: &Observation,
        line: &Line,
        history: &History,
        settings: &Settings,
    ) -> Option<Hint> {
        self.since_said_ns = self.since_said_ns.saturating_add(history.tick().at_ns);
        let last = history.last(LOOK_NS);
        let full = o.cpu.is_some_and(|cpu| cpu.kernel_share + cpu.user_share > FULL_SHARE);
        let late = line.head_ns > settings.trigger_ns && line.still_ns == 0;
        let reads = last.reads >= READS_LEAST && last.reads / READS_EACH >= last.syn_all();
        if last.at_ns < LOOK_NS || !(full || late) || !reads {
            return None;
        }
        let said = std::mem::replace(&mut self.since_said_ns, 0) < AGAIN_NS;
        let (reads_per_s, syn_per_s) = (last.reads, last.syn_all());
        (!said).then_some(Hint::LoadWithoutSyn { reads_per_s, syn_per_s })
    }
}

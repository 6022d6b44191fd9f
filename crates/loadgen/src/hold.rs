//! Holding connections: how many a server keeps, how long it takes to get there, and what each costs here.
//!
//! It must never call memory by one name that is two: what this process uses, and what the machine has less
//! of (the kernel's part, of both ends when the server is on it).

use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::outcome::{MOMENT_MS, Outcome};
use crate::plan::{LaneKind, Plan};
use crate::run::run;
use crate::worker::Control;

/// What holding came to.
#[derive(Debug, Clone)]
pub struct HoldOutcome {
    /// How many were to be held.
    pub wanted: u64,
    /// How many were held at most.
    pub held: u64,
    /// When that many were held first, in seconds since the begin.
    pub seconds: f64,
    /// How many the server closed.
    pub ended: u64,
    /// Memory of this process for each connection, in bytes.
    pub client_bytes_each: f64,
    /// What the machine has less of for each connection, in bytes: kernel and processes, of both ends if the
    /// server is here.
    pub machine_bytes_each: f64,
    /// The run.
    pub outcome: Outcome,
}

/// Carries out a plan whose lanes hold so many connections, and ends it when they were held for a while.
///
/// # Errors
/// What keeps the plan from being carried out.
pub fn hold(
    plan: &Plan,
    wanted: u64,
    hold_for: Duration,
    control: &Arc<Control>,
    observe: &mut dyn FnMut(&crate::Moment),
) -> Result<HoldOutcome, Fault> {
    let before = Memory::now();
    let mut peak = Peak::default();
    // A connection in the queue of the kernel is made, but held by nobody until it was answered.
    let answered =
        plan.lanes.iter().any(|lane| matches!(lane.kind, LaneKind::Hold { request_first: true, .. }));
    let outcome = run(plan, control, &mut |moment| {
        observe(moment);
        let counts = &moment.counts;
        let answers = counts.in_time + counts.late + counts.wrong_answer;
        peak.note(
            if answered { answers } else { counts.connections_made },
            moment.counts.connections_ended,
            moment.at_ms,
        );
        let held_ms = moment.at_ms - peak.at_ms;
        if peak.held >= wanted && u128::from(held_ms) + u128::from(MOMENT_MS) >= hold_for.as_millis() {
            peak.memory.get_or_insert_with(Memory::now);
            control.stop();
        }
    })?;
    let after = peak.memory.unwrap_or_else(Memory::now);
    let each = |bytes: i64| bytes as f64 / peak.held.max(1) as f64;
    Ok(HoldOutcome {
        wanted,
        held: peak.held,
        seconds: peak.at_ms as f64 / 1000.0,
        ended: outcome.counts().connections_ended,
        client_bytes_each: each(after.process_bytes - before.process_bytes),
        machine_bytes_each: each(before.available_bytes - after.available_bytes),
        outcome,
    })
}

/// The most connections so far.
#[derive(Debug, Default)]
struct Peak {
    now: u64,
    held: u64,
    at_ms: u64,
    memory: Option<Memory>,
}

impl Peak {
    fn note(&mut self, made: u64, ended: u64, at_ms: u64) {
        self.now = (self.now + made).saturating_sub(ended);
        if self.now > self.held {
            self.held = self.now;
            self.at_ms = at_ms;
        }
    }
}

/// Memory in use.
#[derive(Debug, Clone, Copy)]
struct Memory {
    process_bytes: i64,
    available_bytes: i64,
}

impl Memory {
    fn now() -> Self {
        Self {
            process_bytes: kilobytes_of("/proc/self/status", "VmRSS:") * 1024,
            available_bytes: kilobytes_of("/proc/meminfo", "MemAvailable:") * 1024,
        }
    }
}

/// A figure in kB behind its name in a file of /proc; 0 if it is not there.
fn kilobytes_of(path: &str, name: &str) -> i64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_first_moment_with_the_most() {
        let mut peak = Peak::default();
        for (made, ended, at_ms) in [(5, 0, 100), (5, 2, 200), (0, 0, 300), (1, 3, 400)] {
            peak.note(made, ended, at_ms);
        }
        assert_eq!((peak.held, peak.at_ms, peak.now), (8, 200, 6));
    }

    #[test]
    fn memory_is_found() {
        let memory = Memory::now();
        assert!(memory.process_bytes > 0 && memory.available_bytes > memory.process_bytes);
        assert_eq!(kilobytes_of("/proc/self/status", "NoSuchName:"), 0);
    }
}

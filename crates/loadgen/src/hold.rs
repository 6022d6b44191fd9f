//! Holding connections: how many a server keeps, how long it takes to get there, and what each costs here.
//!
//! It must never call memory by one name that is two: what this process uses, and what the machine has less
//! of (the kernel's part, of both ends when the server is on it).

use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::outcome::{MOMENT_MS, RunOutcome};
use crate::plan::Plan;
use crate::run::run;
use crate::worker::RunControl;

/// What holding came to.
#[derive(Debug, Clone)]
pub struct HoldOutcome {
    /// How many were to be held.
    pub wanted: u64,
    /// How many stood at the end: never more than wanted. One that was closed and made again counts once.
    pub held: u64,
    /// When all stood first, in seconds since the begin, or none if they never did.
    pub complete_s: Option<f64>,
    /// How many were made, those that were closed and made again included.
    pub made: u64,
    /// How many the server closed while they were idle.
    pub ended: u64,
    /// Memory of this process for each connection, in bytes.
    pub client_bytes_each: f64,
    /// What the machine has less of for each connection, in bytes: kernel and processes, of both ends if the
    /// server is here.
    pub machine_bytes_each: f64,
    /// The run.
    pub outcome: RunOutcome,
}

/// Carries out a plan whose lanes hold so many connections, and ends it a while after all stood: what
/// counts is how many stand then.
///
/// # Errors
/// What keeps the plan from being carried out.
pub fn hold(
    plan: &Plan,
    wanted: u64,
    hold_for: Duration,
    control: &Arc<RunControl>,
    observe: &mut dyn FnMut(&crate::Moment),
) -> Result<HoldOutcome, Fault> {
    let before = Memory::now();
    let mut gathering = Gathering::default();
    let mut memory = None;
    let outcome = run(plan, control, &mut |moment| {
        observe(moment);
        if memory.is_none() && gathering.note(moment.held, moment.at_ms, wanted, hold_for) {
            memory = Some(Memory::now());
            control.stop();
        }
    })?;
    let after = memory.unwrap_or_else(Memory::now);
    let each = |bytes: i64| bytes as f64 / gathering.held.max(1) as f64;
    let counts = outcome.counts();
    Ok(HoldOutcome {
        wanted,
        held: gathering.held,
        complete_s: gathering.complete_ms.map(|at_ms| at_ms as f64 / 1000.0),
        made: counts.connections_made,
        ended: counts.connections_ended,
        client_bytes_each: each(after.process_bytes - before.process_bytes),
        machine_bytes_each: each(before.available_bytes - after.available_bytes),
        outcome,
    })
}

/// How far it has come.
#[derive(Debug, Default)]
struct Gathering {
    /// How many stand.
    held: u64,
    /// When all of them stood first.
    complete_ms: Option<u64>,
}

impl Gathering {
    /// So many stand at that time. Returns whether the time after all stood is over.
    fn note(&mut self, held: u64, at_ms: u64, wanted: u64, hold_for: Duration) -> bool {
        self.held = held;
        if held >= wanted {
            self.complete_ms.get_or_insert(at_ms);
        }
        let over = |since_ms| u128::from(at_ms - since_ms + MOMENT_MS) >= hold_for.as_millis();
        self.complete_ms.is_some_and(over)
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
    fn what_stands_at_the_end_counts() {
        for (held, wanted, expected) in [
            ([5, 8, 8, 8, 8], 8, (8, Some(200), Some(400))),
            ([5, 8, 8, 6, 8], 8, (6, Some(200), Some(400))),
            ([5, 7, 6, 7, 3], 8, (3, None, None)),
        ] {
            let mut gathering = Gathering::default();
            let times = [100, 200, 300, 400, 500];
            let over = held
                .into_iter()
                .zip(times)
                .find(|(held, at_ms)| gathering.note(*held, *at_ms, wanted, Duration::from_millis(300)));
            let over_ms = over.map(|(_, at_ms)| at_ms);
            assert_eq!((gathering.held, gathering.complete_ms, over_ms), expected, "{held:?}");
        }
    }

    #[test]
    fn memory_is_found() {
        let memory = Memory::now();
        assert!(memory.process_bytes > 0 && memory.available_bytes > memory.process_bytes);
        assert_eq!(kilobytes_of("/proc/self/status", "NoSuchName:"), 0);
    }
}

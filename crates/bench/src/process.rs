//! A process and all its descendants, seen through /proc: processor time, memory, context switches.
//!
//! It owns the reading of /proc and the ending of processes by number. It must never start one, and never end
//! one by name.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Processor time of a process tree at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    /// Time on a CPU in ns, by thread number.
    threads_ns: BTreeMap<u32, u64>,
    /// Ticks of 10 ms, by process number, threads that have ended included.
    processes_ticks: BTreeMap<u32, u64>,
}

/// Length of one tick of /proc/PID/stat: USER_HZ is 100 on every architecture we build for.
const TICK_NS: u64 = 10_000_000;

impl Usage {
    /// Reads the usage of a process and its descendants.
    pub(super) fn of(root: u32) -> Self {
        let mut usage = Self::default();
        for process in descendants(root) {
            for thread in threads(process) {
                if let Some(on_cpu_ns) = schedule_number(process, thread, 0) {
                    usage.threads_ns.insert(thread, on_cpu_ns);
                }
            }
            usage.processes_ticks.insert(process, process_ticks(process).unwrap_or(0));
        }
        usage
    }

    /// Processor time spent since an earlier reading, in ns. It is the sum over threads, exact to the ns. If
    /// a thread has ended in between its time is gone from there, so the coarser sum over processes is used.
    pub(super) fn since_ns(&self, before: &Self) -> u64 {
        let spent = |now: &BTreeMap<u32, u64>, then: &BTreeMap<u32, u64>| -> u64 {
            now.iter()
                .map(|(number, value)| value.saturating_sub(then.get(number).copied().unwrap_or(0)))
                .sum()
        };
        let by_threads_ns = spent(&self.threads_ns, &before.threads_ns);
        if before.threads_ns.keys().all(|thread| self.threads_ns.contains_key(thread)) {
            return by_threads_ns;
        }
        by_threads_ns.max(spent(&self.processes_ticks, &before.processes_ticks) * TICK_NS)
    }
}

/// Memory of a process tree, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessMemory {
    /// Resident memory.
    pub(super) resident_bytes: u64,
    /// Resident memory that belongs to no file.
    pub(super) anonymous_bytes: u64,
    /// The most resident memory there ever was.
    pub(super) peak_bytes: u64,
}

impl ProcessMemory {
    /// Reads the memory of a process and its descendants.
    pub(super) fn of(root: u32) -> Self {
        let mut sum = Self::default();
        for process in descendants(root) {
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            sum.resident_bytes += status_number(&status, "VmRSS:") * 1024;
            sum.anonymous_bytes += status_number(&status, "RssAnon:") * 1024;
            sum.peak_bytes += status_number(&status, "VmHWM:") * 1024;
        }
        sum
    }
}

/// Memory of a process tree that is private and dirty: what would be free without it, in bytes.
pub(super) fn private_dirty_bytes(root: u32) -> u64 {
    let rollup =
        |process: &u32| fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    descendants(root).iter().map(|process| status_number(&rollup(process), "Private_Dirty:") * 1024).sum()
}

/// Mean of the last third of the samples of resident memory, as a share of the mean of the middle one: in the
/// first one every thread comes to its own memory. `None` of fewer than three samples.
pub(super) fn growth(resident_bytes: &[u64]) -> Option<f64> {
    let third = resident_bytes.len() / 3;
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
    let (middle, last) = (third, resident_bytes.len() - third);
    (third > 0).then(|| mean(&resident_bytes[last..]) / mean(&resident_bytes[middle..2 * third]))
}

/// Context switches of all threads of a process tree: each is a wake-up or a preemption.
pub(super) fn context_switches(root: u32) -> u64 {
    let mut sum = 0;
    for process in descendants(root) {
        for thread in threads(process) {
            let status =
                fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).unwrap_or_default();
            sum += status_number(&status, "voluntary_ctxt_switches:");
            sum += status_number(&status, "nonvoluntary_ctxt_switches:");
        }
    }
    sum
}

/// How long the threads of a process could have run and others had their CPU, in ns since they began.
pub(super) fn waited_ns(process: u32) -> u64 {
    threads(process).into_iter().filter_map(|thread| schedule_number(process, thread, 1)).sum()
}

/// The process and everything it started, parents first.
pub(super) fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let process = found[next];
        for thread in threads(process) {
            let path = format!("/proc/{process}/task/{thread}/children");
            let children = fs::read_to_string(path).unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|number| number.parse::<u32>().ok()));
        }
        next += 1;
    }
    found
}

/// Asks processes to end, and after two seconds makes them.
pub(super) fn end(processes: &[u32]) {
    signal("-TERM", processes);
    let started = Instant::now();
    while processes.iter().any(|process| is_running(*process)) {
        if started.elapsed() > Duration::from_secs(2) {
            signal("-KILL", processes);
            return;
        }
        sleep(Duration::from_millis(5));
    }
}

/// Collects a child that has ended or is about to. One that no signal ends is left alone after ten seconds:
/// who waits for it would hang.
pub(super) fn collect(child: &mut Child) {
    let began = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if began.elapsed() > Duration::from_secs(10) {
            eprintln!("warning: process {} does not end, and is left behind", child.id());
            return;
        }
        sleep(Duration::from_millis(5));
    }
}

/// Takes their real-time priority from processes and all their threads.
pub(super) fn make_ordinary(processes: &[u32]) {
    for process in processes {
        // A process that has ended has no priority: then the command fails, and that is no loss.
        let _ = Command::new("chrt")
            .args(["--all-tasks", "--other", "--pid", "0", &process.to_string()])
            .output();
    }
}

/// Whether the process exists and has not ended (one that only waits to be collected has).
pub(super) fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !matches!(after_name(&stat).next(), Some("Z" | "X"))
}

/// Sends a signal, as `kill` names it, to those that run.
pub(super) fn signal(name: &str, processes: &[u32]) {
    for process in processes.iter().filter(|process| is_running(**process)) {
        // A process that ends between the look and the signal is no error.
        let _ = Command::new("kill").arg(name).arg(process.to_string()).output();
    }
}

fn threads(process: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Processor time of one process in ns, threads that have ended and children that it waited for included; to
/// the tick. Still there when the process has ended and was not collected.
pub(super) fn spent_ns(process: u32) -> Option<u64> {
    ticks(process, 4).map(|ticks| ticks * TICK_NS)
}

fn process_ticks(process: u32) -> Option<u64> {
    ticks(process, 2)
}

/// The sum of so many times: user, system, and of children that were waited for user, system.
fn ticks(process: u32, count: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    after_name(&stat).skip(11).take(count).map(|field| field.parse::<u64>().ok()).sum()
}

/// The fields of a stat line behind the name, which may hold blanks and parentheses.
fn after_name(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace()
}

/// A number of a thread's schedstat: 0 is its time on a CPU, 1 its time waiting for one, both in ns.
fn schedule_number(process: u32, thread: u32, index: usize) -> Option<u64> {
    let numbers = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    numbers.split_ascii_whitespace().nth(index)?.parse().ok()
}

/// The number of a line of a status file; 0 when there is no such line.
fn status_number(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_seen() {
        let own = std::process::id();
        let before = Usage::of(own);
        let spun: u64 = (0..20_000_000_u64).fold(0, |sum, number| sum ^ std::hint::black_box(number));
        assert!(Usage::of(own).since_ns(&before) > 0, "{spun}");
        assert!(ProcessMemory::of(own).resident_bytes > 100_000);
        assert!(private_dirty_bytes(own) > 10_000);
        assert!(is_running(own) && waited_ns(own) > 0);
    }

    #[test]
    fn memory_that_grows_is_seen() {
        assert_eq!(growth(&[1, 1, 100, 100, 110, 110]), Some(1.1));
        assert_eq!(growth(&[1, 2]), None);
    }

    #[test]
    fn status_lines_are_told_apart() {
        let status =
            "Name:\tx\nVmHWM:\t  20 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(status_number(status, "voluntary_ctxt_switches:"), 7);
        assert_eq!(status_number(status, "nonvoluntary_ctxt_switches:"), 9);
        assert_eq!(status_number(status, "VmRSS:"), 0);
    }

    #[test]
    fn a_name_with_parentheses_is_skipped() {
        assert_eq!(after_name("12 (a) b)) S 1 2").next(), Some("S"));
    }

    #[test]
    fn a_vanished_thread_falls_back_to_ticks() {
        let usage = |threads: &[(u32, u64)], ticks: u64| Usage {
            threads_ns: threads.iter().copied().collect(),
            processes_ticks: [(1, ticks)].into_iter().collect(),
        };
        let before = usage(&[(1, 100), (2, 50)], 10);
        assert_eq!(usage(&[(1, 150), (2, 60), (3, 5)], 11).since_ns(&before), 65);
        assert_eq!(usage(&[(1, 150)], 12).since_ns(&before), 2 * TICK_NS);
    }
}

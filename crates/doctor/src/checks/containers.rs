//! Limits of the control group this process is in: those of a container or of a unit.
//!
//! It must never look at the groups of others. The tightest of all groups above counts.

use std::path::Path;

use crate::check::{Check, Judge, Verdict};
use crate::host::Host;
use crate::limits::{CONTAINER_MEMORY_BYTES, CONTAINER_PIDS_MIN, FILLED_PERCENT_MAX};

const CGROUP: &str = "Documentation/admin-guide/cgroup-v2.rst";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "cgroup memory.max",
        rule: "no limit, or at least 64 MiB and less than 80 % used",
        reason: "Beyond it the kernel ends a process of the group. Prepared content (--cache-size), \
                 sockets and page cache all count.",
        source: CGROUP,
        judge: Judge::Host(memory),
    },
    Check {
        name: "cgroup cpu.max",
        rule: "no limit, or as many whole processors as workers",
        reason: "A quota lets all workers run, then stops all of them for the rest of each tenth of a \
                 second: latency nobody can explain. As many workers as processors are paid for share it \
                 better.",
        source: CGROUP,
        judge: Judge::Host(quota),
    },
    Check {
        name: "cgroup pids.max",
        rule: "at least 64",
        reason: "Processes and threads of the group. Workers and the threads that prepare content need \
                 some dozens.",
        source: CGROUP,
        judge: Judge::Host(|host| match tightest(host, "pids.max") {
            None => Verdict::not_here(),
            Some((value, _)) if value < CONTAINER_PIDS_MIN => {
                Verdict::matters(value, format!("at least {CONTAINER_PIDS_MIN}"))
            }
            Some((value, _)) => Verdict::ok(value),
        }),
    },
];

/// The group's folders from the process's own upwards. Empty without cgroup v2.
fn folders(host: &Host) -> Vec<String> {
    const TOP: &str = "sys/fs/cgroup";
    let text = host.text("proc/self/cgroup").unwrap_or_default();
    let Some(own) = text.lines().find_map(|line| line.strip_prefix("0::")) else { return Vec::new() };
    let own = Path::new(own.trim_start_matches('/'));
    own.ancestors().map(|group| format!("{TOP}/{}", group.display())).collect()
}

/// The least number in files of this name, and the folder it stands in.
fn tightest(host: &Host, file: &str) -> Option<(u64, String)> {
    let limits = folders(host).into_iter().filter_map(|folder| {
        let value = host.text(&format!("{folder}/{file}"))?.split(' ').next()?.parse().ok()?;
        Some((value, folder))
    });
    limits.min()
}

fn memory(host: &Host) -> Verdict {
    let Some((limit, folder)) = tightest(host, "memory.max") else { return Verdict::not_here() };
    let used = host.number(&format!("{folder}/memory.current")).unwrap_or(0);
    let value = format!("{} MiB, {} MiB used", limit >> 20, used >> 20);
    if limit < CONTAINER_MEMORY_BYTES {
        Verdict::matters(value, "at least 64 MiB, and --cache-size well below")
    } else if used.saturating_mul(100) >= limit.saturating_mul(FILLED_PERCENT_MAX) {
        Verdict::advise(value, "raise it, or lower --cache-size").because(
            "Nearly reached. Page cache counts as used and is given back, so look at memory.stat before \
             worrying.",
        )
    } else {
        Verdict::ok(value)
    }
}

fn quota(host: &Host) -> Verdict {
    let quotas = folders(host).into_iter().filter_map(|folder| {
        let text = host.text(&format!("{folder}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        // In hundredths of a processor.
        quota.parse::<u64>().ok()?.saturating_mul(100).checked_div(period.parse().ok()?)
    });
    let Some(least) = quotas.min() else { return Verdict::not_here() };
    let value = format!("{}.{:02} processors", least / 100, least % 100);
    if least >= 100 * host.processors().len() as u64 {
        return Verdict::ok(value);
    }
    Verdict::advise(value, format!("--workers {}, or no quota", (least / 100).max(1)))
}

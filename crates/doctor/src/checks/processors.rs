//! Processors, their clock, their speed and their tick.
//!
//! It must never advise to switch a mitigation off, however much it costs.

use crate::check::{Check, Judge, Verdict};
use crate::host::Host;
use crate::limits::STEAL_PERCENT_MAX;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "clocksource",
        rule: "tsc, kvm-clock, hyperv or arch_sys_counter",
        reason: "Reading the time from one of these costs 20 ns and no system call. hpet and acpi_pm cost \
                 a microsecond and a lock, for every timer and every packet with a stamp.",
        source: "Documentation/timers/timekeeping.rst",
        judge: Judge::Host(clocksource),
    },
    Check {
        name: "CPU governor",
        rule: "performance or schedutil",
        reason: "powersave holds an old driver at its lowest frequency, and makes others slow to rise in a \
                 burst.",
        source: "Documentation/admin-guide/pm/cpufreq.rst",
        judge: Judge::Host(governor),
    },
    Check {
        name: "tick",
        rule: "without nohz=off and highres=off",
        reason: "An idle processor needs no tick, and deadlines in milliseconds need timers of high \
                 resolution.",
        source: "Documentation/timers/no_hz.rst",
        judge: Judge::Host(tick),
    },
    Check {
        name: "steal",
        rule: "below 5 %",
        reason: "Processor time the hypervisor gave to others, since start. It shows as latency that no \
                 setting cures.",
        source: "proc_stat(5)",
        judge: Judge::Host(steal),
    },
    Check {
        name: "processors of this process",
        rule: "all that are on",
        reason: "The server runs a worker on each it is allowed. A mask by taskset or a container is \
                 respected.",
        source: "sched_setaffinity(2)",
        judge: Judge::Host(allowed),
    },
    Check {
        name: "NUMA nodes",
        rule: "one; else workers and card on the same",
        reason: "Memory of another node is further away. Where there are several, --cpus with those of the \
                 network card's node (/sys/class/net/NAME/device/numa_node) keeps packets near.",
        source: "Documentation/admin-guide/mm/numa_memory_policy.rst",
        judge: Judge::Host(nodes),
    },
    Check {
        name: "mitigations",
        rule: "on",
        reason: "Guards against Spectre and its kin cost a server of small answers noticeably. They stay \
                 on: a server talks to everybody.",
        source: "Documentation/admin-guide/hw-vuln/index.rst",
        judge: Judge::Host(|host| {
            if host.booted_with("mitigations=off") {
                Verdict::advise("off", "on: remove mitigations=off from the kernel's command line")
            } else {
                Verdict::ok("on")
            }
        }),
    },
];

fn clocksource(host: &Host) -> Verdict {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let Some(current) = host.text(&format!("{FOLDER}/current_clocksource")) else {
        return Verdict::not_here();
    };
    let available = host.text(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let is_fast = |name: &str| {
        matches!(name, "tsc" | "kvm-clock" | "arch_sys_counter" | "xen") || name.starts_with("hyperv")
    };
    match available.split(' ').find(|name| is_fast(name)) {
        _ if is_fast(&current) => Verdict::ok(current),
        Some(better) => Verdict::matters(current, format!("{better}: echo it to current_clocksource")),
        None => Verdict::matters(current, "none better here: ask the kernel's log why tsc was given up"),
    }
}

fn governor(host: &Host) -> Verdict {
    let governors: Vec<String> = host
        .processors()
        .iter()
        .filter_map(|cpu| host.text(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    let Some(first) = governors.first() else { return Verdict::not_here() };
    match governors.iter().find(|name| !matches!(&name[..], "performance" | "schedutil")) {
        None => Verdict::ok(first),
        Some(slow) => Verdict::advise(slow, "performance"),
    }
}

fn tick(host: &Host) -> Verdict {
    if host.text("proc/cmdline").is_none() {
        return Verdict::not_here();
    }
    match ["nohz=off", "highres=off"].iter().find(|word| host.booted_with(word)) {
        None => Verdict::ok("on demand"),
        Some(word) => Verdict::advise(word, "remove it from the kernel's command line"),
    }
}

fn steal(host: &Host) -> Verdict {
    let Some(text) = host.text("proc/stat") else { return Verdict::not_here() };
    let line = text.lines().next().unwrap_or_default();
    let times: Vec<u64> =
        line.split_whitespace().skip(1).take(8).filter_map(|part| part.parse().ok()).collect();
    let (all, Some(stolen)) =
        (times.iter().fold(1, |sum: u64, time| sum.saturating_add(*time)), times.get(7))
    else {
        return Verdict::unknown("no such column");
    };
    let percent = stolen.saturating_mul(100) / all;
    if percent < STEAL_PERCENT_MAX {
        Verdict::ok(format!("{percent} %"))
    } else {
        Verdict::advise(format!("{percent} %"), "another host, or fewer neighbours")
    }
}

fn allowed(host: &Host) -> Verdict {
    let Some(list) = host.field("proc/self/status", "Cpus_allowed_list") else { return Verdict::not_here() };
    let (some, all) = (crate::host::numbers_of_list(&list).len(), host.processors().len());
    if some >= all {
        Verdict::ok(format!("all {all}"))
    } else {
        Verdict::ok(format!("{some} of {all} ({list})"))
    }
}

fn nodes(host: &Host) -> Verdict {
    let Some(list) = host.text("sys/devices/system/node/online") else { return Verdict::not_here() };
    match crate::host::numbers_of_list(&list).len() {
        1 => Verdict::ok(1),
        count => Verdict::advise(count, "--cpus with those of the card's node"),
    }
}

//! What the server's engines and the gate need of the kernel: io_uring and BPF.
//!
//! It must never advise to lift what blocks them: whoever set it had reasons, and epoll serves as well.

use crate::check::{Check, Judge, Verdict};
use crate::host::{Host, NicRing};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "io_uring",
        rule: "tried by doing; epoll serves where it does not work",
        reason: "The way to the network that costs least with many connections. Where a setting or a \
                 filter keeps it away the server takes epoll by itself, with the same behaviour.",
        source: "io_uring(7); docs/operations.md",
        judge: Judge::Host(ring),
    },
    Check {
        name: "kernel.io_uring_disabled",
        rule: "any value",
        reason: "0 lets everybody use io_uring, 1 only a group (kernel.io_uring_group) and privileged \
                 processes, 2 nobody. A strict value is a decision for safety, and stays.",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        judge: Judge::Host(ring_setting),
    },
    Check {
        name: "seccomp of this process",
        rule: "any value",
        reason: "A filter for system calls, as containers have one. Many forbid io_uring and BPF; the \
                 filter stays.",
        source: "Documentation/userspace-api/seccomp_filter.rst",
        judge: Judge::Host(|host| match host.field("proc/self/status", "Seccomp").as_deref() {
            None => Verdict::not_here(),
            Some("0") => Verdict::ok("none"),
            Some("1") => Verdict::ok("strict"),
            Some("2") => Verdict::ok("a filter"),
            Some(other) => Verdict::unknown(other),
        }),
    },
    Check {
        name: "CAP_BPF and CAP_NET_ADMIN",
        rule: "both, for the process that loads a gate before the server",
        reason: "Loading a program for the network card takes both (or CAP_SYS_ADMIN before Linux 5.8). \
                 The server itself needs neither and should not have them.",
        source: "capabilities(7)",
        judge: Judge::Host(capabilities),
    },
    Check {
        name: "kernel.unprivileged_bpf_disabled",
        rule: "1 or 2",
        reason: "Without it every user may load BPF programs, a way by which several attacks went. Nothing \
                 of the server needs that.",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        judge: Judge::Host(|host| match host.sysctl_number("kernel.unprivileged_bpf_disabled") {
            None => Verdict::not_here(),
            Some(0) => Verdict::advise(0, 2),
            Some(value) => Verdict::ok(value),
        }),
    },
    Check {
        name: "net.core.bpf_jit_enable",
        rule: "1",
        reason: "Compiles BPF programs to machine code. Interpreted, a gate costs several times as much a \
                 packet.",
        source: "Documentation/admin-guide/sysctl/net.rst",
        judge: Judge::Host(|host| match host.sysctl_number("net.core.bpf_jit_enable") {
            None => Verdict::not_here(),
            Some(0) => Verdict::advise(0, 1),
            Some(value) => Verdict::ok(value),
        }),
    },
    Check {
        name: "BTF of the kernel",
        rule: "there",
        reason: "Types of the kernel, by which a BPF program fits itself to it. Programs that look at \
                 packets alone do without.",
        source: "Documentation/bpf/btf.rst",
        judge: Judge::Host(|host| {
            if host.exists("sys/kernel/btf/vmlinux") { Verdict::ok("there") } else { Verdict::not_here() }
        }),
    },
];

fn ring(host: &Host) -> Verdict {
    match host.ring() {
        NicRing::Works(what) => Verdict::ok("works").because(what),
        NicRing::Refused(why) => Verdict::ok("blocked; epoll serves").because(why),
        NicRing::Untried => Verdict::unknown("not tried"),
    }
}

fn ring_setting(host: &Host) -> Verdict {
    match host.sysctl_number("kernel.io_uring_disabled") {
        None => Verdict::not_here(),
        Some(0) => Verdict::ok(0),
        Some(value) => Verdict::ok(format!("{value} (epoll serves)")),
    }
}

fn capabilities(host: &Host) -> Verdict {
    let Some(text) = host.field("proc/self/status", "CapEff") else { return Verdict::not_here() };
    let Ok(bits) = u64::from_str_radix(&text, 16) else { return Verdict::unknown(text) };
    let has = |bit: u32| bits >> bit & 1 == 1;
    let names = [("CAP_NET_ADMIN", has(12)), ("CAP_BPF", has(39))];
    let missing: Vec<&str> = names.iter().filter(|(_, here)| !here).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        Verdict::ok("both")
    } else {
        Verdict::ok(format!("without {}", missing.join(", ")))
    }
}

//! The end of connections: TIME-WAIT, FIN-WAIT-2 and orphans.
//!
//! It must never advise what shortens TIME-WAIT: it is 60 s by design of the kernel, and costs little.

use super::sources::IP_SYSCTL;
use crate::check::{Check, Judge, Verdict, Wanted};
use crate::host::Host;
use crate::limits::FILLED_PERCENT_MAX;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "net.ipv4.tcp_tw_reuse",
        rule: "0, 1 or 2",
        reason: "Lets new connections that this host opens take a port from TIME-WAIT. It does nothing for \
                 accepted ones, so for a server every value is right; 2 (loopback only) is the default \
                 since Linux 4.19.",
        source: "Documentation/networking/ip-sysctl.rst; Yang 2008 sets 1",
        judge: Judge::Number(|_| Wanted::within(0, 2)),
    },
    Check {
        name: "net.ipv4.tcp_max_tw_buckets",
        rule: "one for each 16 KiB of memory, from 65536 to 262144",
        reason: "Most sockets in TIME-WAIT; beyond it they are forgotten at once, with a line in the \
                 kernel's log. Each takes about 250 bytes.",
        source: "Documentation/networking/ip-sysctl.rst; Yang 2008 has 180000",
        // Above a quarter of a million the look-up, not the memory, becomes the cost.
        judge: Judge::Number(|host| Wanted::at_least(host.connections().min(262_144))),
    },
    Check {
        name: "TIME-WAIT in use",
        rule: "below 80 % of tcp_max_tw_buckets",
        reason: "Sockets in TIME-WAIT now. Many of them mean that connections are closed by this side \
                 after each request: keep-alive is the cure, not another setting.",
        source: "/proc/net/sockstat",
        judge: Judge::Host(waiting),
    },
    Check {
        name: "net.ipv4.tcp_fin_timeout",
        rule: "15 to 60",
        reason: "Seconds in which a connection closed by us waits for the other side's FIN. It is not the \
                 length of TIME-WAIT, as many pages say.",
        source: IP_SYSCTL,
        judge: Judge::Number(|_| Wanted::within(15, 60)),
    },
    Check {
        name: "net.ipv4.tcp_max_orphans",
        rule: "at least 16384, and no more than one for each 16 KiB of memory",
        reason: "Connections no process holds any more, with data still to be delivered. Each may hold 64 \
                 KiB of the kernel's memory: Yang says himself that his 3276800 is best not copied.",
        source: "Documentation/networking/ip-sysctl.rst; Yang 2008",
        judge: Judge::Number(|host| {
            // A last answer is an orphan until the client has it; a burst of short connections makes many.
            let least = 16_384;
            Wanted::within(least, (host.memory_bytes() / (16 << 10)).max(least))
        }),
    },
    Check {
        name: "net.ipv4.tcp_timestamps",
        rule: "1",
        reason: "Yang's 0 saved 12 bytes a segment. Today PAWS, the measure of round trips, SYN cookies \
                 with options and tcp_tw_reuse need it, and since Linux 4.10 it no longer tells how long \
                 the host is up.",
        source: "Documentation/networking/ip-sysctl.rst; RFC 7323; Yang 2008 sets 0",
        judge: Judge::Sysctl(timestamps),
    },
];

fn waiting(host: &Host) -> Verdict {
    let Some(waiting) = host.tcp_sockets("tw") else { return Verdict::not_here() };
    match host.sysctl_number("net.ipv4.tcp_max_tw_buckets") {
        Some(most) if waiting.saturating_mul(100) >= most.saturating_mul(FILLED_PERCENT_MAX) => {
            Verdict::advise(format!("{waiting} of {most}"), "keep connections alive; then raise the limit")
        }
        _ => Verdict::ok(waiting),
    }
}

fn timestamps(host: &Host) -> Verdict {
    match host.sysctl_number("net.ipv4.tcp_timestamps") {
        None => Verdict::not_here(),
        Some(0) if host.kernel() < Some((4, 10)) => Verdict::advise(0, 1).because(
            "Needed by PAWS and SYN cookies, but on this old kernel timestamps tell how long the host is \
             up: decide which weighs more.",
        ),
        Some(0) => Verdict::advise(0, 1).settable(),
        Some(value) => Verdict::ok(value),
    }
}

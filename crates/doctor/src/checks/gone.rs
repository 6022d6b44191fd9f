//! Settings that old guides name and the kernel no longer has, or has without effect.
//!
//! It must never advise to bring one back.

use crate::check::{Check, Judge, Verdict};
use crate::host::{Host, sysctl_path};

macro_rules! gone {
    ($name:literal, $reason:literal, $source:literal, $judge:expr) => {
        Check { name: $name, rule: "not set", reason: $reason, source: $source, judge: $judge }
    };
}

pub(super) const CHECKS: &[Check] = &[
    gone!(
        "net.ipv4.tcp_tw_recycle",
        "Ended TIME-WAIT early by comparing the timestamps of one address. Behind one address stand many \
         clients, whose connections were refused by it. Removed in Linux 4.12.",
        "kernel commit 4396e46187ca; Yang 2008 sets 1",
        Judge::Sysctl(recycling)
    ),
    gone!(
        "net.ipv4.tcp_tw_len",
        "Length of TIME-WAIT, from a vendor's patch. Linux never had it: TIME-WAIT is 60 s, fixed when the \
         kernel is compiled.",
        "include/net/tcp.h (TCP_TIMEWAIT_LEN); Yang 2008 has it as a comment",
        Judge::Host(|host| without_effect(host, "net.ipv4.tcp_tw_len"))
    ),
    gone!(
        "net.ipv4.tcp_vegas_cong_avoid",
        "Chose Vegas. Since Linux 2.6.13 tcp_congestion_control names the algorithm; Vegas loses against \
         all others.",
        "tcp(7)",
        Judge::Host(|host| without_effect(host, "net.ipv4.tcp_vegas_cong_avoid"))
    ),
    gone!(
        "net.ipv4.tcp_westwood",
        "Chose Westwood+. Since Linux 2.6.13 tcp_congestion_control names the algorithm.",
        "tcp(7)",
        Judge::Host(|host| without_effect(host, "net.ipv4.tcp_westwood"))
    ),
    gone!(
        "net.ipv4.tcp_bic",
        "Chose BIC. Since Linux 2.6.13 tcp_congestion_control names the algorithm; cubic took its place.",
        "tcp(7)",
        Judge::Host(|host| without_effect(host, "net.ipv4.tcp_bic"))
    ),
    gone!(
        "net.ipv4.tcp_low_latency",
        "Passed over a queue that Linux 4.14 removed. It is still there and does nothing.",
        "tcp(7)",
        Judge::Host(|host| without_effect(host, "net.ipv4.tcp_low_latency"))
    ),
    gone!(
        "net.ipv4.tcp_fack",
        "Forward acknowledgement, replaced by RACK in Linux 4.15. It is still there and does nothing.",
        "Documentation/networking/ip-sysctl.rst",
        Judge::Host(|host| without_effect(host, "net.ipv4.tcp_fack"))
    ),
    gone!(
        "vm.lower_zone_protection",
        "Kept low memory of 32-bit kernels free, whose lack killed Yang's server at 125000 connections. \
         Replaced by vm.lowmem_reserve_ratio; 64-bit kernels do not know the trouble.",
        "Documentation/admin-guide/sysctl/vm.rst; Yang 2008",
        Judge::Host(|host| without_effect(host, "vm.lower_zone_protection"))
    ),
    gone!(
        "net.ipv4.ip_conntrack_max",
        "The size of the table of connections before Linux 2.6.20; today net.netfilter.nf_conntrack_max.",
        "Documentation/networking/nf_conntrack-sysctl.rst",
        Judge::Host(|host| without_effect(host, "net.ipv4.ip_conntrack_max"))
    ),
];

fn recycling(host: &Host) -> Verdict {
    match host.sysctl_number("net.ipv4.tcp_tw_recycle") {
        None => Verdict::not_here(),
        Some(0) => Verdict::ok(0),
        Some(value) => Verdict::matters(value, 0).settable(),
    }
}

/// Whether the setting is there does not matter: it does nothing, or only on kernels too old for the server.
fn without_effect(host: &Host, name: &str) -> Verdict {
    if !host.exists(&sysctl_path(name)) {
        return Verdict::not_here();
    }
    Verdict::ok(host.sysctl(name).unwrap_or_default())
}

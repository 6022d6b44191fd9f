//! What has gone wrong since the host was started, by the kernel's own counters.
//!
//! It must never be read as the present: counters only grow. Look twice.

use super::sources::NET_SYSCTL;
use crate::check::{Check, Judge, Verdict};
use crate::host::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "TcpExt.ListenOverflows",
        rule: "never",
        reason: "A handshake was complete and the queue of its listener full. The program accepts too \
                 slowly, or the backlog (net.core.somaxconn) is too short.",
        source: "Documentation/networking/snmp_counter.rst",
        judge: Judge::Host(|host| {
            tcp_event(host, "ListenOverflows", "look at net.core.somaxconn and at the load")
        }),
    },
    Check {
        name: "TcpExt.TCPReqQFullDrop",
        rule: "never",
        reason: "A SYN was dropped because too many handshakes were half done and cookies were off.",
        source: "Documentation/networking/snmp_counter.rst",
        judge: Judge::Host(|host| tcp_event(host, "TCPReqQFullDrop", "net.ipv4.tcp_syncookies = 1")),
    },
    Check {
        name: "TcpExt.TCPTimeWaitOverflow",
        rule: "never",
        reason: "A socket could not go into TIME-WAIT because tcp_max_tw_buckets was reached.",
        source: "Documentation/networking/snmp_counter.rst",
        judge: Judge::Host(|host| tcp_event(host, "TCPTimeWaitOverflow", "look at tcp_max_tw_buckets")),
    },
    Check {
        name: "TcpExt.TCPMemoryPressures",
        rule: "never",
        reason: "TCP as a whole had more memory than the second number of tcp_mem, and began to save.",
        source: "Documentation/networking/snmp_counter.rst",
        judge: Judge::Host(|host| {
            tcp_event(host, "TCPMemoryPressures", "more memory, or fewer slow readers")
        }),
    },
    Check {
        name: "TcpExt.TCPAbortOnMemory",
        rule: "never",
        reason: "A connection was ended because TCP or the table of orphans had no room for it.",
        source: "Documentation/networking/snmp_counter.rst",
        judge: Judge::Host(|host| tcp_event(host, "TCPAbortOnMemory", "look at tcp_mem and tcp_max_orphans")),
    },
    Check {
        name: "softnet drops",
        rule: "never",
        reason: "Packets dropped because a processor's queue (net.core.netdev_max_backlog) was full.",
        source: NET_SYSCTL,
        judge: Judge::Host(|host| {
            Verdict::happened(packets_dropped(host), "look at net.core.netdev_max_backlog")
        }),
    },
];

fn tcp_event(host: &Host, name: &str, advice: &str) -> Verdict {
    Verdict::happened(host.network_count("proc/net/netstat", "TcpExt", name), advice)
}

/// Packets that all processors together have dropped: the second column, hexadecimal.
pub(super) fn packets_dropped(host: &Host) -> Option<u64> {
    let text = host.text("proc/net/softnet_stat")?;
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().map(dropped).try_fold(0, |sum: u64, count| Some(sum.saturating_add(count?)))
}

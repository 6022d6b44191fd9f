//! Buffers of TCP and what decides how fast they are emptied.
//!
//! It must never advise more memory for TCP than the host has, whatever a guide says.

use super::sources::{IP_SYSCTL, NET_SYSCTL};
use crate::check::{Check, Judge, Verdict, Wanted};
use crate::host::Host;
use crate::limits::{FIRST_BUFFER_BYTES_MAX, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "net.ipv4.tcp_wmem",
        rule: "most at least 4 MiB, first at most 256 KiB",
        reason: "Least, first and greatest send buffer of a connection, in bytes. The kernel grows it as \
                 the line allows; 4 MiB fill 100 Mbit/s over 300 ms.",
        source: "tcp(7); Yang 2008 has 4096 16384 4194304",
        judge: Judge::Sysctl(|host| buffer(host, "net.ipv4.tcp_wmem", SEND_BUFFER_BYTES)),
    },
    Check {
        name: "net.ipv4.tcp_rmem",
        rule: "most at least 1 MiB, first at most 256 KiB",
        reason: "Least, first and greatest receive buffer of a connection, in bytes. Requests are small, \
                 so a server hardly needs it to grow.",
        source: "tcp(7); Yang 2008 has 4096 87380 4194304",
        judge: Judge::Sysctl(|host| buffer(host, "net.ipv4.tcp_rmem", RECEIVE_BUFFER_BYTES)),
    },
    Check {
        name: "net.ipv4.tcp_mem",
        rule: "as the kernel worked it out from memory: the second number below all pages of memory",
        reason: "Pages of memory for TCP as a whole: quiet below the first, saving above the second, none \
                 beyond the third. Yang's 94500000 915000000 927000000 are 3.5 TB: the host would run out \
                 of memory before TCP began to save.",
        source: "tcp(7); Yang 2008",
        judge: Judge::Sysctl(all_memory),
    },
    Check {
        name: "net.core.rmem_default",
        rule: "at most 1 MiB",
        reason: "First receive buffer of sockets that are not TCP. TCP takes tcp_rmem, so Yang's 8388608 \
                 did nothing for a web server, and costs every other socket.",
        source: "Documentation/admin-guide/sysctl/net.rst; socket(7); Yang 2008 sets 8388608",
        judge: Judge::Sysctl(|host| first_of_others(host, "net.core.rmem_default")),
    },
    Check {
        name: "net.core.wmem_default",
        rule: "at most 1 MiB",
        reason: "First send buffer of sockets that are not TCP. TCP takes tcp_wmem, so Yang's 8388608 did \
                 nothing for a web server, and costs every other socket.",
        source: "Documentation/admin-guide/sysctl/net.rst; socket(7); Yang 2008 sets 8388608",
        judge: Judge::Sysctl(|host| first_of_others(host, "net.core.wmem_default")),
    },
    Check {
        name: "net.core.rmem_max",
        rule: "at least 212992",
        reason: "Bounds what a program may ask for by SO_RCVBUF. The server asks for nothing, and what the \
                 kernel grows by itself is bounded by tcp_rmem.",
        source: "socket(7); Yang 2008 sets 16777216",
        judge: Judge::Number(|_| Wanted::at_least(212_992)),
    },
    Check {
        name: "net.core.wmem_max",
        rule: "at least 212992",
        reason: "Bounds what a program may ask for by SO_SNDBUF. The server asks for nothing, and what the \
                 kernel grows by itself is bounded by tcp_wmem.",
        source: "socket(7); Yang 2008 sets 16777216",
        judge: Judge::Number(|_| Wanted::at_least(212_992)),
    },
    Check {
        name: "net.ipv4.tcp_moderate_rcvbuf",
        rule: "1",
        reason: "The kernel fits each receive buffer to its connection. Without it all have the first size \
                 for ever.",
        source: IP_SYSCTL,
        judge: Judge::Number(|_| Wanted::within(1, 1)),
    },
    Check {
        name: "net.ipv4.tcp_window_scaling",
        rule: "1",
        reason: "Without it a connection has 64 KiB on its way at most: 5 Mbit/s over 100 ms.",
        source: "RFC 7323; Documentation/networking/ip-sysctl.rst; Yang 2008 has 1",
        judge: Judge::Number(|_| Wanted::within(1, 1).or_it_matters()),
    },
    Check {
        name: "net.ipv4.tcp_sack",
        rule: "1, on a kernel that is up to date",
        reason: "Says which segments are missing, so that only those are sent again. Who switched it off \
                 against CVE-2019-11477 updates the kernel first; --apply leaves it alone.",
        source: "RFC 2018; Documentation/networking/ip-sysctl.rst; Yang 2008 has 1",
        judge: Judge::Host(|host| match host.sysctl_number("net.ipv4.tcp_sack") {
            None => Verdict::not_here(),
            Some(0) => Verdict::advise(0, "1, after the kernel was updated"),
            Some(value) => Verdict::ok(value),
        }),
    },
    Check {
        name: "net.ipv4.tcp_congestion_control",
        rule: "cubic or bbr",
        reason: "How fast a connection dares to send. cubic is the default and good; bbr is better over \
                 lossy lines. reno and vegas are slow over long ones.",
        source: "tcp(7); RFC 9438",
        judge: Judge::Sysctl(congestion),
    },
    Check {
        name: "net.core.default_qdisc",
        rule: "fq or fq_codel; fq with bbr",
        reason: "How packets of many connections take turns on a card made from now on. bbr paces by \
                 itself where there is no fq, with a timer a connection.",
        source: NET_SYSCTL,
        judge: Judge::Host(turns),
    },
    Check {
        name: "net.ipv4.tcp_slow_start_after_idle",
        rule: "0",
        reason: "With 1 a connection that rested a moment begins slowly again. A kept connection asks \
                 every few seconds, so each answer would be the first.",
        source: IP_SYSCTL,
        judge: Judge::Number(|_| Wanted::within(0, 0)),
    },
    Check {
        name: "net.ipv4.tcp_notsent_lowat",
        rule: "at least 16384",
        reason: "Bytes that may wait in the kernel unsent. The default sets no bound, which is right for \
                 answers in order; a smaller one helps only where an urgent answer has to overtake.",
        source: IP_SYSCTL,
        // Below one segment of generic offload the sender is woken for every few packets.
        judge: Judge::Number(|_| Wanted::at_least(16_384)),
    },
];

fn buffer(host: &Host, name: &str, most: u64) -> Verdict {
    let Some(numbers) = host.sysctl_numbers(name) else { return Verdict::not_here() };
    let [least, first, greatest] = numbers[..] else { return Verdict::unknown("not three numbers") };
    let value = format!("{least} {first} {greatest}");
    let right = (least, first.min(FIRST_BUFFER_BYTES_MAX), greatest.max(most));
    if right == (least, first, greatest) {
        Verdict::ok(value)
    } else {
        Verdict::advise(value, format!("{} {} {}", right.0, right.1, right.2)).settable()
    }
}

fn all_memory(host: &Host) -> Verdict {
    let Some(numbers) = host.sysctl_numbers("net.ipv4.tcp_mem") else { return Verdict::not_here() };
    let [low, pressure, high] = numbers[..] else { return Verdict::unknown("not three numbers") };
    let pages = host.memory_pages();
    let used = host.tcp_sockets("mem").unwrap_or(0);
    let value = format!("{low} {pressure} {high}");
    if pressure >= pages {
        // As the kernel works it out: 4.68, 6.25 and 9.37 per cent of memory.
        let right = format!("{} {} {}", pages / 64 * 3, pages / 16, pages / 32 * 3);
        Verdict::matters(value, right).settable()
    } else if used >= pressure {
        Verdict::matters(
            format!("{value}, {used} in use"),
            "more memory, or fewer connections with slow readers",
        )
        .because(
            "TCP is saving memory now: buffers shrink, and beyond the third number segments are dropped.",
        )
    } else {
        Verdict::ok(value)
    }
}

fn first_of_others(host: &Host, name: &str) -> Verdict {
    match host.sysctl_number(name) {
        None => Verdict::not_here(),
        Some(value) if value > RECEIVE_BUFFER_BYTES => Verdict::advise(value, 212_992).settable(),
        Some(value) => Verdict::ok(value),
    }
}

fn congestion(host: &Host) -> Verdict {
    let Some(value) = host.sysctl("net.ipv4.tcp_congestion_control") else { return Verdict::not_here() };
    let available = host.sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    if matches!(&value[..], "cubic" | "bbr") {
        Verdict::ok(value)
    } else if available.split(' ').any(|name| name == "cubic") {
        Verdict::advise(value, "cubic").settable()
    } else {
        Verdict::advise(value, "cubic (load its module)")
    }
}

fn turns(host: &Host) -> Verdict {
    let Some(value) = host.sysctl("net.core.default_qdisc") else { return Verdict::not_here() };
    let bbr = host.sysctl("net.ipv4.tcp_congestion_control").as_deref() == Some("bbr");
    match &value[..] {
        "fq" => Verdict::ok(value),
        "fq_codel" | "cake" if !bbr => Verdict::ok(value),
        _ => Verdict::advise(value, if bbr { "fq" } else { "fq_codel" }),
    }
}

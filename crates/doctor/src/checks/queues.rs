//! Queues between the wire and accept: what a burst of new connections meets.
//!
//! The checks must never advise to switch SYN cookies off: with them clients still connect in a flood.

use std::net::SocketAddr;

use super::sources::{IP_SYSCTL, NET_SYSCTL};
use crate::check::{Check, Judge, Verdict, Wanted};
use crate::finding::State;
use crate::host::Host;
use crate::limits::{BACKLOG_COUNT, BACKLOG_COUNT_MIN, LISTENERS_NAMED, PLACES_ASIDE, PLACES_MIN};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "net.core.somaxconn",
        rule: "at least 4096; below 512 matters",
        reason: "Cuts down the backlog that a server asks listen(2) for; the server asks for 4096 a \
                 worker. When the queue is full the last segment of the handshake is dropped and the \
                 client waits a second or more.",
        source: "listen(2); Documentation/admin-guide/sysctl/net.rst; Yang 2008 sets 32768",
        judge: Judge::Number(|host| {
            let wanted = Wanted::at_least(BACKLOG_COUNT);
            match host.sysctl_number("net.core.somaxconn") {
                Some(value) if value < BACKLOG_COUNT_MIN => wanted.or_it_matters(),
                _ => wanted,
            }
        }),
    },
    Check {
        name: "backlogs of listeners",
        rule: "at least 128 places each; `staunch gate` stands aside before 16 or fewer",
        reason: "Connections that may wait for a program to accept them, as it asked listen(2) for and \
                 net.core.somaxconn allows. A short queue is full in a burst the program could have served; \
                 who finds it full waits a second or more. The program raises it: `request_queue_size` of \
                 Python's socketserver, the backlog of Java's ServerSocket and HttpServer and of node's \
                 listen, `--backlog` of gunicorn, `backlog=` of nginx's listen, ListenBacklog of Apache.",
        source: "listen(2); sock_diag(7); docs/gate.md",
        judge: Judge::Host(backlogs),
    },
    Check {
        name: "net.ipv4.tcp_max_syn_backlog",
        rule: "at least 4096, where SYN cookies are off",
        reason: "Handshakes half done that are remembered for one listener. Since Linux 4.4 the backlog of \
                 listen(2) limits them as well, and this one counts only where SYN cookies are off: it is \
                 not the setting that `must be changed` any more.",
        source: "Documentation/networking/ip-sysctl.rst; Yang 2008 sets 65536",
        judge: Judge::Number(|host| match host.sysctl_number("net.ipv4.tcp_syncookies") {
            Some(1..) => Wanted::at_least(0),
            Some(0) | None => Wanted::at_least(BACKLOG_COUNT),
        }),
    },
    Check {
        name: "net.ipv4.tcp_syncookies",
        rule: "1",
        reason: "Answers handshakes from a full queue without remembering them, so a SYN flood locks \
                 nobody out. Yang avoided it because it lost TCP's options; since Linux 2.6.26 they travel \
                 in the timestamps. 2 sends cookies always and is meant for tests.",
        source: IP_SYSCTL,
        judge: Judge::Number(|_| Wanted::within(1, 1).or_it_matters()),
    },
    Check {
        name: "net.ipv4.tcp_synack_retries",
        rule: "2 to 6",
        reason: "How often the answer to a SYN is repeated. Fewer free the queue sooner in a flood, but \
                 lose clients on bad lines; with SYN cookies the default of 5 is right. Yang took 2.",
        source: "Documentation/networking/ip-sysctl.rst; Yang 2008",
        judge: Judge::Number(|_| Wanted::within(2, 6)),
    },
    Check {
        name: "net.ipv4.tcp_syn_retries",
        rule: "2 to 6",
        reason: "How often our own SYN is repeated when this host connects. It does nothing for a server, \
                 nor against floods, as Yang says himself.",
        source: "Documentation/networking/ip-sysctl.rst; Yang 2008",
        judge: Judge::Number(|_| Wanted::within(2, 6)),
    },
    Check {
        name: "net.ipv4.tcp_abort_on_overflow",
        rule: "0",
        reason: "With 1 a full queue answers by a reset, so a burst that would have passed becomes errors.",
        source: IP_SYSCTL,
        judge: Judge::Number(|_| Wanted::within(0, 0)),
    },
    Check {
        name: "net.ipv4.tcp_migrate_req",
        rule: "1",
        reason: "When a listening socket is closed, connections that wait in its queue go to another \
                 listener of the same address instead of being reset (SO_REUSEPORT, since Linux 5.14).",
        source: IP_SYSCTL,
        judge: Judge::Number(|_| Wanted::within(1, 1)),
    },
    Check {
        name: "net.ipv4.tcp_fastopen",
        rule: "any value",
        reason: "Data in the SYN for clients that came before. The server does not ask for it, so it \
                 changes nothing here.",
        source: IP_SYSCTL,
        judge: Judge::Number(|_| Wanted::at_least(0)),
    },
    Check {
        name: "net.ipv4.ip_local_port_range",
        rule: "at least 20000 ports",
        reason: "Ports for connections that this host opens. A server that only accepts needs none; a load \
                 generator or a proxy has at most so many to one address.",
        source: IP_SYSCTL,
        judge: Judge::Sysctl(port_range),
    },
    Check {
        name: "net.core.netdev_max_backlog",
        rule: "at least 1000; 16384 where packets were dropped",
        reason: "Packets a processor has been handed (by RPS or a driver without NAPI) and not looked at \
                 yet. What does not fit is dropped.",
        source: "Documentation/admin-guide/sysctl/net.rst; Yang 2008 sets 32768",
        judge: Judge::Number(packet_backlog),
    },
    Check {
        name: "net.core.netdev_budget",
        rule: "at least 300",
        reason: "Packets taken in one turn of the receiving soft interrupt, of all cards together.",
        source: NET_SYSCTL,
        judge: Judge::Number(|_| Wanted::at_least(300)),
    },
];

/// The shortest come first. Several sockets of one address, as workers have, are named once.
fn backlogs(host: &Host) -> Verdict {
    let Some(listeners) = host.listeners() else { return Verdict::unknown("not asked") };
    let mut short: Vec<(u32, SocketAddr)> = listeners
        .iter()
        .filter(|(_, places)| *places < PLACES_MIN)
        .map(|(address, places)| (*places, *address))
        .collect();
    short.sort_unstable();
    short.dedup();
    if short.is_empty() {
        return Verdict::ok("none is short");
    }
    let aside = |places: u32| if places <= PLACES_ASIDE { " (a gate stands aside)" } else { "" };
    let named = short.iter().take(LISTENERS_NAMED);
    let mut words: Vec<String> =
        named.map(|(places, address)| format!("{address} has {places}{}", aside(*places))).collect();
    if short.len() > LISTENERS_NAMED {
        words.push(format!("{} more", short.len() - LISTENERS_NAMED));
    }
    Verdict::advise(words.join(", "), format!("{PLACES_MIN} or more, asked for by each program"))
}

fn port_range(host: &Host) -> Verdict {
    let Some(range) = host.sysctl_numbers("net.ipv4.ip_local_port_range") else { return Verdict::not_here() };
    let [first, last] = range[..] else { return Verdict::unknown("not two numbers") };
    let value = format!("{first} {last}");
    // The kernel's own default has 28232.
    if last.saturating_sub(first) >= 20_000 {
        Verdict::ok(value)
    } else {
        Verdict::advise(value, "32768 60999").settable()
    }
}

fn packet_backlog(host: &Host) -> Wanted {
    let dropped = super::events::packets_dropped(host).unwrap_or(0) > 0;
    // The kernel's default, and what one burst of 10 Gbit/s fills in ten milliseconds.
    Wanted { least: if dropped { 16_384 } else { 1000 }, most: u64::MAX, otherwise: State::Advice }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::host::NicRing;

    fn judged(listeners: &[(&str, u32)]) -> Verdict {
        let listeners =
            listeners.iter().map(|(address, places)| (address.parse().expect("an address"), *places));
        let host = Host::at(Path::new("/no such root"), NicRing::Untried);
        backlogs(&host.with_listeners(Some(listeners.collect())))
    }

    #[test]
    fn short_backlogs_are_named_the_shortest_first() {
        let verdict = judged(&[("0.0.0.0:80", 511), ("[::]:25", 20), ("127.0.0.1:8000", 5), ("[::]:25", 20)]);
        assert_eq!(verdict.state, Some(State::Advice));
        assert_eq!(verdict.value, "127.0.0.1:8000 has 5 (a gate stands aside), [::]:25 has 20");
        assert!(verdict.advice.contains("128"), "{}", verdict.advice);
        let many: Vec<(String, u32)> = (1..=20).map(|port| (format!("10.0.0.1:{port}"), 127)).collect();
        let many: Vec<(&str, u32)> = many.iter().map(|(address, places)| (&address[..], *places)).collect();
        assert!(judged(&many).value.ends_with("10.0.0.1:6 has 127, 14 more"), "{}", judged(&many).value);
    }

    #[test]
    fn long_ones_are_right_and_nobody_is_guessed_at() {
        assert_eq!(judged(&[("0.0.0.0:80", 128)]).state, Some(State::Ok));
        assert_eq!(judged(&[]).state, Some(State::Ok));
        let host = Host::at(Path::new("/no such root"), NicRing::Untried);
        assert_eq!(backlogs(&host).state, Some(State::Unknown));
    }
}

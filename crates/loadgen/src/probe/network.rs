//! What TCP does: its sockets, and what went wrong with connections.
//!
//! It owns the forms of `/proc/net/sockstat`, `netstat` and `snmp` (proc(5)). Text in, numbers out: it must
//! never open a file.

use serde::Serialize;

/// Sockets now. Those in use are the network namespace's; `allocated` and memory are the whole machine's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sockets {
    /// TCP sockets of IPv4 in use, listeners included.
    pub tcp_in_use: u64,
    /// TCP sockets of IPv6 in use; 0 without IPv6.
    pub tcp6_in_use: u64,
    /// TCP sockets closed by their program and not by the peer.
    pub tcp_orphans: u64,
    /// Connections in TIME_WAIT.
    pub tcp_time_wait: u64,
    /// TCP sockets in any state, of both families.
    pub tcp_allocated: u64,
    /// Memory of their queues, in pages.
    pub tcp_memory_pages: u64,
}

/// What happened to connections in the network namespace. 0 is reported for what a kernel does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ListenEvents {
    /// Connections that found the accept queue full (ListenOverflows).
    pub listen_overflows: u64,
    /// SYNs and connections dropped by a listener for any reason, a full queue included (ListenDrops).
    pub listen_drops: u64,
    /// SYNs answered with a cookie because too many were half open (TCPReqQFullDoCookies).
    pub request_queue_full_cookies: u64,
    /// SYNs dropped because too many were half open (TCPReqQFullDrop).
    pub request_queue_full_drops: u64,
    /// SYN cookies sent (SyncookiesSent).
    pub syn_cookies_sent: u64,
}

/// Segments and connections of the network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Segments {
    /// Segments sent again, SYNs included (RetransSegs).
    pub retransmitted: u64,
    /// Segments sent with RST (OutRsts).
    pub resets_sent: u64,
    /// Connections that came in and were established (PassiveOpens).
    pub passive_opens: u64,
}

/// Reads the line `TCP:` of `/proc/net/sockstat`.
pub(super) fn read_sockets(text: &str) -> Option<Sockets> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    Some(Sockets {
        tcp_in_use: value_behind(line, "inuse")?,
        tcp6_in_use: 0,
        tcp_orphans: value_behind(line, "orphan")?,
        tcp_time_wait: value_behind(line, "tw")?,
        tcp_allocated: value_behind(line, "alloc")?,
        tcp_memory_pages: value_behind(line, "mem")?,
    })
}

/// Reads the line `TCP6:` of `/proc/net/sockstat6`.
pub(super) fn read_sockets6(text: &str) -> Option<u64> {
    value_behind(text.lines().find_map(|line| line.strip_prefix("TCP6:"))?, "inuse")
}

fn value_behind(line: &str, name: &str) -> Option<u64> {
    line.split_ascii_whitespace().skip_while(|word| *word != name).nth(1)?.parse().ok()
}

/// Reads `/proc/net/netstat`.
pub(super) fn read_listen_events(text: &str) -> Option<ListenEvents> {
    let names =
        ["ListenOverflows", "ListenDrops", "TCPReqQFullDoCookies", "TCPReqQFullDrop", "SyncookiesSent"];
    let [overflows, drops, cookies, full, sent] = columns(text, "TcpExt:", names)?;
    Some(ListenEvents {
        listen_overflows: overflows,
        listen_drops: drops,
        request_queue_full_cookies: cookies,
        request_queue_full_drops: full,
        syn_cookies_sent: sent,
    })
}

/// Reads `/proc/net/snmp`.
pub(super) fn read_segments(text: &str) -> Option<Segments> {
    let names = ["RetransSegs", "OutRsts", "PassiveOpens"];
    let [retransmitted, resets_sent, passive_opens] = columns(text, "Tcp:", names)?;
    Some(Segments { retransmitted, resets_sent, passive_opens })
}

/// Values by name from a table of two lines with the same first word: names, then values. One that is not
/// there is 0.
fn columns<const N: usize>(text: &str, table: &str, names: [&str; N]) -> Option<[u64; N]> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let (heads, values) = (lines.next()?.split_ascii_whitespace(), lines.next()?.split_ascii_whitespace());
    let mut found = [0; N];
    for (head, value) in heads.zip(values) {
        if let Some(index) = names.iter().position(|name| *name == head) {
            found[index] = value.parse().ok()?;
        }
    }
    Some(found)
}

/// Events between two readings; none if the counters began anew.
pub(super) fn listen_events_between(before: &ListenEvents, now: &ListenEvents) -> ListenEvents {
    let since = |count: fn(&ListenEvents) -> u64| count(now).saturating_sub(count(before));
    ListenEvents {
        listen_overflows: since(|events| events.listen_overflows),
        listen_drops: since(|events| events.listen_drops),
        request_queue_full_cookies: since(|events| events.request_queue_full_cookies),
        request_queue_full_drops: since(|events| events.request_queue_full_drops),
        syn_cookies_sent: since(|events| events.syn_cookies_sent),
    }
}

/// Segments between two readings; none if the counters began anew.
pub(super) fn segments_between(before: &Segments, now: &Segments) -> Segments {
    let since = |count: fn(&Segments) -> u64| count(now).saturating_sub(count(before));
    Segments {
        retransmitted: since(|segments| segments.retransmitted),
        resets_sent: since(|segments| segments.resets_sent),
        passive_opens: since(|segments| segments.passive_opens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_a_real_machine() {
        let sockets = read_sockets(include_str!("captured/sockstat.txt")).unwrap();
        let expected = Sockets {
            tcp_in_use: 135,
            tcp_time_wait: 1728,
            tcp_allocated: 135,
            tcp_memory_pages: 134,
            ..Sockets::default()
        };
        assert_eq!(sockets, expected);
        assert_eq!(read_sockets6(include_str!("captured/sockstat6.txt")), Some(0));
        assert_eq!(read_sockets6("TCP6: inuse 37\n"), Some(37));
    }

    #[test]
    fn tables_are_read_by_name() {
        let text = "TcpExt: SyncookiesSent Other ListenDrops TCPReqQFullDrop ListenOverflows\n\
                    TcpExt: 1 2 3 4 5\nIpExt: ListenDrops\nIpExt: 9\n";
        let expected = ListenEvents {
            syn_cookies_sent: 1,
            listen_drops: 3,
            request_queue_full_drops: 4,
            listen_overflows: 5,
            request_queue_full_cookies: 0,
        };
        assert_eq!(read_listen_events(text), Some(expected));
        let later = ListenEvents { listen_drops: 10, listen_overflows: 1, ..expected };
        let change = ListenEvents { listen_drops: 7, ..ListenEvents::default() };
        assert_eq!(listen_events_between(&expected, &later), change);
    }

    #[test]
    fn tables_of_a_real_machine() {
        let events = read_listen_events(include_str!("captured/netstat.txt")).unwrap();
        let expected = ListenEvents {
            listen_overflows: 53,
            listen_drops: 53,
            request_queue_full_cookies: 0,
            request_queue_full_drops: 0,
            syn_cookies_sent: 0,
        };
        assert_eq!(events, expected);
        let segments = read_segments(include_str!("captured/snmp.txt")).unwrap();
        assert_eq!(segments, Segments { retransmitted: 286, resets_sent: 1187665, passive_opens: 642961 });
        let more = Segments { retransmitted: segments.retransmitted + 5, ..segments };
        assert_eq!(segments_between(&segments, &more).retransmitted, 5);
    }

    #[test]
    fn other_texts_are_not_understood() {
        for text in ["", "TCP: inuse x", "TcpExt: A\n", "Tcp: A RetransSegs\nTcp: 1 -1\n", "TCP6:\n"] {
            assert_eq!(read_sockets(text), None, "{text:?}");
            assert_eq!(read_sockets6(text), None, "{text:?}");
            assert_eq!(read_listen_events(text), None, "{text:?}");
            assert_eq!(read_segments(text), None, "{text:?}");
        }
    }
}

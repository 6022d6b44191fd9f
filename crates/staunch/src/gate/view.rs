//! What the view shows, as lines: pure, from one snapshot.
//!
//! No line is longer than the terminal is wide, or drawing over it would leave rests behind.
use std::collections::VecDeque;

use console::truncate_str;
use staunch_figures::spark;
use staunch_figures::style::{BAD, CARE, GOOD, LOUD, QUIET, paint};
use staunch_figures::words;
use staunch_gate::snapshot::{ClassFigures, PortFigures, Snapshot};

/// Width of a line's name, and the blank behind it.
const NAME_WIDTH: usize = 13;

type Line = (String, &'static str);

/// The lines. `live`: with the keys, in colour or not.
pub(super) fn lines(
    snapshot: &Snapshot,
    kept: &VecDeque<f64>,
    live: Option<bool>,
    width: usize,
) -> Vec<String> {
    let mut lines =
        vec![title(snapshot), state(snapshot), interfaces(snapshot), plain("offered", &offered(snapshot))];
    if !kept.is_empty() {
        lines.push((named("", &sparkline(kept, width)), GOOD));
    }
    // Of one port all that follows tells.
    let ports = if snapshot.by_port.len() > 1 { &snapshot.by_port[..] } else { &[] };
    lines.extend(ports.iter().map(port));
    lines.extend(snapshot.syn.named().map(|(name, figures)| class(name, figures)));
    lines.extend([
        plain("waiting", &waiting(snapshot)),
        plain("queues", &queues(snapshot)),
        plain("processor", &processor(snapshot)),
        plain("memory", &memory(snapshot)),
        plain("packets", &packets(snapshot)),
        daemon(snapshot),
    ]);
    lines.extend(snapshot.reason.iter().map(|reason| plain("last change", reason)));
    lines.extend(snapshot.hint.iter().map(|hint| (named("hint", hint), CARE)));
    lines.extend(snapshot.notes.iter().map(|note| (named("lost", note), QUIET)));
    if live.is_some() {
        lines.push(("q: end".to_owned(), QUIET));
    }
    let fit = |line: String| truncate_str(words::harmless(&line).trim_end(), width, "…").into_owned();
    lines
        .into_iter()
        .map(|(line, code)| paint(&fit(line), code, live == Some(true) && !code.is_empty()))
        .collect()
}

fn title(snapshot: &Snapshot) -> Line {
    let ports: Vec<String> = snapshot.ports.iter().map(u16::to_string).collect();
    let up = words::seconds(snapshot.uptime_seconds);
    let text = format!(
        "staunch {} gate, process {}, up {up}, ports {}, {} by {}",
        snapshot.version,
        snapshot.process_id,
        ports.join(", "),
        snapshot.policy,
        snapshot.mode
    );
    (text, LOUD)
}

fn state(snapshot: &Snapshot) -> Line {
    let code = if snapshot.state == "open" { GOOD } else { BAD };
    let dry = if snapshot.dry_run { ", dry run: nothing is shed" } else { "" };
    let verify = if snapshot.verify { ", unknown clients are tested" } else { "" };
    let since = words::seconds(snapshot.state_seconds);
    let changes = words::count(snapshot.changes);
    (named("state", &format!("{} for {since}{verify}{dry}; {changes} changes", snapshot.state)), code)
}

fn interfaces(snapshot: &Snapshot) -> Line {
    let one = |interface: &staunch_gate::snapshot::InterfaceFigures| {
        let way = interface.way.as_ref().map(|way| format!(" ({way})")).unwrap_or_default();
        let coalescing =
            interface.coalescing_us.map(|us| format!(", packets taken every {us} us")).unwrap_or_default();
        format!("{} {}{way}{coalescing}", interface.name, interface.state)
    };
    let all: Vec<String> = snapshot.interfaces.iter().map(one).collect();
    let whole = snapshot.interfaces.iter().all(|interface| interface.state == "attached");
    (named("interfaces", &all.join(", ")), if whole { "" } else { CARE })
}

fn offered(snapshot: &Snapshot) -> String {
    let rates = &snapshot.rates;
    let per_s = words::per_s;
    format!(
        "{} SYN   let in {}   {} {}",
        per_s(rates.offered_per_s),
        per_s(rates.passed_per_s),
        if snapshot.dry_run { "would be shed" } else { "shed" },
        per_s(rates.shed_per_s)
    )
}

fn port(figures: &PortFigures) -> Line {
    let PortFigures { port, state, rates, estimate, queue, .. } = figures;
    let code = if state == "open" { GOOD } else { BAD };
    let number = |value: Option<u64>| value.map_or("-".to_owned(), words::count);
    let waiting = figures.connections.as_ref().map(|connections| connections.waiting);
    let text = format!(
        "{state} for {}   {} SYN   shed {}   waiting {}   server begins {} at most   expected wait {}   \
         accept queue {} of {}",
        words::seconds(figures.state_seconds),
        words::per_s(rates.offered_per_s),
        words::per_s(rates.shed_per_s),
        number(waiting),
        words::per_s(estimate.served_per_s),
        words::time_ms(estimate.wait_ms),
        number(queue.waiting),
        number(queue.limit)
    );
    (named(&format!("port {port}"), &text), code)
}

fn sparkline(kept: &VecDeque<f64>, width: usize) -> String {
    let values: Vec<f64> = kept.iter().copied().collect();
    let highest = format!("  up to {}", words::per_s(values.iter().copied().fold(0.0, f64::max)));
    let room = width.saturating_sub(NAME_WIDTH + highest.chars().count());
    format!("{}{highest}", spark::line(&values, room))
}

fn class(name: &str, figures: &ClassFigures) -> Line {
    let mut text = format!("{} let in", words::count(figures.let_in()));
    for (what, count) in [
        ("allowed", figures.allowed),
        ("without the daemon", figures.lease_over),
        ("shed for lack of credit", figures.shed_credit),
        ("by fair share", figures.shed_fair),
        ("denied", figures.shed_deny),
    ] {
        if count > 0 {
            text.push_str(&format!(", {} {what}", words::count(count)));
        }
    }
    (named(name, &text), if figures.shed() > 0 { CARE } else { "" })
}

fn waiting(snapshot: &Snapshot) -> String {
    let estimate = &snapshot.estimate;
    let served = format!(
        "server begins {} at most   expected wait {}",
        words::per_s(estimate.served_per_s),
        words::time_ms(estimate.wait_ms)
    );
    match &snapshot.connections {
        Some(connections) => format!(
            "{} asked and not read from yet   silent {}   first read after p50 {} p99 {}   {served}",
            words::count(connections.waiting),
            words::count(connections.silent),
            words::time_ms_or_dash(connections.wait_p50_ms),
            words::time_ms_or_dash(connections.wait_p99_ms)
        ),
        None => served,
    }
}

fn queues(snapshot: &Snapshot) -> String {
    let host = &snapshot.host;
    let number = |value: Option<u64>| value.map_or("-".to_owned(), words::count);
    format!(
        "accept queues {} of {}   sockets {}   dropped by listeners {}",
        number(host.accept_queue),
        number(host.accept_queue_limit),
        number(host.sockets),
        number(host.listen_drops)
    )
}

fn processor(snapshot: &Snapshot) -> String {
    let host = &snapshot.host;
    format!(
        "kernel {}   programs {}   threads of reception {}   SYN let in {}",
        share(host.kernel_share),
        share(host.user_share),
        share(host.receive_share),
        share(Some(snapshot.estimate.syn_share))
    )
}

fn memory(snapshot: &Snapshot) -> String {
    let host = &snapshot.host;
    format!(
        "available {}   TCP {} of its limit",
        share(host.memory_available_share),
        share(host.tcp_memory_share)
    )
}

fn packets(snapshot: &Snapshot) -> String {
    let frames = &snapshot.frames;
    let syn = snapshot.syn.sum(ClassFigures::seen);
    let small = frames.small + syn;
    let sizes = match small + frames.large {
        0 => "none to the ports yet".to_owned(),
        all => format!("{} of those to the ports are of at most 128 bytes", words::share(small, all)),
    };
    let elsewhere = match frames.elsewhere {
        0 => String::new(),
        count => format!("   SYN to other hosts {}", words::count(count)),
    };
    format!(
        "{sizes}   fragments {}   malformed {}{elsewhere}",
        words::count(frames.fragments),
        words::count(frames.malformed)
    )
}

fn daemon(snapshot: &Snapshot) -> Line {
    let daemon = &snapshot.daemon;
    let busy = daemon.busy_seconds / snapshot.uptime_seconds.max(1e-3);
    let late = words::count(daemon.late_ticks);
    let ticks = words::count(daemon.ticks);
    (named("daemon", &format!("{:.2} % of a processor   {late} of {ticks} turns late", busy * 100.0)), "")
}

fn share(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), words::percent)
}

fn plain(name: &str, words: &str) -> Line {
    (named(name, words), "")
}

fn named(name: &str, words: &str) -> String {
    format!("{name:<NAME_WIDTH$}{words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use staunch_gate::snapshot::{ConnectionFigures, InterfaceFigures, SynFigures};

    #[test]
    fn everything_is_shown_and_fits() {
        let snapshot = Snapshot {
            state: "shedding".into(),
            dry_run: true,
            interfaces: vec![InterfaceFigures {
                name: "eth0".into(),
                state: "missing".into(),
                way: None,
                coalescing_us: Some(500),
            }],
            syn: SynFigures {
                unknown: ClassFigures { shed_fair: 234, ..ClassFigures::default() },
                ..SynFigures::default()
            },
            connections: Some(ConnectionFigures {
                waiting: 77,
                silent: 5,
                wait_p50_ms: Some(25.0),
                ..ConnectionFigures::default()
            }),
            by_port: [80, 443]
                .map(|port| PortFigures { port, state: "open".into(), ..PortFigures::default() })
                .to_vec(),
            reason: Some("because\u{1b}[31m".into()),
            hint: Some("a hint".into()),
            notes: vec!["a note".into()],
            ..Snapshot::default()
        };
        let text = lines(&snapshot, &VecDeque::from([1.0, 2.0]), Some(false), 200).join("\n");
        for words in [
            "shedding for",
            "dry run",
            "eth0 missing",
            "234 by fair share",
            "port 80      open for ",
            "port 443     open for ",
            "77 asked and not read from yet   silent 5",
            "a hint",
            "a note",
            "q: end",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        for line in lines(&snapshot, &VecDeque::from([1.0]), None, 40) {
            assert!(line.chars().count() <= 40, "{line}");
        }
    }

    #[test]
    fn nothing_is_cut_where_it_is_piped_and_no_value_is_empty() {
        let reason = "a reason ".repeat(40);
        let snapshot = Snapshot { reason: Some(reason.clone()), ..Snapshot::default() };
        let piped = lines(&snapshot, &VecDeque::new(), None, usize::MAX);
        assert!(piped.iter().any(|line| line.ends_with(reason.trim())), "{piped:?}");
        let packets = "packets      none to the ports yet   fragments 0   malformed 0";
        assert!(piped.iter().any(|line| line == packets), "{piped:?}");
    }
}

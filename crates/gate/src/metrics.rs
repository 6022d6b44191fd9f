//! The gate's figures in the format of Prometheus.
//!
//! It owns their names and help. It must never keep a figure.

use std::fmt::{Display, Write as _};

use crate::layout::age_ns;
use crate::snapshot::{PortFigures, Snapshot};

/// All of them.
pub fn text(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    syn(&mut page, snapshot);
    state(&mut page, snapshot);
    connections(&mut page, &snapshot.by_port);
    listeners(&mut page, &snapshot.by_port);
    host(&mut page, snapshot);
    daemon(&mut page, snapshot);
    page.text
}

fn syn(page: &mut Page, snapshot: &Snapshot) {
    page.family(
        "staunch_gate_syn_total",
        "counter",
        "SYN segments to protected ports, by port, class of client and verdict.",
    );
    for port in &snapshot.by_port {
        for (class, figures) in port.syn.named() {
            for (verdict, count) in figures.named() {
                page.sample(
                    &[("port", &port.port.to_string()), ("class", class), ("verdict", verdict)],
                    count,
                );
            }
        }
    }
    let frames = &snapshot.frames;
    page.family("staunch_gate_frames_total", "counter", "Frames that are not judged and always pass.");
    for (kind, count) in [
        ("other", frames.other),
        ("small", frames.small),
        ("large", frames.large),
        ("fragment", frames.fragments),
        ("malformed", frames.malformed),
        ("elsewhere", frames.elsewhere),
    ] {
        page.sample(&[("kind", kind)], count);
    }
    page.one(
        "staunch_gate_answered_total",
        "counter",
        "Shed SYN segments answered by a reset or a cookie.",
        frames.answered,
    );
    page.one(
        "staunch_gate_dry_total",
        "counter",
        "SYN segments let in only because it is a dry run.",
        frames.dry,
    );
}

fn state(page: &mut Page, snapshot: &Snapshot) {
    page.family("staunch_gate_attached", "gauge", "1 while the program is on the interface.");
    for interface in &snapshot.interfaces {
        page.sample(&[("interface", &interface.name)], u8::from(interface.way.is_some()));
    }
    let ports = &snapshot.by_port;
    page.ports(
        "staunch_gate_state",
        "gauge",
        "0 while all come in, 1 while connections are shed.",
        ports,
        |port| Some(u8::from(port.state != "open")),
    );
    page.ports(
        "staunch_gate_verify",
        "gauge",
        "1 while clients never seen have to send their SYN again.",
        ports,
        |port| Some(u8::from(port.verify)),
    );
    page.ports("staunch_gate_changes_total", "counter", "Changes of state.", ports, |port| {
        Some(port.changes)
    });
    page.ports(
        "staunch_gate_served_per_second",
        "gauge",
        "Connections the server can begin in a second, as far as it has shown.",
        ports,
        |port| Some(port.estimate.served_per_s),
    );
    page.ports(
        "staunch_gate_expected_wait_seconds",
        "gauge",
        "How long a connection that comes now will wait.",
        ports,
        |port| Some(port.estimate.wait_ms / 1e3),
    );
    page.ports(
        "staunch_gate_syn_cost_ratio",
        "gauge",
        "Part of a processor that SYN segments take.",
        ports,
        |port| Some(port.estimate.syn_share),
    );
}

/// Where the tracker works.
fn connections(page: &mut Page, ports: &[PortFigures]) {
    if ports.iter().all(|port| port.connections.is_none()) {
        return;
    }
    page.ports(
        "staunch_gate_waiting",
        "gauge",
        "Connections that have sent something and are not read from yet.",
        ports,
        |port| Some(port.connections.as_ref()?.waiting),
    );
    page.ports("staunch_gate_silent", "gauge", "Connections on which nothing has come yet.", ports, |port| {
        Some(port.connections.as_ref()?.silent)
    });
    let became = "What became of connections to protected ports.";
    page.family("staunch_gate_connections_total", "counter", became);
    for port in ports {
        let Some(figures) = &port.connections else { continue };
        for (event, count) in [
            ("established", figures.established),
            ("begun", figures.begun),
            ("spoken", figures.spoken),
            ("ended", figures.ended),
            ("abandoned", figures.abandoned),
        ] {
            page.sample(&[("port", &port.port.to_string()), ("event", event)], count);
        }
    }
    page.ports("staunch_gate_reads_total", "counter", "Reads by the server.", ports, |port| {
        Some(port.connections.as_ref()?.reads)
    });
    let name = "staunch_gate_wait_seconds";
    page.family(name, "histogram", "From the first bytes of a connection until the server read from it.");
    for port in ports {
        let waits = port.connections.as_ref().map(|connections| &connections.waits[..]);
        page.waits(name, port.port, waits.unwrap_or_default());
    }
}

fn listeners(page: &mut Page, ports: &[PortFigures]) {
    page.ports("staunch_gate_accept_queue", "gauge", "Connections in the accept queues.", ports, |port| {
        port.queue.waiting
    });
    page.ports("staunch_gate_accept_queue_limit", "gauge", "How many may be there.", ports, |port| {
        port.queue.limit
    });
    page.ports(
        "staunch_gate_listen_drops_total",
        "counter",
        "SYN, connections and stray RST that the listeners threw away.",
        ports,
        |port| port.queue.drops,
    );
}

fn host(page: &mut Page, snapshot: &Snapshot) {
    let host = &snapshot.host;
    let mut gauge = |name, help, value: Option<f64>| {
        if let Some(value) = value {
            page.one(name, "gauge", help, value);
        }
    };
    gauge(
        "staunch_gate_kernel_ratio",
        "The kernel's part of the processor where it is largest.",
        host.kernel_share,
    );
    gauge("staunch_gate_user_ratio", "What programs have of the same processor.", host.user_share);
    gauge(
        "staunch_gate_receive_ratio",
        "What the busiest thread of reception takes of a processor.",
        host.receive_share,
    );
    gauge("staunch_gate_sockets", "TCP sockets in use.", host.sockets.map(|sockets| sockets as f64));
    gauge(
        "staunch_gate_memory_available_ratio",
        "Memory that can still be had, of all.",
        host.memory_available_share,
    );
    gauge(
        "staunch_gate_tcp_memory_ratio",
        "Memory of TCP, of what the kernel wants it to have.",
        host.tcp_memory_share,
    );
}

fn daemon(page: &mut Page, snapshot: &Snapshot) {
    let daemon = &snapshot.daemon;
    page.one("staunch_gate_ticks_total", "counter", "Turns of the daemon's loop.", daemon.ticks);
    page.one(
        "staunch_gate_late_ticks_total",
        "counter",
        "Turns that came more than a turn too late.",
        daemon.late_ticks,
    );
    page.one(
        "staunch_gate_busy_seconds_total",
        "counter",
        "Processor time of the daemon's loop.",
        daemon.busy_seconds,
    );
}

/// Families with their help, samples with their labels. Writing to a string does not fail.
#[derive(Default)]
struct Page {
    text: String,
    family: &'static str,
}

impl Page {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Values of labels are words of ours and names of interfaces, which have neither quotes nor line breaks:
    /// the kernel allows them, so they are escaped.
    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(self.text, "{}{{{}}} {value}", self.family, labels.join(","));
    }

    /// A sample for each port of which there is one, and nothing where there is none.
    fn ports<T: Display>(
        &mut self,
        name: &'static str,
        kind: &str,
        help: &str,
        ports: &[PortFigures],
        value: impl Fn(&PortFigures) -> Option<T>,
    ) {
        let samples: Vec<(u16, T)> =
            ports.iter().filter_map(|port| Some((port.port, value(port)?))).collect();
        if samples.is_empty() {
            return;
        }
        self.family(name, kind, help);
        for (port, value) in samples {
            self.sample(&[("port", &port.to_string())], value);
        }
    }

    /// Writes a histogram of waits. A bound an octave: finer ones would be many more series, and say little.
    /// Counts of the kernel have no sum: it is taken from the middle of where each was counted.
    fn waits(&mut self, name: &str, port: u16, waits: &[u64]) {
        let (mut count, mut sum_ns) = (0, 0.0);
        for (index, waits) in waits.iter().enumerate() {
            count += waits;
            sum_ns += *waits as f64 * (age_ns(index) + age_ns(index + 1)) as f64 / 2.0;
            if index % 4 == 3 {
                let bound = age_ns(index + 1) as f64 / 1e9;
                let _ = writeln!(self.text, "{name}_bucket{{port=\"{port}\",le=\"{bound}\"}} {count}");
            }
        }
        let _ = writeln!(
            self.text,
            "{name}_bucket{{port=\"{port}\",le=\"+Inf\"}} {count}\n{name}_sum{{port=\"{port}\"}} {}\n\
             {name}_count{{port=\"{port}\"}} {count}",
            sum_ns / 1e9
        );
    }

    fn one(&mut self, name: &'static str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        let _ = writeln!(self.text, "{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{
        ClassFigures, ConnectionFigures, HostFigures, InterfaceFigures, QueueFigures, SynFigures,
    };

    fn page() -> String {
        let mut waits = vec![0; 64];
        (waits[0], waits[5], waits[63]) = (3, 2, 1);
        text(&Snapshot {
            interfaces: vec![InterfaceFigures { name: "a\"b".into(), ..InterfaceFigures::default() }],
            by_port: vec![
                PortFigures {
                    port: 80,
                    state: "shedding".into(),
                    syn: SynFigures {
                        known: ClassFigures { passed: 7, ..ClassFigures::default() },
                        ..SynFigures::default()
                    },
                    connections: Some(ConnectionFigures {
                        waits,
                        waiting: 9,
                        ..ConnectionFigures::default()
                    }),
                    ..PortFigures::default()
                },
                PortFigures {
                    port: 443,
                    state: "open".into(),
                    queue: QueueFigures { waiting: Some(2), ..QueueFigures::default() },
                    ..PortFigures::default()
                },
            ],
            host: HostFigures { sockets: Some(5), ..HostFigures::default() },
            ..Snapshot::default()
        })
    }

    #[test]
    fn figures_stand_under_their_names() {
        let page = page();
        for line in [
            "staunch_gate_syn_total{port=\"80\",class=\"known\",verdict=\"passed\"} 7",
            "staunch_gate_state{port=\"80\"} 1",
            "staunch_gate_state{port=\"443\"} 0",
            "staunch_gate_attached{interface=\"a\\\"b\"} 0",
            "staunch_gate_waiting{port=\"80\"} 9",
            "staunch_gate_wait_seconds_bucket{port=\"80\",le=\"0.000032768\"} 3",
            "staunch_gate_wait_seconds_bucket{port=\"80\",le=\"0.000065536\"} 5",
            "staunch_gate_wait_seconds_bucket{port=\"80\",le=\"+Inf\"} 6",
            "staunch_gate_wait_seconds_count{port=\"80\"} 6",
            "staunch_gate_wait_seconds_count{port=\"443\"} 0",
            "staunch_gate_accept_queue{port=\"443\"} 2",
            "staunch_gate_sockets 5",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
        for absent in ["waiting{port=\"443\"}", "accept_queue{port=\"80\"}", "accept_queue_limit"] {
            assert!(!page.contains(absent), "what is not seen is left out: {absent}");
        }
    }

    #[test]
    fn every_sample_belongs_to_the_family_above_it() {
        let page = page();
        let mut family = "";
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap();
            } else if !line.starts_with('#') {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                assert!(sample.starts_with(family) && value.parse::<f64>().is_ok(), "{line}");
            }
        }
        let mut names: Vec<&str> = page.lines().filter(|line| line.starts_with("# TYPE ")).collect();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

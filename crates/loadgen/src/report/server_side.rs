//! The server's side as columns: which figures of a probe's sample stand in a report, and under which name.
//!
//! It is the only file of the reports that knows what a sample looks like. It must never make a 0 of what
//! could not be read.

use crate::probe::{Process, Sample, Shares};

pub(crate) struct ServerField {
    /// Its name, with the unit at its end where it is no plain number.
    pub(crate) name: &'static str,
    /// Its value, where the probe could read it.
    pub(crate) of: fn(&Sample) -> Option<f64>,
}

/// A column of a plot: its name, the class of its colour, its name for people.
pub(crate) type Drawn = (&'static str, &'static str, &'static str);

/// Shares of all processors' time, in the order in which they are stacked.
pub(crate) const CPU_KINDS: [Drawn; 5] = [
    ("cpu_user_share", "cpu-user", "user"),
    ("cpu_system_share", "cpu-system", "system"),
    ("cpu_softirq_share", "cpu-softirq", "softirq"),
    ("cpu_irq_share", "cpu-irq", "irq"),
    ("cpu_steal_share", "cpu-steal", "stolen"),
];

/// The server process's time on processors, stacked.
pub(crate) const PROCESS_KINDS: [Drawn; 2] =
    [("process_cpu_user_ms", "cpu-user", "user"), ("process_cpu_system_ms", "cpu-system", "system")];

/// What the kernel dropped or had to fend off.
pub(crate) const DROPS: [Drawn; 5] = [
    ("listen_overflows", "refused", "accept queue full"),
    ("listen_drops", "timed_out", "SYNs and connections dropped"),
    ("request_queue_full_drops", "reset", "dropped, too many half open"),
    ("syn_cookies_sent", "late", "SYN cookies sent"),
    ("softnet_dropped", "failed", "packets dropped before TCP"),
];

/// The server process's time on processors in a step.
pub(crate) const PROCESS_CPU: &str = "process_cpu_ms";

macro_rules! column {
    ($name:literal, $of:expr) => {
        ServerField { name: $name, of: $of }
    };
}

/// Every column. Counts are those of one step.
pub(crate) static SERVER: [ServerField; 30] = [
    column!("cpu_user_share", |sample| shares(sample, |shares| shares.user)),
    column!("cpu_system_share", |sample| shares(sample, |shares| shares.system)),
    column!("cpu_softirq_share", |sample| shares(sample, |shares| shares.softirq)),
    column!("cpu_irq_share", |sample| shares(sample, |shares| shares.irq)),
    column!("cpu_steal_share", |sample| shares(sample, |shares| shares.steal)),
    column!("cpu_idle_share", |sample| shares(sample, |shares| shares.idle)),
    column!("net_rx_softirqs", |sample| sample.net_rx_softirqs.map(|count| count as f64)),
    column!("softnet_processed", |sample| Some(sample.softnet?.processed as f64)),
    column!("softnet_dropped", |sample| Some(sample.softnet?.dropped as f64)),
    column!("softnet_squeezes", |sample| Some(sample.softnet?.squeezes as f64)),
    column!("tcp_in_use", |sample| {
        let sockets = sample.sockets?;
        Some((sockets.tcp_in_use + sockets.tcp6_in_use) as f64)
    }),
    column!("tcp_orphans", |sample| Some(sample.sockets?.tcp_orphans as f64)),
    column!("tcp_time_wait", |sample| Some(sample.sockets?.tcp_time_wait as f64)),
    column!("tcp_memory_pages", |sample| Some(sample.sockets?.tcp_memory_pages as f64)),
    column!("listen_overflows", |sample| Some(sample.listen_events?.listen_overflows as f64)),
    column!("listen_drops", |sample| Some(sample.listen_events?.listen_drops as f64)),
    column!("request_queue_full_cookies", |sample| {
        Some(sample.listen_events?.request_queue_full_cookies as f64)
    }),
    column!("request_queue_full_drops", |sample| {
        Some(sample.listen_events?.request_queue_full_drops as f64)
    }),
    column!("syn_cookies_sent", |sample| Some(sample.listen_events?.syn_cookies_sent as f64)),
    column!("segments_retransmitted", |sample| Some(sample.segments?.retransmitted as f64)),
    column!("resets_sent", |sample| Some(sample.segments?.resets_sent as f64)),
    column!("passive_opens", |sample| Some(sample.segments?.passive_opens as f64)),
    column!("accept_queue", |sample| Some(sample.accept_queue?.waiting as f64)),
    column!("accept_queue_limit", |sample| Some(sample.accept_queue?.limit as f64)),
    column!("process_cpu_ms", |sample| {
        process(sample, |process| process.cpu_user_ms + process.cpu_system_ms)
    }),
    column!("process_cpu_user_ms", |sample| process(sample, |process| process.cpu_user_ms)),
    column!("process_cpu_system_ms", |sample| process(sample, |process| process.cpu_system_ms)),
    column!("process_resident_bytes", |sample| process(sample, |process| process.resident_bytes)),
    column!("process_threads", |sample| process(sample, |process| process.threads)),
    column!("process_descriptors", |sample| Some(sample.process?.descriptors? as f64)),
];

fn shares(sample: &Sample, of: fn(&Shares) -> f64) -> Option<f64> {
    sample.processors.as_ref().map(|processors| of(&processors.all))
}

fn process(sample: &Sample, of: fn(&Process) -> u64) -> Option<f64> {
    sample.process.as_ref().map(|process| of(process) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn every_drawn_column_is_there_and_names_are_unique() {
        let names: Vec<&str> = SERVER.iter().map(|field| field.name).collect();
        let drawn = CPU_KINDS.iter().chain(&PROCESS_KINDS).chain(&DROPS).map(|(name, _, _)| *name);
        let single = [PROCESS_CPU, "accept_queue", "accept_queue_limit", "process_resident_bytes"];
        for name in drawn.chain(single) {
            assert_eq!(names.iter().filter(|other| **other == name).count(), 1, "{name}");
        }
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn what_was_not_read_is_no_zero() {
        let nothing = Sample::default();
        assert!(SERVER.iter().all(|field| (field.of)(&nothing).is_none()));
        let full = made_up::sample(0.5, 1_000);
        assert!(SERVER.iter().all(|field| (field.of)(&full).is_some()));
        let of = |name: &str| (SERVER.iter().find(|field| field.name == name).unwrap().of)(&full).unwrap();
        assert_eq!(of("process_cpu_ms"), of("process_cpu_user_ms") + of("process_cpu_system_ms"));
        let shares: f64 = SERVER
            .iter()
            .filter(|field| field.name.ends_with("_share"))
            .map(|field| (field.of)(&full).unwrap())
            .sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
}

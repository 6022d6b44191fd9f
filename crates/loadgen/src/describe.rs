//! Lanes and engines in words, for reports.
//!
//! It must never be parsed by anybody.

use std::time::Duration;

use crate::plan::{LaneKind, LanePlan, SlotPlan};

/// What carries the load, for instance `io_uring, 2 threads on processors 1 and 2`.
pub(crate) fn engine(backend: &str, threads: &[Option<usize>]) -> String {
    let count = match threads.len() {
        1 => "1 thread".to_owned(),
        many => format!("{many} threads"),
    };
    let cpus: Vec<String> = threads.iter().flatten().map(ToString::to_string).collect();
    if cpus.is_empty() {
        format!("{backend}, {count}")
    } else {
        format!("{backend}, {count} on processors {}", cpus.join(", "))
    }
}

/// What a lane does, for instance `closed loop, 64 kept connections`.
pub fn lane(lane: &LanePlan) -> String {
    let mut words = kind(&lane.kind);
    if let Some(patience) = lane.patience {
        words.push_str(&format!(", patience {}", duration(patience)));
    }
    words
}

fn kind(kind: &LaneKind) -> String {
    match kind {
        LaneKind::Closed { connections, pipeline, requests_per_connection, .. } => {
            let way = match requests_per_connection {
                Some(1) => "a connection per request".to_owned(),
                Some(count) => format!("{count} requests a connection"),
                None => "kept".to_owned(),
            };
            let ahead = if *pipeline > 1 { format!(", {pipeline} pipelined") } else { String::new() };
            format!("closed loop, {}, {way}{ahead}", count(*connections))
        }
        LaneKind::Open { arrivals, profile, slots } => {
            let slots = match slots {
                SlotPlan::PerRequest => "a connection per request".to_owned(),
                SlotPlan::Kept { connections_max } => format!("kept connections, at most {connections_max}"),
            };
            format!("open loop, {profile} {arrivals}, {slots}")
        }
        LaneKind::SlowHeaders { connections, interval } => {
            format!("slow heads, {}, a byte every {}", count(*connections), duration(*interval))
        }
        LaneKind::SlowBody { connections, interval, .. } => {
            format!("slow bodies, {}, a byte every {}", count(*connections), duration(*interval))
        }
        LaneKind::SlowReader { connections, interval } => {
            format!("slow readers, {}, a buffer every {}", count(*connections), duration(*interval))
        }
        LaneKind::Hold { connections, .. } => format!("{}, idle", count(*connections)),
        LaneKind::Flood(_) => "flood of SYN".to_owned(),
    }
}

fn count(connections: u32) -> String {
    if connections == 1 { "1 connection".to_owned() } else { format!("{connections} connections") }
}

/// A duration in the largest unit that divides it.
fn duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds.is_multiple_of(1000) {
        format!("{}s", milliseconds / 1000)
    } else {
        format!("{milliseconds}ms")
    }
}

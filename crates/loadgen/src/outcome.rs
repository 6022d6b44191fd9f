//! What a run measured: counts that add up, times, and both along the run.
//!
//! Rule 1: every request that was offered ends in exactly one of the counts, see [`Counts::settled`]. Rule 2:
//! times are counted from the moment a request was meant to start, not from the moment it could start.
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::flood::FloodOutcome;
use crate::histogram::Histogram;
use crate::probe::Sample;

/// Everything a run measured.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// The command line, as it can be typed again.
    pub command: String,
    /// When offering began.
    pub began: SystemTime,
    /// The target as it was given, for instance `http://127.0.0.1:8080/`.
    pub target: String,
    /// What carried the load: backend, threads, processors.
    pub engine: String,
    /// Each lane of its own. The first is the main one: all headlines are about it.
    pub lanes: Vec<LaneOutcome>,
    /// What was flooded beside them.
    pub floods: Vec<FloodOutcome>,
    /// The run in steps of [`MOMENT_MS`].
    pub moments: Vec<Moment>,
    /// What the reader has to know before believing a figure, the gravest first. Each is a sentence.
    pub warnings: Vec<String>,
}

/// What one lane measured.
#[derive(Debug, Clone)]
pub struct LaneOutcome {
    /// The lane's name, unique in a run.
    pub name: String,
    /// What it did, in words, for instance `open loop, 10000/s Poisson, a connection per request`.
    pub description: String,
    /// What rates are over: as long as requests were offered; in a lane that has an end of its own (so many
    /// requests, a trace) from the first start to the end of the last request.
    pub lasted: Duration,
    /// How many connections stood at the end, of a lane that holds them.
    pub held: Option<u64>,
    /// What became of its requests.
    pub counts: Counts,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Counts of handshakes; empty without TLS.
    pub tls: TlsOutcome,
    /// The lane's times.
    pub times: Times,
}

/// Counts and times of handshakes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOutcome {
    /// Handshakes by version and cipher suite.
    pub suites: BTreeMap<String, u64>,
    /// Connections lost by a fault of TLS, in the handshake or behind it, by reason.
    pub faults: BTreeMap<String, u64>,
}

/// Reasons that are told apart. A server can make up many; those behind them are counted together.
const FAULTS_MAX: usize = 16;

/// Under which reason those are counted that are not told apart.
const OTHER_FAULTS: &str = "other reasons";

impl TlsOutcome {
    /// Whether there is nothing to be told.
    pub fn is_empty(&self) -> bool {
        self.suites.is_empty() && self.faults.is_empty()
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        for (suite, count) in &other.suites {
            *self.suites.entry(suite.clone()).or_default() += count;
        }
        other.faults.iter().for_each(|(reason, count)| self.count_faults(reason, *count));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.suites.clear();
        self.faults.clear();
    }

    /// A handshake came to this version and suite.
    pub(crate) fn count_suite(&mut self, suite: String) {
        *self.suites.entry(suite).or_default() += 1;
    }

    /// Counts connections that were lost for a reason.
    pub(crate) fn count_faults(&mut self, reason: &str, count: u64) {
        let is_new = !self.faults.contains_key(reason);
        let reason = if is_new && self.faults.len() >= FAULTS_MAX { OTHER_FAULTS } else { reason };
        *self.faults.entry(reason.to_owned()).or_default() += count;
    }
}

/// Times of a lane, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// From the begin of connecting until connected.
    pub connect: Histogram,
    /// From connected until the last of the server's part of the handshake of TLS has come.
    pub handshake: Histogram,
    /// From the intended start to the first byte of the answer.
    pub first_byte: Histogram,
    /// From the intended start to the last byte of right answers, late ones included.
    pub complete: Histogram,
    /// From the intended start to the real one: how far the generator was behind its own schedule.
    pub drift: Histogram,
}

impl Times {
    /// Adds another's values.
    pub fn merge(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.handshake.merge(&other.handshake);
        self.first_byte.merge(&other.first_byte);
        self.complete.merge(&other.complete);
        self.drift.merge(&other.drift);
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn reset(&mut self) {
        let all = [
            &mut self.connect,
            &mut self.handshake,
            &mut self.first_byte,
            &mut self.complete,
            &mut self.drift,
        ];
        all.into_iter().for_each(Histogram::reset);
    }
}

/// Length of one [`Moment`], in milliseconds.
pub const MOMENT_MS: u64 = 100;

/// What happened in one step of the run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Moment {
    /// End of the step, milliseconds since the run began.
    pub at_ms: u64,
    /// What happened in this step alone, in the main lane.
    pub counts: Counts,
    /// Connections open at its end, of all lanes.
    pub connections: u64,
    /// Of these, held at its end by lanes that hold: made, answered if they asked, and kept by the server.
    pub held: u64,
    /// Requests of the main lane begun and not settled at its end.
    pub in_flight: u64,
    /// Times of the right answers that came in this step, in the main lane.
    pub latency: Latency,
    /// How far the generator was behind the main lane's schedule at most, in nanoseconds.
    pub drift_max_ns: u64,
    /// The server's side, when it is probed.
    pub server: Option<Sample>,
}

/// Percentiles of one step, in nanoseconds; all 0 when nothing came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half were at most so long.
    pub p50_ns: u64,
    /// Nine of ten.
    pub p90_ns: u64,
    /// All but one of a hundred.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What became of requests and connections. All are counts of requests unless they say otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// What the schedule asked for; in a closed loop, what was begun.
    pub offered: u64,
    /// For these a connection was begun or a request was sent.
    pub attempted: u64,
    /// Answered rightly within the client's patience: goodput.
    pub in_time: u64,
    /// Answered rightly, but later than `late_after`.
    pub late: u64,
    /// The connection was refused (ECONNREFUSED).
    pub refused: u64,
    /// The connection was reset or ended before the answer was complete.
    pub reset: u64,
    /// An answer came whole, but not the expected one; or what came is not HTTP.
    pub wrong_answer: u64,
    /// Given up when the client's patience was over, connecting or waiting.
    pub timed_out: u64,
    /// Failed otherwise: no route, unreachable, connection timed out in the kernel, a fault of TLS.
    pub failed: u64,
    /// Not begun in time, or not at all, because the generator had no descriptor, port, memory or time left:
    /// its own fault.
    pub unsent: u64,
    /// Under way when the run ended.
    pub unfinished: u64,
    /// Connections begun: each sent at least one SYN.
    pub connections_begun: u64,
    /// Connections that were made: of TCP the handshake was completed.
    pub connections_made: u64,
    /// Idle connections that the server closed: no loss of a request.
    pub connections_ended: u64,
    /// SYN segments sent again, told by TCP_INFO of connections that took long.
    pub syn_retransmitted: u64,
    /// Handshakes of TLS that were completed.
    #[serde(default)]
    pub handshakes: u64,
    /// Of these, those that resumed a session.
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// Handshakes of TLS that failed: [`TlsOutcome::faults`] has the reasons.
    #[serde(default)]
    pub handshakes_failed: u64,
    /// Bytes received, heads included.
    #[serde(default)]
    pub received_bytes: u64,
    /// Bytes handed to the kernel to be sent.
    #[serde(default)]
    pub sent_bytes: u64,
}

impl Counts {
    /// Requests whose end is known. After a run it equals `offered`, exactly.
    pub fn settled(&self) -> u64 {
        self.in_time
            + self.late
            + self.refused
            + self.reset
            + self.wrong_answer
            + self.timed_out
            + self.failed
            + self.unsent
            + self.unfinished
    }

    /// Requests that did not end well.
    pub fn errors(&self) -> u64 {
        self.settled() - self.in_time - self.late - self.unfinished
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.offered += other.offered;
        self.attempted += other.attempted;
        self.in_time += other.in_time;
        self.late += other.late;
        self.refused += other.refused;
        self.reset += other.reset;
        self.wrong_answer += other.wrong_answer;
        self.timed_out += other.timed_out;
        self.failed += other.failed;
        self.unsent += other.unsent;
        self.unfinished += other.unfinished;
        self.connections_begun += other.connections_begun;
        self.connections_made += other.connections_made;
        self.connections_ended += other.connections_ended;
        self.syn_retransmitted += other.syn_retransmitted;
        self.handshakes += other.handshakes;
        self.handshakes_resumed += other.handshakes_resumed;
        self.handshakes_failed += other.handshakes_failed;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
    }
}

impl LaneOutcome {
    /// Right answers in time, a second: goodput.
    pub fn rate_per_s(&self) -> f64 {
        self.counts.in_time as f64 / self.lasted.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// What headlines, thresholds and sweeps are about. A lane beside the main one (slow clients, held
/// connections) is a circumstance: its ends are no ends of the requests that are measured.
impl RunOutcome {
    /// The main lane; `None` in an outcome of nothing.
    pub fn main(&self) -> Option<&LaneOutcome> {
        self.lanes.first()
    }

    /// The main lane's counts.
    pub fn counts(&self) -> Counts {
        self.main().map(|lane| lane.counts).unwrap_or_default()
    }

    /// The main lane's times.
    pub fn times(&self) -> Times {
        self.main().map(|lane| lane.times.clone()).unwrap_or_default()
    }

    /// What the main lane's rates are over: see [`LaneOutcome::lasted`].
    pub fn lasted(&self) -> Duration {
        self.main().map(|lane| lane.lasted).unwrap_or_default()
    }

    /// The main lane's right answers in time, a second: goodput.
    pub fn rate_per_s(&self) -> f64 {
        self.main().map_or(0.0, LaneOutcome::rate_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_make_up_reasons_without_end() {
        let (mut one, mut all) = (TlsOutcome::default(), TlsOutcome::default());
        (0..1_000).for_each(|number| one.count_faults(&format!("reason {number}"), 1));
        all.merge(&one);
        all.merge(&one);
        assert!(all.faults.len() <= FAULTS_MAX + 1, "{:?}", all.faults);
        assert_eq!(all.faults.values().sum::<u64>(), 2_000);
        assert!(all.faults[OTHER_FAULTS] >= 2 * (1_000 - FAULTS_MAX as u64), "{:?}", all.faults);
    }

    #[test]
    fn every_end_of_a_request_is_settled_once() {
        let counts = Counts {
            in_time: 1,
            late: 2,
            refused: 4,
            reset: 8,
            wrong_answer: 16,
            timed_out: 32,
            failed: 64,
            unsent: 128,
            unfinished: 256,
            ..Counts::default()
        };
        assert_eq!(counts.settled(), 511);
        assert_eq!(counts.errors(), 511 - 1 - 2 - 256);
        let mut twice = counts;
        twice += counts;
        assert_eq!(twice.settled(), 1022);
    }
}

//! Where the time of one request goes, system call by system call.
//!
//! It owns the two measurements that belong together: the calls with their times under strace, and the same
//! requests without it, for times under strace are far from those without. It must never draw.

mod asking;
mod served;
mod strace;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use staunch_netio::clock;

use self::asking::Question;
use self::served::Served;
use self::strace::Seen;
use crate::model::Model;
use crate::results::Protocol;
use crate::syscall::processor_time_of_ended_children_ns;

/// Requests before those that count: every process and thread of a pool is there then.
const WARMING_COUNT: u32 = 20;
/// How long a server is left alone before and after what counts, so that it has done all that was to do.
const REST: Duration = Duration::from_millis(200);

/// What is to be traced.
#[derive(Debug, Clone)]
pub struct Order {
    /// The model.
    pub model: &'static Model,
    /// Processes or threads of its pool.
    pub pool: u16,
    /// Requests, one after the other.
    pub requests: u32,
    /// Bytes of each answer.
    pub bytes: usize,
    /// Whether all come on one connection.
    pub keep_alive: bool,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// Name of the model.
    pub model: &'static str,
    /// Processes or threads of its pool.
    pub pool: u16,
    /// How the client spoke.
    pub protocol: Protocol,
    /// Requests, one after the other.
    pub requests: u32,
    /// Bytes of each answer.
    pub bytes: usize,
    /// System calls by the time they took, longest first, and those that wait after those that work.
    pub calls: Vec<Call>,
    /// From asking to the end of the answer, under strace, in nanoseconds.
    pub request_traced_ns: u64,
    /// The same without.
    pub request_ns: u64,
    /// Processor time for a request of the server and strace together, user and system, in nanoseconds.
    pub processor_traced_ns: u64,
    /// Processor time for a request of the server without strace.
    pub processor_ns: u64,
}

/// All calls of one kind. Times are by the clock, under strace, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Whether it waits for somebody else if there is nothing for it yet: then its time is no work.
    pub waits: bool,
    /// How often it was called, by all processes and threads, for all requests.
    pub count: u64,
    /// How many of these failed; to be told to come again (EAGAIN) is a failure too.
    pub failed: u64,
    /// All of their times together.
    pub total_ns: u64,
    /// The shortest.
    pub shortest_ns: u64,
    /// Half of them took no longer.
    pub median_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

impl Trace {
    /// Whether all requests came on one connection.
    pub fn keep_alive(&self) -> bool {
        self.protocol == Protocol::KeepAlive
    }

    /// System calls of a request.
    pub fn calls_per_request(&self) -> f64 {
        self.calls.iter().map(|call| call.count).sum::<u64>() as f64 / f64::from(self.requests)
    }

    /// Processor time that strace adds to each call, in nanoseconds: it stops the server before and after it.
    pub fn overhead_ns(&self) -> f64 {
        self.processor_traced_ns.saturating_sub(self.processor_ns) as f64 / self.calls_per_request()
    }
}

/// Runs the model under strace and without, by `PROGRAM lab serve`.
///
/// # Errors
/// There is no strace, it is not allowed, or the model does not serve: in a sentence.
pub fn run(program: &Path, order: &Order) -> Result<Trace, String> {
    let protocol = match order.keep_alive {
        true => Protocol::KeepAlive,
        false if order.model.speaks_paper => Protocol::Paper,
        false => Protocol::Http,
    };
    let plain = one_run(program, order, protocol, false, order.requests)?;
    let traced = one_run(program, order, protocol, true, order.requests)?;
    // To start, to be warmed and to end costs the same without a request.
    let plain_idle_ns = one_run(program, order, protocol, false, 0)?.processor_ns;
    let traced_idle_ns = one_run(program, order, protocol, true, 0)?.processor_ns;
    let requests = u64::from(order.requests);
    Ok(Trace {
        model: order.model.name,
        pool: order.pool,
        protocol,
        requests: order.requests,
        bytes: order.bytes,
        calls: sums(&strace::calls(&traced.text), traced.began_ns, traced.ended_ns),
        request_traced_ns: traced.wall_ns / requests,
        request_ns: plain.wall_ns / requests,
        processor_traced_ns: traced.processor_ns.saturating_sub(traced_idle_ns) / requests,
        processor_ns: plain.processor_ns.saturating_sub(plain_idle_ns) / requests,
    })
}

struct Run {
    /// What strace wrote.
    text: String,
    /// Between these moments, in nanoseconds since 1970, fell all that counts.
    began_ns: u64,
    ended_ns: u64,
    /// From the first request to the end of the last answer.
    wall_ns: u64,
    /// Of the server, and of strace, from their start to their end.
    processor_ns: u64,
}

fn one_run(
    program: &Path,
    order: &Order,
    protocol: Protocol,
    traced: bool,
    requests: u32,
) -> Result<Run, String> {
    let before_ns = processor_time_of_ended_children_ns();
    let served = Served::start(program, order.model.name, order.pool, traced)?;
    let question = Question { address: served.address, protocol, bytes: order.bytes };
    question.ask(WARMING_COUNT)?;
    clock::pause(REST);
    let (began_ns, start_ns) = (unix_ns(), clock::now_ns());
    question.ask(requests)?;
    let wall_ns = clock::now_ns() - start_ns;
    clock::pause(REST);
    let ended_ns = unix_ns();
    let text = served.end()?;
    let processor_ns = processor_time_of_ended_children_ns() - before_ns;
    Ok(Run { text, began_ns, ended_ns, wall_ns, processor_ns })
}

/// The calls that ended between two moments, by name and kind. Of a call that began earlier only what is
/// between the two counts.
fn sums(calls: &[Seen], began_ns: u64, ended_ns: u64) -> Vec<Call> {
    let mut times: BTreeMap<(&str, bool), (Vec<u64>, u64)> = BTreeMap::new();
    for call in calls.iter().filter(|call| (began_ns..=ended_ns).contains(&call.ended_ns)) {
        let (times, failed) = times.entry((&call.name, call.waits)).or_default();
        times.push(call.took_ns.min(call.ended_ns - began_ns));
        *failed += u64::from(call.failed);
    }
    let sum = |((name, waits), (mut times, failed)): ((&str, bool), (Vec<u64>, u64))| {
        times.sort_unstable();
        Call {
            name: name.to_owned(),
            waits,
            count: times.len() as u64,
            failed,
            total_ns: times.iter().sum(),
            shortest_ns: times[0],
            median_ns: times[(times.len() - 1) / 2],
            longest_ns: times[times.len() - 1],
        }
    };
    let mut sums: Vec<Call> = times.into_iter().map(sum).collect();
    sums.sort_by_key(|call| (call.waits, std::cmp::Reverse(call.total_ns)));
    sums
}

fn unix_ns() -> u64 {
    let since = clock::unix_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, waits: bool, ended_ns: u64, took_ns: u64) -> Seen {
        Seen { name: name.into(), waits, failed: name == "read", ended_ns, took_ns }
    }

    #[test]
    fn calls_are_summed_by_name_and_kind() {
        let calls = [
            seen("close", false, 99, 50), // before
            seen("accept", true, 110, 90),
            seen("read", false, 120, 7),
            seen("futex", true, 130, 15),
            seen("futex", false, 140, 2),
            seen("close", false, 150, 5),
            seen("close", false, 160, 3),
            seen("close", false, 170, 4),
            seen("close", false, 201, 50), // after
        ];
        let sums = sums(&calls, 100, 200);
        let rows: Vec<_> =
            sums.iter().map(|call| (call.name.as_str(), call.waits, call.count, call.total_ns)).collect();
        let expected = [
            ("close", false, 3, 12),
            ("read", false, 1, 7),
            ("futex", false, 1, 2),
            ("futex", true, 1, 15),
            ("accept", true, 1, 10), // began before
        ];
        assert_eq!(rows, expected);
        assert_eq!((sums[0].shortest_ns, sums[0].median_ns, sums[0].longest_ns), (3, 4, 5));
        assert_eq!((sums[0].failed, sums[1].failed), (0, 1));
    }

    #[test]
    fn what_strace_adds_is_spread_over_calls() {
        let calls = sums(&[seen("close", false, 1, 1), seen("close", false, 2, 1)], 0, 9);
        let trace = Trace {
            model: "prefork",
            pool: 1,
            protocol: Protocol::Paper,
            requests: 1,
            bytes: 1,
            calls,
            request_traced_ns: 400_000,
            request_ns: 30_000,
            processor_traced_ns: 90_000,
            processor_ns: 30_000,
        };
        assert!((trace.calls_per_request() - 2.0).abs() < 1e-9);
        assert!((trace.overhead_ns() - 30_000.0).abs() < 1e-9);
    }
}

//! What one thread needs for its share of every lane, made from the plan before the run begins.
//!
//! It must never open a connection. Order of calls: `fit`, then `begin` when the run begins.

use std::time::Duration;

use staunch_netio::{Outgoing, Part, Target};

use crate::client::{ClientPlan, LaneClient};
use crate::fault::Fault;
use crate::lane::Lane;
use crate::lane::closed::{Closed, ClosedPlan};
use crate::lane::hold::Hold;
use crate::lane::open::{Open, OpenPlan};
use crate::lane::slow::{Pace, Slow};
use crate::mix::Mix;
use crate::plan::{LaneKind, LanePlan, Plan, SlotPlan};
use crate::schedule::{Schedule, Share};
use crate::secured::TlsClient;

/// A line that a slow head goes on with for ever.
const ENDLESS_LINE: &[u8] = b"X-Slow: 1\r\n";

/// Kept connections are made beforehand for as many requests as start in this time, in seconds: a server that
/// answers sooner needs no more of them.
const PREPARED_S: f64 = 0.005;

/// The kernel's receive buffer of a slow reader: the server feels soon that nobody reads.
const SIP_BYTES: usize = 4096;

/// A thread's part.
pub(crate) struct Fittings(Vec<Fitting>);

/// A lane's part of it.
struct Fitting {
    client: ClientPlan,
    work: Work,
}

/// What the lane will do. Counts are this thread's share.
enum Work {
    Closed(ClosedPlan),
    Open(OpenPlan),
    Slow { connections: u32, interval_ns: u64, pace: Pace },
    Hold { connections: u32, open_per_s: Option<f64>, request_first: bool },
}

/// Which of how many threads.
#[derive(Debug, Clone, Copy)]
struct ThreadIndex {
    number: u32,
    of: u32,
}

impl ThreadIndex {
    /// Whether there is at least one for this thread. Of nothing, the first thread has all.
    fn has_part_of(self, count: u32) -> bool {
        self.number < count.max(1)
    }
}

/// Makes what this thread needs; all its lanes resume the sessions of `tls`.
///
/// # Errors
/// What is wrong with a request, a schedule or an address.
pub(crate) fn fit(plan: &Plan, thread: usize, tls: Option<&TlsClient>) -> Result<Fittings, Fault> {
    let thread_index = ThreadIndex { number: thread as u32, of: plan.threads.len() as u32 };
    let lanes = plan.lanes.iter().filter(|lane| !matches!(lane.kind, LaneKind::Flood(_)));
    let fit = |(number, lane): (usize, &LanePlan)| {
        let seed = plan.seed.wrapping_add(number as u64 * 7919);
        let mut mix = Mix::new(&lane.mix, seed, thread_index.number)?;
        let work = work(lane, &mut mix, seed, thread_index)?;
        let client = ClientPlan {
            lane: number as u16,
            targets: targets(plan, lane, thread_index),
            patience_ns: lane.patience.map(nanoseconds),
            late_after_ns: lane.late_after.map(nanoseconds),
            tls: tls.cloned(),
            mix,
        };
        Ok(Fitting { client, work })
    };
    lanes.enumerate().map(fit).collect::<Result<_, _>>().map(Fittings)
}

impl Fittings {
    /// The most connections at a time, when there is such a number.
    pub(crate) fn capacity(&self) -> Option<u32> {
        let each = self.0.iter().map(|fitting| match &fitting.work {
            Work::Closed(plan) => Some(plan.connections),
            Work::Slow { connections, .. } | Work::Hold { connections, .. } => Some(*connections),
            Work::Open(OpenPlan { slots: SlotPlan::Kept { connections_max }, .. }) => Some(*connections_max),
            Work::Open(OpenPlan { slots: SlotPlan::PerRequest, .. }) => None,
        });
        // Those that are being closed still take a slot.
        each.sum::<Option<u32>>().map(|sum| sum.saturating_mul(2).saturating_add(64))
    }

    /// The lanes, which begin and end then.
    pub(crate) fn begin(self, began_ns: u64, end_ns: u64) -> Vec<Lane> {
        self.0.into_iter().map(|fitting| fitting.begin(began_ns, end_ns)).collect()
    }
}

impl Fitting {
    fn begin(self, began_ns: u64, end_ns: u64) -> Lane {
        let client = LaneClient::new(self.client);
        match self.work {
            Work::Closed(plan) => Lane::Closed(Closed::new(client, &plan)),
            Work::Open(plan) => Lane::Open(Open::new(client, plan, began_ns, end_ns)),
            Work::Slow { connections, interval_ns, pace } => {
                Lane::Slow(Slow::new(client, connections, interval_ns, pace))
            }
            Work::Hold { connections, open_per_s, request_first } => {
                Lane::Hold(Hold::new(client, connections, open_per_s, request_first))
            }
        }
    }
}

fn work(lane: &LanePlan, mix: &mut Mix, seed: u64, thread_index: ThreadIndex) -> Result<Work, Fault> {
    let slow = |connections: &u32, interval, pace| Work::Slow {
        connections: share(*connections, thread_index),
        interval_ns: nanoseconds(interval),
        pace,
    };
    Ok(match &lane.kind {
        LaneKind::Closed { connections, pipeline, requests_per_connection, requests } => {
            Work::Closed(ClosedPlan {
                connections: share(*connections, thread_index),
                pipeline: *pipeline,
                requests_per_connection: *requests_per_connection,
                requests: requests.map(|requests| share_of_requests(requests, *connections, thread_index)),
            })
        }
        LaneKind::Open { slots: SlotPlan::Kept { connections_max }, .. }
            if !thread_index.has_part_of(*connections_max) =>
        {
            Work::Closed(ClosedPlan::NOTHING)
        }
        LaneKind::Open { arrivals, profile, slots } => {
            let parts = match slots {
                SlotPlan::PerRequest => thread_index.of,
                SlotPlan::Kept { connections_max } => thread_index.of.min(*connections_max).max(1),
            };
            let share = Share { part: thread_index.number, parts };
            let schedule = Schedule::new(arrivals, profile, seed, share)?;
            let (slots, prepared) = match slots {
                SlotPlan::PerRequest => (SlotPlan::PerRequest, 0),
                SlotPlan::Kept { connections_max } => {
                    let connections_max = self::share(*connections_max, thread_index);
                    let rate_per_s = profile.first_rate_per_s() / f64::from(parts);
                    let prepared = (rate_per_s * PREPARED_S).ceil() as u32;
                    (SlotPlan::Kept { connections_max }, prepared.min(connections_max))
                }
            };
            Work::Open(OpenPlan { schedule, slots, prepared })
        }
        LaneKind::SlowHeaders { connections, interval } => {
            let head = head(mix, None);
            slow(connections, *interval, drip(head, ENDLESS_LINE, u64::MAX))
        }
        LaneKind::SlowBody { connections, interval, length_bytes } => {
            let mut head = head(mix, Some(*length_bytes));
            head.extend_from_slice(b"\r\n");
            slow(connections, *interval, drip(head, b"x", *length_bytes))
        }
        LaneKind::SlowReader { connections, interval } => slow(connections, *interval, Pace::Sip),
        LaneKind::Hold { connections, open_per_s, request_first } => Work::Hold {
            connections: share(*connections, thread_index),
            open_per_s: open_per_s.map(|rate| rate / f64::from(thread_index.of)),
            request_first: *request_first,
        },
        LaneKind::Flood(_) => return Err(Fault::new("a flood has no share of a thread")),
    })
}

fn drip(at_once: Vec<u8>, slowly: &[u8], length_bytes: u64) -> Pace {
    Pace::Drip { at_once: at_once.into(), slowly: slowly.into(), length_bytes }
}

/// The first request's head without the blank line; with a body announced, as a POST.
fn head(mix: &mut Mix, length_bytes: Option<u64>) -> Vec<u8> {
    let mut outgoing = Outgoing::default();
    mix.write(0, 0, 0, 0, &mut outgoing);
    let (own, parts) = outgoing.contents();
    let mut bytes: Vec<u8> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Shared(slice) => Some(slice.as_bytes()),
            Part::Own(_) | Part::File(_) => None,
        })
        .flatten()
        .chain(own)
        .copied()
        .collect();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 2);
    bytes.truncate(end);
    if let Some(length) = length_bytes {
        let method_end = bytes.iter().position(|byte| *byte == b' ').unwrap_or(0);
        bytes.splice(..method_end, *b"POST");
        bytes.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    bytes
}

/// A target per source, or one without. Threads take sources in turn, so that, as long as they are equally
/// fast, no source comes a second time before all have come once.
fn targets(plan: &Plan, lane: &LanePlan, thread_index: ThreadIndex) -> Vec<Target> {
    let target = |source| Target {
        address: plan.address.clone(),
        source,
        reset_on_close: lane.reset_on_close,
        receive_buffer_bytes: matches!(lane.kind, LaneKind::SlowReader { .. }).then_some(SIP_BYTES),
    };
    if plan.sources.is_empty() {
        return vec![target(None)];
    }
    in_turn(&plan.sources, thread_index).map(|source| target(Some(*source))).collect()
}

/// All of them, this thread's share first, then those of the other threads.
fn in_turn<T>(all: &[T], thread_index: ThreadIndex) -> impl Iterator<Item = &T> {
    let ThreadIndex { number, of } = thread_index;
    (0..of).flat_map(move |next| all.iter().skip(((number + next) % of) as usize).step_by(of as usize))
}

/// This thread's share of a count: the first threads take what cannot be divided.
fn share(count: u32, thread_index: ThreadIndex) -> u32 {
    share_of(u64::from(count), thread_index) as u32
}

/// This thread's share of a lane's requests. A thread without a connection can send none.
fn share_of_requests(requests: u64, connections: u32, thread_index: ThreadIndex) -> u64 {
    let of = thread_index.of.min(connections);
    if thread_index.number < of { share_of(requests, ThreadIndex { of, ..thread_index }) } else { 0 }
}

fn share_of(count: u64, thread_index: ThreadIndex) -> u64 {
    let of = u64::from(thread_index.of);
    count / of + u64::from(u64::from(thread_index.number) < count % of)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for count in [0, 1, 7, 64, 1_000_001] {
            for of in 1..9 {
                let shares = (0..of).map(|number| share(count, ThreadIndex { number, of }));
                assert_eq!(shares.sum::<u32>(), count);
            }
        }
    }

    #[test]
    fn no_source_comes_again_before_all_have_come() {
        for (count, of) in [(2048, 2), (7, 3), (2, 4), (5, 1)] {
            let all: Vec<u32> = (0..count).collect();
            let each: Vec<Vec<u32>> =
                (0..of).map(|number| in_turn(&all, ThreadIndex { number, of }).copied().collect()).collect();
            let mut first: Vec<u32> =
                each.iter().flat_map(|own| own.iter().take((count / of) as usize).copied()).collect();
            first.sort_unstable();
            first.dedup();
            assert_eq!(first.len() as u32, count / of * of, "{count} among {of}");
            for mut own in each {
                own.sort_unstable();
                assert_eq!(own, all, "{count} among {of}: every thread has all");
            }
        }
    }

    #[test]
    fn no_thread_without_a_connection_has_requests() {
        for (requests, connections, of) in [(100, 1, 2), (7, 3, 8), (1_000_003, 5, 4), (3, 64, 4)] {
            let share = |number| ThreadIndex { number, of };
            let mut sum = 0;
            for number in 0..of {
                let part = share_of_requests(requests, connections, share(number));
                assert!(part == 0 || super::share(connections, share(number)) > 0);
                sum += part;
            }
            assert_eq!(sum, requests);
        }
        assert_eq!(share_of_requests(5, 0, ThreadIndex { number: 0, of: 2 }), 0);
    }

    #[test]
    fn a_thread_without_a_slot_has_no_part_in_a_schedule() {
        let thread_index = |number| ThreadIndex { number, of: 4 };
        assert_eq!(
            [0, 1, 2, 3].map(|number| thread_index(number).has_part_of(2)),
            [true, true, false, false]
        );
        assert_eq!(
            [0, 1, 2, 3].map(|number| thread_index(number).has_part_of(0)),
            [true, false, false, false]
        );
    }
}

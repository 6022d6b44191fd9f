//! What has to hold of a worker, after each turn and at the end.
//!
//! It must never change what it looks at.

use std::collections::BTreeMap;

use staunch_netio::Io;
use staunch_netio::simulated::Simulated;

use super::world::World;
use crate::connection::{ClientConnection, ConnectionState};
use crate::lane::Lane;
use crate::lane::hold::Hold;
use crate::links::NONE;
use crate::outcome::Counts;
use crate::plan::{LaneKind, SlotPlan};
use crate::schedule::{Schedule, Share};
use crate::worker::Worker;

/// The simulated clock counts milliseconds, so what is due within one is done at its end.
const CLOCK_NS: u64 = 1_000_000;

/// A list may have entries of connections that ended, until they are twice as many as the others and 64 more;
/// the one that is just going counts as well.
const LIST_LENGTH_REST: usize = 66;

/// A report comes at most so long after the last: the end of the grace is seen then.
const STEP_NS: u64 = 100_000_000;

/// After a turn. `reported` are the counts that were handed over.
pub(super) fn turn(worker: &mut Worker<Simulated>, reported: &[Counts], keeps_time: bool) {
    let Worker { net, lanes, .. } = worker;
    let used = net.connections.iter().filter(|connection| connection.state != ConnectionState::Free).count();
    assert_eq!(used as u64, net.live, "connections and their count");
    assert_eq!(used, net.io.slots_used(), "connections and slots");
    assert_eq!(net.io.inputs_held(), 0, "inputs that were not released");
    let now_ns = net.io.now_ns();
    for (number, lane) in lanes.iter_mut().enumerate() {
        accounts(number, lane, &net.connections, &reported[number]);
        connections(number, lane, &net.connections);
        waiting(number, lane, &net.connections, keeps_time.then_some(now_ns));
        let drift_max_ns = lane.client().tally.drift_max_ns;
        assert!(!keeps_time || drift_max_ns < CLOCK_NS, "lane {number} began {drift_max_ns} ns late");
    }
}

fn of_lane(
    connections: &[ClientConnection],
    number: usize,
) -> impl Iterator<Item = (usize, &ClientConnection)> {
    let here = move |connection: &ClientConnection| {
        connection.state != ConnectionState::Free && usize::from(connection.lane) == number
    };
    connections.iter().enumerate().filter(move |(_, connection)| here(connection))
}

/// Every request offered has an end, or is under way on a connection that may still bring one.
fn accounts(number: usize, lane: &mut Lane, table: &[ClientConnection], reported: &Counts) {
    let client = lane.client();
    let mut counts = *reported;
    counts += client.tally.counts;
    assert_eq!(counts.settled() + client.in_flight, counts.offered, "lane {number}: {counts:?}");
    assert!(counts.attempted <= counts.offered, "lane {number}: {counts:?}");
    let flights: usize = of_lane(table, number).map(|(_, connection)| connection.flights.len()).sum();
    assert_eq!(flights as u64, client.in_flight, "lane {number}: requests under way");
    for (slot, connection) in of_lane(table, number) {
        let alive = connection.is_alive() || connection.flights.is_empty();
        assert!(alive, "lane {number}: slot {slot} was given up with requests under way");
        assert!(connection.unsent as usize <= connection.flights.len() || !connection.is_alive());
    }
}

/// The lane knows its connections, and its lists are no longer than these explain.
fn connections(number: usize, lane: &mut Lane, table: &[ClientConnection]) {
    let live = of_lane(table, number).count();
    if let Some(dialer) = lane.dialer() {
        let dialing = of_lane(table, number).filter(|(_, connection)| connection.dialing).count();
        assert_eq!((dialer.live, dialer.connecting), (live as u32, dialing as u32), "lane {number}: dialer");
    }
    match lane {
        Lane::Open(lane) => {
            assert_eq!(lane.live as usize, live, "lane {number}: connections");
            assert!(
                lane.idle.len() <= LIST_LENGTH_REST + 3 * live,
                "lane {number}: {} idle",
                lane.idle.len()
            );
        }
        Lane::Slow(lane) => {
            assert!(lane.due.len() <= LIST_LENGTH_REST + 3 * live, "lane {number}: {} due", lane.due.len());
        }
        Lane::Hold(lane) => {
            let held = of_lane(table, number).filter(|(_, connection)| Hold::stands(connection)).count();
            assert_eq!(lane.held, held as u64, "lane {number}: connections held");
        }
        Lane::Closed(_) => {}
    }
    let leaving =
        of_lane(table, number).filter(|(_, connection)| connection.state == ConnectionState::Leaving);
    let (leaving, listed) = (leaving.count(), lane.client().leaving.len());
    assert!(leaving <= listed, "lane {number}: {leaving} connections leave, {listed} are listed");
}

/// Waiting connections are listed in order, and none waits beyond patience.
fn waiting(number: usize, lane: &mut Lane, table: &[ClientConnection], now_ns: Option<u64>) {
    let client = lane.client();
    let Some(patience_ns) = client.patience_ns else {
        return assert_eq!(client.waiting.first(), None, "lane {number}: nobody loses patience");
    };
    let mut listed = Vec::new();
    let mut next = client.waiting.first().unwrap_or(NONE);
    while next != NONE {
        listed.push(next as usize);
        next = table[next as usize].links.after;
    }
    let since_ns = |slot: &usize| table[*slot].waits_since_ns();
    assert!(listed.is_sorted_by_key(since_ns), "lane {number}: {listed:?} are not in order");
    if let (Some(now_ns), Some(first)) = (now_ns, listed.first()) {
        let until_ns = since_ns(first) + patience_ns;
        assert!(now_ns < until_ns + CLOCK_NS, "lane {number}: slot {first} waits too long");
    }
    listed.sort_unstable();
    let waits = of_lane(table, number).filter(|(_, connection)| !connection.flights.is_empty());
    assert_eq!(listed, waits.map(|(slot, _)| slot).collect::<Vec<_>>(), "lane {number}: who waits");
}

/// When the run is over.
pub(super) fn end(
    worker: &mut Worker<Simulated>,
    lanes: &[Counts],
    statuses: &BTreeMap<u16, u64>,
    world: &World,
) {
    let mut all = Counts::default();
    for (number, counts) in lanes.iter().enumerate() {
        assert_eq!(worker.lanes[number].client().in_flight, 0, "lane {number}");
        assert_eq!(counts.settled(), counts.offered, "lane {number}: {counts:?}");
        if let Some(scheduled) = scheduled(world, number, worker) {
            assert_eq!(counts.offered, scheduled, "lane {number}: what the schedule says");
        }
        all += *counts;
    }
    let (io, times) = (&worker.net.io, &worker.times);
    assert_eq!(io.slots_used() as u64, worker.net.live);
    assert_eq!(io.inputs_held(), 0);
    let end_ns = times.until_ns.saturating_add(times.grace_ns + STEP_NS + CLOCK_NS);
    assert!(!world.keeps_time() || io.now_ns() <= end_ns, "the run ends too late");
    let answers: u64 = statuses.values().sum();
    let right = all.in_time + all.late;
    assert!(right <= answers && answers <= right + all.wrong_answer, "{all:?} {statuses:?}");
    let transcripts = || (0..world.scripts.len()).map(|peer| io.transcript(peer));
    let seen_bytes: usize = transcripts().map(|transcript| transcript.received.len()).sum();
    assert!(seen_bytes as u64 <= all.sent_bytes, "the servers saw {seen_bytes} bytes: {all:?}");
    let seen = transcripts().filter(|transcript| transcript.accepted).count() as u64;
    assert!(all.connections_made <= seen && seen <= all.connections_begun, "{seen} connections: {all:?}");
    if world.is_kind {
        assert_eq!((all.in_time, all.sent_bytes), (all.offered, seen_bytes as u64), "{all:?}");
        assert_eq!(all.offered, world.scripts.len() as u64, "{all:?}");
    }
}

/// How many requests the lane's schedule has until the run was stopped, if nobody changed its rate.
fn scheduled(world: &World, number: usize, worker: &Worker<Simulated>) -> Option<u64> {
    let LaneKind::Open { arrivals, profile, slots } = &world.plan.lanes[number].kind else { return None };
    if !world.factors.is_empty() {
        return None;
    }
    let mut parts = world.plan.threads.len() as u32;
    if let SlotPlan::Kept { connections_max } = slots {
        parts = parts.min(*connections_max);
    }
    let share = Share { part: world.thread as u32, parts };
    if share.part >= parts {
        return Some(0);
    }
    let seed = world.plan.seed.wrapping_add(number as u64 * 7919);
    let mut schedule = Schedule::new(arrivals, profile, seed, share).expect("it was made before");
    let until_ns = worker.times.until_ns - worker.times.began_ns;
    let times = std::iter::from_fn(|| schedule.next_ns());
    Some(times.take_while(|at_ns| *at_ns < until_ns).count() as u64)
}

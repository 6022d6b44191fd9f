//! What the threads of a truth server share: plan, counts, gate, workers, open connections.
//!
//! It owns who is connected. Order: `admit` once a connection, `leave` at its end; `end` once.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use super::counts::{Ledger, StallTimes};
use super::pace::Pace;
use super::plan::Plan;
use super::pool::WorkerPool;
use super::stream::Stream;

/// A truth server.
#[derive(Debug)]
pub(crate) struct House {
    /// What was asked for.
    pub(crate) plan: Plan,
    /// What was done.
    pub(crate) ledger: Ledger,
    /// The gate.
    pub(crate) pace: Pace,
    /// The workers.
    pub(crate) pool: WorkerPool,
    guests: Mutex<Guests>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Guests {
    streams: HashMap<u64, Arc<Stream>>,
    next_number: u64,
}

impl House {
    /// A truth server to which no client is connected yet.
    pub(crate) fn new(plan: Plan) -> Self {
        let pool = WorkerPool::new(plan.workers, plan.service_time, plan.work);
        let (guests, left) = (Mutex::default(), Condvar::new());
        Self { plan, ledger: Ledger::default(), pace: Pace::new(), pool, guests, left }
    }

    /// Counts a connection and keeps it reachable. `None` when the server ends.
    pub(crate) fn admit(&self, stream: Stream) -> Option<(u64, Arc<Stream>)> {
        let mut guests = self.lock();
        if self.pace.has_ended() {
            return None;
        }
        self.ledger.note(|counts| {
            counts.connections_accepted += 1;
            counts.connections_open += 1;
        });
        let number = guests.next_number;
        guests.next_number += 1;
        let stream = Arc::new(stream);
        guests.streams.insert(number, Arc::clone(&stream));
        Some((number, stream))
    }

    /// Closes a connection.
    pub(crate) fn leave(&self, number: u64, stream: Arc<Stream>) {
        self.ledger.note(|counts| counts.connections_open -= 1);
        let mut guests = self.lock();
        guests.streams.remove(&number);
        drop(stream);
        drop(guests);
        self.left.notify_all();
    }

    /// Begins a stall, or ends it.
    pub(crate) fn stall(&self, begins: bool) {
        if begins {
            if self.pace.set_stalled(true) {
                let stall = StallTimes { began_ns: now_ns(), ended_ns: None };
                self.ledger.note(|counts| counts.stalls.push(stall));
            }
            return;
        }
        // Noted first: who sees the first answer after a stall sees that it has ended.
        self.ledger.note(|counts| {
            if let Some(stall) = counts.stalls.last_mut() {
                stall.ended_ns.get_or_insert_with(now_ns);
            }
        });
        self.pace.set_stalled(false);
    }

    /// Wakes every thread and waits until all connections are closed.
    pub(crate) fn end(&self) {
        self.pace.end();
        let guests = self.lock();
        guests.streams.values().for_each(|stream| stream.end());
        let still_there = |guests: &mut Guests| !guests.streams.is_empty();
        drop(self.left.wait_while(guests, still_there).unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both fields of CLOCK_MONOTONIC are never negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

//! The workers of a truth server as a queue with a known service time.
//!
//! It owns who is served when: in the order of arrival, each for exactly the service time. The ends of
//! services are reckoned, not measured (one begins at the end of the one before, or at the arrival if the
//! worker was idle), so what a sleep lasts too long is not lost: the capacity is `workers / service_time`
//! exactly. It must never serve in no time what came while the server was stopped.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::pace::{Ended, Pace};
use super::plan::Work;

/// How far a worker that was kept from running may catch up. Longer than a scheduler's turn, shorter than
/// what anybody calls a stall.
const CATCH_UP_MAX: Duration = Duration::from_millis(50);

/// Workers and who waits for one.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    service_time: Duration,
    work: Work,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// For each idle worker the reckoned end of its last service.
    idle: Vec<Instant>,
    workers: usize,
    /// Workers that end with their service.
    leaving: usize,
    waiting: VecDeque<Arc<Ticket>>,
}

/// A place in the queue: is given the end of the worker's last service.
#[derive(Debug, Default)]
struct Ticket {
    given: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl WorkerPool {
    /// Idle workers.
    pub(crate) fn new(workers: usize, service_time: Duration, work: Work) -> Self {
        let state =
            State { idle: vec![Instant::now(); workers], workers, leaving: 0, waiting: VecDeque::new() };
        Self { service_time, work, state: Mutex::new(state) }
    }

    /// Waits for a worker and for the end of its service to a request that was complete at `arrival`.
    pub(crate) fn serve(&self, arrival: Instant, pace: &Pace) -> Result<(), Ended> {
        if self.service_time.is_zero() {
            return Ok(());
        }
        let last_departure = self.take_worker();
        let departure = match pace.pass() {
            Ok(resumed_at) => self.departure(arrival, last_departure, resumed_at),
            Err(Ended) => last_departure,
        };
        let served = self.pass_time(departure, pace);
        self.release_worker(departure);
        served
    }

    /// So many workers from now on.
    pub(crate) fn set_workers(&self, workers: usize) {
        let mut state = self.lock();
        let (more, fewer) = (workers.saturating_sub(state.workers), state.workers.saturating_sub(workers));
        state.workers = workers;
        let staying = more.min(state.leaving);
        state.leaving -= staying;
        for _ in staying..more {
            state.release(Instant::now());
        }
        for _ in 0..fewer {
            if state.idle.pop().is_none() {
                state.leaving += 1;
            }
        }
    }

    fn departure(&self, arrival: Instant, last_departure: Instant, resumed_at: Instant) -> Instant {
        let start = arrival.max(last_departure).max(resumed_at);
        let earliest = Instant::now().checked_sub(CATCH_UP_MAX).unwrap_or(start);
        start.max(earliest) + self.service_time
    }

    fn pass_time(&self, departure: Instant, pace: &Pace) -> Result<(), Ended> {
        if self.work == Work::Burn {
            while Instant::now() < departure && !pace.has_ended() {
                std::hint::spin_loop();
            }
        }
        pace.sleep_until(departure)
    }

    fn take_worker(&self) -> Instant {
        let mut state = self.lock();
        if let Some(last_departure) = state.idle.pop() {
            return last_departure;
        }
        let ticket = Arc::new(Ticket::default());
        state.waiting.push_back(Arc::clone(&ticket));
        drop(state);
        ticket.wait()
    }

    fn release_worker(&self, departure: Instant) {
        let mut state = self.lock();
        if state.leaving > 0 {
            state.leaving -= 1;
        } else {
            state.release(departure);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A worker is there for the next.
    fn release(&mut self, departure: Instant) {
        match self.waiting.pop_front() {
            Some(ticket) => ticket.give(departure),
            None => self.idle.push(departure),
        }
    }
}

impl Ticket {
    fn wait(&self) -> Instant {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(last_departure) = *given {
                return last_departure;
            }
            given = self.changed.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give(&self, last_departure: Instant) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(last_departure);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until so many stand in the queue.
    fn await_waiting(pool: &WorkerPool, count: usize) {
        while pool.lock().waiting.len() < count {
            std::thread::yield_now();
        }
    }

    fn idle_and_leaving(pool: &WorkerPool) -> (usize, usize) {
        let state = pool.lock();
        (state.idle.len(), state.leaving)
    }

    #[test]
    fn the_first_to_come_is_the_first_to_be_served() {
        let pool = WorkerPool::new(1, Duration::from_millis(1), Work::Sleep);
        let order = Mutex::new(Vec::new());
        let worker = pool.take_worker();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (pool, order) = (&pool, &order);
                scope.spawn(move || {
                    let worker = pool.take_worker();
                    order.lock().unwrap().push(number);
                    pool.release_worker(worker);
                });
                await_waiting(pool, number + 1);
            }
            assert!(order.lock().unwrap().is_empty());
            pool.release_worker(worker);
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(pool.lock().idle.len(), 1);
    }

    #[test]
    fn workers_come_and_go_when_they_have_served() {
        let pool = WorkerPool::new(3, Duration::from_millis(1), Work::Sleep);
        let at_work = [pool.take_worker(), pool.take_worker()];
        pool.set_workers(1);
        assert_eq!(idle_and_leaving(&pool), (0, 1));
        pool.set_workers(4);
        assert_eq!(idle_and_leaving(&pool), (2, 0));
        pool.set_workers(2);
        at_work.into_iter().for_each(|worker| pool.release_worker(worker));
        assert_eq!(idle_and_leaving(&pool), (2, 0));
    }

    #[test]
    fn services_follow_each_other_without_a_gap() {
        let millisecond = Duration::from_millis(1);
        let pool = WorkerPool::new(1, 10 * millisecond, Work::Sleep);
        let now = Instant::now();
        let before = now - millisecond;
        // The worker was idle: the service begins with the arrival.
        assert_eq!(pool.departure(now, before, before), now + 10 * millisecond);
        // The worker was busy until later: the service begins then.
        assert_eq!(pool.departure(before, now, before), now + 10 * millisecond);
        // Nothing is served in a stall.
        assert_eq!(pool.departure(before, before, now), now + 10 * millisecond);
        // A process that was stopped does not serve in no time what it missed.
        let long_ago = now - Duration::from_secs(1);
        assert!(pool.departure(long_ago, long_ago, long_ago) >= now - CATCH_UP_MAX + 10 * millisecond);
    }

    #[test]
    fn the_end_sends_everybody_home() {
        let pool = WorkerPool::new(1, Duration::from_secs(3600), Work::Sleep);
        let pace = Pace::new();
        std::thread::scope(|scope| {
            let served: Vec<_> =
                (0..4).map(|_| scope.spawn(|| pool.serve(Instant::now(), &pace).is_ok())).collect();
            await_waiting(&pool, 3);
            pace.end();
            assert!(served.into_iter().all(|thread| !thread.join().unwrap()));
        });
    }
}

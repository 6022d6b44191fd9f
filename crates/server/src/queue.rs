//! Work that workers hand to other threads, with the answer sent by mail.
//!
//! It owns the order, its bounds, and the joining of many who wait for one thing. A worker must never wait
//! here: it hands something in, or is told that there is too much. Work is in lanes (one a site, say), of
//! which each may keep so many threads busy at most, so that a slow disk of one holds up no other.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Too many wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Lane and name of a job: jobs of the same key are one.
pub(crate) type Key = (usize, Box<[u8]>);

/// Bounds of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Most jobs that no thread has taken up yet.
    pub(crate) jobs_max: usize,
    /// Most waiters in all.
    pub(crate) waiting_max: usize,
    /// Most threads at work for one lane.
    pub(crate) at_once_max: usize,
}

/// Jobs and who waits for them.
#[derive(Debug)]
pub(crate) struct Queue<J, W> {
    bounds: Bounds,
    state: Mutex<State<J, W>>,
    wished: Condvar,
}

#[derive(Debug)]
struct State<J, W> {
    /// Everyone who waits for a key, from the wish to the outcome.
    waiting: HashMap<Key, Vec<W>>,
    /// What no thread has taken up yet.
    jobs: VecDeque<(Key, J)>,
    waiting_count: usize,
    /// Threads at work by lane.
    busy: HashMap<usize, usize>,
    ended: bool,
}

impl<J, W> Queue<J, W> {
    /// An empty queue.
    pub(crate) fn new(bounds: Bounds) -> Self {
        let state = State {
            waiting: HashMap::new(),
            jobs: VecDeque::new(),
            waiting_count: 0,
            busy: HashMap::new(),
            ended: false,
        };
        Self { bounds, state: Mutex::new(state), wished: Condvar::new() }
    }

    /// Asks for something. The outcome will be delivered to `waiter`.
    pub(crate) fn ask(&self, key: Key, job: impl FnOnce() -> J, waiter: W) -> Result<(), Full> {
        let mut state = self.lock();
        if state.waiting_count >= self.bounds.waiting_max {
            return Err(Full);
        }
        if let Some(waiters) = state.waiting.get_mut(&key) {
            waiters.push(waiter);
        } else if state.jobs.len() >= self.bounds.jobs_max {
            return Err(Full);
        } else {
            state.waiting.insert(key.clone(), vec![waiter]);
            state.jobs.push_back((key, job()));
            self.wished.notify_one();
        }
        state.waiting_count += 1;
        Ok(())
    }

    /// What a thread of the queue does until it ends: takes a job, does it, delivers the outcome.
    pub(crate) fn run<O: Clone>(&self, work: impl Fn(&[u8], &J) -> O, deliver: impl Fn(W, &J, O)) {
        while let Some((key, job)) = self.next() {
            let outcome = work(&key.1, &job);
            for waiter in self.finish(&key) {
                deliver(waiter, &job, outcome.clone());
            }
        }
    }

    /// Lets the threads end. What is not taken up yet is dropped.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.jobs.clear();
        state.waiting.clear();
        self.wished.notify_all();
    }

    fn next(&self) -> Option<(Key, J)> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            if let Some(next) = state.take(self.bounds.at_once_max) {
                return Some(next);
            }
            state = self.wished.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn finish(&self, key: &Key) -> Vec<W> {
        let mut state = self.lock();
        let waiters = state.waiting.remove(key).unwrap_or_default();
        state.waiting_count -= waiters.len().min(state.waiting_count);
        state.release(key.0);
        if !state.jobs.is_empty() {
            // A thread may have found no work because this lane was busy.
            self.wished.notify_one();
        }
        waiters
    }

    fn lock(&self) -> MutexGuard<'_, State<J, W>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<J, W> State<J, W> {
    /// The first job of a lane that may keep one more thread busy.
    fn take(&mut self, at_once_max: usize) -> Option<(Key, J)> {
        let busy = &self.busy;
        let is_free = |(key, _): &(Key, J)| busy.get(&key.0).is_none_or(|&count| count < at_once_max);
        let place = self.jobs.iter().position(is_free)?;
        let next = self.jobs.remove(place)?;
        *self.busy.entry(next.0.0).or_default() += 1;
        Some(next)
    }

    /// A thread is done with a lane.
    fn release(&mut self, lane: usize) {
        if let Some(count) = self.busy.get_mut(&lane) {
            *count -= 1;
            if *count == 0 {
                self.busy.remove(&lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { jobs_max: 3, waiting_max: 6, at_once_max: 1 };

    fn key(lane: usize, name: &str) -> Key {
        (lane, name.as_bytes().into())
    }

    #[test]
    fn wishes_for_one_key_are_joined() {
        let queue = Queue::new(BOUNDS);
        for waiter in 0..3 {
            queue.ask(key(0, "a"), || 7, waiter).unwrap();
        }
        queue.ask(key(1, "a"), || 8, 3).unwrap();
        assert_eq!(queue.next(), Some((key(0, "a"), 7)));
        queue.ask(key(0, "a"), || 9, 4).unwrap();
        assert_eq!(queue.finish(&key(0, "a")), [0, 1, 2, 4]);
        assert_eq!(queue.next(), Some((key(1, "a"), 8)));
        assert_eq!(queue.finish(&key(1, "a")), [3]);
        assert_eq!(queue.lock().waiting_count, 0);
    }

    #[test]
    fn it_is_bounded() {
        let queue = Queue::new(BOUNDS);
        for name in ["a", "b", "c"] {
            queue.ask(key(0, name), || (), 0).unwrap();
        }
        assert_eq!(queue.ask(key(0, "d"), || (), 0), Err(Full), "jobs");
        for _ in 0..3 {
            queue.ask(key(0, "a"), || (), 1).unwrap();
        }
        assert_eq!(queue.ask(key(0, "a"), || (), 1), Err(Full), "waiters");
    }

    #[test]
    fn a_lane_keeps_only_so_many_threads_busy() {
        let queue = Queue::new(BOUNDS);
        for (lane, name) in [(0, "a"), (0, "b"), (1, "c")] {
            queue.ask(key(lane, name), || (), ()).unwrap();
        }
        let take = || queue.lock().take(1).map(|(key, ())| key);
        assert_eq!(take(), Some(key(0, "a")));
        assert_eq!(take(), Some(key(1, "c")));
        assert_eq!(take(), None);
        queue.finish(&key(0, "a"));
        assert_eq!(queue.lock().take(1).map(|(key, ())| key), Some(key(0, "b")));
    }

    #[test]
    fn threads_end() {
        let queue: Queue<(), ()> = Queue::new(BOUNDS);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| queue.run(|_, ()| (), |(), (), ()| ()));
            queue.end();
            running.join().unwrap();
        });
    }
}

//! The loader: threads that load what workers ask for and mail the outcome.
//!
//! It owns the queue, its bound, and the joining of many who wait for one path. A worker must never wait
//! here: it puts a wish on the queue or is told that there are too many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};

use staunch_engine::Address;

use super::load::Outcome;
use crate::limits::{LOADS_QUEUED_MAX, LOADS_WAITING_MAX};

/// Too many wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The queue between workers and loader threads.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    state: Mutex<State>,
    wished: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Everyone who waits for a key, from the wish to the outcome.
    waiting: HashMap<Box<[u8]>, Vec<Address>>,
    /// Keys no thread has taken up yet, with the moment of their first wish.
    queue: VecDeque<(Box<[u8]>, u64)>,
    waiting_count: usize,
}

impl Loader {
    /// Asks for a key. Its outcome will be mailed to the address.
    pub(crate) fn ask(&self, key: &[u8], address: Address, moment: u64) -> Result<(), Full> {
        let mut state = self.lock();
        if state.waiting_count >= LOADS_WAITING_MAX {
            return Err(Full);
        }
        if let Some(addresses) = state.waiting.get_mut(key) {
            addresses.push(address);
        } else if state.queue.len() >= LOADS_QUEUED_MAX {
            return Err(Full);
        } else {
            state.waiting.insert(key.into(), vec![address]);
            state.queue.push_back((key.into(), moment));
            self.wished.notify_one();
        }
        state.waiting_count += 1;
        Ok(())
    }

    /// What a loader thread does, for ever: takes a wish, loads it, mails the outcome.
    pub(crate) fn run(&self, load: impl Fn(&[u8], u64) -> Outcome, mail: impl Fn(Address, Outcome)) -> ! {
        loop {
            let (key, moment) = self.next();
            let outcome = load(&key, moment);
            for address in self.finish(&key) {
                mail(address, outcome.clone());
            }
        }
    }

    fn next(&self) -> (Box<[u8]>, u64) {
        let mut state = self.lock();
        loop {
            if let Some(wish) = state.queue.pop_front() {
                return wish;
            }
            state = self.wished.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn finish(&self, key: &[u8]) -> Vec<Address> {
        let mut state = self.lock();
        let addresses = state.waiting.remove(key).unwrap_or_default();
        state.waiting_count -= addresses.len();
        addresses
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(slot: u32) -> Address {
        Address { worker: 0, slot, generation: 0 }
    }

    #[test]
    fn wishes_for_one_key_are_joined() {
        let loader = Loader::default();
        for slot in 0..3 {
            loader.ask(b"/a", address(slot), 7).unwrap();
        }
        loader.ask(b"/b", address(3), 8).unwrap();
        assert_eq!(loader.next(), (b"/a"[..].into(), 7));
        loader.ask(b"/a", address(4), 9).unwrap();
        assert_eq!(loader.finish(b"/a").len(), 4);
        assert_eq!(loader.next(), (b"/b"[..].into(), 8));
        assert_eq!(loader.finish(b"/b"), vec![address(3)]);
        assert_eq!(loader.lock().waiting_count, 0);
    }

    #[test]
    fn the_queue_is_bounded() {
        let loader = Loader::default();
        for number in 0..LOADS_QUEUED_MAX {
            loader.ask(format!("/{number}").as_bytes(), address(0), 0).unwrap();
        }
        assert_eq!(loader.ask(b"/more", address(0), 0), Err(Full));
        loader.ask(b"/0", address(1), 0).unwrap();
    }
}

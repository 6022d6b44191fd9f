//! What came before: message ids, so that none is delivered twice, and counters, so that none is replayed.
//!
//! It must never read a clock: the caller says when.

use std::hash::{BuildHasher, Hash};

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

use crate::limits::{IDS_AGE_MS_MAX, IDS_SETS, IDS_WAYS};

/// The newest message id of a flow and which of the 63 before it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    newest: u16,
    /// Bit 0 is the newest, bit n the one n before it.
    came: u64,
}

impl Ids {
    /// After the first message.
    pub fn new(first: u16) -> Self {
        Self { newest: first, came: 1 }
    }

    /// Whether a message with this id would be a duplicate.
    #[inline]
    pub fn has(&self, id: u16) -> bool {
        let behind = self.newest.wrapping_sub(id);
        behind < 64 && self.came >> behind & 1 == 1
    }

    /// Notes an id, and says whether it is new.
    #[inline]
    pub fn note(&mut self, id: u16) -> bool {
        let ahead = id.wrapping_sub(self.newest) as i16;
        if ahead > 0 {
            self.came = self.came.checked_shl(ahead as u32).unwrap_or(0) | 1;
            self.newest = id;
            return true;
        }
        if ahead <= -64 {
            *self = Self::new(id);
            return true;
        }
        let bit = 1 << -ahead;
        let is_new = self.came & bit == 0;
        self.came |= bit;
        is_new
    }
}

/// A flow: source address, source port, destination port.
pub type Flow = (u16, u16, u16);

/// The ids of a flow, and when it was used last.
#[derive(Debug, Clone, Copy)]
struct FlowEntry {
    flow: Flow,
    ids: Ids,
    used_ms: u64,
}

/// The ids of all flows to a node, in a table that never grows: the flow unused for longest gives way.
#[derive(Debug)]
pub struct FlowIds {
    sets: Vec<[Option<FlowEntry>; IDS_WAYS]>,
    hasher: SeedableRandomState,
}

impl FlowIds {
    /// An empty table. The seed keeps strangers from choosing flows that fall into one set.
    pub fn new(seed: u64) -> Self {
        Self {
            sets: vec![[None; IDS_WAYS]; IDS_SETS],
            hasher: SeedableRandomState::with_seed(seed, SharedSeed::global_fixed()),
        }
    }

    /// Whether a message of this flow with this id came before. Notes nothing.
    #[inline]
    pub fn has(&self, flow: Flow, id: u16, now_ms: u64) -> bool {
        let set = &self.sets[self.set(flow)];
        set.iter().flatten().any(|entry| entry.flow == flow && entry.is_fresh(now_ms) && entry.ids.has(id))
    }

    /// Notes a message, and says whether it is new.
    #[inline]
    pub fn note(&mut self, flow: Flow, id: u16, now_ms: u64) -> bool {
        let set = self.set(flow);
        let set = &mut self.sets[set];
        if let Some(entry) = set.iter_mut().flatten().find(|entry| entry.flow == flow) {
            if !entry.is_fresh(now_ms) {
                entry.ids = Ids::new(id);
                entry.used_ms = now_ms;
                return true;
            }
            entry.used_ms = now_ms;
            return entry.ids.note(id);
        }
        let oldest = set.iter_mut().min_by_key(|entry| entry.map_or(0, |entry| entry.used_ms + 1));
        if let Some(entry) = oldest {
            *entry = Some(FlowEntry { flow, ids: Ids::new(id), used_ms: now_ms });
        }
        true
    }

    /// Forgets all flows of a source.
    pub fn forget(&mut self, source: u16) {
        for entry in self.sets.iter_mut().flatten() {
            if entry.is_some_and(|entry| entry.flow.0 == source) {
                *entry = None;
            }
        }
    }

    fn set(&self, flow: Flow) -> usize {
        let packed = u64::from(flow.0) << 32 | u64::from(flow.1) << 16 | u64::from(flow.2);
        let mut state = self.hasher.build_hasher();
        packed.hash(&mut state);
        std::hash::Hasher::finish(&state) as usize % IDS_SETS
    }
}

impl FlowEntry {
    fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms) < IDS_AGE_MS_MAX
    }
}

/// Words of a replay window's memory.
const REPLAY_WORDS: usize = 16;

/// Counters behind the newest that are still told apart.
const REPLAY_BITS: u64 = REPLAY_WORDS as u64 * 64;

/// The newest counter of a sender and which of the 1 023 before it came (as in RFC 6479).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayWindow {
    newest: u64,
    /// A ring: the bit of a counter is its remainder by the window's length.
    came: [u64; REPLAY_WORDS],
}

impl ReplayWindow {
    /// After the first frame.
    pub fn new(first: u64) -> Self {
        let mut window = Self { newest: first, came: [0; REPLAY_WORDS] };
        window.mark(first);
        window
    }

    /// The newest counter.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether a frame with this counter may be taken. Notes nothing: first the tag has to be right.
    pub fn allows(&self, counter: u64) -> bool {
        if counter > self.newest {
            return true;
        }
        self.newest - counter < REPLAY_BITS && self.came[word(counter)] & bit(counter) == 0
    }

    /// Notes a counter that [`ReplayWindow::allows`].
    pub fn note(&mut self, counter: u64) {
        if counter > self.newest {
            let ahead = counter - self.newest;
            if ahead >= REPLAY_BITS {
                self.came = [0; REPLAY_WORDS];
            } else {
                for skipped in self.newest + 1..counter {
                    self.came[word(skipped)] &= !bit(skipped);
                }
            }
            self.newest = counter;
        }
        self.mark(counter);
    }

    fn mark(&mut self, counter: u64) {
        self.came[word(counter)] |= bit(counter);
    }
}

fn word(counter: u64) -> usize {
    (counter % REPLAY_BITS / 64) as usize
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_told_apart_within_64_and_across_zero() {
        let mut ids = Ids::new(65_530);
        assert!(ids.note(65_531) && !ids.note(65_530) && !ids.note(65_531));
        assert!(ids.note(2) && !ids.note(65_530) && ids.note(65_535) && !ids.note(65_535));
        assert!(ids.note(0) && ids.has(0) && !ids.has(1));
        // An id that lies far behind is a new beginning.
        assert!(ids.note(60_000) && !ids.note(60_000) && ids.note(60_001));
    }

    #[test]
    fn a_flow_that_was_silent_begins_anew() {
        let mut flows = FlowIds::new(1);
        assert!(flows.note((7, 1, 2), 5, 1_000) && !flows.note((7, 1, 2), 5, 1_999));
        assert!(flows.has((7, 1, 2), 5, 2_998) && !flows.has((7, 1, 2), 5, 2_999));
        assert!(flows.note((7, 1, 2), 5, 2_999) && flows.note((7, 1, 3), 5, 2_999));
        flows.forget(7);
        assert!(flows.note((7, 1, 2), 5, 2_999));
    }

    #[test]
    fn the_table_gives_up_the_flow_unused_for_longest() {
        let mut flows = FlowIds::new(2);
        for port in 1..=5_000 {
            assert!(flows.note((9, port, 1), 1, u64::from(port)));
        }
        let remembered = (1..=5_000).filter(|&port| flows.has((9, port, 1), 1, 5_000)).count();
        assert!((600..=1_024).contains(&remembered), "{remembered}");
        assert!((4_990..=5_000).all(|port| flows.has((9, port, 1), 1, 5_000)));
    }

    proptest! {
        /// Ids within 63 of the newest are taken once each, in whatever order they come.
        #[test]
        fn ids_agree_with_a_set(first: u16, steps in prop::collection::vec(-63_i32..64, 1..400)) {
            let mut ids = Ids::new(first);
            let mut newest = i64::from(first) + 65_536;
            let mut seen = BTreeSet::from([newest]);
            for step in steps {
                let number = newest + i64::from(step);
                newest = newest.max(number);
                let id = (number & 0xffff) as u16;
                prop_assert_eq!(ids.has(id), seen.contains(&number));
                prop_assert_eq!(ids.note(id), seen.insert(number));
            }
        }

        /// A counter is taken once, and only if it is not too old.
        #[test]
        fn counters_agree_with_a_set(steps in prop::collection::vec(-2_000_i64..1_500, 1..400)) {
            let mut newest = 100_000_i64;
            let mut window = ReplayWindow::new(newest as u64);
            let mut seen = BTreeSet::from([newest]);
            for step in steps {
                let counter = newest + step;
                let allowed = counter > newest - 1_024 && !seen.contains(&counter);
                prop_assert_eq!(window.allows(counter as u64), allowed);
                if allowed {
                    window.note(counter as u64);
                    seen.insert(counter);
                    newest = newest.max(counter);
                }
                prop_assert_eq!(window.newest(), newest as u64);
            }
        }
    }
}

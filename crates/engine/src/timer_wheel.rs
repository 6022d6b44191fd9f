//! Deadlines of all connections of a worker: a hierarchical timing wheel of 4 levels of 64 slots.
//!
//! It owns one node of 16 bytes a connection, linked into the slot of its deadline: setting, clearing and
//! expiring are O(1). It must never ask the time. There is no tick: the worker sleeps until `next_ms`, and
//! the wheel steps over empty slots by their bitmaps. Deadlines are rounded up to the next tick, so none
//! comes early.
//!
//! After Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 7.

/// Resolution: a deadline comes at most this much late. 16 ms is well below anything a peer can notice.
const TICK_MS: u64 = 16;
const LEVELS: usize = 4;
const SLOTS: usize = 64;
const SLOT_BITS: u32 = SLOTS.trailing_zeros();
/// The farthest deadline the wheel can tell apart: 64^4 ticks, three days. Farther ones are looked at again
/// then.
const HORIZON_TICKS: u64 = 1 << (SLOT_BITS as u64 * LEVELS as u64);

/// No neighbour.
const NONE: u32 = u32::MAX;
/// Set in `previous` of a list's first node; the low bits then name the list.
const FIRST: u32 = 1 << 31;
/// A node that is in no list.
const UNSET: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Node {
    next: u32,
    previous: u32,
    tick: u64,
}

const _: () = assert!(size_of::<Node>() == 16);

/// The wheel. Keys are dense small numbers: the slots of connections.
pub(crate) struct TimerWheel {
    nodes: Vec<Node>,
    heads: [u32; LEVELS * SLOTS],
    /// No deadline in the list is earlier than this tick; exact until one is cleared, or the horizon.
    earliest: [u64; LEVELS * SLOTS],
    occupied: [u64; LEVELS],
    now_tick: u64,
    start_ms: u64,
}

impl TimerWheel {
    /// An empty wheel whose time begins at `now_ms`, with room for `capacity` keys reserved.
    pub(crate) fn new(now_ms: u64, capacity: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(capacity),
            heads: [NONE; LEVELS * SLOTS],
            earliest: [UNSET; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            now_tick: 0,
            start_ms: now_ms,
        }
    }

    /// Sets the deadline of `key`, in place of any it had.
    pub(crate) fn set(&mut self, key: u32, deadline_ms: u64) {
        self.grow(key);
        self.clear(key);
        let tick = self.tick_of(deadline_ms);
        self.link(key, tick);
    }

    /// Sees to it that `key` comes up at `latest_ms` or before, but not before `earliest_ms`: moves it only
    /// if it would not. A deadline that is pushed back again and again so costs a comparison; its owner looks
    /// again when it comes up.
    #[inline]
    pub(crate) fn set_between(&mut self, key: u32, earliest_ms: u64, latest_ms: u64) {
        let wanted = self.tick_of(earliest_ms)..=self.tick_of(latest_ms);
        match self.nodes.get(key as usize) {
            Some(node) if wanted.contains(&node.tick) => {}
            _ => self.set(key, latest_ms),
        }
    }

    /// Takes `key` out.
    pub(crate) fn clear(&mut self, key: u32) {
        let Some(node) = self.nodes.get(key as usize).copied() else { return };
        if node.tick == UNSET {
            return;
        }
        if node.next != NONE {
            self.nodes[node.next as usize].previous = node.previous;
        }
        if node.previous & FIRST != 0 {
            self.set_head((node.previous & !FIRST) as usize, node.next);
        } else {
            self.nodes[node.previous as usize].next = node.next;
        }
        self.nodes[key as usize].tick = UNSET;
    }

    /// When to call `expire` next, at the latest; `None` while nothing is set.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        (0..LEVELS)
            .filter_map(|level| self.next_list(level).map(|(list, _)| self.earliest[list]))
            .min()
            .map(|tick| self.start_ms + tick * TICK_MS)
    }

    /// Moves time to `now_ms` and appends every key whose deadline has passed to `due`, no longer set.
    pub(crate) fn expire(&mut self, now_ms: u64, due: &mut Vec<u32>) {
        let target = now_ms.saturating_sub(self.start_ms) / TICK_MS;
        while let Some(tick) = self.next_turn()
            && tick <= target
        {
            self.now_tick = tick;
            self.turn(due);
        }
        self.now_tick = self.now_tick.max(target);
    }

    /// The first tick at which a list has to be taken apart.
    fn next_turn(&self) -> Option<u64> {
        (0..LEVELS).filter_map(|level| self.next_list(level).map(|(_, tick)| tick)).min()
    }

    /// Takes apart every list whose time begins now, the coarsest first: what falls out of it may be due at
    /// once.
    fn turn(&mut self, due: &mut Vec<u32>) {
        for level in (0..LEVELS).rev() {
            let shift = SLOT_BITS * level as u32;
            if self.now_tick.trailing_zeros() >= shift {
                self.empty(level * SLOTS + (self.now_tick >> shift) as usize % SLOTS, due);
            }
        }
    }

    /// The next list of a level that holds anything, and when its time comes: the first tick it stands for.
    fn next_list(&self, level: usize) -> Option<(usize, u64)> {
        let occupied = self.occupied[level];
        if occupied == 0 {
            return None;
        }
        let shift = SLOT_BITS * level as u32;
        let position = self.now_tick >> shift;
        // Distance 1..=64: the current position holds only what lies a whole round ahead.
        let from = (position as u32 + 1) % SLOTS as u32;
        let distance = u64::from(occupied.rotate_right(from).trailing_zeros()) + 1;
        let slot = ((position + distance) % SLOTS as u64) as usize;
        Some((level * SLOTS + slot, (position + distance) << shift))
    }

    /// Takes a list apart: what is due goes out, the rest into finer lists.
    fn empty(&mut self, list: usize, due: &mut Vec<u32>) {
        let mut key = self.heads[list];
        self.set_head(list, NONE);
        while key != NONE {
            let node = self.nodes[key as usize];
            if node.tick <= self.now_tick {
                self.nodes[key as usize].tick = UNSET;
                due.push(key);
            } else {
                self.link(key, node.tick);
            }
            key = node.next;
        }
    }

    fn link(&mut self, key: u32, tick: u64) {
        let tick = tick.max(self.now_tick + 1);
        let ahead = (tick - self.now_tick).min(HORIZON_TICKS - 1);
        let level = (ahead.ilog2() / SLOT_BITS) as usize;
        let slot = ((self.now_tick + ahead) >> (SLOT_BITS * level as u32)) as usize % SLOTS;
        let list = level * SLOTS + slot;
        let next = self.heads[list];
        if next != NONE {
            self.nodes[next as usize].previous = key;
        }
        self.nodes[key as usize] = Node { next, previous: FIRST | list as u32, tick };
        self.heads[list] = key;
        self.occupied[level] |= 1 << slot;
        self.earliest[list] = self.earliest[list].min(self.now_tick + ahead);
    }

    fn set_head(&mut self, list: usize, key: u32) {
        self.heads[list] = key;
        if key == NONE {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
            self.earliest[list] = UNSET;
        } else {
            self.nodes[key as usize].previous = FIRST | list as u32;
        }
    }

    #[inline]
    fn tick_of(&self, deadline_ms: u64) -> u64 {
        deadline_ms.saturating_sub(self.start_ms).div_ceil(TICK_MS)
    }

    fn grow(&mut self, key: u32) {
        assert!(key < FIRST, "keys are connection slots");
        if self.nodes.len() <= key as usize {
            self.nodes.resize(key as usize + 1, Node { next: NONE, previous: NONE, tick: UNSET });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn due(wheel: &mut TimerWheel, now_ms: u64) -> Vec<u32> {
        let mut due = Vec::new();
        wheel.expire(now_ms, &mut due);
        due.sort_unstable();
        due
    }

    #[test]
    fn comes_up_once_and_not_early() {
        let mut wheel = TimerWheel::new(1_000, 0);
        wheel.set(7, 16_000);
        assert!(due(&mut wheel, 15_999).is_empty());
        assert_eq!(due(&mut wheel, 16_000 + TICK_MS), [7]);
        assert!(due(&mut wheel, 1_000_000).is_empty());
        assert_eq!(wheel.next_ms(), None);
    }

    #[test]
    fn sleeps_until_the_deadline_itself() {
        let mut wheel = TimerWheel::new(0, 0);
        for deadline_ms in [100, 15_000, 600_000, 86_400_000] {
            wheel.set(0, deadline_ms);
            let next_ms = wheel.next_ms().unwrap();
            assert!((deadline_ms..deadline_ms + TICK_MS).contains(&next_ms), "{deadline_ms}: {next_ms}");
        }
    }

    #[test]
    fn a_node_stays_while_it_comes_up_in_time() {
        let mut wheel = TimerWheel::new(0, 0);
        wheel.set_between(3, 0, 1_600);
        wheel.set_between(3, 1_500, 9_000);
        assert_eq!(wheel.next_ms(), Some(1_600));
        wheel.set_between(3, 0, 800);
        assert_eq!(wheel.next_ms(), Some(800));
        wheel.set_between(3, 1_000, 1_600);
        assert_eq!(wheel.next_ms(), Some(1_600));
    }

    #[test]
    fn beyond_the_horizon_is_looked_at_again() {
        let mut wheel = TimerWheel::new(0, 0);
        let deadline_ms = HORIZON_TICKS * TICK_MS * 3;
        wheel.set(0, deadline_ms);
        assert!(due(&mut wheel, deadline_ms - TICK_MS).is_empty());
        assert_eq!(due(&mut wheel, deadline_ms), [0]);
    }

    #[derive(Debug, Clone)]
    enum Act {
        Set(u32, u64),
        SetNoLater(u32, u64),
        Clear(u32),
        Advance(u64),
    }

    fn act() -> impl Strategy<Value = Act> {
        let delay_ms = prop_oneof![0..2_000u64, 0..100_000u64, 0..400_000_000u64];
        prop_oneof![
            (0..40u32, delay_ms.clone()).prop_map(|(key, ms)| Act::Set(key, ms)),
            (0..40u32, delay_ms.clone()).prop_map(|(key, ms)| Act::SetNoLater(key, ms)),
            (0..40u32).prop_map(Act::Clear),
            delay_ms.prop_map(Act::Advance),
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map(acts in proptest::collection::vec(act(), 1..300)) {
            let mut wheel = TimerWheel::new(5, 0);
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            let mut now_ms = 5;
            for act in acts {
                match act {
                    Act::Set(key, delay_ms) => {
                        wheel.set(key, now_ms + delay_ms);
                        model.insert(key, now_ms + delay_ms);
                    }
                    Act::SetNoLater(key, delay_ms) => {
                        wheel.set_between(key, 0, now_ms + delay_ms);
                        let deadline_ms = model.entry(key).or_insert(u64::MAX);
                        *deadline_ms = (*deadline_ms).min(now_ms + delay_ms);
                    }
                    Act::Clear(key) => {
                        wheel.clear(key);
                        model.remove(&key);
                    }
                    Act::Advance(by_ms) => {
                        now_ms += by_ms;
                        for key in due(&mut wheel, now_ms) {
                            let deadline_ms = model.remove(&key).expect("came up without being set");
                            prop_assert!(deadline_ms <= now_ms);
                        }
                        for (key, deadline_ms) in &model {
                            prop_assert!(deadline_ms + 2 * TICK_MS > now_ms, "{key} is overdue");
                        }
                    }
                }
                if let Some(next_ms) = wheel.next_ms() {
                    let first_ms = *model.values().min().unwrap();
                    prop_assert!(next_ms < first_ms.max(now_ms) + 3 * TICK_MS, "would sleep too long");
                } else {
                    prop_assert!(model.is_empty());
                }
            }
        }
    }
}

//! How many connections a backend holds, and which slots are whose.
//!
//! It must never change while a backend lives: slots are told apart by one comparison.

/// Number of a connection in the table of one [`crate::Io`], used again after `Closed`. Dense: from zero for
/// connections that were made with `connect`, from [`Capacity::connected`] on for accepted ones.
pub type Slot = u32;

/// How many connections a backend holds at most, by who began them.
///
/// The slots below `connected` are those of connections made with [`crate::Io::connect`]; the `accepted`
/// slots from there on are those of accepted ones. Neither takes room from the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Connections made with `connect`. 0 for a server that connects to nobody.
    pub connected: u32,
    /// Connections accepted from listeners. 0 for a client.
    pub accepted: u32,
}

impl Capacity {
    /// Of a server that connects to nobody.
    pub const fn accepting(accepted: u32) -> Self {
        Self { connected: 0, accepted }
    }

    /// Of a client, which has no listeners.
    pub const fn connecting(connected: u32) -> Self {
        Self { connected, accepted: 0 }
    }

    /// Whether a slot is that of a connection made with `connect`.
    #[inline]
    pub const fn is_connected(self, slot: Slot) -> bool {
        slot < self.connected
    }

    /// How many slots there are.
    pub const fn slots(self) -> u32 {
        self.connected.saturating_add(self.accepted)
    }

    /// This capacity cut to at most so many slots; those to connect with are kept first.
    pub(crate) fn at_most(self, slots: u32) -> Self {
        let connected = self.connected.min(slots);
        Self { connected, accepted: self.accepted.min(slots - connected) }
    }
}

/// So many connections, all of them accepted.
impl From<u32> for Capacity {
    fn from(accepted: u32) -> Self {
        Self::accepting(accepted)
    }
}

/// Slots of connections we make: the last one freed is used first, so that they are dense.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    freed: Vec<Slot>,
    /// From here on none was ever used.
    fresh: Slot,
}

impl FreeSlots {
    /// The slot that `take` will take; `None` if all below this number are in use.
    pub(crate) fn next(&self, count: u32) -> Option<Slot> {
        let fresh = (self.fresh < count).then_some(self.fresh);
        self.freed.last().copied().or(fresh)
    }

    /// Takes that slot.
    pub(crate) fn take(&mut self) {
        if self.freed.pop().is_none() {
            self.fresh += 1;
        }
    }

    /// Gives a slot back.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.freed.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_are_dense_and_the_last_one_freed_comes_first() {
        let mut free = FreeSlots::default();
        let take = |free: &mut FreeSlots| {
            let slot = free.next(4).unwrap();
            free.take();
            slot
        };
        assert_eq!([0; 3].map(|_| take(&mut free)), [0, 1, 2]);
        assert_eq!((free.next(3), free.next(4)), (None, Some(3)));
        free.give_back(0);
        free.give_back(1);
        assert_eq!(free.next(3), Some(1));
        assert_eq!([0; 3].map(|_| take(&mut free)), [1, 0, 3]);
        assert_eq!(free.next(4), None);
    }

    #[test]
    fn slots_are_told_apart_by_their_number() {
        let capacity = Capacity { connected: 2, accepted: 3 };
        assert_eq!([0, 1, 2, 4].map(|slot| capacity.is_connected(slot)), [true, true, false, false]);
        assert_eq!(capacity.slots(), 5);
        assert_eq!(capacity.at_most(4), Capacity { connected: 2, accepted: 2 });
        assert_eq!(capacity.at_most(1), Capacity::connecting(1));
        assert_eq!(Capacity { connected: 9, ..u32::MAX.into() }.slots(), u32::MAX);
    }
}

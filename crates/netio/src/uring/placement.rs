//! Which ring holds a slot, and under which number of its table of direct descriptors.
//!
//! There are two ways. Together: the kernel places accepted connections in the lower part of each table, and
//! the part from `connected_first` on is ours (`IORING_REGISTER_FILE_ALLOC_RANGE` tells the kernel so). Ours
//! is the upper one because some kernels look for a free place from the last one freed on, even if that is
//! ours: from the upper part they find their way back. Apart, where the kernel divides no table: the first
//! rings hold the connections we make, and those from `accepting_first` on the accepted ones.
//!
//! It must never depend on how many rings there are now.

use io_uring::types::Fixed;

use crate::{Capacity, Slot};

/// The sizes of a ring's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableSize {
    /// For accepted connections: the descriptors from 0 on.
    pub(crate) accepted: u32,
    /// The first descriptor for connections we make, and how many there are.
    pub(crate) connected_first: u32,
    pub(crate) connected: u32,
}

impl TableSize {
    /// How many direct descriptors that makes.
    pub(crate) fn descriptors(self) -> u32 {
        if self.connected == 0 { self.accepted } else { self.connected_first + self.connected }
    }
}

/// Where slots are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) capacity: Capacity,
    /// Accepted connections a ring holds at most.
    accepted_a_ring: u32,
    /// Connections we make that a ring holds at most.
    connected_a_ring: u32,
    connected_first: u32,
    /// The first ring in which connections are accepted.
    pub(crate) accepting_first: usize,
}

impl Placement {
    /// For rings of at most so many descriptors, whose tables may be divided or not.
    pub(crate) fn new(capacity: Capacity, ring_descriptors: u32, divided: bool) -> Self {
        let Capacity { connected, accepted } = capacity;
        let all = Self {
            capacity,
            accepted_a_ring: accepted.min(ring_descriptors),
            connected_a_ring: connected.min(ring_descriptors),
            connected_first: 0,
            accepting_first: 0,
        };
        if connected == 0 || accepted == 0 {
            return all;
        }
        if divided && ring_descriptors > 1 {
            let connected_a_ring = connected.min(ring_descriptors / 2);
            let accepted_a_ring = accepted.min(ring_descriptors - connected_a_ring);
            return Self { accepted_a_ring, connected_a_ring, connected_first: accepted_a_ring, ..all };
        }
        Self { accepting_first: connected.div_ceil(all.connected_a_ring) as usize, ..all }
    }

    /// How many rings have to be there before any is used.
    pub(crate) fn rings_at_first(&self) -> usize {
        self.accepting_first + 1
    }

    /// The table of the ring with this index; `None` if no slot would be in it.
    pub(crate) fn table(&self, ring: usize) -> Option<TableSize> {
        let part = |index: Option<usize>, a_ring: u32, all: u32| {
            let before = index.map_or(u64::MAX, |index| index as u64 * u64::from(a_ring));
            u64::from(all).saturating_sub(before).min(u64::from(a_ring)) as u32
        };
        let accepting = ring.checked_sub(self.accepting_first);
        let table = TableSize {
            accepted: part(accepting, self.accepted_a_ring, self.capacity.accepted),
            connected_first: self.connected_first,
            connected: part(Some(ring), self.connected_a_ring, self.capacity.connected),
        };
        (table.accepted > 0 || table.connected > 0).then_some(table)
    }

    /// The ring that holds a slot, and the slot's direct descriptor in it.
    #[inline]
    pub(crate) fn of(&self, slot: Slot) -> (usize, Fixed) {
        let accepted = slot.wrapping_sub(self.capacity.connected);
        if accepted < self.accepted_a_ring {
            (self.accepting_first, Fixed(accepted))
        } else {
            self.afar(slot)
        }
    }

    /// The slot of a connection that was accepted in this ring under this descriptor; `None` if that is ours.
    #[inline]
    pub(crate) fn slot_accepted(&self, ring: usize, descriptor: u32) -> Option<Slot> {
        let before = (ring - self.accepting_first) as u32 * self.accepted_a_ring;
        (descriptor < self.accepted_a_ring).then_some(self.capacity.connected + before + descriptor)
    }

    fn afar(&self, slot: Slot) -> (usize, Fixed) {
        match slot.checked_sub(self.capacity.connected) {
            Some(slot) => {
                let ring = (slot / self.accepted_a_ring) as usize + self.accepting_first;
                (ring, Fixed(slot % self.accepted_a_ring))
            }
            None => {
                let descriptor = self.connected_first + slot % self.connected_a_ring;
                ((slot / self.connected_a_ring) as usize, Fixed(descriptor))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Every slot has a descriptor of its own within a table, in the part that is meant for it.
    fn check(connected: u32, accepted: u32, ring_descriptors: u32, divided: bool) {
        let capacity = Capacity { connected, accepted };
        let placement = Placement::new(capacity, ring_descriptors, divided);
        let mut seen = HashSet::new();
        for slot in 0..capacity.slots() {
            let (ring, Fixed(descriptor)) = placement.of(slot);
            let table = placement.table(ring).expect("a slot is in a ring");
            assert!(table.descriptors() <= ring_descriptors, "{placement:?}");
            assert!(seen.insert((ring, descriptor)), "{placement:?}: slot {slot}");
            if capacity.is_connected(slot) {
                let ours = table.connected_first..table.connected_first + table.connected;
                assert!(ours.contains(&descriptor), "{placement:?}: slot {slot}");
                assert!(
                    ring == 0 || seen.iter().any(|place| place.0 == ring - 1),
                    "rings are filled in turn"
                );
            } else {
                assert!(descriptor < table.accepted, "{placement:?}: slot {slot}");
                assert_eq!(placement.slot_accepted(ring, descriptor), Some(slot));
            }
        }
        assert!(placement.rings_at_first() == 1 || !divided || ring_descriptors == 1);
    }

    #[test]
    fn every_slot_has_its_own_place() {
        for connected in 0..9 {
            for accepted in 0..9 {
                for ring_descriptors in 1..12 {
                    for divided in [false, true] {
                        check(connected, accepted, ring_descriptors, divided);
                    }
                }
            }
        }
    }

    #[test]
    fn a_client_fills_whole_tables_and_a_server_has_nothing_put_aside() {
        let table = |accepted, connected_first, connected| TableSize { accepted, connected_first, connected };
        let client = Placement::new(Capacity::connecting(25), 10, false);
        assert_eq!([0, 2].map(|ring| client.table(ring)), [Some(table(0, 0, 10)), Some(table(0, 0, 5))]);
        assert_eq!(client.table(3), None);
        let server = Placement::new(Capacity::accepting(25), 10, true);
        assert_eq!([0, 2].map(|ring| server.table(ring)), [Some(table(10, 0, 0)), Some(table(5, 0, 0))]);
        let both = Capacity { connected: 4, accepted: 100 };
        assert_eq!(Placement::new(both, 1000, true).table(0), Some(table(100, 100, 4)));
        let apart = Placement::new(both, 1000, false);
        assert_eq!([0, 1].map(|ring| apart.table(ring)), [Some(table(0, 0, 4)), Some(table(100, 0, 0))]);
        assert_eq!(Placement::new(both, 1000, true).slot_accepted(0, 100), None);
    }
}

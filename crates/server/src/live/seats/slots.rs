//! Seats of exchanges of HTTP/1.1, by the slots of their connections.
//!
//! It owns the table. A reader to whom nothing is to be handed over rests: it is its place in the numbering,
//! 24 bytes, and nothing else. Everything more stands in a list that is as long as readers are served at a
//! time. It must never let a reader rest that is owed something that stands nowhere else.

use staunch_live::Reader;

use super::super::seat::Seat;
use crate::limits::WAVE_READERS_MAX;

/// A slot's use for live data.
#[derive(Debug)]
enum SlotUse {
    /// A reader at rest.
    Resting(Reader),
    /// Something else: where it stands in the list; or nothing, and then nowhere.
    Listed(u32),
}

/// No place in the list.
const NOWHERE: u32 = u32::MAX;

const _: () = assert!(size_of::<SlotUse>() == size_of::<Reader>());

/// The seats of exchanges of HTTP/1.1, by slot.
#[derive(Debug, Default)]
pub(super) struct SlotSeats {
    uses: Vec<SlotUse>,
    list: Vec<Option<Seat>>,
    free: Vec<u32>,
}

impl SlotSeats {
    /// How many there are to look at.
    pub(super) fn len(&self) -> usize {
        self.uses.len()
    }

    /// The reader of a slot, if it rests.
    #[inline]
    pub(super) fn resting(&mut self, slot: u32) -> Option<&mut Reader> {
        match self.uses.get_mut(slot as usize)? {
            SlotUse::Resting(reader) => Some(reader),
            SlotUse::Listed(_) => None,
        }
    }

    /// The seat of a slot, unless it is that of a reader at rest.
    #[inline]
    pub(super) fn listed(&mut self, slot: u32) -> Option<&mut Seat> {
        match self.uses.get(slot as usize)? {
            SlotUse::Listed(index) => self.list.get_mut(*index as usize)?.as_mut(),
            SlotUse::Resting(_) => None,
        }
    }

    /// The use of its slot that a seat is of, if there is one.
    #[inline]
    pub(super) fn generation(&self, slot: u32) -> Option<u32> {
        match self.uses.get(slot as usize)? {
            SlotUse::Resting(reader) => Some(reader.generation),
            SlotUse::Listed(index) => self.list.get(*index as usize)?.as_ref().map(Seat::generation),
        }
    }

    /// The seat of a slot. A reader at rest gets up for it.
    pub(super) fn at(&mut self, slot: u32) -> Option<&mut Seat> {
        if let Some(reader) = self.resting(slot) {
            let seat = Seat::of_reader(*reader);
            self.uses[slot as usize] = self.enlist(seat);
        }
        self.listed(slot)
    }

    pub(super) fn put(&mut self, slot: u32, seat: Seat) {
        let index = slot as usize;
        if self.uses.len() <= index {
            self.uses.resize_with(index + 1, || SlotUse::Listed(NOWHERE));
        }
        self.take(slot);
        self.uses[index] = self.enlist(seat);
    }

    pub(super) fn take(&mut self, slot: u32) -> Option<Seat> {
        match std::mem::replace(self.uses.get_mut(slot as usize)?, SlotUse::Listed(NOWHERE)) {
            SlotUse::Resting(reader) => Some(Seat::of_reader(reader)),
            SlotUse::Listed(index) => self.strike(index),
        }
    }

    /// Lets the reader of a slot rest, if it is nothing else.
    #[inline]
    pub(super) fn settle(&mut self, slot: u32) {
        let Some(SlotUse::Listed(index)) = self.uses.get(slot as usize) else { return };
        let index = *index;
        let seat = self.list.get(index as usize).and_then(Option::as_ref);
        if let Some(reader) = seat.and_then(Seat::at_rest) {
            self.strike(index);
            self.uses[slot as usize] = SlotUse::Resting(reader);
        }
    }

    fn enlist(&mut self, seat: Seat) -> SlotUse {
        let index = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() as u32 - 1
        });
        self.list[index as usize] = Some(seat);
        SlotUse::Listed(index)
    }

    fn strike(&mut self, index: u32) -> Option<Seat> {
        let seat = self.list.get_mut(index as usize)?.take();
        self.free.push(index);
        seat
    }

    /// Gives the list back after a crowd, if nothing stands in it.
    pub(super) fn shrink(&mut self) {
        if self.list.len() > WAVE_READERS_MAX && self.free.len() == self.list.len() {
            (self.list, self.free) = (Vec::new(), Vec::new());
        }
    }
}

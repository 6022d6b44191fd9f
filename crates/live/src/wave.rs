//! Waves: the order in which readers are served.
//!
//! It owns whose turn it is. It must never queue anything for a reader: one whose send is under way is passed
//! by, and gets all it lacks at once when that is over.
//!
//! Order: `go` while it says that there is more, with everything else of the worker between; `sent` when a
//! reader's send is over; `widen`, `narrow` and `grant` when it asks for something else; `leave` when it is
//! gone.

use crate::form::Form;
use crate::group::Moved;
use crate::interest::{Grants, Interest};
use crate::limits::{REMEMBERED_BATCHES_MAX, SENDS_PER_TURN_MAX};
use crate::reader::{Marks, Reader};
use crate::update::Bytes;
use crate::view::View;

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The bytes are with the kernel.
    Sent,
    /// They are on their way, or the rest of them is: `sent` follows.
    UnderWay,
    /// The connection is broken: `leave` follows.
    Broken,
}

/// The owner of the readers' connections.
pub trait Audience {
    /// The reader that a connection is.
    fn reader(&mut self, slot: u32) -> &mut Reader;
    /// Sends slices to a connection, one after the other. Nothing else is under way on it.
    fn deliver(&mut self, slot: u32, slices: &[Bytes]) -> Delivery;
}

/// Batches of the group that is being served: its readers stand at one number, or at few.
#[derive(Debug, Default)]
struct Remembered {
    group: u32,
    /// The view's when they were made.
    edition: (u64, u64),
    batches: Vec<Prepared>,
}

/// What readers get that stand at one number and have one form.
#[derive(Debug)]
struct Prepared {
    from: u64,
    form: Form,
    slices: Vec<Bytes>,
    /// Where they are then; `None` while forms are being made.
    number: Option<u64>,
}

/// The waves of a worker.
#[derive(Debug, Default)]
pub struct Waves {
    remembered: Remembered,
    deliveries: u64,
    passed_by: u64,
    /// For a canary of the tests: without the look at who was moved, readers are missed.
    #[cfg(test)]
    forgets_moved: bool,
}

impl Waves {
    /// None under way.
    pub fn new() -> Self {
        Self::default()
    }

    /// Deliveries so far.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// How often a reader was passed by because its send was under way.
    pub fn passed_by(&self) -> u64 {
        self.passed_by
    }

    /// Serves groups in turn, each with [`SENDS_PER_TURN_MAX`] readers at a time, until `readers_max` were
    /// looked at. Whether there is more to do.
    pub fn go(&mut self, view: &mut View, audience: &mut impl Audience, readers_max: usize) -> bool {
        let mut left = readers_max;
        while left > 0 {
            let Some(group) = view.groups.waves.pop_front() else { return false };
            view.groups.get_mut(group).queued = false;
            let turn = left.min(SENDS_PER_TURN_MAX);
            for _ in 0..turn {
                let Some(slot) = view.groups.get_mut(group).next() else { break };
                left -= 1;
                self.look_at(view, audience, slot);
            }
            let entry = view.groups.get_mut(group);
            if !entry.is_settled() && !entry.queued {
                entry.queued = true;
                view.groups.waves.push_back(group);
            }
        }
        !view.groups.waves.is_empty()
    }

    /// A reader's send is over: it gets at once what came meanwhile.
    pub fn sent(&mut self, view: &mut View, audience: &mut impl Audience, slot: u32) {
        audience.reader(slot).marks.clear(Marks::SENDING);
        self.look_at(view, audience, slot);
    }

    /// Takes a reader out of its group.
    pub fn leave(&mut self, view: &mut View, audience: &mut impl Audience, slot: u32) {
        let reader = *audience.reader(slot);
        audience.reader(slot).marks.set(Marks::CLOSING);
        let moved = view.leave(&reader);
        self.follow_move(view, audience, reader.place, moved);
    }

    /// A reader that is owed nothing asks for one channel more, which owes nothing any more, for a client by
    /// whose number patterns are shared out. Whether there is room for it.
    pub fn widen(
        &mut self,
        view: &mut View,
        audience: &mut impl Audience,
        slot: u32,
        channel: (&Interest, u64),
    ) -> bool {
        let reader = *audience.reader(slot);
        let changed = view.widen(slot, &reader, channel);
        self.follow_change(view, audience, (slot, reader.place), changed)
    }

    /// A reader that is owed nothing asks for one channel less, and for something still. Whether there is
    /// room for what is left.
    pub fn narrow(
        &mut self,
        view: &mut View,
        audience: &mut impl Audience,
        slot: u32,
        channel: (&Interest, u64),
    ) -> bool {
        let reader = *audience.reader(slot);
        let changed = view.narrow(slot, &reader, channel);
        self.follow_change(view, audience, (slot, reader.place), changed)
    }

    /// A reader that is owed nothing has other grants. Whether there is room for that.
    pub fn grant(
        &mut self,
        view: &mut View,
        audience: &mut impl Audience,
        slot: u32,
        grants: (Grants, u64),
    ) -> bool {
        let reader = *audience.reader(slot);
        let changed = view.grant(slot, &reader, grants);
        self.follow_change(view, audience, (slot, reader.place), changed)
    }

    fn follow_change(
        &mut self,
        view: &mut View,
        audience: &mut impl Audience,
        (slot, place): (u32, u32),
        changed: Option<(Reader, Option<Moved>)>,
    ) -> bool {
        let Some((reader, moved)) = changed else { return false };
        *audience.reader(slot) = reader;
        self.follow_move(view, audience, place, moved);
        true
    }

    /// The last of a list has taken a place that became free.
    fn follow_move(
        &mut self,
        view: &mut View,
        audience: &mut impl Audience,
        place: u32,
        moved: Option<Moved>,
    ) {
        let Some(moved) = moved else { return };
        audience.reader(moved.slot).moved_to(place);
        if moved.passed && self.heeds_moved() {
            self.look_at(view, audience, moved.slot);
        }
    }

    #[cfg(test)]
    pub(crate) fn of_canary(forgets_moved: bool) -> Self {
        Self { forgets_moved, ..Self::default() }
    }

    #[cfg(test)]
    fn heeds_moved(&self) -> bool {
        !self.forgets_moved
    }

    #[cfg(not(test))]
    fn heeds_moved(&self) -> bool {
        true
    }

    fn look_at(&mut self, view: &mut View, audience: &mut impl Audience, slot: u32) {
        loop {
            let reader = *audience.reader(slot);
            if reader.marks.has(Marks::CLOSING) || !view.is_behind(&reader) {
                return;
            }
            if reader.marks.has(Marks::SENDING) {
                self.passed_by += 1;
                return;
            }
            if !self.deliver(view, audience, slot, reader) {
                return;
            }
        }
    }

    /// Whether the reader may get more at once, should it still be behind.
    fn deliver(&mut self, view: &mut View, audience: &mut impl Audience, slot: u32, reader: Reader) -> bool {
        let place = self.remember(view, &reader);
        let Prepared { slices, number: Some(number), .. } = &self.remembered.batches[place] else {
            return false;
        };
        let number = *number;
        let became = match slices.is_empty() {
            true => Delivery::Sent,
            false => {
                self.deliveries += 1;
                audience.deliver(slot, slices)
            }
        };
        let reader = audience.reader(slot);
        reader.number = number;
        match became {
            Delivery::Sent => {}
            Delivery::UnderWay => reader.marks.set(Marks::SENDING),
            Delivery::Broken => reader.marks.set(Marks::CLOSING),
        }
        became == Delivery::Sent
    }

    /// The place of what a reader gets, made if it is not remembered. Forms that do not exist are asked of
    /// the hub once; the letter that brings them begins a round.
    fn remember(&mut self, view: &mut View, reader: &Reader) -> usize {
        let edition = view.edition();
        let remembered = &mut self.remembered;
        if (remembered.group, remembered.edition) != (reader.group, edition) {
            remembered.batches.clear();
            (remembered.group, remembered.edition) = (reader.group, edition);
        }
        let same = |batch: &Prepared| (batch.from, batch.form) == (reader.number, reader.form);
        if let Some(place) = remembered.batches.iter().position(same) {
            return place;
        }
        let mut batch = view.owed(reader);
        let number = batch.missing.is_empty().then_some(batch.number);
        if number.is_none() {
            view.ask(reader.group, &mut batch);
        }
        if remembered.batches.len() >= REMEMBERED_BATCHES_MAX {
            remembered.batches.remove(0);
        }
        let (from, form) = (reader.number, reader.form);
        remembered.batches.push(Prepared { from, form, slices: batch.slices, number });
        remembered.batches.len() - 1
    }
}

//! The connections of one worker that live data has something to do with.
//!
//! It owns what belongs to a connection beside its exchange: a reader and the slices it is about to get, a
//! wish that waits for a form, a feed. It must never hold more for a reader than the slices of one delivery,
//! which are shared.

use staunch_engine::Address;
use staunch_live::{Audience, Coding, Delivery, Reader};

use super::events::Wish;
use super::feed::Feed;

/// Bytes that are shared and never change.
type Slice = std::sync::Arc<[u8]>;

/// What a connection is to live data.
#[derive(Debug)]
pub(crate) enum Seat {
    /// A stream of events.
    Reader(ReaderSeat),
    /// It will be one when a form was made.
    Joining(Box<JoiningSeat>),
    /// Lines to publish, as far as the publisher may.
    Feed(u32, Box<Feed>),
}

/// A stream of events.
#[derive(Debug)]
pub(crate) struct ReaderSeat {
    pub(crate) reader: Reader,
    pub(crate) generation: u32,
    /// What the stream begins with, if it has not begun.
    pub(crate) opening: Option<Coding>,
    /// It is to end when everything was sent.
    pub(crate) is_leaving: bool,
    pub(crate) pending: Pending,
}

/// A wish that waits for a form.
#[derive(Debug)]
pub(crate) struct JoiningSeat {
    pub(crate) wish: Wish,
    pub(crate) generation: u32,
    pub(crate) opening: Option<Coding>,
    /// There is no room for it: its stream ends.
    pub(crate) is_refused: bool,
}

/// Slices that are to be sent, in order.
#[derive(Debug, Default)]
pub(crate) enum Pending {
    #[default]
    Nothing,
    One(Slice),
    /// From the end: the last of the list is sent first.
    Several(Vec<Slice>),
}

impl Pending {
    /// These slices.
    pub(crate) fn of(slices: &[Slice]) -> Self {
        match slices {
            [] => Self::Nothing,
            [one] => Self::One(one.clone()),
            several => Self::Several(several.iter().rev().cloned().collect()),
        }
    }

    /// The next slice.
    pub(crate) fn next(&mut self) -> Option<Slice> {
        match std::mem::take(self) {
            Self::Nothing => None,
            Self::One(one) => Some(one),
            Self::Several(mut several) => {
                let next = several.pop();
                *self = if several.is_empty() { Self::Nothing } else { Self::Several(several) };
                next
            }
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

impl Seat {
    /// Which use of the slot it is of.
    pub(crate) fn generation(&self) -> u32 {
        match self {
            Self::Reader(seat) => seat.generation,
            Self::Joining(seat) => seat.generation,
            Self::Feed(generation, _) => *generation,
        }
    }
}

/// All seats of a worker, by the slots of its connections.
#[derive(Debug)]
pub(crate) struct Seats {
    seats: Vec<Option<Seat>>,
    worker: u16,
    /// Exchanges that have something to send now.
    pub(crate) wakes: Vec<Address>,
    /// The slot whose exchange is in hand: it needs not be woken.
    pub(crate) in_hand: Option<u32>,
}

impl Seats {
    pub(crate) fn new(worker: u16) -> Self {
        Self { seats: Vec::new(), worker, wakes: Vec::new(), in_hand: None }
    }

    /// How many slots there are to look at.
    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether an exchange has a seat.
    #[inline]
    pub(crate) fn has(&self, address: Address) -> bool {
        let seat = self.seats.get(address.slot as usize).and_then(Option::as_ref);
        seat.is_some_and(|seat| seat.generation() == address.generation)
    }

    /// The seat of an exchange, if it has one.
    pub(crate) fn find(&mut self, address: Address) -> Option<&mut Seat> {
        let seat = self.seats.get_mut(address.slot as usize)?.as_mut()?;
        (seat.generation() == address.generation).then_some(seat)
    }

    /// The seat of a slot.
    pub(crate) fn at(&mut self, slot: u32) -> Option<&mut Seat> {
        self.seats.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn put(&mut self, slot: u32, seat: Seat) {
        let index = slot as usize;
        if self.seats.len() <= index {
            self.seats.resize_with(index + 1, || None);
        }
        self.seats[index] = Some(seat);
    }

    pub(crate) fn take(&mut self, slot: u32) -> Option<Seat> {
        self.seats.get_mut(slot as usize)?.take()
    }

    /// Has the exchange of a slot asked whether it has something to send.
    pub(crate) fn wake(&mut self, slot: u32) {
        if self.in_hand == Some(slot) {
            return;
        }
        let worker = self.worker;
        if let Some(generation) = self.at(slot).map(|seat| seat.generation()) {
            self.wakes.push(Address { worker, slot, generation });
        }
    }

    /// The reader of a slot, if it has one.
    pub(crate) fn reader_seat(&mut self, slot: u32) -> Option<&mut ReaderSeat> {
        match self.at(slot)? {
            Seat::Reader(seat) => Some(seat),
            Seat::Joining(_) | Seat::Feed(..) => None,
        }
    }
}

impl Audience for Seats {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        &mut self.reader_seat(slot).expect("every reader of a group has a seat").reader
    }

    fn deliver(&mut self, slot: u32, slices: &[Slice]) -> Delivery {
        let Some(seat) = self.reader_seat(slot) else { return Delivery::Broken };
        debug_assert!(seat.pending.is_nothing(), "a delivery is under way");
        seat.pending = Pending::of(slices);
        self.wake(slot);
        Delivery::UnderWay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_sent_in_their_order() {
        let slices: Vec<Slice> = [&b"a"[..], b"b", b"c"].map(Slice::from).to_vec();
        for count in 0..=3 {
            let mut pending = Pending::of(&slices[..count]);
            for slice in &slices[..count] {
                assert_eq!(pending.next().as_ref(), Some(slice));
            }
            assert!(pending.next().is_none() && pending.is_nothing());
        }
    }
}

//! All seats of one worker, by number.
//!
//! It owns the tables, and which exchanges are to be asked again. It must never hold more for a reader at
//! rest than its place in the numbering.

mod slots;
mod streams;

use staunch_engine::{Address, StreamRef};
use staunch_live::{Audience, Delivery, Reader};

use super::pending::{Pending, SharedBytes};
use super::seat::{ReaderSeat, Seat};
use super::socket::Socket;
use slots::SlotSeats;
use streams::{OF_STREAM, StreamSeats};

/// All seats of a worker. Each has a number: in HTTP/1.1 the slot of its connection, in HTTP/2, where a
/// connection may have any number of them, one of their own.
#[derive(Debug)]
pub(crate) struct Seats {
    of_slots: SlotSeats,
    of_streams: StreamSeats,
    worker: u16,
    /// Exchanges that have something to send now.
    pub(crate) wakes: Vec<Address>,
    /// The number whose exchange is in hand: it needs not be woken.
    pub(crate) in_hand: Option<u32>,
}

impl Seats {
    pub(crate) fn new(worker: u16) -> Self {
        let (of_slots, of_streams) = (SlotSeats::default(), StreamSeats::default());
        Self { of_slots, of_streams, worker, wakes: Vec::new(), in_hand: None }
    }

    /// How many seats there are to look at.
    pub(crate) fn len(&self) -> usize {
        self.of_slots.len() + self.of_streams.len()
    }

    /// The number of the nth of them.
    pub(crate) fn nth(&self, nth: usize) -> u32 {
        match nth.checked_sub(self.of_slots.len()) {
            Some(place) => OF_STREAM | place as u32,
            None => nth as u32,
        }
    }

    /// The number of the seat that an exchange has, or would have in HTTP/1.1.
    #[inline]
    pub(crate) fn number(&self, address: Address) -> Option<u32> {
        if address.stream.is_stream() { self.of_streams.number(address) } else { Some(address.slot) }
    }

    /// The number of the seat that an exchange is about to get. Without one it has to be taken back.
    pub(crate) fn promise(&mut self, address: Address) -> u32 {
        if address.stream.is_stream() { self.of_streams.promise(address) } else { address.slot }
    }

    /// Whether an exchange has a seat.
    #[inline]
    pub(crate) fn has(&self, address: Address) -> bool {
        let generation = match address.stream {
            StreamRef::ONLY => self.of_slots.generation(address.slot),
            _ => self.of_streams.find(address).map(Seat::generation),
        };
        generation == Some(address.generation)
    }

    /// The number of the seat of an exchange, if it has one.
    #[inline]
    pub(crate) fn seated(&self, address: Address) -> Option<u32> {
        if self.has(address) { self.number(address) } else { None }
    }

    /// The seat of an exchange, if it has one.
    pub(crate) fn find(&mut self, address: Address) -> Option<&mut Seat> {
        if !self.has(address) {
            return None;
        }
        self.at(self.number(address)?)
    }

    /// The seat of a number. If it is that of a reader at rest, `settle` is to follow.
    pub(crate) fn at(&mut self, number: u32) -> Option<&mut Seat> {
        if number & OF_STREAM != 0 {
            return self.of_streams.at(number)?.seat.as_mut();
        }
        self.of_slots.at(number)
    }

    /// The seat of a number, unless it is that of a reader at rest.
    fn at_work(&mut self, number: u32) -> Option<&mut Seat> {
        if number & OF_STREAM != 0 {
            return self.of_streams.at(number)?.seat.as_mut();
        }
        self.of_slots.listed(number)
    }

    /// Gives a seat to a number, which was promised if it is a stream's.
    pub(crate) fn put(&mut self, number: u32, seat: Seat) {
        if number & OF_STREAM == 0 {
            self.of_slots.put(number, seat);
        } else if let Some(promised) = self.of_streams.at(number) {
            promised.seat = Some(seat);
        }
    }

    /// Takes the seat of a number, which is to get another one: the number stays promised.
    pub(crate) fn lift(&mut self, number: u32) -> Option<Seat> {
        if number & OF_STREAM != 0 {
            return self.of_streams.at(number)?.seat.take();
        }
        self.of_slots.take(number)
    }

    /// Takes the seat of a number, which is one no longer.
    pub(crate) fn take(&mut self, number: u32) -> Option<Seat> {
        if number & OF_STREAM != 0 {
            return self.of_streams.take(number);
        }
        self.of_slots.take(number)
    }

    /// The reader of a number, if it rests: nothing is to be handed over to it, nor has it to leave.
    #[inline]
    pub(crate) fn resting(&mut self, number: u32) -> Option<&mut Reader> {
        self.of_slots.resting(number)
    }

    /// Lets the reader of a number rest, if nothing is to be handed over to it.
    #[inline]
    pub(crate) fn settle(&mut self, number: u32) {
        self.of_slots.settle(number);
    }

    /// Gives back what only a crowd needed, if everybody rests.
    pub(crate) fn shrink(&mut self) {
        self.of_slots.shrink();
    }

    /// Whether a number reads, or may, and nothing has told it to end.
    pub(crate) fn is_staying(&mut self, number: u32) -> bool {
        self.resting(number).is_some() || self.at_work(number).is_some_and(Seat::is_staying)
    }

    /// Has the exchange of a number asked whether it has something to send.
    pub(crate) fn wake(&mut self, number: u32) {
        if self.in_hand == Some(number) {
            return;
        }
        let (worker, slot) = (self.worker, number);
        if number & OF_STREAM != 0 {
            let address = self.of_streams.at(number).filter(|one| one.seat.is_some()).map(|one| one.address);
            self.wakes.extend(address);
        } else if let Some(generation) = self.of_slots.generation(slot) {
            self.wakes.push(Address { worker, slot, generation, stream: StreamRef::ONLY });
        }
    }

    /// The reader of a number, if it has one.
    #[inline]
    pub(crate) fn reader_of(&mut self, number: u32) -> Option<&mut Reader> {
        if self.of_slots.resting(number).is_some() {
            return self.of_slots.resting(number);
        }
        match self.at_work(number)? {
            Seat::Reader(seat) => Some(&mut seat.reader),
            Seat::Joining(_) | Seat::Feed(..) | Seat::Socket(..) => None,
        }
    }

    /// The seat of the reader of a number, if it has one. If it rests, `settle` is to follow.
    pub(crate) fn reader_seat(&mut self, slot: u32) -> Option<&mut ReaderSeat> {
        match self.at(slot)? {
            Seat::Reader(seat) => Some(seat),
            Seat::Joining(_) | Seat::Feed(..) | Seat::Socket(..) => None,
        }
    }

    /// The WebSocket of a slot, if it has one.
    pub(crate) fn socket(&mut self, slot: u32) -> Option<&mut Socket> {
        self.at_work(slot)?.socket()
    }
}

impl Audience for Seats {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        self.reader_of(slot).expect("every reader of a group has a seat")
    }

    fn deliver(&mut self, slot: u32, slices: &[SharedBytes]) -> Delivery {
        let Some(seat) = self.reader_seat(slot) else { return Delivery::Broken };
        debug_assert!(seat.pending.is_nothing(), "a delivery is under way");
        seat.pending = Pending::of(slices);
        self.wake(slot);
        Delivery::UnderWay
    }
}

#[cfg(test)]
mod tests {
    use super::super::feed::Feed;
    use super::super::permit::Rights;
    use super::*;

    #[test]
    fn streams_of_one_connection_have_seats_of_their_own() {
        let mut seats = Seats::new(3);
        let address = |stream| Address { worker: 3, slot: 5, generation: 7, stream };
        let feed = || {
            Seat::Feed(7, Box::new(Feed::new(10, Rights::Anonymous, super::super::turns::LineClient::Node)))
        };
        let streams = [StreamRef::ONLY, StreamRef::of(0), StreamRef::of(3)];
        let numbers: Vec<u32> = streams.map(|stream| seats.promise(address(stream))).into();
        assert_eq!(numbers[0], 5);
        assert!(!seats.has(address(streams[1])) && seats.at(numbers[1]).is_none());
        numbers.iter().for_each(|number| seats.put(*number, feed()));
        for (stream, number) in streams.into_iter().zip(&numbers) {
            assert_eq!(seats.number(address(stream)), Some(*number));
            assert!(seats.has(address(stream)) && seats.find(address(stream)).is_some());
            assert!(!seats.has(Address { generation: 8, ..address(stream) }));
            seats.wake(*number);
        }
        assert_eq!(seats.wakes, streams.map(address));
        for (stream, number) in streams.into_iter().zip(&numbers) {
            let lifted = seats.lift(*number).expect("a seat");
            assert!(!seats.has(address(stream)));
            seats.put(*number, lifted);
            assert_eq!(seats.seated(address(stream)), Some(*number));
        }
        assert!((0..seats.len()).filter(|nth| seats.at(seats.nth(*nth)).is_some()).count() == 3);
        assert!(numbers.iter().all(|number| seats.take(*number).is_some()));
        assert_eq!(seats.number(address(streams[1])), None);
        assert!(numbers[1..].contains(&seats.promise(address(StreamRef::of(9)))), "places are used again");
    }
}

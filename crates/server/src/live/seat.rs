//! The exchanges of one worker that live data has something to do with.
//!
//! It owns what belongs to one beside the exchange itself: a reader and the slices it is about to get, a
//! wish that waits for a form, a feed, a WebSocket. It must never hold more for a reader than the slices of
//! one delivery, which are shared.

use std::collections::HashMap;

use staunch_engine::Address;
use staunch_live::{Audience, Coding, Delivery, Reader};

use super::events::Wish;
use super::feed::Feed;
use super::pending::{Pending, SharedBytes};
use super::socket::Socket;

/// What an exchange is to live data.
#[derive(Debug)]
pub(crate) enum Seat {
    /// A stream of events, or a WebSocket that reads something.
    Reader(ReaderSeat),
    /// It will be one when a form was made.
    Joining(Box<JoiningSeat>),
    /// Lines to publish, as far as the publisher may.
    Feed(u32, Box<Feed>),
    /// A WebSocket that reads nothing at present.
    Socket(u32, Box<Socket>),
}

/// A stream of events, or a WebSocket that reads something.
#[derive(Debug)]
pub(crate) struct ReaderSeat {
    pub(crate) reader: Reader,
    pub(crate) generation: u32,
    /// What the stream begins with, if it has not begun.
    pub(crate) opening: Option<Coding>,
    /// It is to end when everything was sent.
    pub(crate) is_leaving: bool,
    pub(crate) pending: Pending,
    /// What it is besides, if it is a WebSocket.
    pub(crate) socket: Option<Box<Socket>>,
}

/// A wish that waits for a form.
#[derive(Debug)]
pub(crate) struct JoiningSeat {
    pub(crate) wish: Wish,
    pub(crate) generation: u32,
    pub(crate) opening: Option<Coding>,
    /// There is no room for it: its stream ends.
    pub(crate) is_refused: bool,
    /// What it is besides, if it is a WebSocket.
    pub(crate) socket: Option<Box<Socket>>,
}

impl Seat {
    /// Which use of the slot it is of.
    pub(crate) fn generation(&self) -> u32 {
        match self {
            Self::Reader(seat) => seat.generation,
            Self::Joining(seat) => seat.generation,
            Self::Feed(generation, _) | Self::Socket(generation, _) => *generation,
        }
    }

    /// The WebSocket, if it is one.
    pub(crate) fn socket(&mut self) -> Option<&mut Socket> {
        match self {
            Self::Reader(seat) => seat.socket.as_deref_mut(),
            Self::Joining(seat) => seat.socket.as_deref_mut(),
            Self::Socket(_, socket) => Some(socket),
            Self::Feed(..) => None,
        }
    }

    /// Whether it reads, or may, and nothing has told it to end.
    pub(crate) fn is_staying(&mut self) -> bool {
        match (self.socket().map(|socket| socket.closing), self) {
            (Some(closing), _) => closing.is_none(),
            (None, Self::Reader(seat)) => !seat.is_leaving,
            (None, _) => false,
        }
    }

    /// The WebSocket alone, if it is one.
    pub(crate) fn into_socket(self) -> Option<Box<Socket>> {
        match self {
            Self::Reader(seat) => seat.socket,
            Self::Joining(seat) => seat.socket,
            Self::Socket(_, socket) => Some(socket),
            Self::Feed(..) => None,
        }
    }
}

/// All seats of a worker. Each has a number: in HTTP/1.1 the slot of its connection, in HTTP/2, where a
/// connection may have any number of them, one of their own.
#[derive(Debug)]
pub(crate) struct Seats {
    /// By slot.
    seats: Vec<Option<Seat>>,
    of_streams: StreamSeats,
    worker: u16,
    /// Exchanges that have something to send now.
    pub(crate) wakes: Vec<Address>,
    /// The number whose exchange is in hand: it needs not be woken.
    pub(crate) in_hand: Option<u32>,
}

/// Seats of streams of HTTP/2.
#[derive(Debug, Default)]
struct StreamSeats {
    /// By slot and stream: where in the list.
    places: HashMap<(u32, u32), u32>,
    seats: Vec<Option<StreamSeat>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct StreamSeat {
    address: Address,
    /// Nothing while it is only promised.
    seat: Option<Seat>,
}

/// Marks the number of a stream's seat. No table of connections is as long.
const OF_STREAM: u32 = 1 << 31;

impl StreamSeats {
    /// The number of an exchange, which is given one if it has none.
    fn promise(&mut self, address: Address) -> u32 {
        let key = (address.slot, address.stream);
        if let Some(place) = self.places.get(&key) {
            return OF_STREAM | place;
        }
        let promised = Some(StreamSeat { address, seat: None });
        let place = match self.free.pop() {
            Some(place) => {
                self.seats[place as usize] = promised;
                place
            }
            None => {
                self.seats.push(promised);
                self.seats.len() as u32 - 1
            }
        };
        self.places.insert(key, place);
        OF_STREAM | place
    }

    fn at(&mut self, number: u32) -> Option<&mut StreamSeat> {
        self.seats.get_mut((number ^ OF_STREAM) as usize)?.as_mut()
    }

    fn take(&mut self, number: u32) -> Option<Seat> {
        let place = number ^ OF_STREAM;
        let StreamSeat { address, seat } = self.seats.get_mut(place as usize)?.take()?;
        self.places.remove(&(address.slot, address.stream));
        self.free.push(place);
        seat
    }
}

impl Seats {
    pub(crate) fn new(worker: u16) -> Self {
        let of_streams = StreamSeats::default();
        Self { seats: Vec::new(), of_streams, worker, wakes: Vec::new(), in_hand: None }
    }

    /// How many seats there are to look at.
    pub(crate) fn len(&self) -> usize {
        self.seats.len() + self.of_streams.seats.len()
    }

    /// The number of the nth of them.
    pub(crate) fn nth(&self, nth: usize) -> u32 {
        match nth.checked_sub(self.seats.len()) {
            Some(place) => OF_STREAM | place as u32,
            None => nth as u32,
        }
    }

    /// The number of the seat that an exchange has, or would have in HTTP/1.1.
    #[inline]
    pub(crate) fn number(&self, address: Address) -> Option<u32> {
        match address.stream {
            0 => Some(address.slot),
            stream => self.of_streams.places.get(&(address.slot, stream)).map(|place| OF_STREAM | place),
        }
    }

    /// The number of the seat that an exchange is about to get. Without one it has to be taken back.
    pub(crate) fn promise(&mut self, address: Address) -> u32 {
        match address.stream {
            0 => address.slot,
            _ => self.of_streams.promise(address),
        }
    }

    /// Whether an exchange has a seat.
    #[inline]
    pub(crate) fn has(&self, address: Address) -> bool {
        let seat = match address.stream {
            0 => self.seats.get(address.slot as usize).and_then(Option::as_ref),
            _ => self.of_stream(address),
        };
        seat.is_some_and(|seat| seat.generation() == address.generation)
    }

    fn of_stream(&self, address: Address) -> Option<&Seat> {
        let place = self.of_streams.places.get(&(address.slot, address.stream))?;
        self.of_streams.seats.get(*place as usize)?.as_ref()?.seat.as_ref()
    }

    /// The seat of an exchange, if it has one.
    pub(crate) fn find(&mut self, address: Address) -> Option<&mut Seat> {
        let number = self.number(address)?;
        self.at(number).filter(|seat| seat.generation() == address.generation)
    }

    /// The seat of a number.
    pub(crate) fn at(&mut self, number: u32) -> Option<&mut Seat> {
        if number & OF_STREAM != 0 {
            return self.of_streams.at(number)?.seat.as_mut();
        }
        self.seats.get_mut(number as usize)?.as_mut()
    }

    /// Gives a seat to a number, which was promised if it is a stream's.
    pub(crate) fn put(&mut self, number: u32, seat: Seat) {
        if number & OF_STREAM != 0 {
            if let Some(promised) = self.of_streams.at(number) {
                promised.seat = Some(seat);
            }
            return;
        }
        let index = number as usize;
        if self.seats.len() <= index {
            self.seats.resize_with(index + 1, || None);
        }
        self.seats[index] = Some(seat);
    }

    pub(crate) fn take(&mut self, number: u32) -> Option<Seat> {
        if number & OF_STREAM != 0 {
            return self.of_streams.take(number);
        }
        self.seats.get_mut(number as usize)?.take()
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
        } else if let Some(generation) = self.at(slot).map(|seat| seat.generation()) {
            self.wakes.push(Address { worker, slot, generation, stream: 0 });
        }
    }

    /// The reader of a number, if it has one.
    pub(crate) fn reader_seat(&mut self, slot: u32) -> Option<&mut ReaderSeat> {
        match self.at(slot)? {
            Seat::Reader(seat) => Some(seat),
            Seat::Joining(_) | Seat::Feed(..) | Seat::Socket(..) => None,
        }
    }

    /// The WebSocket of a slot, if it has one.
    pub(crate) fn socket(&mut self, slot: u32) -> Option<&mut Socket> {
        self.at(slot)?.socket()
    }
}

impl Audience for Seats {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        &mut self.reader_seat(slot).expect("every reader of a group has a seat").reader
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
    use super::*;

    #[test]
    fn streams_of_one_connection_have_seats_of_their_own() {
        let mut seats = Seats::new(3);
        let address = |stream| Address { worker: 3, slot: 5, generation: 7, stream };
        let feed = || Seat::Feed(7, Box::new(Feed::new(10, crate::live::permit::Rights::Anonymous)));
        let numbers: Vec<u32> = [0, 1, 3].map(|stream| seats.promise(address(stream))).into();
        assert_eq!(numbers[0], 5);
        assert!(!seats.has(address(1)) && seats.at(numbers[1]).is_none());
        numbers.iter().for_each(|number| seats.put(*number, feed()));
        for (stream, number) in [0, 1, 3].into_iter().zip(&numbers) {
            assert_eq!(seats.number(address(stream)), Some(*number));
            assert!(seats.has(address(stream)) && seats.find(address(stream)).is_some());
            assert!(!seats.has(Address { generation: 8, ..address(stream) }));
            seats.wake(*number);
        }
        assert_eq!(seats.wakes, [0, 1, 3].map(address));
        assert!((0..seats.len()).filter(|nth| seats.at(seats.nth(*nth)).is_some()).count() == 3);
        assert!(numbers.iter().all(|number| seats.take(*number).is_some()));
        assert_eq!(seats.number(address(1)), None);
        assert!(numbers[1..].contains(&seats.promise(address(9))), "places are used again");
    }
}

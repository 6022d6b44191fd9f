//! Seats of exchanges of HTTP/2, of which a connection may have any number.
//!
//! This table owns their numbers. It must never give the number of a seat that is taken.

use std::collections::HashMap;

use staunch_engine::{Address, StreamRef};

use super::super::seat::Seat;

/// Marks the number of a stream's seat. No table of connections is as long.
pub(super) const OF_STREAM: u32 = 1 << 31;

/// The seats of exchanges of HTTP/2, by slot and stream.
#[derive(Debug, Default)]
pub(super) struct StreamSeats {
    /// By slot and stream: where in the list.
    places: HashMap<(u32, StreamRef), u32>,
    seats: Vec<Option<StreamSeat>>,
    free: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct StreamSeat {
    pub(super) address: Address,
    /// Nothing while it is only promised.
    pub(super) seat: Option<Seat>,
}

impl StreamSeats {
    /// How many there are to look at.
    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    /// The number of an exchange, if it has one.
    pub(super) fn number(&self, address: Address) -> Option<u32> {
        self.places.get(&(address.slot, address.stream)).map(|place| OF_STREAM | place)
    }

    /// The number of an exchange, which is given one if it has none.
    pub(super) fn promise(&mut self, address: Address) -> u32 {
        if let Some(number) = self.number(address) {
            return number;
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
        self.places.insert((address.slot, address.stream), place);
        OF_STREAM | place
    }

    pub(super) fn find(&self, address: Address) -> Option<&Seat> {
        let place = self.number(address)? ^ OF_STREAM;
        self.seats.get(place as usize)?.as_ref()?.seat.as_ref()
    }

    pub(super) fn at(&mut self, number: u32) -> Option<&mut StreamSeat> {
        self.seats.get_mut((number ^ OF_STREAM) as usize)?.as_mut()
    }

    pub(super) fn take(&mut self, number: u32) -> Option<Seat> {
        let place = number ^ OF_STREAM;
        let StreamSeat { address, seat } = self.seats.get_mut(place as usize)?.take()?;
        self.places.remove(&(address.slot, address.stream));
        self.free.push(place);
        seat
    }
}

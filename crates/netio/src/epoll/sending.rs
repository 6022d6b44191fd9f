//! Sending: what the turn has answered goes out here, and what the socket did not take is held until it does.
//!
//! It owns nothing of its own: it is the half of [`Epoll`] that moves flights. Order of calls: `hold`
//! whenever a flight has stopped short, `go_on_sending` when what it waited for is there, `finish` once.

use super::flight::{Flight, Stop};
use super::table::Connection;
use super::watch::watch_room;
use super::{Epoll, OUTGOING_KEEP_BYTES};
use crate::{Completion, Slot};

impl Epoll {
    pub(super) fn go_on_sending(&mut self, slot: Slot) -> Option<Completion> {
        let connection = self.table.get_mut(slot)?;
        let flight = self.flights.get_mut(connection.flight()?);
        let (taken_bytes, stop) = flight.advance(connection.socket());
        match stop {
            Stop::Done => self.finish_held(slot, 0),
            Stop::Failed(errno) => self.finish_held(slot, errno),
            stop => {
                self.hold(slot, stop);
                let bytes = u32::try_from(taken_bytes).unwrap_or(u32::MAX);
                return (bytes > 0).then_some(Completion::Progress { slot, bytes });
            }
        }
        None
    }

    /// Sees to it that a send that has stopped short goes on.
    pub(super) fn hold(&mut self, slot: Slot, stop: Stop) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        match stop {
            Stop::Full => {
                connection.set(Connection::WAITS_FOR_ROOM);
                if let Err(errno) = watch_room(&self.epoll, slot, connection) {
                    self.finish_held(slot, errno.raw_os_error());
                }
            }
            Stop::Draining => self.retry_later(slot),
            Stop::Cold => {
                let token = u64::from(connection.generation()) << 32 | u64::from(slot);
                let flight = connection.flight().map(|flight| self.flights.get_mut(flight));
                if flight.is_some_and(|flight| flight.warm(&self.warmed, token)) {
                    connection.set(Connection::WAITS_FOR_DISK);
                } else {
                    self.retry_later(slot);
                }
            }
            Stop::Budget | Stop::Done | Stop::Failed(_) => self.enqueue_next_turn(slot),
        }
    }

    fn retry_later(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.set(Connection::WAITS_FOR_ROOM);
        let delay_ms = connection.flight().map_or(1, |flight| self.flights.get_mut(flight).next_delay_ms());
        self.retries.push(delay_ms, slot, connection.generation());
    }

    pub(super) fn retry_expired(&mut self) {
        for (slot, generation) in self.retries.take_expired() {
            if let Some(connection) = self.table.get_mut_of(slot, generation) {
                connection.clear(Connection::WAITS_FOR_ROOM);
                self.enqueue(slot);
            }
        }
    }

    pub(super) fn take_flight(&mut self, slot: Slot) -> Flight {
        let connection = self.table.get_mut(slot).expect("a flight belongs to an open connection");
        let flight = connection.flight().expect("nothing in flight");
        connection.set_flight(None);
        self.flights.remove(flight)
    }

    fn finish_held(&mut self, slot: Slot, errno: i32) {
        let flight = self.take_flight(slot);
        self.finish(slot, flight, errno);
    }

    /// Gives the container back, and closes if nothing is to follow.
    pub(super) fn finish(&mut self, slot: Slot, flight: Flight, errno: i32) {
        let last = flight.last;
        let mut outgoing = flight.outgoing;
        outgoing.clear(OUTGOING_KEEP_BYTES);
        self.reports.push_back(Completion::Sent { slot, outgoing, errno });
        if last {
            self.retire(slot);
        } else if let Some(connection) = self.table.get_mut(slot)
            && connection.is(Connection::SHUTDOWN_LATER)
        {
            connection.clear(Connection::SHUTDOWN_LATER);
            connection.shutdown();
        }
    }

    /// Closes the socket, which also ends the watching. The slot is free once the report was taken, and names
    /// the same connection until then.
    pub(super) fn retire(&mut self, slot: Slot) {
        self.table.remove(slot);
        self.reports.push_back(Completion::Closed { slot });
    }
}

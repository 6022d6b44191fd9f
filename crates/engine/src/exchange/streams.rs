//! What a connection of HTTP/2 holds of streams whose answers were not handed over at once.
//!
//! It owns the list. It must never hold a stream of which nothing waits.

use super::pieces::Pieces;
use super::under_way::UnderWay;
use crate::limits::OPEN_ROOM_BYTES;

/// A stream whose answer was not handed over at once.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) number: u32,
    /// What is left of its answer's body, as far as it is there.
    pub(crate) rest: Pieces,
    /// Field lines that end its answer behind its body, mostly none.
    pub(crate) trailers: Vec<u8>,
    /// Its answer waits for a window, or for its turn.
    pub(crate) is_blocked: bool,
    /// Nothing once its answer is complete but for sending.
    pub(crate) under_way: UnderWay,
    /// The body of its request is wanted.
    pub(crate) reads: bool,
    /// What has come of that body and was not given to the handler yet.
    pub(crate) body: Vec<u8>,
    pub(crate) body_end: BodyEnd,
    /// The container in which its last bytes so far went.
    pub(crate) container: u64,
}

/// Whether the body of a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// More may come.
    Awaited,
    /// All of it has come.
    Came,
    /// The handler was told.
    Told,
}

impl Stream {
    fn new(number: u32) -> Self {
        Self {
            number,
            rest: Pieces::default(),
            trailers: Vec::new(),
            is_blocked: false,
            under_way: UnderWay::Nothing,
            reads: false,
            body: Vec::new(),
            body_end: BodyEnd::Awaited,
            container: 0,
        }
    }

    /// Whether more of its answer may wait.
    pub(crate) fn has_room(&self) -> bool {
        self.rest.length_bytes() < OPEN_ROOM_BYTES
    }

    /// Whether more of the request's body may be given to its handler now.
    pub(crate) fn takes_body(&self) -> bool {
        self.reads && self.has_room() && self.under_way.takes_body()
    }

    fn held_bytes(&self) -> usize {
        let own_bytes = self.trailers.capacity() + self.body.capacity();
        self.rest.held_bytes() + own_bytes + self.under_way.held_bytes()
    }
}

/// All of them, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Streams(Vec<Stream>);

impl Streams {
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |stream| stream.number)
    }

    pub(crate) fn find(&self, number: u32) -> Option<&Stream> {
        self.0.get(self.place(number).ok()?)
    }

    pub(crate) fn find_mut(&mut self, number: u32) -> Option<&mut Stream> {
        let place = self.place(number).ok()?;
        self.0.get_mut(place)
    }

    /// The stream of this number, which waits from now on if it did not.
    pub(crate) fn hold(&mut self, number: u32) -> &mut Stream {
        let place = self.place(number).unwrap_or_else(|place| {
            self.0.insert(place, Stream::new(number));
            place
        });
        &mut self.0[place]
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Stream> {
        let place = self.place(number).ok()?;
        let removed = self.0.remove(place);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        Some(removed)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.0.iter().map(|stream| stream.number).collect()
    }

    /// Numbers of those whose exchanges are not over.
    pub(crate) fn under_way(&self) -> Vec<u32> {
        let under_way = self.0.iter().filter(|stream| !stream.under_way.is_nothing());
        under_way.map(|stream| stream.number).collect()
    }

    /// Memory it takes beside itself, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let streams_bytes = self.0.capacity() * size_of::<Stream>();
        streams_bytes + self.0.iter().map(Stream::held_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_by_their_numbers_and_leave_nothing() {
        let mut streams = Streams::default();
        for number in [5, 1, 9, 5] {
            streams.hold(number);
        }
        assert_eq!(streams.numbers(), [1, 5, 9]);
        assert!(streams.find(5).is_some() && streams.find_mut(7).is_none());
        for number in [9, 1, 5] {
            assert!(streams.remove(number).is_some_and(|removed| removed.number == number));
        }
        assert!(streams.remove(5).is_none());
        assert_eq!(streams.held_bytes(), 0);
    }
}

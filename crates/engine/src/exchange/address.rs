//! Where mail goes.

use std::num::NonZero;

/// Which exchange mail is for. It is good until that exchange is finished: later mail is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Index of the worker.
    pub worker: u16,
    /// Slot of the connection in its worker.
    pub slot: u32,
    /// Which use of the slot, and in HTTP/1.1 which of its exchanges.
    pub generation: u32,
    /// The stream of the connection, where it has streams.
    pub stream: StreamRef,
}

// Mail carries an address with each letter.
const _: () = assert!(size_of::<Address>() == 16);

/// The stream of an exchange, or none where a connection has one exchange at a time. Any number may be that
/// of a stream, 0 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamRef(Option<NonZero<u32>>);

impl StreamRef {
    /// The connection's only exchange, as in HTTP/1.1.
    pub const ONLY: Self = Self(None);

    /// The stream of this number, which is below the largest one.
    #[inline]
    pub const fn of(number: u32) -> Self {
        debug_assert!(number < u32::MAX, "no protocol counts its streams so far");
        Self(NonZero::new(number.wrapping_add(1)))
    }

    /// The number of the stream, if there are streams.
    #[inline]
    pub const fn number(self) -> Option<u32> {
        match self.0 {
            Some(next) => Some(next.get() - 1),
            None => None,
        }
    }

    /// Whether the exchange is one of several that its connection may have.
    #[inline]
    pub const fn is_stream(self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stream_is_not_the_only_exchange() {
        assert_eq!(StreamRef::ONLY.number(), None);
        for number in [0, 1, u32::MAX - 1] {
            let stream = StreamRef::of(number);
            assert_eq!((stream.number(), stream.is_stream()), (Some(number), true));
            assert_ne!(stream, StreamRef::ONLY);
        }
    }
}

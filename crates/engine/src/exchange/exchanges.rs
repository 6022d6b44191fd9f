//! The exchanges of a connection that are not over at once.
//!
//! This module owns 16 bytes of a slot, and the exchanges that they point to: they say which protocol the
//! connection speaks. A request that is answered at once must cost no more than one look at them.

use super::address::StreamRef;
use super::http2::Http2;
use super::owner::Owner;
use super::under_way::UnderWay;

/// The exchanges of a connection that are not over at once.
#[derive(Debug)]
pub(crate) enum Exchanges {
    /// HTTP/1.1 has one at a time.
    One(UnderWay),
    /// HTTP/2 has any number.
    Streams(Box<Http2>),
}

const _: () = assert!(size_of::<Exchanges>() == 16);

impl Default for Exchanges {
    fn default() -> Self {
        Self::One(UnderWay::Nothing)
    }
}

impl Exchanges {
    /// Whether there is nothing but what the session of HTTP/1.1 knows.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        matches!(self, Self::One(UnderWay::Nothing))
    }

    /// The only one.
    #[inline]
    pub(crate) fn one(&self) -> Option<&UnderWay> {
        match self {
            Self::One(under_way) => Some(under_way),
            Self::Streams(_) => None,
        }
    }

    /// The only one, to change it.
    #[inline]
    pub(crate) fn one_mut(&mut self) -> Option<&mut UnderWay> {
        match self {
            Self::One(under_way) => Some(under_way),
            Self::Streams(_) => None,
        }
    }

    #[inline]
    pub(crate) fn http2(&self) -> Option<&Http2> {
        match self {
            Self::Streams(http2) => Some(http2),
            Self::One(_) => None,
        }
    }

    #[inline]
    pub(crate) fn http2_mut(&mut self) -> Option<&mut Http2> {
        match self {
            Self::Streams(http2) => Some(http2),
            Self::One(_) => None,
        }
    }

    pub(crate) fn take_http2(&mut self) -> Option<Box<Http2>> {
        match std::mem::take(self) {
            Self::Streams(http2) => Some(http2),
            one @ Self::One(_) => {
                *self = one;
                None
            }
        }
    }

    /// Where the only exchange stands, or that of a stream.
    pub(crate) fn find(&self, stream: StreamRef) -> Option<&UnderWay> {
        match self {
            Self::One(under_way) => Some(under_way),
            Self::Streams(http2) => Some(&http2.stream(stream.number()?)?.under_way),
        }
    }

    /// The part of the handler to which an exchange under way belongs.
    pub(crate) fn owner(&self, stream: StreamRef) -> Option<Owner> {
        self.find(stream).and_then(UnderWay::owner)
    }

    /// The part of the handler that hears by its refusal that the only exchange is over. That of a request
    /// that is read hears it as that peer leaves.
    pub(crate) fn owner_of_refused(&self) -> Option<Owner> {
        self.one().filter(|under_way| !under_way.is_reading()).and_then(UnderWay::owner)
    }

    /// Whether a request waits for mail.
    pub(crate) fn is_waiting(&self, stream: StreamRef) -> bool {
        self.find(stream).is_some_and(UnderWay::is_waiting)
    }

    /// Whether a request is read that has no answer yet.
    pub(crate) fn is_reading(&self, stream: StreamRef) -> bool {
        self.find(stream).is_some_and(UnderWay::is_reading)
    }

    /// Whether an answer goes on.
    pub(crate) fn is_open(&self, stream: StreamRef) -> bool {
        self.find(stream).is_some_and(UnderWay::is_open)
    }

    /// Memory that they take beside themselves, in bytes.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::One(under_way) => under_way.held_bytes(),
            Self::Streams(http2) => http2.held_bytes(),
        }
    }
}

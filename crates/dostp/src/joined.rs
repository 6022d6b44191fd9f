//! The frames of one Ethernet payload or UDP datagram: one, or several that were joined.
//!
//! This file owns where a joined frame ends and the next begins. It must never look behind a frame whose
//! bytes have a fault: where that one ends is not known.

use crate::fault::Fault;
use crate::frame::Frame;
use crate::header::{Flags, Header};
use crate::limits::HEADER_BYTES;

/// Frames that were not looked at yet, in the order in which they stand.
#[derive(Debug)]
pub struct JoinedFrames<'a> {
    rest: Option<&'a mut [u8]>,
    /// The header of the frame before, which bears MORE.
    before: Option<Header>,
}

impl<'a> JoinedFrames<'a> {
    /// A payload of the link, without its Ethernet header.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { rest: Some(bytes), before: None }
    }

    /// Whether no frame was taken from it.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        self.before.is_none() && self.rest.is_some()
    }

    /// The next frame: its header, and its bytes from the header to the end of the trailer. `None` behind the
    /// last one, or behind a fault.
    ///
    /// At most a sixteenth as many frames come as there are bytes.
    #[inline]
    pub fn next_frame(&mut self, cluster: u8) -> Option<Result<(Header, &'a mut [u8]), Fault>> {
        let bytes = self.rest.take()?;
        let frame = match Frame::decode(bytes, cluster) {
            Ok(frame) => frame,
            Err(fault) => return Some(Err(fault)),
        };
        let header = frame.header;
        let end = HEADER_BYTES + frame.payload.len() + frame.trailer.len();
        if self.before.as_ref().is_some_and(|before| !header.may_follow(before)) {
            return Some(Err(Fault::Flags));
        }
        let (own, behind) = bytes.split_at_mut(end);
        if header.flags.has(Flags::MORE) {
            self.rest = Some(behind);
            self.before = Some(header);
        }
        Some(Ok((header, own)))
    }
}

#[cfg(test)]
mod tests;

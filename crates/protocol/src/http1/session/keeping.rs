//! Input that a session keeps because it was not used.

use std::borrow::Cow;

use super::{Held, Phase, Session};

impl Session {
    /// The kept bytes followed by `bytes`; nothing is kept any more.
    #[inline]
    pub fn take_kept<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match &mut self.held {
            None => Cow::Borrowed(bytes),
            Some(held) => {
                let mut input = std::mem::take(&mut held.input);
                if held.reader.is_none() {
                    self.held = None;
                }
                if input.is_empty() {
                    return Cow::Borrowed(bytes);
                }
                input.reserve_exact(bytes.len());
                input.extend_from_slice(bytes);
                Cow::Owned(input)
            }
        }
    }

    /// Keeps what was not used (a partial head, or what stands behind an answer not ready). Nothing after
    /// `Close`.
    #[inline]
    pub fn keep(&mut self, input: &[u8]) {
        self.keep_last(Cow::Borrowed(input), input.len());
    }

    /// As `keep`, for the last `count` bytes of what `take_kept` gave: those that were kept before are not
    /// copied.
    #[inline]
    pub fn keep_last(&mut self, taken: Cow<'_, [u8]>, count: usize) {
        if count > 0 && !matches!(self.phase, Phase::Closed { .. }) {
            self.keep_some(taken, count);
        }
    }

    fn keep_some(&mut self, taken: Cow<'_, [u8]>, count: usize) {
        let used_bytes = taken.len() - count;
        let input = match taken {
            Cow::Borrowed(bytes) => bytes[used_bytes..].to_vec(),
            Cow::Owned(mut bytes) => {
                bytes.drain(..used_bytes);
                bytes.shrink_to_fit();
                bytes
            }
        };
        self.held.get_or_insert_default().input = input;
    }

    /// Bytes kept. Above [`crate::limits::SPILL_BYTES_MAX`] the caller stops receiving until it falls.
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.input.len())
    }

    /// Memory taken by what is kept, in bytes.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| size_of::<Held>() + held.input.capacity())
    }
}

//! Ends of records among the bytes of a server (RFC 8446, section 5.1, and RFC 5246, section 6.2.1).
//!
//! It must never look into a record: only its head says how long it is.

use crate::limits::RECORD_HEAD_BYTES;

/// The place in a stream of records.
#[derive(Debug, Default)]
pub(super) struct RecordEnds {
    head: [u8; RECORD_HEAD_BYTES],
    /// Bytes of the head that have come; none where a record ends.
    head_bytes: usize,
    /// Bytes of the content that are still to come, once the head is there.
    content_bytes: usize,
}

impl RecordEnds {
    /// Whether a record has begun and not ended.
    pub(super) fn is_amid(&self) -> bool {
        self.head_bytes > 0
    }

    /// These bytes have come.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.head_bytes < RECORD_HEAD_BYTES {
                self.head[self.head_bytes] = first;
                self.head_bytes += 1;
                bytes = rest;
                if self.head_bytes == RECORD_HEAD_BYTES {
                    self.content_bytes = usize::from(u16::from_be_bytes([self.head[3], self.head[4]]));
                }
            } else {
                let taken = bytes.len().min(self.content_bytes);
                self.content_bytes -= taken;
                bytes = &bytes[taken..];
            }
            if self.head_bytes == RECORD_HEAD_BYTES && self.content_bytes == 0 {
                self.head_bytes = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_ends_where_its_head_says_however_it_is_cut() {
        let records = [&[23, 3, 3, 0, 3, 1, 2, 3][..], &[22, 3, 3, 0, 0], &[21, 3, 3, 0, 2, 1, 0]].concat();
        let ends = [8, 13, 20];
        for size in 1..=records.len() {
            let (mut place, mut passed) = (RecordEnds::default(), 0);
            for piece in records.chunks(size) {
                place.pass(piece);
                passed += piece.len();
                assert_eq!(place.is_amid(), !ends.contains(&passed), "{size}, {passed}");
            }
        }
    }
}

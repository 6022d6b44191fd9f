//! A body on its way out that waits for the windows of its stream.
//!
//! It owns the order of its pieces. It must never copy what is shared, nor hold memory while it is empty.

use std::collections::VecDeque;

use staunch_netio::Outgoing;

use super::piece::Piece;

/// Pieces, in order.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    queue: VecDeque<Piece>,
    length_bytes: u64,
}

impl Pieces {
    /// Length of them all, in bytes.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length_bytes == 0
    }

    /// Adds a piece behind the others.
    pub(crate) fn push(&mut self, piece: Piece) {
        let length_bytes = piece.length_bytes();
        if length_bytes == 0 {
            return;
        }
        self.length_bytes += length_bytes;
        if let (Some(Piece::Bytes(last)), Piece::Bytes(bytes)) = (self.queue.back_mut(), &piece) {
            return last.extend_from_slice(bytes);
        }
        if self.queue.is_empty() {
            self.queue.reserve_exact(1);
        }
        self.queue.push_back(piece);
    }

    /// Hands over the first `count` bytes.
    pub(crate) fn take(&mut self, mut count: u64, outgoing: &mut Outgoing) {
        debug_assert!(count <= self.length_bytes, "more than there is");
        self.length_bytes -= count;
        while count > 0
            && let Some(piece) = self.queue.pop_front()
        {
            if piece.length_bytes() <= count {
                count -= piece.length_bytes();
                piece.put(outgoing);
                continue;
            }
            let (first, rest) = piece.split(count);
            first.put(outgoing);
            self.queue.push_front(rest);
            count = 0;
        }
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
    }

    /// Memory it takes beside itself, in bytes. What it shares belongs to others.
    pub(crate) fn held_bytes(&self) -> usize {
        let own = self.queue.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.capacity(),
            Piece::Shared(_) | Piece::File(_) => 0,
        });
        self.queue.capacity() * size_of::<Piece>() + own.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use staunch_netio::{Part, Slice};

    use super::*;

    fn shared(text: &str) -> Piece {
        Piece::Shared(Slice { bytes: text.as_bytes().into(), start: 0, end: text.len() })
    }

    fn text(outgoing: &Outgoing) -> String {
        let (own, parts) = outgoing.contents();
        let (mut bytes, mut at) = (Vec::new(), 0);
        for part in parts {
            match part {
                Part::Own(count) => {
                    bytes.extend_from_slice(&own[at..at + count]);
                    at += count;
                }
                Part::Shared(slice) => bytes.extend_from_slice(slice.as_bytes()),
                Part::File(_) => unreachable!("no file was given"),
            }
        }
        bytes.extend_from_slice(&own[at..]);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn bytes_come_in_order_however_they_are_cut() {
        for step in 1..=12 {
            let mut pieces = Pieces::default();
            for piece in [Piece::Bytes(b"ab".into()), Piece::Bytes(b"c".into()), shared("defg"), shared("")] {
                pieces.push(piece);
            }
            pieces.push(Piece::Bytes(b"hijkl".into()));
            assert_eq!((pieces.length_bytes(), pieces.queue.len()), (12, 3));
            let mut outgoing = Outgoing::default();
            while !pieces.is_empty() {
                pieces.take(pieces.length_bytes().min(step), &mut outgoing);
            }
            assert_eq!(text(&outgoing), "abcdefghijkl", "by {step}");
            assert_eq!(pieces.held_bytes(), 0);
        }
    }
}

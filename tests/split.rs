//! How sent bytes are cut into pieces: the meaning of a conversation must not depend on it.
//!
//! It must never use a source of randomness but its seed.

use std::fmt;

/// A way to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// As few pieces as the conversation allows.
    Whole,
    /// Byte by byte; of a long text only the first and last bytes so.
    Bytes,
    /// At random places drawn from a seed.
    Random(u64),
}

/// Longest text that is cut at every byte; of longer ones this many bytes at each end.
const EACH_BYTE_MAX: usize = 600;

impl Split {
    /// A seed for whatever else is to differ between runs.
    pub fn seed(&self) -> u64 {
        match *self {
            Self::Whole => 1,
            Self::Bytes => 2,
            Self::Random(seed) => seed,
        }
    }

    /// The pieces of a text; `turn` is the number of the text in its conversation.
    pub fn pieces<'a>(&self, bytes: &'a [u8], turn: u64) -> Vec<&'a [u8]> {
        match *self {
            Self::Whole => vec![bytes],
            Self::Bytes if bytes.len() <= 2 * EACH_BYTE_MAX => bytes.chunks(1).collect(),
            Self::Bytes => {
                let (start, rest) = bytes.split_at(EACH_BYTE_MAX);
                let (middle, end) = rest.split_at(rest.len() - EACH_BYTE_MAX);
                start.chunks(1).chain([middle]).chain(end.chunks(1)).collect()
            }
            Self::Random(seed) => {
                let mut random = Random::new(seed.wrapping_add(turn));
                let mut pieces = Vec::new();
                let mut rest = bytes;
                while !rest.is_empty() {
                    let most = rest.len().min(if random.below(4) == 0 { rest.len() } else { 40 });
                    let (piece, after) = rest.split_at(1 + random.below(most as u64) as usize);
                    pieces.push(piece);
                    rest = after;
                }
                pieces
            }
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => formatter.write_str("whole"),
            Self::Bytes => formatter.write_str("byte by byte"),
            Self::Random(seed) => write!(formatter, "random from seed {seed}"),
        }
    }
}

/// Random numbers from a seed (the SplitMix64 generator).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_text() {
        let long: Vec<u8> = (0..5000u32).map(|number| number as u8).collect();
        for split in [Split::Whole, Split::Bytes, Split::Random(1), Split::Random(2)] {
            for length in [0, 1, 2, 39, 1200, 5000] {
                let pieces = split.pieces(&long[..length], 7);
                assert_eq!(pieces.concat(), &long[..length], "{split} {length}");
                assert_eq!(pieces, split.pieces(&long[..length], 7), "{split} repeats itself");
            }
        }
    }
}

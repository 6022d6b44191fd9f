//! Inputs made from seeds: known ones damaged, cut, mixed and repeated, all told by one number.
//!
//! It must never ask a clock or the system for randomness: the same number gives the same inputs.

/// Longer inputs find little more and take long.
const INPUT_BYTES_MAX: usize = 4096;

/// Damages for one input at most; most inputs get one or two.
const DAMAGES_MAX: u64 = 8;

/// Bytes that readers treat specially: ends, separators, limits of digits and of lengths.
const SPECIAL: &[u8] = b"\0\x01\x7f\x80\xff\r\n\t \"',:;=%&/\\.-+09azAZ{}[]#*?@";

/// A source of inputs.
pub(crate) struct Inputs<'s> {
    seeds: &'s [Vec<u8>],
    state: u64,
}

impl<'s> Inputs<'s> {
    /// Inputs from these seeds; without any, from nothing.
    pub(crate) fn new(seeds: &'s [Vec<u8>], number: u64) -> Self {
        Self { seeds, state: number }
    }

    /// The next input.
    pub(crate) fn make(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..1 + self.below(DAMAGES_MAX) * self.below(2) {
            self.damage(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn damage(&mut self, input: &mut Vec<u8>) {
        let place = self.index(input.len() + 1);
        let length_max = 1 << self.below(9);
        let end = (place + 1 + self.index(length_max)).min(input.len());
        match self.below(8) {
            0 => input.truncate(place),
            1 => drop(input.drain(place.min(end)..end)),
            2 => {
                let piece = input[place.min(end)..end].to_vec();
                input.splice(place..place, piece);
            }
            3 => {
                let other = self.seed();
                let start = self.index(other.len() + 1);
                let length = self.index(64).min(other.len() - start);
                input.splice(place..place, other[start..start + length].iter().copied());
            }
            4 => input.insert(place, SPECIAL[self.index(SPECIAL.len())]),
            5 => input.insert(place, self.next() as u8),
            kind => {
                let Some(byte) = input.get_mut(place) else { return };
                *byte =
                    if kind == 6 { *byte ^ 1 << self.below(8) } else { SPECIAL[self.index(SPECIAL.len())] };
            }
        }
    }

    fn seed(&mut self) -> &'s [u8] {
        let index = self.index(self.seeds.len() + 1);
        self.seeds.get(index).map_or(&[], Vec::as_slice)
    }

    fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[test]
fn a_number_tells_all_inputs_and_none_is_too_long() {
    let seeds = [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![7; 5000]];
    let made = |number| {
        let mut inputs = Inputs::new(&seeds, number);
        (0..1000).map(|_| inputs.make()).collect::<Vec<_>>()
    };
    assert_eq!(made(3), made(3));
    assert_ne!(made(3), made(4));
    let inputs = made(5);
    assert!(inputs.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
    let different: std::collections::HashSet<_> = inputs.iter().collect();
    // A third is made from nothing, and so is short.
    assert!(different.len() > 500, "only {} different inputs", different.len());
}

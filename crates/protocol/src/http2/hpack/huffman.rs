//! The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
//!
//! It owns the code, which is canonical: all of it follows from the lengths. It must never give more bytes
//! than a shortest code of five bits allows, and never take a padding that could hide something.

use super::fault::HpackFault;

/// Length in bits of the code of each byte, and of EOS behind them (RFC 7541, appendix B).
#[rustfmt::skip] // a table
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const SYMBOLS: usize = 257;
/// EOS: its bits pad the last byte, and it must never be sent as a whole.
const EOS: u16 = 256;
const LENGTH_MAX: usize = 30;
/// The shortest code, in bits.
const LENGTH_MIN: usize = 5;

/// Codes by symbol, right-aligned: in the order of lengths, and of symbols where lengths are equal.
const CODES: [u32; SYMBOLS] = {
    let mut codes = [0; SYMBOLS];
    let (mut next, mut length) = (0, 1);
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                codes[symbol] = next;
                next += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    codes
};

/// Symbols in the order of their codes.
static SORTED: [u16; SYMBOLS] = {
    let mut sorted = [0; SYMBOLS];
    let (mut at, mut length) = (0, 1);
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                sorted[at] = symbol as u16;
                at += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    sorted
};

/// For each length: the first 32 bits behind its codes, its first code, and the place of that in [`SORTED`].
static BY_LENGTH: [(u64, u32, u16); LENGTH_MAX + 1] = {
    let mut table = [(0, 0, 0); LENGTH_MAX + 1];
    let (mut next, mut at, mut length) = (0u32, 0u16, 1);
    while length <= LENGTH_MAX {
        let (first, place) = (next, at);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                next += 1;
                at += 1;
            }
            symbol += 1;
        }
        table[length] = ((next as u64) << (32 - length), first, place);
        next <<= 1;
        length += 1;
    }
    table
};

/// Bits that are looked at first: no code of a letter or digit is longer.
const SHORT_BITS: usize = 8;

/// What the next [`SHORT_BITS`] begin with: a byte, and the length of its code. No length: a longer code.
static SHORT: [(u8, u8); 1 << SHORT_BITS] = {
    let mut table = [(0, 0); 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol] as usize;
        if length <= SHORT_BITS {
            let first = (CODES[symbol] as usize) << (SHORT_BITS - length);
            let mut place = first;
            while place < first + (1 << (SHORT_BITS - length)) {
                table[place] = (symbol as u8, length as u8);
                place += 1;
            }
        }
        symbol += 1;
    }
    table
};

/// Appends what `coded` says.
pub(super) fn decode(coded: &[u8], text: &mut Vec<u8>) -> Result<(), HpackFault> {
    text.reserve(coded.len() * 8 / LENGTH_MIN);
    let mut rest = coded.iter();
    // The next bits, from the top, and how many they are. Below them stand zeros.
    let (mut window, mut bits) = (0u64, 0u32);
    loop {
        while bits <= 56
            && let Some(byte) = rest.next()
        {
            window |= u64::from(*byte) << (56 - bits);
            bits += 8;
        }
        let (byte, length) = match SHORT[(window >> (64 - SHORT_BITS)) as usize] {
            (_, 0) => long_code(window)?,
            (byte, length) => (byte, u32::from(length)),
        };
        if length > bits {
            return check_padding(window, bits);
        }
        text.push(byte);
        window <<= length;
        bits -= length;
    }
}

/// The byte whose code of more than [`SHORT_BITS`] the window begins with, and its length.
#[cold]
fn long_code(window: u64) -> Result<(u8, u32), HpackFault> {
    let top = window >> 32;
    for (length, &(end, first, place)) in BY_LENGTH.iter().enumerate().skip(SHORT_BITS + 1) {
        if top < end {
            let code = (top >> (32 - length)) as u32;
            return match SORTED[usize::from(place) + (code - first) as usize] {
                EOS => Err(HpackFault::Huffman),
                symbol => Ok((symbol as u8, length as u32)),
            };
        }
    }
    Err(HpackFault::Huffman)
}

/// What is left behind the last whole code: less than a byte, all ones.
fn check_padding(window: u64, bits: u32) -> Result<(), HpackFault> {
    let ones = !(u64::MAX >> bits.min(63));
    if bits < 8 && window == ones { Ok(()) } else { Err(HpackFault::Huffman) }
}

/// How many bytes the code of a text has.
pub(super) fn coded_bytes(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of a text.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut bits) = (0u64, 0u32);
    for byte in text {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        window = window << length | u64::from(CODES[usize::from(*byte)]);
        bits += length;
        while bits >= 8 {
            bits -= 8;
            out.push((window >> bits) as u8);
        }
    }
    if bits > 0 {
        out.push((window << (8 - bits)) as u8 | 0xff >> bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(coded, &mut text).ok().map(|()| text)
    }

    #[test]
    fn the_code_is_that_of_the_appendix() {
        let known =
            [(0, 0x1ff8, 13), (48, 0, 5), (92, 0x7fff0, 19), (255, 0x3ff_ffee, 26), (256, 0x3fff_ffff, 30)];
        for (symbol, code, length) in known {
            assert_eq!((CODES[symbol], LENGTHS[symbol]), (code, length), "{symbol}");
        }
        let total: u64 = LENGTHS.iter().map(|length| 1u64 << (32 - length)).sum();
        assert_eq!(total, 1 << 32, "the code is complete");
    }

    #[test]
    fn bad_codes_are_refused() {
        assert_eq!(decoded(b""), Some(vec![]));
        assert_eq!(decoded(&[0xff]), None, "a whole byte of padding");
        assert_eq!(decoded(&[0xff; 4]), None, "EOS");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc]), None, "EOS with a following bit");
        assert_eq!(decoded(&[0x00]), None, "padding of zeros");
        assert_eq!(decoded(&[0x07]), Some(b"0".to_vec()));
        assert_eq!(decoded(&[0x06]), None, "padding that is not all ones");
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_read(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            prop_assert_eq!(coded.len(), coded_bytes(&text));
            prop_assert_eq!(decoded(&coded), Some(text));
        }

        #[test]
        fn what_was_read_has_one_code(coded in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(text) = decoded(&coded) {
                prop_assert!(text.len() <= coded.len() * 8 / LENGTH_MIN);
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}

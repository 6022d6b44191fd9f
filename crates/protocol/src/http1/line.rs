//! Where a line of a head ends.
//!
//! It owns the one pass over the bytes of a good head, eight at a time. It must never say what is wrong: that
//! is told by the slow way, which sees the whole head.

/// A byte in each place of a word.
const EACH: u64 = u64::from_ne_bytes([1; 8]);
const HIGH_BITS: u64 = EACH * 0x80;

/// How many bytes stand before the first control character that is no tab: in a good head the CR of its first
/// line's end (RFC 9112, section 2.2; RFC 9110, section 5.5).
#[inline]
pub(super) fn line_bytes(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = controls(u64::from_le_bytes(*word));
        if found != 0 {
            let first = found.trailing_zeros() as usize / 8;
            if word[first] != b'\t' {
                return index * 8 + first;
            }
            if let Some(first) = word.iter().position(is_end) {
                return index * 8 + first;
            }
        }
    }
    let before_tail = bytes.len() - tail.len();
    before_tail + tail.iter().position(is_end).unwrap_or(tail.len())
}

#[inline]
fn is_end(byte: &u8) -> bool {
    byte.is_ascii_control() && *byte != b'\t'
}

/// The high bit of every byte that is a control character, tabs included. Bytes behind the first of them may
/// be marked wrongly, for the subtractions borrow.
#[inline]
fn controls(word: u64) -> u64 {
    let below_space = word.wrapping_sub(EACH * 0x20) & !word;
    let delete = word ^ (EACH * 0x7f);
    (below_space | (delete.wrapping_sub(EACH) & !delete)) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_byte_in_every_place() {
        for byte in 0..=u8::MAX {
            for place in 0..20 {
                let mut bytes = [b'x'; 20];
                bytes[place] = byte;
                let expected = if is_end(&byte) { place } else { 20 };
                assert_eq!(line_bytes(&bytes), expected, "{byte} at {place}");
            }
        }
        assert_eq!(line_bytes(b""), 0);
        assert!(is_end(&b'\r') && is_end(&0x7f) && !is_end(&b'\t') && !is_end(&b' ') && !is_end(&0x80));
    }

    proptest! {
        #[test]
        fn as_one_byte_after_another(bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), 0x1d..0x23u8, 0x7d..0x83u8, Just(b'\t'), Just(b'a'), Just(b'a')
        ], 0..40)) {
            prop_assert_eq!(line_bytes(&bytes), bytes.iter().position(is_end).unwrap_or(bytes.len()));
        }
    }
}

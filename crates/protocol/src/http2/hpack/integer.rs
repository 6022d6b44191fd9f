//! Numbers in a block of fields (RFC 7541, section 5.1).
//!
//! It must never give a number of more than 28 bits: none that has a meaning here is longer.

use super::fault::HpackFault;

/// Bytes behind the first, at most: four of seven bits each.
const MORE_BYTES_MAX: usize = 4;

/// Takes a number whose first byte has so many bits of it.
#[inline]
pub(super) fn take(input: &mut &[u8], prefix_bits: u32) -> Result<usize, HpackFault> {
    let (&first, rest) = input.split_first().ok_or(HpackFault::Truncated)?;
    *input = rest;
    let mask = (1u8 << prefix_bits) - 1;
    if first & mask < mask { Ok(usize::from(first & mask)) } else { take_long(input, usize::from(mask)) }
}

#[cold]
fn take_long(input: &mut &[u8], mut number: usize) -> Result<usize, HpackFault> {
    for place in 0..MORE_BYTES_MAX {
        let (&byte, rest) = input.split_first().ok_or(HpackFault::Truncated)?;
        *input = rest;
        number += usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(HpackFault::Number)
}

/// Appends a number; `first` holds what stands above its bits in the first byte.
pub(super) fn push(mut number: usize, prefix_bits: u32, first: u8, out: &mut Vec<u8>) {
    let mask = (1usize << prefix_bits) - 1;
    if number < mask {
        out.push(first | number as u8);
        return;
    }
    out.push(first | mask as u8);
    number -= mask;
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541, appendix C.1.
    #[test]
    fn examples_of_appendix_c_1() {
        for (number, bytes) in [(10, &[0x0a][..]), (1337, &[0x1f, 0x9a, 0x0a])] {
            let mut out = Vec::new();
            push(number, 5, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(take(&mut &bytes[..], 5), Ok(number));
        }
    }

    #[test]
    fn every_number_is_read_as_written() {
        for prefix_bits in 4..8 {
            for number in (0..5000).chain([1 << 20, (1 << 28) - 1]) {
                let mut out = Vec::new();
                push(number, prefix_bits, 0, &mut out);
                let mut input = &out[..];
                assert_eq!(take(&mut input, prefix_bits), Ok(number));
                assert!(input.is_empty());
            }
        }
    }

    #[test]
    fn numbers_without_end() {
        assert_eq!(take(&mut &b""[..], 5), Err(HpackFault::Truncated));
        assert_eq!(take(&mut &[0x1f][..], 5), Err(HpackFault::Truncated));
        assert_eq!(take(&mut &[0x1f, 0xff, 0xff][..], 5), Err(HpackFault::Truncated));
        assert_eq!(take(&mut &[0x1f, 0xff, 0xff, 0xff, 0xff, 0x01][..], 5), Err(HpackFault::Number));
        assert_eq!(take(&mut &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x00][..], 5), Err(HpackFault::Number));
    }
}

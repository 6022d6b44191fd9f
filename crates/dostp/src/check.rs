//! The check of a header: CRC-8/AUTOSAR over the cluster number and fifteen bytes.
//!
//! A checksum is linear, so each byte's share is looked up on its own, in a table for its place, and the
//! shares are added. No step waits for the one before. It must never be taken for protection against forgers.

use crate::limits::HEADER_BYTES;

/// x^8 + x^5 + x^3 + x^2 + x + 1.
const POLYNOMIAL: u8 = 0x2f;

/// Bytes the check is made over: the cluster number and the header without its last byte.
const CHECKED: usize = 16;

/// What a byte at each place adds to the check. Place 0 is that of the cluster number.
static SHARES: [[u8; 256]; CHECKED] = shares();

/// The check of a message of [`CHECKED`] zeros: what the initial value and the final XOR add.
const CONSTANT: u8 = constant();

/// The check of the first fifteen bytes of a header; the last one is ignored.
#[inline]
pub(crate) fn check(cluster: u8, bytes: &[u8; HEADER_BYTES]) -> u8 {
    let mut sum = CONSTANT ^ SHARES[0][usize::from(cluster)];
    let mut place = 1;
    while place < CHECKED {
        sum ^= SHARES[place][usize::from(bytes[place - 1])];
        place += 1;
    }
    sum
}

/// The change in a header's check by other bits in its byte at that place, to be XORed with it.
#[inline]
pub(crate) fn change(place: usize, bits: u8) -> u8 {
    SHARES[place + 1][usize::from(bits)]
}

const fn step(mut sum: u8) -> u8 {
    let mut bit = 0;
    while bit < 8 {
        sum = if sum & 0x80 != 0 { (sum << 1) ^ POLYNOMIAL } else { sum << 1 };
        bit += 1;
    }
    sum
}

const fn shares() -> [[u8; 256]; CHECKED] {
    let mut table = [[0; 256]; CHECKED];
    let mut byte = 0;
    while byte < 256 {
        let mut share = step(byte as u8);
        let mut place = CHECKED;
        while place > 0 {
            place -= 1;
            table[place][byte] = share;
            share = step(share);
        }
        byte += 1;
    }
    table
}

const fn constant() -> u8 {
    let mut sum = 0xff;
    let mut place = 0;
    while place < CHECKED {
        sum = step(sum);
        place += 1;
    }
    sum ^ 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, bit by bit.
    fn plain(bytes: &[u8]) -> u8 {
        bytes.iter().fold(0xff, |sum, byte| step(sum ^ byte)) ^ 0xff
    }

    #[test]
    fn the_definition_gives_the_known_value() {
        assert_eq!(plain(b"123456789"), 0xdf);
    }

    proptest::proptest! {
        #[test]
        fn the_tables_say_what_the_definition_says(cluster: u8, header: u128) {
            let mut bytes = vec![cluster];
            bytes.extend_from_slice(&header.to_be_bytes()[..15]);
            assert_eq!(check(cluster, &header.to_be_bytes()), plain(&bytes));
        }

        #[test]
        fn changed_bits_change_the_check(cluster: u8, header: u128, place in 0_usize..15, bits: u8) {
            let mut changed = header.to_be_bytes();
            changed[place] ^= bits;
            let check_then = check(cluster, &header.to_be_bytes()) ^ change(place, bits);
            assert_eq!(check_then, check(cluster, &changed));
        }

        /// Two clusters never take each other's frames.
        #[test]
        fn another_cluster_has_another_check(cluster: u8, other: u8, header: u128) {
            proptest::prop_assume!(cluster != other);
            let header = header.to_be_bytes();
            assert_ne!(check(cluster, &header), check(other, &header));
        }
    }
}

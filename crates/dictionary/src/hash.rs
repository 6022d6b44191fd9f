//! The name of a dictionary: the SHA-256 of its bytes, and the field that tells it.
//!
//! This module owns how `Available-Dictionary` is read (RFC 9842, section 2.2). It must never be lenient: a
//! value that is not exactly one byte sequence of 32 bytes names no dictionary.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

/// SHA-256 of a dictionary, of the bytes before any content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; Self::BYTES]);

impl Hash {
    /// Length of a hash.
    pub const BYTES: usize = 32;

    /// Computes the hash of a dictionary: some milliseconds a megabyte, so never on a worker.
    pub fn of(dictionary: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(digest(&SHA256, dictionary).as_ref());
        Self(bytes)
    }

    /// The hash that has these bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, as a difference has them behind its magic number.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The value of `Available-Dictionary` that names it, as a client sends it.
    pub fn to_field(self) -> String {
        format!(":{}:", STANDARD.encode(self.0))
    }
}

/// Reads a value of `Available-Dictionary`: a byte sequence `:base64:` of exactly 32 bytes, padded, without
/// parameters. Anything else is `None`, and gets the answer of a request without the field.
pub fn available(value: &[u8]) -> Option<Hash> {
    /// 32 bytes in base64, and a colon on either side.
    const VALUE_BYTES: usize = 46;
    if value.len() != VALUE_BYTES {
        return None;
    }
    let text = value.strip_prefix(b":")?.strip_suffix(b":")?;
    let mut bytes = [0; Hash::BYTES + 1];
    let length = STANDARD.decode_slice(text, &mut bytes).ok()?;
    bytes.get(..length)?.try_into().ok().map(Hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_value_of_the_specification() {
        let hash = available(b":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:").unwrap();
        assert_eq!(hash.as_bytes()[..4], [0xa5, 0x91, 0xa6, 0xd4]);
        assert_eq!(hash.to_field(), ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:");
        assert_eq!(hash, Hash::of(b"Hello World"));
    }

    #[test]
    fn refuses_what_is_not_exactly_one_hash() {
        for value in [
            "",
            ":",
            "::",
            "pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG5=:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFA==:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4AA:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fF-4=:",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:;a",
            ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2f G4=:",
            "\"pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=\"",
        ] {
            assert_eq!(available(value.as_bytes()), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in any::<[u8; 32]>()) {
            let hash = Hash::from_bytes(bytes);
            prop_assert_eq!(available(hash.to_field().as_bytes()), Some(hash));
        }

        #[test]
        fn any_bytes_are_read(value in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(hash) = available(&value) {
                prop_assert_eq!(hash.to_field().into_bytes(), value);
            }
        }
    }
}

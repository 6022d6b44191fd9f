//! Secrets of one direction, and what is made of them.
//!
//! A secret has no `Debug`, no `Clone`, and is wiped when it goes. The expanded keys inside of ring are not
//! wiped, because ring offers no way to it; they live as long as a connection is awake. It must never leave
//! this crate.
use ring::{aead, hkdf};
use zeroize::Zeroize;

use crate::limits::SECRET_BYTES_MAX;
use crate::suite::Suite;

/// A traffic secret of TLS 1.3, or key and nonce of TLS 1.2; as many bytes as [`Suite::secret_length`] says.
#[repr(transparent)]
pub(crate) struct Secret([u8; SECRET_BYTES_MAX]);

impl Secret {
    /// A secret with these first bytes; `None` if there are too many.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let mut secret = Self([0; SECRET_BYTES_MAX]);
        secret.0.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(secret)
    }

    /// A twin, for a connection that falls asleep or wakes.
    pub(crate) fn twin(&self) -> Self {
        Self(self.0)
    }

    /// Cipher key and nonce for records (RFC 8446, section 7.3; RFC 5246, section 6.3).
    pub(crate) fn keys(&self, suite: Suite) -> (aead::LessSafeKey, [u8; aead::NONCE_LEN]) {
        let cipher = suite.cipher();
        let mut key = [0; 32];
        let mut nonce = [0; aead::NONCE_LEN];
        let length = cipher.key_len();
        if suite.is_tls13() {
            self.expand(suite, b"key", &mut key[..length]);
            self.expand(suite, b"iv", &mut nonce);
        } else {
            key[..length].copy_from_slice(&self.0[..length]);
            nonce = self.nonce_behind(length);
        }
        let unbound = aead::UnboundKey::new(cipher, &key[..length]).expect("the length is the cipher's");
        key.zeroize();
        (aead::LessSafeKey::new(unbound), nonce)
    }

    /// The nonce behind a key of that length.
    pub(crate) fn nonce_behind(&self, length: usize) -> [u8; aead::NONCE_LEN] {
        let mut nonce = [0; aead::NONCE_LEN];
        nonce.copy_from_slice(&self.0[length..length + aead::NONCE_LEN]);
        nonce
    }

    /// The secret after a KeyUpdate (RFC 8446, section 7.2).
    pub(crate) fn next(&self, suite: Suite) -> Self {
        let mut next = Self([0; SECRET_BYTES_MAX]);
        self.expand(suite, b"traffic upd", &mut next.0[..suite.secret_length()]);
        next
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446, section 7.1).
    fn expand(&self, suite: Suite, label: &[u8], output: &mut [u8]) {
        let length = u16::try_from(output.len()).expect("lengths are those of keys").to_be_bytes();
        let label_length = [u8::try_from(b"tls13 ".len() + label.len()).expect("labels are short")];
        let info: [&[u8]; 5] = [&length, &label_length, b"tls13 ", label, &[0]];
        let key = hkdf::Prk::new_less_safe(suite.expansion(), &self.0[..suite.secret_length()]);
        key.expand(&info, Length(output.len()))
            .and_then(|expanded| expanded.fill(output))
            .expect("keys are shorter than what a hash expands to");
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// How much is to be expanded.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8448, section 3: the server's application traffic secret of the simple handshake.
    #[test]
    fn keys_are_those_of_rfc_8448() {
        let secret = [
            0xa1, 0x1a, 0xf9, 0xf0, 0x55, 0x31, 0xf8, 0x56, 0xad, 0x47, 0x11, 0x6b, 0x45, 0xa9, 0x50, 0x32,
            0x82, 0x04, 0xb4, 0xf4, 0x4b, 0xfb, 0x6b, 0x3a, 0x4b, 0x4f, 0x1f, 0x3f, 0xcb, 0x63, 0x16, 0x43,
        ];
        let secret = Secret::new(&secret).expect("32 bytes");
        let mut key = [0; 16];
        secret.expand(Suite::Aes128Tls13, b"key", &mut key);
        let expected =
            [0x9f, 0x02, 0x28, 0x3b, 0x6c, 0x9c, 0x07, 0xef, 0xc2, 0x6b, 0xb9, 0xf2, 0xac, 0x92, 0xe3, 0x56];
        assert_eq!(key, expected);
        let (_, nonce) = secret.keys(Suite::Aes128Tls13);
        assert_eq!(nonce, [0xcf, 0x78, 0x2b, 0x88, 0xdd, 0x83, 0x54, 0x9a, 0xad, 0xf1, 0xe9, 0x84]);
    }

    #[test]
    fn a_secret_too_long_is_refused() {
        assert!(Secret::new(&[1; SECRET_BYTES_MAX + 1]).is_none());
    }
}

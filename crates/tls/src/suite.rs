//! The ciphers of the record layer: which there are, and their lengths and limits.
//!
//! It must never know a handshake: key exchange and signatures are rustls' alone.
use ring::{aead, hkdf};

use crate::limits::{RECORDS_CHACHA_MAX, RECORDS_GCM_MAX};

/// Version and cipher of a connection's records. Suites that differ in their signature alone are one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Suite {
    /// `TLS_AES_128_GCM_SHA256`
    Aes128Tls13,
    /// `TLS_AES_256_GCM_SHA384`
    Aes256Tls13,
    /// `TLS_CHACHA20_POLY1305_SHA256`
    ChachaTls13,
    /// `TLS_ECDHE_*_WITH_AES_128_GCM_SHA256`
    Aes128Tls12,
    /// `TLS_ECDHE_*_WITH_AES_256_GCM_SHA384`
    Aes256Tls12,
    /// `TLS_ECDHE_*_WITH_CHACHA20_POLY1305_SHA256`
    ChachaTls12,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Self; 6] = [
        Self::Aes128Tls13,
        Self::Aes256Tls13,
        Self::ChachaTls13,
        Self::Aes128Tls12,
        Self::Aes256Tls12,
        Self::ChachaTls12,
    ];

    /// The suite with that number of IANA's, if it is spoken here.
    #[must_use]
    pub fn of(number: u16) -> Option<Self> {
        Some(match number {
            0x1301 => Self::Aes128Tls13,
            0x1302 => Self::Aes256Tls13,
            0x1303 => Self::ChachaTls13,
            0xc02b | 0xc02f => Self::Aes128Tls12,
            0xc02c | 0xc030 => Self::Aes256Tls12,
            0xcca8 | 0xcca9 => Self::ChachaTls12,
            _ => return None,
        })
    }

    /// Whether this is one of TLS 1.3.
    #[must_use]
    pub fn is_tls13(self) -> bool {
        matches!(self, Self::Aes128Tls13 | Self::Aes256Tls13 | Self::ChachaTls13)
    }

    /// Whether a record carries 8 bytes of its nonce in front (RFC 5288, section 3).
    pub(crate) fn has_explicit_nonce(self) -> bool {
        matches!(self, Self::Aes128Tls12 | Self::Aes256Tls12)
    }

    pub(crate) fn cipher(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Tls13 | Self::Aes128Tls12 => &aead::AES_128_GCM,
            Self::Aes256Tls13 | Self::Aes256Tls12 => &aead::AES_256_GCM,
            Self::ChachaTls13 | Self::ChachaTls12 => &aead::CHACHA20_POLY1305,
        }
    }

    /// What expands a traffic secret of TLS 1.3.
    pub(crate) fn expansion(self) -> hkdf::Algorithm {
        if self == Self::Aes256Tls13 { hkdf::HKDF_SHA384 } else { hkdf::HKDF_SHA256 }
    }

    /// Bytes of what is kept of one direction: a traffic secret, or a key and a nonce in TLS 1.2.
    pub(crate) fn secret_length(self) -> usize {
        match self {
            Self::Aes128Tls13 | Self::ChachaTls13 => 32,
            Self::Aes256Tls13 => 48,
            Self::Aes128Tls12 | Self::Aes256Tls12 | Self::ChachaTls12 => {
                self.cipher().key_len() + aead::NONCE_LEN
            }
        }
    }

    /// How many records one key may seal or open.
    pub(crate) fn records_max(self) -> u64 {
        match self {
            Self::ChachaTls13 | Self::ChachaTls12 => RECORDS_CHACHA_MAX,
            _ => RECORDS_GCM_MAX,
        }
    }
}

//! A key of tickets: made here, read from a file, or left by the process before.
//!
//! The secret stands in one place of the heap and is wiped when the key goes. It must never be shown, copied
//! to a stack, or used but for what the key of one ticket is made of.
use ring::rand::{SecureRandom, SystemRandom};
use ring::{aead, hkdf};
use zeroize::Zeroize;

use super::fault::TicketFault;

pub(super) const NAME_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;
/// Bytes of a key for the process that takes over: name, secret, and the second since which it seals.
pub(super) const HANDED_BYTES: usize = NAME_BYTES + SECRET_BYTES + size_of::<u64>();
/// Bytes of a file with keys for AES-128, as nginx reads them (`ssl_session_ticket_key`).
const SHORT_FILE_BYTES: usize = 48;
/// Bytes of a file with keys for AES-256.
const FILE_BYTES: usize = 80;

/// A key and since when it seals, in seconds since 1970 (0: it is from a file).
#[derive(PartialEq, Eq)]
pub(super) struct TicketKey {
    pub(super) name: [u8; NAME_BYTES],
    secret: Box<[u8; SECRET_BYTES]>,
    pub(super) since_unix_s: u64,
}

impl TicketKey {
    fn empty(since_unix_s: u64) -> Self {
        Self { name: [0; NAME_BYTES], secret: Box::new([0; SECRET_BYTES]), since_unix_s }
    }

    pub(super) fn random(random: &SystemRandom, now_unix_s: u64) -> Result<Self, TicketFault> {
        let mut key = Self::empty(now_unix_s);
        random
            .fill(&mut key.name)
            .and_then(|()| random.fill(&mut *key.secret))
            .map_err(|_| TicketFault::Random)?;
        Ok(key)
    }

    /// A key by the bytes of a file: a name, then 64 secret bytes or 32. Both lengths give a key for
    /// AES-256-GCM: the secret bytes are condensed (HKDF of RFC 5869 with SHA-256, the name as salt).
    pub(super) fn of_file(file: &[u8]) -> Option<Self> {
        let (name, secret) = file.split_first_chunk::<NAME_BYTES>()?;
        if !matches!(file.len(), FILE_BYTES | SHORT_FILE_BYTES) {
            return None;
        }
        let mut key = Self::empty(0);
        key.name = *name;
        hkdf::Salt::new(hkdf::HKDF_SHA256, name)
            .extract(secret)
            .expand(&[b"staunch ticket key"], hkdf::HKDF_SHA256)
            .and_then(|expanded| expanded.fill(&mut *key.secret))
            .expect("32 bytes can be expanded");
        Some(key)
    }

    /// Appends the key for the process that takes over.
    pub(super) fn hand_over(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.name);
        bytes.extend_from_slice(&*self.secret);
        bytes.extend_from_slice(&self.since_unix_s.to_be_bytes());
    }

    /// A key that [`Self::hand_over`] has written.
    pub(super) fn of_handed(bytes: &[u8; HANDED_BYTES]) -> Self {
        let (name, rest) = bytes.split_at(NAME_BYTES);
        let (secret, since) = rest.split_at(SECRET_BYTES);
        let since: [u8; size_of::<u64>()] = since.try_into().expect("the rest is a time");
        let mut key = Self::empty(u64::from_be_bytes(since));
        key.name.copy_from_slice(name);
        key.secret.copy_from_slice(secret);
        key
    }

    /// The key of one ticket.
    pub(super) fn of_ticket(&self, salt: &[u8]) -> aead::LessSafeKey {
        let mut bytes = [0; 32];
        hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &*self.secret)
            .expand(&[b"staunch ticket", salt], hkdf::HKDF_SHA256)
            .and_then(|expanded| expanded.fill(&mut bytes))
            .expect("32 bytes can be expanded");
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, &bytes).expect("the length is the cipher's");
        bytes.zeroize();
        aead::LessSafeKey::new(key)
    }
}

impl Drop for TicketKey {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

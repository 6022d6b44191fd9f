//! A direction of a connection: the key, the counter, and one record at a time.
//!
//! It owns nonces and what is authenticated beside the content. It must never use a nonce twice: every record
//! takes the next number, and a key ends before its numbers do.
use std::ops::Range;

use ring::aead;

use crate::alert::{Alert, Fault};
use crate::limits::RECORD_HEAD_BYTES;
use crate::secret::Secret;
use crate::suite::Suite;

/// Bytes of the nonce that a record of AES-GCM in TLS 1.2 carries.
const EXPLICIT_NONCE_BYTES: usize = 8;

/// What opens the peer's records, or seals ours.
pub(crate) struct Direction {
    key: aead::LessSafeKey,
    nonce: [u8; aead::NONCE_LEN],
    secret: Secret,
    sequence: u64,
    suite: Suite,
}

impl Direction {
    pub(crate) fn new(suite: Suite, secret: Secret, sequence: u64) -> Self {
        let (key, nonce) = secret.keys(suite);
        Self { key, nonce, secret, sequence, suite }
    }

    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    /// Records that this key has opened or sealed.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Whether key and nonce, as rustls has them, end with the nonce of this direction.
    pub(crate) fn has_nonce_of(&self, key_and_nonce: &Option<Secret>) -> bool {
        let expected =
            key_and_nonce.as_ref().map(|secret| secret.nonce_behind(self.suite.cipher().key_len()));
        expected == Some(self.nonce)
    }

    /// Goes on with the next key, after a KeyUpdate (RFC 8446, section 7.2).
    pub(crate) fn update(&mut self) {
        *self = Self::new(self.suite, self.secret.next(self.suite), 0);
    }

    /// Opens the body of a record where it stands, and says where in it the content is.
    pub(crate) fn open(
        &mut self,
        head: [u8; RECORD_HEAD_BYTES],
        body: &mut [u8],
    ) -> Result<Range<usize>, Fault> {
        if self.sequence >= self.suite.records_max() {
            return Err(Fault::Exhausted);
        }
        let start = if self.suite.has_explicit_nonce() { EXPLICIT_NONCE_BYTES } else { 0 };
        let Some(plain_length) = body.len().checked_sub(start + self.suite.cipher().tag_len()) else {
            return Err(Fault::Refused(Alert::BadRecordMac, "a record shorter than what sealing adds"));
        };
        let mut nonce = self.nonce_of(self.sequence);
        if self.suite.has_explicit_nonce() {
            nonce[4..].copy_from_slice(&body[..EXPLICIT_NONCE_BYTES]);
        }
        let (beside, length) = self.beside(head, plain_length);
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        self.key
            .open_in_place(nonce, aead::Aad::from(&beside[..length]), &mut body[start..])
            .map_err(|_| Fault::Refused(Alert::BadRecordMac, "a record that cannot be opened"))?;
        self.sequence += 1;
        Ok(start..start + plain_length)
    }

    /// Appends the beginning of a record whose content will be `plain_length` long: head and explicit nonce.
    /// The content is to be appended next, then [`Self::seal`] called with the place that is returned.
    pub(crate) fn begin(&self, kind: u8, plain_length: usize, output: &mut Vec<u8>) -> usize {
        let start = output.len();
        let tag = self.suite.cipher().tag_len();
        let (kind, added) = match self.suite {
            suite if suite.is_tls13() => (APPLICATION_DATA, 1 + tag),
            suite if suite.has_explicit_nonce() => (kind, EXPLICIT_NONCE_BYTES + tag),
            _ => (kind, tag),
        };
        let length = u16::try_from(plain_length + added).expect("a record is below 2^14 + 256 bytes");
        let [high, low] = length.to_be_bytes();
        output.extend_from_slice(&[kind, 3, 3, high, low]);
        if self.suite.has_explicit_nonce() {
            output.extend_from_slice(&self.nonce_of(self.sequence)[4..]);
        }
        start
    }

    /// Seals the record that was begun at `start` and whose content stands behind it.
    pub(crate) fn seal(&mut self, kind: u8, start: usize, output: &mut Vec<u8>) -> Result<(), Fault> {
        if self.sequence >= self.suite.records_max() {
            output.truncate(start);
            return Err(Fault::Exhausted);
        }
        if self.suite.is_tls13() {
            output.push(kind);
        }
        let mut from = start + RECORD_HEAD_BYTES;
        if self.suite.has_explicit_nonce() {
            from += EXPLICIT_NONCE_BYTES;
        }
        let mut head = [0; RECORD_HEAD_BYTES];
        head.copy_from_slice(&output[start..start + RECORD_HEAD_BYTES]);
        let (beside, length) = self.beside(head, output.len() - from);
        let nonce = aead::Nonce::assume_unique_for_key(self.nonce_of(self.sequence));
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, aead::Aad::from(&beside[..length]), &mut output[from..])
            .expect("a record is shorter than what a cipher can seal");
        output.extend_from_slice(tag.as_ref());
        self.sequence += 1;
        Ok(())
    }

    /// The nonce of a record (RFC 8446, section 5.3). With AES-GCM in TLS 1.2 it is built alike, as the last
    /// eight bytes are free to choose there, only never twice (RFC 5288, section 3).
    fn nonce_of(&self, sequence: u64) -> [u8; aead::NONCE_LEN] {
        let mut nonce = self.nonce;
        for (byte, mask) in nonce[4..].iter_mut().zip(sequence.to_be_bytes()) {
            *byte ^= mask;
        }
        nonce
    }

    /// What is authenticated beside the content: the head (RFC 8446, section 5.2), or number, type, version
    /// and length of the content (RFC 5246, section 6.2.3.3).
    fn beside(&self, head: [u8; RECORD_HEAD_BYTES], plain_length: usize) -> ([u8; 13], usize) {
        let mut beside = [0; 13];
        if self.suite.is_tls13() {
            beside[..RECORD_HEAD_BYTES].copy_from_slice(&head);
            return (beside, RECORD_HEAD_BYTES);
        }
        beside[..8].copy_from_slice(&self.sequence.to_be_bytes());
        beside[8..11].copy_from_slice(&head[..3]);
        let length = u16::try_from(plain_length).unwrap_or(u16::MAX);
        beside[11..].copy_from_slice(&length.to_be_bytes());
        (beside, 13)
    }
}

/// The type that every sealed record of TLS 1.3 shows.
const APPLICATION_DATA: u8 = 23;

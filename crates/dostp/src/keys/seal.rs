//! Frames sealed, and seals broken.

use std::borrow::Cow;

use chacha20poly1305::AeadInOut;

use super::{Keys, Mode, Verified};
use crate::fault::Fault;
use crate::header::Header;
use crate::limits::HEADER_BYTES;
use crate::outgoing::FrameOut;

/// Bits of the key byte that have a meaning.
const KEY_BITS: u8 = 0x81;

impl Keys {
    /// Writes a frame with its trailer behind what stands in `bytes`. Control frames are always in mode
    /// `mac`.
    pub(crate) fn seal(&mut self, frame: &FrameOut<'_>, now_ms: u64, bytes: &mut Vec<u8>) {
        let header = frame.header;
        let mode = if header.kind.is_control() { Mode::Mac } else { self.secrets.mode };
        let word = self.word(header.source_port, mode, now_ms);
        bytes.extend_from_slice(&frame.head);
        let start = bytes.len();
        bytes.extend_from_slice(frame.payload);
        // A slot to send by that has no secret gives frames nobody takes: zeros for a tag.
        let key = self.own[usize::from(self.secrets.sends_by & 1)].as_ref();
        match (mode, key) {
            (Mode::Mac, Some(key)) => {
                bytes.extend_from_slice(&word);
                bytes.extend_from_slice(&key.tag(&frame.head, &word, frame.payload));
            }
            (Mode::Aead, Some(key)) => {
                let data = additional(&frame.head, &word);
                let nonce = nonce(&header, &word);
                let sealed =
                    key.aead.encrypt_inout_detached(&nonce.into(), &data, (&mut bytes[start..]).into());
                bytes.extend_from_slice(&word);
                bytes.extend_from_slice(sealed.map(Into::into).unwrap_or([0; 16]).as_slice());
            }
            (_, None) => bytes.resize(start + frame.payload.len() + mode.trailer_bytes(), 0),
        }
    }

    /// Verifies a control frame by the boot number it tells. That it is fresh is not proven by that.
    pub(crate) fn verify_control(
        &self,
        head: &[u8; HEADER_BYTES],
        header: &Header,
        boot: u64,
        behind: &[u8],
    ) -> Verified {
        let (payload, trailer) = behind.split_at(usize::from(header.length));
        let (word, slot) = self.word_of(trailer, Mode::Mac)?;
        let secret = self.secrets.slots[usize::from(slot)].as_ref().ok_or(Fault::Auth)?;
        let tag = super::NodeKey::new(secret, boot, header.source).tag(head, &word, payload);
        if is_same(&tag, &trailer[8..16]) { Ok(()) } else { Err(Fault::Auth) }
    }

    /// Verifies the frame of a peer whose boot number is believed, decrypts it in place, and notes its
    /// counter.
    pub(crate) fn open(
        &mut self,
        head: &[u8; HEADER_BYTES],
        header: &Header,
        boot: u64,
        behind: &mut [u8],
        now_ms: u64,
    ) -> Verified {
        let mode = self.secrets.mode;
        let (payload, trailer) = behind.split_at_mut(usize::from(header.length));
        let (word, slot) = self.word_of(trailer, mode)?;
        let key = self.peer(header.source, slot, boot).ok_or(Fault::Auth)?;
        match mode {
            Mode::Mac => {
                if !is_same(&key.tag(head, &word, payload), &trailer[8..16]) {
                    return Err(Fault::Auth);
                }
            }
            Mode::Aead => {
                let tag: [u8; 16] = trailer[8..24].try_into().map_err(|_| Fault::Auth)?;
                let nonce = nonce(header, &word);
                let data = additional(head, &word);
                key.aead
                    .decrypt_inout_detached(&nonce.into(), &data, payload.into(), &tag.into())
                    .map_err(|_| Fault::Auth)?;
            }
        }
        if let Cow::Owned(key) = key {
            self.keep(header.source, slot, boot, key);
        }
        // Counters begin anew with a boot number: former ones say nothing of them.
        if self.boots.insert(header.source, boot).is_some_and(|former| former != boot) {
            self.windows.forget(header.source);
        }
        let counter = u64::from_be_bytes(word) & ((1 << super::COUNTER_BITS) - 1);
        self.windows.note((header.source, header.source_port, slot), counter, now_ms)
    }

    /// The counter word of a trailer in that mode, and its slot.
    fn word_of(&self, trailer: &[u8], mode: Mode) -> Result<([u8; 8], u8), Fault> {
        let word = *trailer.first_chunk::<8>().ok_or(Fault::Auth)?;
        let key = word[0];
        if key & !KEY_BITS != 0 || key & 0x80 != mode.bit() || trailer.len() < mode.trailer_bytes() {
            return Err(Fault::Auth);
        }
        Ok((word, key & 1))
    }
}

/// Source address, source port, counter word.
fn nonce(header: &Header, word: &[u8; 8]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..2].copy_from_slice(&header.source.to_be_bytes());
    nonce[2..4].copy_from_slice(&header.source_port.to_be_bytes());
    nonce[4..].copy_from_slice(word);
    nonce
}

fn additional(head: &[u8; HEADER_BYTES], word: &[u8; 8]) -> [u8; HEADER_BYTES + 8] {
    let mut data = [0; HEADER_BYTES + 8];
    data[..HEADER_BYTES].copy_from_slice(head);
    data[HEADER_BYTES..].copy_from_slice(word);
    data
}

/// Compares without telling by its time where the first difference is.
fn is_same(one: &[u8; 8], other: &[u8]) -> bool {
    let other = other.first_chunk::<8>().copied().unwrap_or_default();
    u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(other) == 0
}

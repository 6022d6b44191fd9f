//! Keys: frames that bear a tag, and what a tag proves.
//!
//! It owns secrets, the keys of nodes that come of them, counters, and windows against replay ("Keys" in
//! `docs/dostp.md`). It must never read a clock, use a counter twice, or note a counter before the tag was
//! found right.

mod file;
mod replay;
mod seal;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use siphasher::sip::SipHasher24;

pub use self::file::read_secret;
use self::replay::Windows;
use crate::fault::Fault;
use crate::limits::{HEADER_BYTES, KEYS_MAX};

/// How frames are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Frames cannot be changed or replayed, but anybody can read them: SipHash-2-4.
    Mac,
    /// Frames cannot be read by anybody else either: ChaCha20-Poly1305.
    Aead,
}

impl Mode {
    /// The bit of the key byte.
    fn bit(self) -> u8 {
        match self {
            Self::Mac => 0,
            Self::Aead => 0x80,
        }
    }

    /// Bytes of the trailer.
    pub(crate) fn trailer_bytes(self) -> usize {
        crate::frame::auth_bytes(self.bit())
    }
}

/// Bytes of a secret.
pub const SECRET_BYTES: usize = 32;

/// The secrets of a cluster, and which of them is used.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    /// Both slots.
    pub slots: [Option<[u8; SECRET_BYTES]>; 2],
    /// The slot that is sent by.
    pub sends_by: u8,
    /// How messages are protected.
    pub mode: Mode,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.slots.map(|slot| slot.is_some());
        write!(formatter, "Secrets {{ set: {set:?}, sends_by: {}, mode: {:?} }}", self.sends_by, self.mode)
    }
}

/// What a node with keys remembers.
#[derive(Debug)]
pub(crate) struct Keys {
    secrets: Secrets,
    source: u16,
    boot: u64,
    own: [Option<NodeKey>; 2],
    peers: HashMap<(u16, u8), (u64, NodeKey)>,
    windows: Windows,
    counters: HashMap<u16, Counter>,
    /// By which boot number each peer's windows came to be.
    boots: HashMap<u16, u64>,
}

/// The next counter of a port, and when the last was used.
#[derive(Debug, Clone, Copy)]
struct Counter {
    next: u64,
    used_ms: u64,
}

/// What verifies and seals the frames of one node.
#[derive(Clone)]
struct NodeKey {
    mac: SipHasher24,
    aead: ChaCha20Poly1305,
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NodeKey")
    }
}

/// Units of a counter in a millisecond: it is advanced in steps of 16 ns.
const UNITS_PER_MS: u64 = 62_500;

/// A counter that was not used for so long is advanced to the clock.
const COUNTER_IDLE_MS: u64 = 1_000;

/// Bits of a counter.
const COUNTER_BITS: u32 = 56;

impl Keys {
    pub(crate) fn new(secrets: Secrets, source: u16, boot: u64) -> Self {
        let own = secrets.slots.map(|slot| slot.map(|secret| NodeKey::new(&secret, boot, source)));
        Self {
            secrets,
            source,
            boot,
            own,
            peers: HashMap::new(),
            windows: Windows::default(),
            counters: HashMap::new(),
            boots: HashMap::new(),
        }
    }

    /// Other secrets, or another slot to send by: a rotation. What is kept goes on.
    pub(crate) fn set(&mut self, secrets: Secrets) {
        for slot in 0..2 {
            if secrets.slots[slot] != self.secrets.slots[slot] {
                self.own[slot] = secrets.slots[slot].map(|key| NodeKey::new(&key, self.boot, self.source));
                self.peers.retain(|(_, used), _| usize::from(*used) != slot);
                self.windows.forget_slot(slot as u8);
            }
        }
        self.secrets = secrets;
    }

    pub(crate) fn mode(&self) -> Mode {
        self.secrets.mode
    }

    /// A socket opens this port now: its counter begins at the clock, in units of 16 ns.
    pub(crate) fn open_port(&mut self, port: u16, now_ns: u64) {
        let next = self.counters.get(&port).map_or(0, |counter| counter.next).max(now_ns / 16);
        self.counters.insert(port, Counter { next, used_ms: now_ns / 1_000_000 });
    }

    /// A peer has another boot number: its keys, and the counters used with them, are void.
    pub(crate) fn forget(&mut self, source: u16) {
        self.peers.retain(|(peer, _), _| *peer != source);
        self.windows.forget(source);
    }

    /// The next counter word of a port, for this slot and mode.
    fn word(&mut self, port: u16, mode: Mode, now_ms: u64) -> [u8; 8] {
        let floor = now_ms * UNITS_PER_MS;
        let counter = self.counters.entry(port).or_insert(Counter { next: floor, used_ms: now_ms });
        if now_ms >= counter.used_ms + COUNTER_IDLE_MS {
            counter.next = counter.next.max(floor);
        }
        counter.used_ms = now_ms;
        let number = counter.next % (1 << COUNTER_BITS);
        counter.next += 1;
        let key = mode.bit() | self.secrets.sends_by & 1;
        (u64::from(key) << COUNTER_BITS | number).to_be_bytes()
    }

    /// The key of a peer with this boot number: the one that is kept, or a new one, to be kept once it has
    /// proven itself.
    fn peer(&self, source: u16, slot: u8, boot: u64) -> Option<Cow<'_, NodeKey>> {
        let secret = self.secrets.slots[usize::from(slot)].as_ref()?;
        match self.peers.get(&(source, slot)) {
            Some((of, key)) if *of == boot => Some(Cow::Borrowed(key)),
            _ => Some(Cow::Owned(NodeKey::new(secret, boot, source))),
        }
    }

    /// Keeps a key by which a tag was found right. When there are too many all others are derived again.
    fn keep(&mut self, source: u16, slot: u8, boot: u64, key: NodeKey) {
        if self.peers.len() >= KEYS_MAX {
            self.peers.clear();
        }
        self.peers.insert((source, slot), (boot, key));
    }
}

impl NodeKey {
    fn new(secret: &[u8; SECRET_BYTES], boot: u64, source: u16) -> Self {
        let [mac, aead] = [Mode::Mac, Mode::Aead].map(|mode| derive(secret, boot, source, mode));
        let mut half = [0; 16];
        half.copy_from_slice(&mac[..16]);
        Self { mac: SipHasher24::new_with_key(&half), aead: ChaCha20Poly1305::new(&aead.into()) }
    }

    /// The tag of mode `mac`.
    fn tag(&self, head: &[u8; HEADER_BYTES], word: &[u8; 8], payload: &[u8]) -> [u8; 8] {
        use std::hash::Hasher as _;
        let mut state = self.mac;
        state.write(head);
        state.write(word);
        state.write(payload);
        state.finish().to_le_bytes()
    }
}

/// HChaCha20 of the secret: the key of a node in a mode.
fn derive(secret: &[u8; SECRET_BYTES], boot: u64, source: u16, mode: Mode) -> [u8; 32] {
    let mut input = [0; 16];
    input[..4].copy_from_slice(b"dstp");
    input[4..12].copy_from_slice(&boot.to_be_bytes());
    input[12..14].copy_from_slice(&source.to_be_bytes());
    input[15] = u8::from(mode == Mode::Aead);
    chacha20::hchacha::<chacha20::R20>(&(*secret).into(), &input.into()).into()
}

/// Why a frame is not taken.
type Verified = Result<(), Fault>;

#[cfg(test)]
mod tests;

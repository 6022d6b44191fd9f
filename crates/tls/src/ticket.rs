//! Tickets: sessions sealed for their clients, which bring them back.
//!
//! It owns the keys, their rotation and their order. A ticket is the name of its key (16 bytes), a random
//! salt (32), and the sealed time and session; each is sealed with a key of its own, made of key and salt
//! (HKDF, RFC 5869), so no number of tickets wears a key out, on however many machines. A key must never be
//! written, shown or logged.
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{aead, hkdf};
use rustls::server::ProducesTickets;
use zeroize::{Zeroize, Zeroizing};

use crate::clock::WallTime;
use crate::limits::{
    TICKET_BYTES_MAX, TICKET_FILES_MAX, TICKET_KEY_SECONDS, TICKET_KEYS_COUNT, TICKET_LIFETIME_SECONDS,
};

const NAME_BYTES: usize = 16;
const SALT_BYTES: usize = 32;
const TIME_BYTES: usize = 8;
/// Bytes of a file with keys for AES-128, as nginx reads them (`ssl_session_ticket_key`).
const SHORT_FILE_BYTES: usize = 48;
/// Bytes of a file with keys for AES-256.
const FILE_BYTES: usize = 80;

/// The keys of tickets, shared by all workers.
pub struct Tickets {
    /// The first seals, all open. Exchanged as a whole.
    keys: ArcSwap<Vec<Arc<TicketKey>>>,
    are_from_files: bool,
    time: Arc<WallTime>,
    random: SystemRandom,
}

/// One key and since when it seals.
struct TicketKey {
    name: [u8; NAME_BYTES],
    secret: [u8; 32],
    since_unix_s: u64,
}

/// Why files with keys are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketFault {
    /// The file in that place (from 0) is neither 80 nor 48 bytes long.
    Length(usize),
    /// The file in that place has the name of a key before it.
    Twice(usize),
    /// There is no file, or there are more than 16.
    Count(usize),
    /// The system gives no random numbers.
    Random,
}

impl fmt::Display for TicketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(place) => {
                write!(f, "ticket key {}: a file of 80 bytes is expected (`openssl rand 80`)", place + 1)
            }
            Self::Twice(place) => write!(f, "ticket key {}: it has the name of one before it", place + 1),
            Self::Count(count) => {
                write!(f, "{count} ticket keys; there may be 1 to {TICKET_FILES_MAX}")
            }
            Self::Random => f.write_str("the system gives no random numbers"),
        }
    }
}

impl std::error::Error for TicketFault {}

impl Tickets {
    /// Tickets with a key made now. [`Self::rotate`] makes the next ones.
    ///
    /// # Errors
    /// [`TicketFault::Random`].
    pub fn new(time: Arc<WallTime>) -> Result<Self, TicketFault> {
        let random = SystemRandom::new();
        let first = Arc::new(TicketKey::random(&random, time.unix_s())?);
        Ok(Self { keys: ArcSwap::from_pointee(vec![first]), are_from_files: false, time, random })
    }

    /// Tickets with keys from files in nginx's form: a name of 16 bytes, then 64 (or 32) secret ones. The
    /// first seals, all open. They are changed by [`Self::replace`] alone.
    ///
    /// # Errors
    /// A file is not one of keys, or there are too many; the sentence says which.
    pub fn from_files(files: &[Zeroizing<Vec<u8>>], time: Arc<WallTime>) -> Result<Self, TicketFault> {
        let keys = ArcSwap::from_pointee(read(files)?);
        Ok(Self { keys, are_from_files: true, time, random: SystemRandom::new() })
    }

    /// Goes on with the keys of these files, or with the old ones if a file is faulty.
    ///
    /// # Errors
    /// As [`Self::from_files`].
    pub fn replace(&self, files: &[Zeroizing<Vec<u8>>]) -> Result<(), TicketFault> {
        self.keys.store(Arc::new(read(files)?));
        Ok(())
    }

    /// Makes a new key if the current one has sealed for 8 hours; keeps the two before. To be called now and
    /// then, by one thread. `true`: there is a new key. Keys from files are left alone.
    ///
    /// # Errors
    /// [`TicketFault::Random`]; the old keys go on.
    pub fn rotate(&self) -> Result<bool, TicketFault> {
        let keys = self.keys.load();
        let now = self.time.unix_s();
        let is_due =
            keys.first().is_none_or(|key| now.saturating_sub(key.since_unix_s) >= TICKET_KEY_SECONDS);
        if self.are_from_files || !is_due {
            return Ok(false);
        }
        let mut next = vec![Arc::new(TicketKey::random(&self.random, now)?)];
        next.extend(keys.iter().take(TICKET_KEYS_COUNT - 1).cloned());
        self.keys.store(Arc::new(next));
        Ok(true)
    }

    /// Whether a ticket is one of ours and still good: its client has been here before. Costs one opening.
    #[must_use]
    pub fn knows(&self, ticket: &[u8]) -> bool {
        self.open(ticket).is_some()
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (salt, sealed) = rest.split_at_checked(SALT_BYTES)?;
        let keys = self.keys.load();
        let key = keys.iter().find(|key| key.name == name)?.key(salt);
        let mut opened = sealed.to_vec();
        let nonce = aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN]);
        let plain = key.open_in_place(nonce, aead::Aad::from(name), &mut opened).ok()?;
        let (time, session) = plain.split_first_chunk::<TIME_BYTES>()?;
        let age = self.time.unix_s().saturating_sub(u64::from_be_bytes(*time));
        let session = (age <= u64::from(TICKET_LIFETIME_SECONDS)).then(|| session.to_vec());
        opened.zeroize();
        session
    }

    fn seal(&self, session: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys.load();
        let key = keys.first()?;
        let mut salt = [0; SALT_BYTES];
        self.random.fill(&mut salt).ok()?;
        let head = NAME_BYTES + SALT_BYTES;
        let mut ticket = Vec::with_capacity(head + TIME_BYTES + session.len() + aead::MAX_TAG_LEN);
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(&salt);
        ticket.extend_from_slice(&self.time.unix_s().to_be_bytes());
        ticket.extend_from_slice(session);
        let nonce = aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN]);
        let beside = aead::Aad::from(&key.name);
        let tag = key.key(&salt).seal_in_place_separate_tag(nonce, beside, &mut ticket[head..]).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }
}

impl TicketKey {
    fn random(random: &SystemRandom, now_unix_s: u64) -> Result<Self, TicketFault> {
        let mut key = Self { name: [0; NAME_BYTES], secret: [0; 32], since_unix_s: now_unix_s };
        random
            .fill(&mut key.name)
            .and_then(|()| random.fill(&mut key.secret))
            .map_err(|_| TicketFault::Random)?;
        Ok(key)
    }

    /// The key of one ticket.
    fn key(&self, salt: &[u8]) -> aead::LessSafeKey {
        let mut bytes = [0; 32];
        hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &self.secret)
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

/// Reads files of keys. Both lengths give a key for AES-256-GCM: the secret bytes are condensed (RFC 5869,
/// section 2.2, with the name as salt).
fn read(files: &[Zeroizing<Vec<u8>>]) -> Result<Vec<Arc<TicketKey>>, TicketFault> {
    if files.is_empty() || files.len() > TICKET_FILES_MAX {
        return Err(TicketFault::Count(files.len()));
    }
    let mut keys: Vec<Arc<TicketKey>> = Vec::with_capacity(files.len());
    for (place, file) in files.iter().enumerate() {
        let (name, secret) = match file.split_first_chunk::<NAME_BYTES>() {
            Some(parts) if matches!(file.len(), FILE_BYTES | SHORT_FILE_BYTES) => parts,
            _ => return Err(TicketFault::Length(place)),
        };
        if keys.iter().any(|key| key.name == *name) {
            return Err(TicketFault::Twice(place));
        }
        let mut key = TicketKey { name: *name, secret: [0; 32], since_unix_s: 0 };
        hkdf::Salt::new(hkdf::HKDF_SHA256, name)
            .extract(secret)
            .expand(&[b"staunch ticket key"], hkdf::HKDF_SHA256)
            .and_then(|expanded| expanded.fill(&mut key.secret))
            .expect("32 bytes can be expanded");
        keys.push(Arc::new(key));
    }
    Ok(keys)
}

/// What rustls asks of tickets. It shows no key.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        TICKET_LIFETIME_SECONDS
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(cipher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn tickets() -> (Tickets, Arc<WallTime>) {
        let time = Arc::new(WallTime::new(1_000_000));
        (Tickets::new(Arc::clone(&time)).expect("random numbers"), time)
    }

    fn file(name: u8, length: usize) -> Zeroizing<Vec<u8>> {
        let mut file = vec![name; NAME_BYTES];
        file.extend((NAME_BYTES..length).map(|byte| u8::try_from(byte).expect("short") ^ name));
        Zeroizing::new(file)
    }

    #[test]
    fn a_ticket_opens_and_no_changed_one_does() {
        let (tickets, _) = tickets();
        let ticket = tickets.seal(b"session").expect("sealed");
        assert_eq!(tickets.open(&ticket).as_deref(), Some(&b"session"[..]));
        for place in 0..ticket.len() {
            let mut forged = ticket.clone();
            forged[place] ^= 1;
            assert!(!tickets.knows(&forged), "byte {place}");
            assert!(!tickets.knows(&ticket[..place]), "cut at {place}");
        }
    }

    #[test]
    fn the_current_and_two_keys_before_open() {
        let (tickets, time) = tickets();
        let first = tickets.seal(b"first").expect("sealed");
        assert_eq!(tickets.rotate(), Ok(false), "the first key is new");
        for turn in 1..=2 {
            time.set(1_000_000 + turn * 8 * HOUR);
            assert_eq!(tickets.rotate(), Ok(true));
            assert_eq!(tickets.rotate(), Ok(false));
            assert!(tickets.knows(&first), "after {turn} rotations");
        }
        time.set(1_000_000 + 24 * HOUR);
        assert_eq!(tickets.rotate(), Ok(true));
        assert_eq!(tickets.keys.load().len(), TICKET_KEYS_COUNT);
        assert!(!tickets.knows(&first));
    }

    #[test]
    fn a_ticket_ends_with_its_lifetime() {
        let (tickets, time) = tickets();
        let ticket = tickets.seal(b"session").expect("sealed");
        time.set(1_000_000 + 16 * HOUR);
        assert!(tickets.knows(&ticket));
        time.set(1_000_001 + 16 * HOUR);
        assert!(!tickets.knows(&ticket));
    }

    #[test]
    fn machines_with_the_same_files_open_each_others_tickets() {
        let time = Arc::new(WallTime::new(5));
        let one = Tickets::from_files(&[file(1, 80), file(2, 48)], Arc::clone(&time)).expect("two keys");
        let other = Tickets::from_files(&[file(2, 48), file(1, 80)], Arc::clone(&time)).expect("two keys");
        let stranger = Tickets::from_files(&[file(3, 80)], time).expect("a key");
        let ticket = one.seal(b"session").expect("sealed");
        assert!(other.knows(&ticket) && !stranger.knows(&ticket));
        assert_eq!(one.rotate(), Ok(false), "keys from files stay");
        stranger.replace(&[file(4, 80), file(1, 80)]).expect("good files");
        assert!(stranger.knows(&ticket));
    }

    #[test]
    fn faulty_files_are_named_and_change_nothing() {
        let time = Arc::new(WallTime::new(5));
        let tickets = Tickets::from_files(&[file(1, 80)], time).expect("a key");
        let ticket = tickets.seal(b"session").expect("sealed");
        assert_eq!(tickets.replace(&[file(1, 80), file(2, 79)]), Err(TicketFault::Length(1)));
        assert_eq!(tickets.replace(&[file(1, 80), file(1, 48)]), Err(TicketFault::Twice(1)));
        assert_eq!(tickets.replace(&[]), Err(TicketFault::Count(0)));
        assert_eq!(tickets.replace(&vec![file(1, 80); 17]), Err(TicketFault::Count(17)));
        assert_eq!(tickets.replace(&[Zeroizing::new(Vec::new())]), Err(TicketFault::Length(0)));
        assert!(tickets.knows(&ticket));
        assert!(TicketFault::Length(1).to_string().starts_with("ticket key 2: a file of 80 bytes"));
    }
}

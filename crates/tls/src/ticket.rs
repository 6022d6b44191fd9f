//! Tickets: sessions sealed for their clients, which bring them back.
//!
//! It owns the keys, their rotation and their order. A ticket is the name of its key (16 bytes), a random
//! salt (32), and the sealed time and session; each is sealed with a key of its own, made of key and salt
//! (HKDF, RFC 5869), so no number of tickets wears a key out, on however many machines. A key must never be
//! written, shown or logged; it leaves the process only for the one that takes over ([`Tickets::hand_over`]).
mod fault;
mod key;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::ArcSwap;
use ring::aead;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;
use zeroize::{Zeroize, Zeroizing};

pub use self::fault::TicketFault;
use self::key::{HANDED_BYTES, NAME_BYTES, TicketKey};
use crate::clock::WallTime;
use crate::limits::{
    TICKET_BYTES_MAX, TICKET_FILES_MAX, TICKET_KEY_SECONDS, TICKET_KEYS_COUNT, TICKET_LIFETIME_SECONDS,
};

const SALT_BYTES: usize = 32;
const TIME_BYTES: usize = 8;
/// What stands before the keys for the process that takes over: their form.
const HANDED_HEAD: &[u8] = b"staunch tickets 1\n";

/// The keys of tickets, shared by all workers.
pub struct Tickets {
    /// Exchanged as a whole.
    keys: ArcSwap<Keys>,
    /// Held while keys are made of those before, so that no choice of others is undone.
    changing: Mutex<()>,
    time: Arc<WallTime>,
    random: SystemRandom,
}

/// The first key seals, all open.
struct Keys {
    keys: Vec<Arc<TicketKey>>,
    are_from_files: bool,
}

/// Keys that were read from files, to be taken into use.
pub struct TicketKeys(Vec<Arc<TicketKey>>);

impl TicketKeys {
    /// Keys from files in nginx's form: a name of 16 bytes, then 64 (or 32) secret ones. The first seals, all
    /// open.
    ///
    /// # Errors
    /// A file is not one of keys, or there are none or too many.
    pub fn from_files(files: &[Zeroizing<Vec<u8>>]) -> Result<Self, TicketFault> {
        if files.is_empty() || files.len() > TICKET_FILES_MAX {
            return Err(TicketFault::Count(files.len()));
        }
        let mut keys: Vec<Arc<TicketKey>> = Vec::with_capacity(files.len());
        for (place, file) in files.iter().enumerate() {
            let key = TicketKey::of_file(file).ok_or(TicketFault::Length(place))?;
            if keys.iter().any(|other| other.name == key.name) {
                return Err(TicketFault::Twice(place));
            }
            keys.push(Arc::new(key));
        }
        Ok(Self(keys))
    }
}

impl Tickets {
    /// Tickets with a key made now. [`Self::rotate`] makes the next ones.
    ///
    /// # Errors
    /// [`TicketFault::Random`].
    pub fn new(time: Arc<WallTime>) -> Result<Self, TicketFault> {
        let random = SystemRandom::new();
        let keys = vec![Arc::new(TicketKey::random(&random, time.unix_s())?)];
        let keys = ArcSwap::from_pointee(Keys { keys, are_from_files: false });
        Ok(Self { keys, changing: Mutex::default(), time, random })
    }

    /// Goes on with keys from files, which are changed by this call alone, or with `None` with keys made
    /// here. `true`: they are others than before.
    ///
    /// # Errors
    /// [`TicketFault::Random`]; the old keys go on.
    pub fn choose(&self, files: Option<&TicketKeys>) -> Result<bool, TicketFault> {
        let _alone = self.change();
        let current = self.keys.load();
        let keys = match files {
            Some(files) if current.are_from_files && current.keys == files.0 => return Ok(false),
            None if !current.are_from_files => return Ok(false),
            Some(files) => files.0.clone(),
            None => vec![Arc::new(TicketKey::random(&self.random, self.time.unix_s())?)],
        };
        self.keys.store(Arc::new(Keys { keys, are_from_files: files.is_some() }));
        Ok(true)
    }

    /// Makes a new key if the current one has sealed for 8 hours; keeps the two before. To be called now and
    /// then, by one thread. `true`: there is a new key. Keys from files are left alone.
    ///
    /// # Errors
    /// [`TicketFault::Random`]; the old keys go on.
    pub fn rotate(&self) -> Result<bool, TicketFault> {
        let _alone = self.change();
        let Keys { keys, are_from_files } = &**self.keys.load();
        let now = self.time.unix_s();
        // A key whose time is still to come was made by a clock that was ahead.
        let is_young = |key: &Arc<TicketKey>| {
            (key.since_unix_s..key.since_unix_s.saturating_add(TICKET_KEY_SECONDS)).contains(&now)
        };
        let is_due = !keys.first().is_some_and(is_young);
        if *are_from_files || !is_due {
            return Ok(false);
        }
        let mut next = vec![Arc::new(TicketKey::random(&self.random, now)?)];
        next.extend(keys.iter().take(TICKET_KEYS_COUNT - 1).cloned());
        self.keys.store(Arc::new(Keys { keys: next, are_from_files: false }));
        Ok(true)
    }

    /// The keys made here, with their ages, for the process that takes over. Nothing if they are from files:
    /// that process reads them itself. To be left to nobody else.
    #[must_use]
    pub fn hand_over(&self) -> Option<Zeroizing<Vec<u8>>> {
        let Keys { keys, are_from_files } = &**self.keys.load();
        if *are_from_files {
            return None;
        }
        let length = HANDED_HEAD.len() + keys.len() * HANDED_BYTES;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.extend_from_slice(HANDED_HEAD);
        keys.iter().for_each(|key| key.hand_over(&mut bytes));
        Some(bytes)
    }

    /// Goes on with the keys that [`Self::hand_over`] gave in the process before.
    ///
    /// # Errors
    /// [`TicketFault::Handed`]; the old keys go on.
    pub fn take_over(&self, handed: &[u8]) -> Result<(), TicketFault> {
        let rest = handed.strip_prefix(HANDED_HEAD).ok_or(TicketFault::Handed)?;
        let (keys, rest) = rest.as_chunks::<HANDED_BYTES>();
        if !rest.is_empty() || keys.is_empty() || keys.len() > TICKET_KEYS_COUNT {
            return Err(TicketFault::Handed);
        }
        let keys = keys.iter().map(|bytes| Arc::new(TicketKey::of_handed(bytes))).collect();
        let _alone = self.change();
        self.keys.store(Arc::new(Keys { keys, are_from_files: false }));
        Ok(())
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
        let current = self.keys.load();
        let key = current.keys.iter().find(|key| key.name == name)?.of_ticket(salt);
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
        let current = self.keys.load();
        let key = current.keys.first()?;
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
        let tag = key.of_ticket(&salt).seal_in_place_separate_tag(nonce, beside, &mut ticket[head..]).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }
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

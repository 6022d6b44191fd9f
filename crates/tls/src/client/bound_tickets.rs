//! Tickets that are good for one policy of client certificates alone, and only while what was verified holds.
//!
//! A session in a ticket says which certificate its client showed, or that it showed none, and resuming it
//! verifies nothing anew. So a ticket carries the digest of the policy it was made under (mode, authorities,
//! lists) and the last second in which all that was verified is valid. Under any other policy, after any
//! change of authorities or lists, and after that second it is no ticket, and the client makes a full
//! handshake. It must never be opened without both having been compared.
use std::fmt;
use std::sync::Arc;

use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::clock::WallTime;
use crate::facts;
use crate::limits::SESSION_BYTES_MAX;
use crate::ticket::Tickets;

/// Bytes of a policy's digest.
const DIGEST_BYTES: usize = 32;
/// Bytes before the session: the digest, and the last second.
const HEAD_BYTES: usize = DIGEST_BYTES + 8;

/// The tickets of one policy.
pub(super) struct BoundTickets {
    pub(super) tickets: Arc<Tickets>,
    pub(super) time: Arc<WallTime>,
    pub(super) digest: [u8; DIGEST_BYTES],
}

/// rustls wants it. It shows no key.
impl fmt::Debug for BoundTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundTickets").finish_non_exhaustive()
    }
}

impl ProducesTickets for BoundTickets {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.tickets.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        if plain.len() > SESSION_BYTES_MAX {
            return None;
        }
        let mut whole = Zeroizing::new(Vec::with_capacity(HEAD_BYTES + plain.len()));
        whole.extend_from_slice(&self.digest);
        whole.extend_from_slice(&facts::verified_until().to_be_bytes());
        whole.extend_from_slice(plain);
        self.tickets.encrypt(&whole)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let whole = Zeroizing::new(self.tickets.decrypt(cipher)?);
        let (digest, rest) = whole.split_first_chunk::<DIGEST_BYTES>()?;
        let (until, session) = rest.split_first_chunk::<8>()?;
        let until = u64::from_be_bytes(*until);
        if *digest != self.digest || self.time.unix_s() > until {
            return None;
        }
        facts::set_verified_until(until);
        Some(session.to_vec())
    }
}

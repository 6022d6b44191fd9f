//! The group X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem): two key exchanges side by side, so that what is
//! recorded today stays secret if one of them is broken later, as X25519 would be by a quantum computer.
//!
//! It owns how shares and secrets are put together: the part of ML-KEM-768 (FIPS 203) stands first. That part
//! is done by the crate `ml-kem`, the other by ring. It must never go on with a share of which a part is
//! faulty.
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use ml_kem::kem::{Decapsulate as _, InvalidKey, KeyExport as _, TryKeyInit as _};
use ml_kem::ml_kem_768::{Ciphertext, DecapsulationKey, EncapsulationKey};
use ml_kem::{B32, Seed, SharedKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup,
};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use zeroize::Zeroizing;

use crate::limits::{MLKEM_CIPHERTEXT_BYTES, MLKEM_KEY_BYTES};

const FAULTY_SHARE: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// The group, which can be switched off.
#[derive(Debug)]
pub(crate) struct Hybrid {
    is_offered: AtomicBool,
}

impl Hybrid {
    /// The group of a context, which goes on to the end of the process: rustls borrows groups for so long.
    pub(crate) fn new() -> &'static Self {
        Box::leak(Box::new(Self { is_offered: AtomicBool::new(true) }))
    }

    /// What handshakes are made of: all of ring's, and this group before ring's own.
    pub(crate) fn provider(&'static self) -> CryptoProvider {
        let mut provider = rustls::crypto::ring::default_provider();
        provider.kx_groups.insert(0, self);
        provider
    }

    /// Whether handshakes from now on know the group.
    pub(crate) fn offer(&self, on: bool) {
        self.is_offered.store(on, Ordering::Relaxed);
    }
}

impl SupportedKxGroup for Hybrid {
    /// The client's beginning: its share is a key of ML-KEM and one of X25519.
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut seed = Zeroizing::new(Seed::default());
        fill(&mut seed)?;
        let key = DecapsulationKey::from_seed(*seed);
        let classical = X25519.start()?;
        let share = [&key.encapsulation_key().to_bytes()[..], classical.pub_key()].concat();
        Ok(Box::new(ActiveHybrid { key: Box::new(key), classical, share }))
    }

    /// All that the server does: its share is a ciphertext of ML-KEM and a key of X25519.
    fn start_and_complete(&self, client_share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, classical) = client_share.split_at_checked(MLKEM_KEY_BYTES).ok_or(FAULTY_SHARE)?;
        // A share of X25519 is checked before the dearer half begins.
        let classical = X25519.start_and_complete(classical)?;
        let mut message = Zeroizing::new(B32::default());
        fill(&mut message)?;
        let (ciphertext, secret) = encapsulate(key, &message).map_err(|_| FAULTY_SHARE)?;
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [&ciphertext[..], &classical.pub_key].concat(),
            secret: joined(&secret, &classical.secret),
        })
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3 && self.is_offered.load(Ordering::Relaxed)
    }
}

/// A client's exchange that waits for the server's share.
struct ActiveHybrid {
    key: Box<DecapsulationKey>,
    classical: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for ActiveHybrid {
    fn complete(self: Box<Self>, server_share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, classical) =
            server_share.split_at_checked(MLKEM_CIPHERTEXT_BYTES).ok_or(FAULTY_SHARE)?;
        let classical = self.classical.complete(classical)?;
        let ciphertext: &Ciphertext = ciphertext.try_into().map_err(|_| FAULTY_SHARE)?;
        Ok(joined(&Zeroizing::new(self.key.decapsulate(ciphertext)), &classical))
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// A secret for the owner of this key, made of 32 random bytes (FIPS 203, section 6.2). The key is checked
/// first (section 7.2).
fn encapsulate(key: &[u8], message: &B32) -> Result<(Ciphertext, Zeroizing<SharedKey>), InvalidKey> {
    let key = EncapsulationKey::new_from_slice(key)?;
    let (ciphertext, secret) = key.encapsulate_deterministic(message);
    Ok((ciphertext, Zeroizing::new(secret)))
}

fn joined(post_quantum: &SharedKey, classical: &SharedSecret) -> SharedSecret {
    // rustls wipes it.
    SharedSecret::from([post_quantum, classical.secret_bytes()].concat())
}

fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    SystemRandom::new().fill(bytes).map_err(|_| Error::FailedToGetRandomBytes)
}

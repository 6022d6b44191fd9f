//! Keys, each of one algorithm (RFC 7517, RFC 7518, RFC 8037).
//!
//! It must never check a signature by another algorithm than the key's own.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use p256::ecdsa::signature::Verifier as _;
use sha2::Sha256;

use crate::limits::{HMAC_KEY_BYTES_MIN, RSA_KEY_BITS_MIN};

/// A key that checks signatures.
#[derive(Clone)]
pub struct Key {
    id: Option<String>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Hs256(Vec<u8>),
    Es256(p256::ecdsa::VerifyingKey),
    EdDsa(ed25519_dalek::VerifyingKey),
    Rs256(rsa::pkcs1v15::VerifyingKey<Sha256>),
}

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFault {
    /// A secret is shorter than 32 bytes.
    ShortSecret,
    /// An RSA key has fewer than 2048 bits.
    ShortRsa,
    /// Not a set of keys in JSON.
    NoSet(String),
    /// The key with this number, from 1, is not complete, or no point of its curve.
    Broken(usize),
    /// The set has no key that can be used: HS256, ES256, EdDSA, RS256.
    Empty,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShortSecret => write!(f, "a secret has at least {HMAC_KEY_BYTES_MIN} bytes"),
            Self::ShortRsa => write!(f, "an RSA key has at least {RSA_KEY_BITS_MIN} bits"),
            Self::NoSet(told) => write!(f, "not a set of keys (JWKS): {told}"),
            Self::Broken(number) => write!(f, "key {number} of the set is not complete or not valid"),
            Self::Empty => write!(f, "the set has no key for HS256, ES256, EdDSA or RS256"),
        }
    }
}

impl std::error::Error for KeyFault {}

impl fmt::Debug for Key {
    /// Without the key: what is printed may be kept.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {:?})", self.algorithm(), self.id)
    }
}

impl Key {
    /// A shared secret, for HS256.
    ///
    /// # Errors
    /// It is too short.
    pub fn secret(secret: &[u8]) -> Result<Self, KeyFault> {
        if secret.len() < HMAC_KEY_BYTES_MIN {
            return Err(KeyFault::ShortSecret);
        }
        Ok(Self { id: None, kind: Kind::Hs256(secret.to_vec()) })
    }

    /// Whether it is a shared secret, by which tokens can be made.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Hs256(_))
    }

    /// The name of its algorithm in a token.
    pub fn algorithm(&self) -> &'static str {
        match self.kind {
            Kind::Hs256(_) => "HS256",
            Kind::Es256(_) => "ES256",
            Kind::EdDsa(_) => "EdDSA",
            Kind::Rs256(_) => "RS256",
        }
    }

    /// Whether a token with this `kid` may be signed by it: both have to have one to differ.
    pub(super) fn is_named(&self, id: Option<&str>) -> bool {
        match (&self.id, id) {
            (Some(own), Some(id)) => own == id,
            _ => true,
        }
    }

    /// The signature of a message by a shared secret; the other keys are public.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let Kind::Hs256(secret) = &self.kind else { return None };
        let mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
        Some(mac.chain_update(message).finalize().into_bytes().to_vec())
    }

    /// Whether the signature is the key's.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.kind {
            Kind::Hs256(secret) => Hmac::<Sha256>::new_from_slice(secret)
                .is_ok_and(|mac| mac.chain_update(message).verify_slice(signature).is_ok()),
            Kind::Es256(key) => p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
            Kind::EdDsa(key) => ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_strict(message, &signature).is_ok()),
            Kind::Rs256(key) => rsa::pkcs1v15::Signature::try_from(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
        }
    }
}

/// Reads a set of keys (JWKS). Keys of other kinds, and those for encryption, are skipped.
///
/// # Errors
/// Not a set, a key that is broken or too short, or no key that can be used.
pub fn read_keys(text: &[u8]) -> Result<Vec<Key>, KeyFault> {
    let set: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| KeyFault::NoSet(error.to_string()))?;
    let list = set["keys"].as_array().ok_or_else(|| KeyFault::NoSet("`keys` is missing".to_owned()))?;
    let mut keys = Vec::new();
    for (place, entry) in list.iter().enumerate() {
        if entry["use"].as_str().is_some_and(|purpose| purpose != "sig") {
            continue;
        }
        if let Some(kind) = read_kind(entry, place + 1)? {
            keys.push(Key { id: entry["kid"].as_str().map(str::to_owned), kind });
        }
    }
    if keys.is_empty() { Err(KeyFault::Empty) } else { Ok(keys) }
}

fn read_kind(entry: &serde_json::Value, number: usize) -> Result<Option<Kind>, KeyFault> {
    let broken = || KeyFault::Broken(number);
    let member = |name: &str| -> Result<Vec<u8>, KeyFault> {
        URL_SAFE_NO_PAD.decode(entry[name].as_str().ok_or_else(broken)?).map_err(|_| broken())
    };
    let is_for = |algorithm: &str| entry["alg"].as_str().is_none_or(|alg| alg == algorithm);
    let text = |name: &str| entry[name].as_str().unwrap_or("");
    Ok(match (text("kty"), text("crv")) {
        ("oct", _) if is_for("HS256") => Some(Key::secret(&member("k")?)?.kind),
        ("EC", "P-256") if is_for("ES256") => {
            let point = [&[4][..], &member("x")?, &member("y")?].concat();
            Some(Kind::Es256(p256::ecdsa::VerifyingKey::from_sec1_bytes(&point).map_err(|_| broken())?))
        }
        ("OKP", "Ed25519") if is_for("EdDSA") => {
            let bytes = member("x")?.try_into().map_err(|_| broken())?;
            Some(Kind::EdDsa(ed25519_dalek::VerifyingKey::from_bytes(&bytes).map_err(|_| broken())?))
        }
        ("RSA", _) if is_for("RS256") => {
            let number = |bytes: Vec<u8>| rsa::BoxedUint::from_be_slice_vartime(&bytes);
            let (modulus, exponent) = (number(member("n")?), number(member("e")?));
            if modulus.bit_width_vartime() < RSA_KEY_BITS_MIN {
                return Err(KeyFault::ShortRsa);
            }
            let key = rsa::PublicKey::new(modulus, exponent).map_err(|_| broken())?;
            Some(Kind::Rs256(rsa::pkcs1v15::VerifyingKey::new(key)))
        }
        _ => None,
    })
}

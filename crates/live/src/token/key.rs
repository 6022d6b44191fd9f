//! Keys, each of one algorithm (RFC 7517, RFC 7518, RFC 8037).
//!
//! It must never check a signature by another algorithm than the key's own.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use ring::{agreement, hmac};

use crate::limits::{HMAC_KEY_BYTES_MIN, RSA_KEY_BITS_MAX, RSA_KEY_BITS_MIN};

/// A key that checks signatures.
#[derive(Clone)]
pub struct Key {
    id: Option<String>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Hs256(hmac::Key),
    /// An uncompressed point (SEC 1, section 2.3.3).
    Es256(UnparsedPublicKey<[u8; 65]>),
    EdDsa(UnparsedPublicKey<[u8; 32]>),
    /// Modulus and exponent, most significant byte first, without zeros before it.
    Rs256(RsaPublicKeyComponents<Vec<u8>>),
}

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFault {
    /// A secret is shorter than 32 bytes.
    ShortSecret,
    /// An RSA key has fewer than 2048 bits.
    ShortRsa,
    /// An RSA key has more than 8192 bits.
    LongRsa,
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
            Self::LongRsa => write!(f, "an RSA key has at most {RSA_KEY_BITS_MAX} bits"),
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
        Ok(Self { id: None, kind: Kind::Hs256(hmac::Key::new(hmac::HMAC_SHA256, secret)) })
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
        Some(hmac::sign(secret, message).as_ref().to_vec())
    }

    /// Whether the signature is the key's.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.kind {
            Kind::Hs256(secret) => hmac::verify(secret, message, signature).is_ok(),
            Kind::Es256(key) => key.verify(message, signature).is_ok(),
            Kind::EdDsa(key) => key.verify(message, signature).is_ok(),
            Kind::Rs256(key) => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok(),
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
            let point = point.try_into().ok().filter(is_on_p256).ok_or_else(broken)?;
            Some(Kind::Es256(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)))
        }
        ("OKP", "Ed25519") if is_for("EdDSA") => {
            let bytes = member("x")?.try_into().map_err(|_| broken())?;
            Some(Kind::EdDsa(UnparsedPublicKey::new(&ED25519, bytes)))
        }
        ("RSA", _) if is_for("RS256") => {
            let (n, e) = (without_zeros(member("n")?), without_zeros(member("e")?));
            match bits(&n) {
                ..RSA_KEY_BITS_MIN => return Err(KeyFault::ShortRsa),
                RSA_KEY_BITS_MIN..=RSA_KEY_BITS_MAX if is_odd(&n) && is_exponent(&e) => {}
                RSA_KEY_BITS_MIN..=RSA_KEY_BITS_MAX => return Err(broken()),
                _ => return Err(KeyFault::LongRsa),
            }
            Some(Kind::Rs256(RsaPublicKeyComponents { n, e }))
        }
        _ => None,
    })
}

/// Whether an uncompressed point is one of P-256. Agreeing on a secret with it finds that out; verifying
/// would only when there is a signature.
fn is_on_p256(point: &[u8; 65]) -> bool {
    let theirs = agreement::UnparsedPublicKey::new(&agreement::ECDH_P256, point);
    agreement::EphemeralPrivateKey::generate(&agreement::ECDH_P256, &SystemRandom::new())
        .is_ok_and(|own| agreement::agree_ephemeral(own, &theirs, |_| ()).is_ok())
}

/// A number of JWK without the zeros before its first byte.
fn without_zeros(mut number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    number.drain(..zeros);
    number
}

/// How many bits a number without zeros before it has.
fn bits(number: &[u8]) -> u32 {
    let first = number.first().map_or(0, |byte| 8 - byte.leading_zeros());
    u32::try_from(number.len().saturating_sub(1) * 8).unwrap_or(u32::MAX).saturating_add(first)
}

fn is_odd(number: &[u8]) -> bool {
    number.last().is_some_and(|byte| byte & 1 == 1)
}

/// Whether a number is an exponent that signatures are verified with: odd, from 3 to 33 bits.
fn is_exponent(number: &[u8]) -> bool {
    is_odd(number) && (2..=33).contains(&bits(number))
}

//! The key pair of an ACME account, and the requests it signs: JWS with ES256 (RFC 7515; RFC 7518, section
//! 3.4).
//!
//! The private key must never leave this file but as text for the store.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::fault::AcmeFault;

/// How a signed request names the key that signed it (RFC 8555, section 6.2): by the public key itself
/// (`jwk`) while the account has no address yet, else by the account's address (`kid`).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Signer<'a> {
    Key,
    Account(&'a str),
}

/// The key pair of an account, on the curve P-256.
pub(crate) struct AccountKey {
    pair: EcdsaKeyPair,
    /// The private key as PKCS #8, as the store keeps it.
    pkcs8: Zeroizing<Vec<u8>>,
    random: SystemRandom,
}

/// Bytes as base64url without padding, which all of JWS is written in (RFC 7515, section 2).
pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl AccountKey {
    /// A new key pair.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn create() -> Result<Self, AcmeFault> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| AcmeFault::Here("the system gives no random numbers".into()))?;
        Self::of_pkcs8(Zeroizing::new(made.as_ref().to_vec()))
    }

    /// The key pair that [`Self::text`] wrote as this text.
    ///
    /// # Errors
    /// The text is no base64url, or no private key of P-256.
    pub(crate) fn read(text: &str) -> Result<Self, AcmeFault> {
        let bytes = URL_SAFE_NO_PAD.decode(text);
        let bytes = bytes.map_err(|_| AcmeFault::Here("the account's key is no base64".into()))?;
        Self::of_pkcs8(Zeroizing::new(bytes))
    }

    /// The private key (PKCS #8) in base64url, for the store alone.
    pub(crate) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(base64url(&self.pkcs8))
    }

    fn of_pkcs8(pkcs8: Zeroizing<Vec<u8>>) -> Result<Self, AcmeFault> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, &random);
        let pair = pair.map_err(|_| AcmeFault::Here("the account's key is damaged".into()))?;
        Ok(Self { pair, pkcs8, random })
    }

    /// The key authorization, by which the challenge with this token is answered (RFC 8555, section 8.1).
    pub(crate) fn authorize(&self, token: &str) -> String {
        // The members in the order that the thumbprint asks for (RFC 7638, section 3.2).
        let [x, y] = self.point();
        let text = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        format!("{token}.{}", base64url(digest(&SHA256, text.as_bytes())))
    }

    /// The body of a signed request to this address (RFC 8555, section 6.2). Without a payload it only reads
    /// (POST-as-GET, section 6.3).
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn sign(
        &self,
        url: &str,
        nonce: &str,
        signer: Signer<'_>,
        payload: Option<&Value>,
    ) -> Result<Value, AcmeFault> {
        let mut head = json!({"alg": "ES256", "nonce": nonce, "url": url});
        match signer {
            Signer::Key => head["jwk"] = self.public(),
            Signer::Account(account) => head["kid"] = account.into(),
        }
        let head = base64url(head.to_string());
        let payload = payload.map_or_else(String::new, |payload| base64url(payload.to_string()));
        let signature = self.pair.sign(&self.random, format!("{head}.{payload}").as_bytes());
        let signature =
            signature.map_err(|_| AcmeFault::Here("the system gives no random numbers".into()))?;
        Ok(json!({"protected": head, "payload": payload, "signature": base64url(signature)}))
    }

    /// The external account binding (RFC 8555, section 7.3.4): this public key, signed by the key (`secret`,
    /// in base64url) that the authority gave out with `key_id` for a customer's account.
    ///
    /// # Errors
    /// The secret is no base64url.
    pub(crate) fn bind(&self, url: &str, key_id: &str, secret: &str) -> Result<Value, AcmeFault> {
        let secret = URL_SAFE_NO_PAD.decode(secret.trim().trim_end_matches('=')).map(Zeroizing::new);
        let secret =
            secret.map_err(|_| AcmeFault::Here("the key of acme_eab_key_file is no base64url".into()))?;
        let head = base64url(json!({"alg": "HS256", "kid": key_id, "url": url}).to_string());
        let payload = base64url(self.public().to_string());
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let signature = hmac::sign(&key, format!("{head}.{payload}").as_bytes());
        Ok(json!({"protected": head, "payload": payload, "signature": base64url(signature)}))
    }

    /// The public key as a JWK (RFC 7517).
    fn public(&self) -> Value {
        let [x, y] = self.point();
        json!({"kty": "EC", "crv": "P-256", "x": x, "y": y})
    }

    /// The coordinates of the public key. ring gives the point uncompressed: a byte 4, then both coordinates
    /// (SEC 1, section 2.3.3).
    fn point(&self) -> [String; 2] {
        let bytes = self.pair.public_key().as_ref();
        [base64url(&bytes[1..33]), base64url(&bytes[33..])]
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_key_is_the_same_when_it_was_written_and_read() {
        let key = AccountKey::create().expect("a key");
        let again = AccountKey::read(&key.text()).expect("the same");
        assert_eq!(key.authorize("token"), again.authorize("token"));
        assert!(AccountKey::read("AAAA").is_err() && AccountKey::read("!").is_err());
    }

    #[test]
    fn a_binding_is_signed_by_the_key_of_the_authority() {
        let key = AccountKey::create().expect("a key");
        let secret = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
        let bound = key.bind("https://a/account", "kid-1", secret).expect("a binding");
        let part = |name: &str| bound[name].as_str().expect("a text").to_owned();
        let secret = URL_SAFE_NO_PAD.decode(secret).expect("base64");
        let by = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let signature = URL_SAFE_NO_PAD.decode(part("signature")).expect("base64");
        let message = format!("{}.{}", part("protected"), part("payload"));
        assert!(hmac::verify(&by, message.as_bytes(), &signature).is_ok());
        let payload = URL_SAFE_NO_PAD.decode(part("payload")).expect("base64");
        assert_eq!(serde_json::from_slice::<Value>(&payload).expect("JSON"), key.public());
        assert!(key.bind("https://a/account", "kid-1", "no base64!").is_err());
    }

    #[test]
    fn a_signature_holds_for_what_was_signed() {
        let key = AccountKey::create().expect("a key");
        let signed = key.sign("https://a/b", "n", Signer::Account("https://a/1"), Some(&json!({"x": 1})));
        let signed = signed.expect("a request");
        let part = |name: &str| signed[name].as_str().expect("a text").to_owned();
        let head = URL_SAFE_NO_PAD.decode(part("protected")).expect("base64");
        let head: Value = serde_json::from_slice(&head).expect("JSON");
        let expected = json!({"alg": "ES256", "nonce": "n", "url": "https://a/b", "kid": "https://a/1"});
        assert_eq!(head, expected);
        let message = format!("{}.{}", part("protected"), part("payload"));
        let signature = URL_SAFE_NO_PAD.decode(part("signature")).expect("base64");
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key().as_ref());
        assert!(public.verify(message.as_bytes(), &signature).is_ok());
        assert!(public.verify(b"another", &signature).is_err());
    }
}

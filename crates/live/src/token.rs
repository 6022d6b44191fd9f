//! Tokens: who may publish and read what, signed by who may say so (RFC 7519, RFC 9068).
//!
//! It owns the checks, and their order: form, key, signature, claims, time. It must never read a clock, and
//! never tell a peer which check failed: [`TokenFault`] is for counters and the operator's log.
//!
//! Signatures are checked by libraries. The compact form around them is read here, because the time is an
//! argument and a key belongs to one algorithm: a token cannot choose how it is checked.

mod claims;
mod granted;
mod key;
mod making;
mod memory;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use granted::{Granted, Issuer, TokenFault};
pub use key::{Key, KeyFault, read_keys};
pub use making::{Making, make};
pub use memory::{KnownToken, TokenMemory};

use crate::limits::TOKEN_BYTES_MAX;

/// Checks a token at a time, in seconds since 1970.
///
/// # Errors
/// The first check that fails.
pub fn verify(token: &[u8], issuers: &[Issuer], now_s: u64) -> Result<Granted, TokenFault> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(TokenFault::Form);
    }
    let token = std::str::from_utf8(token).map_err(|_| TokenFault::Form)?;
    let (signed, signature) = token.rsplit_once('.').ok_or(TokenFault::Form)?;
    let (header, payload) = signed.split_once('.').ok_or(TokenFault::Form)?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Form);
    let header = claims::read_header(&decode(header)?)?;
    let (payload, signature) = (decode(payload)?, decode(signature)?);
    let fits = |key: &&Key| key.algorithm() == header.algorithm && key.is_named(header.key_id.as_deref());
    let mut fault = TokenFault::Algorithm;
    for issuer in issuers {
        for key in issuer.keys.iter().filter(fits) {
            if key.verifies(signed.as_bytes(), &signature) {
                return claims::check(&header, &payload, issuer, now_s);
            }
            fault = TokenFault::Signature;
        }
    }
    Err(fault)
}

/// Header and claims of a token, whoever has signed it: to be shown to whom it belongs, never to be believed.
///
/// # Errors
/// The text is no token.
pub fn read_parts(token: &[u8]) -> Result<[serde_json::Value; 2], TokenFault> {
    let token = std::str::from_utf8(token).map_err(|_| TokenFault::Form)?;
    let parts: Vec<&str> = token.split('.').collect();
    let &[header, payload, _] = parts.as_slice() else { return Err(TokenFault::Form) };
    let read = |part: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Form)?;
        serde_json::from_slice(&bytes).map_err(|_| TokenFault::Form)
    };
    Ok([read(header)?, read(payload)?])
}

#[cfg(test)]
mod tests;

//! Who may grant, what is granted, and why nothing is.
//!
//! It must never hold a token.

use super::key::Key;
use crate::interest::Grants;

/// Who signs tokens, and for whom.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// What `iss` has to be.
    pub name: String,
    /// What `aud` has to name.
    pub audience: String,
    /// The keys; one of them has signed.
    pub keys: Vec<Key>,
    /// Takes tokens of Mercure 0.x as well: the claim `mercure`, and no `iss`, `aud`, `typ`. It weakens the
    /// checks.
    pub mercure_compatibility: bool,
}

/// What a token grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// What may be published.
    pub publish: Grants,
    /// What may be read that is private.
    pub subscribe: Grants,
    /// When it ends, in seconds since 1970.
    pub ends_at_s: u64,
}

/// Why a token grants nothing. A peer is told the same for all: 401 `invalid_token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFault {
    /// Longer than a token is, or not three parts in base64url with JSON in them.
    Form,
    /// `typ` is another kind of token.
    Type,
    /// An algorithm that is not that of a key, `none` among them, or an extension that is critical.
    Algorithm,
    /// No key has signed it.
    Signature,
    /// `iss` is another one.
    Issuer,
    /// `aud` does not name the audience.
    Audience,
    /// No `exp`, or it has passed.
    Expired,
    /// `nbf` has not come.
    Early,
    /// What is granted cannot be read; nothing of it is taken.
    Grants,
}

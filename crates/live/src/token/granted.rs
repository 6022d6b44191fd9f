//! Which issuers may grant, what is granted, and why nothing is.
//!
//! It must never hold a token.

use std::fmt;

use super::key::Key;
use crate::interest::Grants;

/// An issuer that signs tokens, and what its tokens must say.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// What `iss` has to be.
    pub name: String,
    /// What `aud` has to name.
    pub audience: String,
    /// The keys; one of them has signed.
    pub keys: Vec<Key>,
    /// Takes tokens of Mercure 0.x as well: the claim `mercure`, and no `iss`, `aud`, `exp`. It weakens the
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
    /// When it ends, in seconds since 1970, with the leeway for clocks; 0: never.
    pub ends_at_s: u64,
}

impl Granted {
    /// Whether its time has passed.
    pub fn has_ended(&self, now_s: u64) -> bool {
        self.ends_at_s != 0 && self.ends_at_s <= now_s
    }
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

impl TokenFault {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Form,
        Self::Type,
        Self::Algorithm,
        Self::Signature,
        Self::Issuer,
        Self::Audience,
        Self::Expired,
        Self::Early,
        Self::Grants,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Type => "type",
            Self::Algorithm => "algorithm",
            Self::Signature => "signature",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Expired => "expired",
            Self::Early => "early",
            Self::Grants => "grants",
        }
    }
}

/// For the operator, who can mend it.
impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "it is no JWT: three parts in base64url, with JSON in the first two",
            Self::Type => "its `typ` is of another kind of token: at+jwt and JWT are taken",
            Self::Algorithm => "no key of an issuer has its `alg` (and its `kid`, where both have one)",
            Self::Signature => "no key of an issuer has signed it",
            Self::Issuer => "its `iss` is not the `name` of the issuer whose key has signed it",
            Self::Audience => "its `aud` does not name the `audience` of the issuer",
            Self::Expired => "its `exp` has passed, or is missing",
            Self::Early => "its `nbf` has not come: compare the clocks",
            Self::Grants => "what it grants cannot be read: an action, a topic or a `match_type` is unknown",
        })
    }
}

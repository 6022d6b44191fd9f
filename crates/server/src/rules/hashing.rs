//! New hashes of passwords, for `basic_auth`.
//!
//! A hash is of a kind and cost that [`Auth`](super::auth::Auth) checks in tens of milliseconds. Randomness
//! is an argument; a password must never be part of an error.

use argon2::{Argon2, PasswordHasher};

use crate::limits::{BCRYPT_COST_MAX, BCRYPT_PASSWORD_BYTES_MAX};

/// Bytes of a salt: what both kinds of hash take.
pub const SALT_BYTES: usize = 16;

/// How a password is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hashing {
    /// argon2id with 19 MiB, two passes and one lane (RFC 9106; the least that OWASP advises).
    Argon2id,
    /// bcrypt with 2 to the power of `cost` rounds.
    Bcrypt {
        /// 4 to [`BCRYPT_COST_MAX`].
        cost: u32,
    },
}

/// The hash of a password as `basic_auth` takes it, `$argon2id$...` or `$2b$...`.
///
/// # Errors
/// A sentence: an empty password, or one that bcrypt would cut.
pub fn hash_password(password: &[u8], hashing: Hashing, salt: [u8; SALT_BYTES]) -> Result<String, String> {
    if password.is_empty() {
        return Err("the password is empty".into());
    }
    match hashing {
        Hashing::Argon2id => Argon2::default()
            .hash_password_with_salt(password, &salt)
            .map(|hash| hash.to_string())
            .map_err(|error| format!("the password cannot be hashed: {error}")),
        Hashing::Bcrypt { cost } => {
            if password.len() > BCRYPT_PASSWORD_BYTES_MAX || password.contains(&0) {
                let most = BCRYPT_PASSWORD_BYTES_MAX;
                return Err(format!("bcrypt takes at most {most} bytes, none of them 0: use argon2id"));
            }
            if !(4..=BCRYPT_COST_MAX).contains(&cost) {
                return Err(format!("a cost of bcrypt is 4 to {BCRYPT_COST_MAX}"));
            }
            bcrypt::hash_with_salt(password, cost, salt)
                .map(|parts| parts.format_for_version(bcrypt::Version::TwoB))
                .map_err(|error| format!("the password cannot be hashed: {error}"))
        }
    }
}

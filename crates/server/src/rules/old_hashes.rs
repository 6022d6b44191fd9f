//! Hashes of passwords as htpasswd made them for long: `$apr1$` (a thousand rounds of MD5) and `{SHA}` (SHA-1
//! alone).
//!
//! Old hashes are read so that a file of users can be taken over from another server. Whoever gets such a
//! file guesses its passwords fast, so none is ever made here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use md5::{Digest as _, Md5};

use crate::limits::OLD_PASSWORD_BYTES_MAX;

const APR1: &str = "$apr1$";
const SHA: &str = "{SHA}";
/// Bytes of a salt that count: further ones are not used.
const SALT_BYTES_MAX: usize = 8;
const APR1_ROUNDS: usize = 1000;
/// Letters of a digest of MD5 and of one of SHA-1, as they stand in a hash.
const APR1_LETTERS: usize = 22;
const SHA_LETTERS: usize = 28;
/// The digits of a hash.
const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Whether a hash is of one of these kinds.
pub(super) fn is_old(hash: &str) -> bool {
    hash.starts_with(APR1) || hash.starts_with(SHA)
}

/// Whether a hash of these kinds has its form.
///
/// # Errors
/// The form that it should have.
pub(super) fn check(hash: &str) -> Result<(), String> {
    let is_right = match salt_and_digest(hash) {
        Some((salt, digest)) => {
            (1..=SALT_BYTES_MAX).contains(&salt.len())
                && digest.len() == APR1_LETTERS
                && [salt, digest].concat().bytes().all(|byte| LETTERS.contains(&byte))
        }
        None => hash.strip_prefix(SHA).is_some_and(|digest| {
            digest.len() == SHA_LETTERS && STANDARD.decode(digest).is_ok_and(|digest| digest.len() == 20)
        }),
    };
    let form = || "the hash is not of the form $apr1$SALT$HASH or {SHA}HASH".to_owned();
    is_right.then_some(()).ok_or_else(form)
}

/// Whether a password is that of a hash of these kinds. One that is too long is that of none, whoever asks.
pub(super) fn fits(password: &[u8], hash: &str) -> bool {
    if password.len() > OLD_PASSWORD_BYTES_MAX {
        return false;
    }
    let made = match salt_and_digest(hash) {
        Some((salt, _)) => apr1(password, salt.as_bytes()),
        None => sha(password),
    };
    // No earlier end at the first letter that differs.
    let differing = made.bytes().zip(hash.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    made.len() == hash.len() && differing == 0
}

fn salt_and_digest(hash: &str) -> Option<(&str, &str)> {
    hash.strip_prefix(APR1)?.split_once('$')
}

fn sha(password: &[u8]) -> String {
    format!("{SHA}{}", STANDARD.encode(sha1_smol::Sha1::from(password).digest().bytes()))
}

fn apr1(password: &[u8], salt: &[u8]) -> String {
    let inner = md5(&[password, salt, password].concat());
    let mut message = [password, APR1.as_bytes(), salt].concat();
    let repeated = inner.iter().cycle().take(password.len());
    message.extend(repeated);
    let mut bits = password.len();
    while bits > 0 {
        message.push(if bits & 1 == 1 { 0 } else { password[0] });
        bits >>= 1;
    }
    let mut digest = md5(&message);
    for round in 0..APR1_ROUNDS {
        message.clear();
        message.extend_from_slice(if round % 2 == 1 { password } else { &digest });
        if round % 3 != 0 {
            message.extend_from_slice(salt);
        }
        if round % 7 != 0 {
            message.extend_from_slice(password);
        }
        message.extend_from_slice(if round % 2 == 1 { &digest } else { password });
        digest = md5(&message);
    }
    format!("{APR1}{}${}", String::from_utf8_lossy(salt), in_letters(&digest))
}

fn md5(message: &[u8]) -> [u8; 16] {
    Md5::digest(message).into()
}

/// A digest in the order and the digits of a hash, six bits a letter, the lowest first.
fn in_letters(digest: &[u8; 16]) -> String {
    const GROUPS: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut letters = String::with_capacity(APR1_LETTERS);
    let mut write = |mut value: u32, count: usize| {
        for _ in 0..count {
            letters.push(char::from(LETTERS[(value & 63) as usize]));
            value >>= 6;
        }
    };
    for [high, middle, low] in GROUPS.map(|group| group.map(|place| u32::from(digest[place]))) {
        write(high << 16 | middle << 8 | low, 4);
    }
    write(u32::from(digest[11]), 2);
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `openssl passwd -apr1 -salt SALT` and `htpasswd -nbs`.
    const KNOWN: [(&str, &str); 5] = [
        ("password", "$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/"),
        ("", "$apr1$x$tMwYqBfQwi3FYAr0aJc8M/"),
        ("a password that is longer than sixteen bytes, ä", "$apr1$8sFt66rZ$cY86jKpdqWFRY4SsYwfun0"),
        ("password", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="),
        ("", "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
    ];

    #[test]
    fn hashes_of_other_programs() {
        for (password, hash) in KNOWN {
            assert!(is_old(hash));
            assert_eq!(check(hash), Ok(()), "{hash}");
            assert!(fits(password.as_bytes(), hash), "{hash}");
            let wrong = [password, "x"].concat();
            assert!(!fits(wrong.as_bytes(), hash) && !fits(b"other", hash), "{hash}");
        }
    }

    #[test]
    fn long_passwords_are_refused_unread() {
        let longest = "a".repeat(OLD_PASSWORD_BYTES_MAX);
        for digest in [apr1(longest.as_bytes(), b"salt"), sha(longest.as_bytes())] {
            assert!(fits(longest.as_bytes(), &digest));
        }
        let longer = longest + "a";
        for digest in [apr1(longer.as_bytes(), b"salt"), sha(longer.as_bytes())] {
            assert!(!fits(longer.as_bytes(), &digest));
        }
    }

    #[test]
    fn forms() {
        for hash in [
            "$apr1$",
            "$apr1$salt",
            "$apr1$$yAAkm4libquA.ZWLHbSBq/",
            "$apr1$saltsalts$yAAkm4libquA.ZWLHbSBq/",
            "$apr1$salt$short",
            "$apr1$sa:t$yAAkm4libquA.ZWLHbSBq/",
            "$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/ ",
            "{SHA}",
            "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g",
            "{SHA}####5Mm5Pz8GgiULbPgzG37mj9g=",
        ] {
            assert!(check(hash).is_err(), "{hash}");
        }
    }
}

//! Basic authentication (RFC 7617): who may see a path, and what is remembered of those who have shown it.
//!
//! It owns names, hashes and the table of good credentials. A hash is made to cost tens of milliseconds, so
//! [`Auth::verify`] must never be called on a worker. What is remembered is no password but a number made of
//! it with a secret of this process (SipHash, twice): to find one that fits one would have to guess the
//! secret, so how long a look into the table takes says nothing.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordVerifier};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use staunch_engine::named_file::read_text;

use crate::config::BasicAuth;
use crate::limits::{
    ARGON2_MEMORY_KIB_MAX, ARGON2_PASSES_MAX, BCRYPT_COST_MAX, CREDENTIALS_KEPT_MAX, CREDENTIALS_KEPT_S,
    USERS_FILE_BYTES_MAX,
};
use crate::rules::line::check_value;
use crate::rules::old_hashes;

/// A number that stands for the value of one Authorization field.
pub(crate) type Tag = u128;

/// The users that may see what a rule is about.
#[derive(Debug)]
pub(crate) struct Auth {
    challenge: Box<str>,
    hashes: HashMap<Box<[u8]>, Box<str>>,
    /// A hash of each cost that there is, by that.
    costs: BTreeMap<String, Box<str>>,
    secrets: (RandomState, RandomState),
    good: Mutex<Remembered>,
}

/// Good credentials, each with the second in which they were found good.
#[derive(Debug, Default)]
pub(crate) struct Remembered(HashMap<Tag, u32>);

impl Remembered {
    /// When these credentials were found good, if that is not long ago.
    pub(crate) fn since(&self, tag: Tag, now_s: u32) -> Option<u32> {
        let since_s = *self.0.get(&tag)?;
        // A clock that begins anew every month makes them forgotten then, which costs one more check.
        let fresh = now_s.checked_sub(since_s).is_some_and(|age_s| age_s < CREDENTIALS_KEPT_S);
        fresh.then_some(since_s)
    }

    /// Remembers credentials.
    pub(crate) fn add(&mut self, tag: Tag, since_s: u32) {
        if self.0.len() >= CREDENTIALS_KEPT_MAX {
            self.0.clear();
        }
        self.0.insert(tag, since_s);
    }
}

impl Auth {
    /// Reads a rule whose file of users was already read ([`with_users_file`]).
    ///
    /// # Errors
    /// What is wrong with it. No hash is shown.
    pub(crate) fn new(config: &BasicAuth) -> Result<Self, String> {
        check_value("basic_auth: realm", &config.realm)?;
        if config.users.is_empty() {
            return Err(format!("basic_auth: the realm {:?} has no users", config.realm));
        }
        for (name, hash) in &config.users {
            if name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
                return Err(format!("basic_auth: {name:?} is no user's name"));
            }
            check_hash(hash).map_err(|fault| format!("basic_auth: user {name}: {fault}"))?;
        }
        let realm = config.realm.replace('\\', "\\\\").replace('"', "\\\"");
        let challenge = format!("WWW-Authenticate: Basic realm=\"{realm}\", charset=\"UTF-8\"\r\n");
        let hashes = config.users.iter().map(|(name, hash)| (name.as_bytes().into(), hash.as_str().into()));
        let costs = config.users.values().map(|hash| (cost(hash), hash.as_str().into()));
        Ok(Self {
            challenge: challenge.into(),
            costs: costs.collect(),
            hashes: hashes.collect(),
            secrets: (RandomState::new(), RandomState::new()),
            good: Mutex::default(),
        })
    }

    /// The hashes that a wrong password is tried against: that of the name, if it is one, and for each other
    /// cost any that has it. So how long a refusal takes tells neither whether a name is there nor which kind
    /// of hash it has.
    fn tried(&self, name: &[u8]) -> impl Iterator<Item = &str> {
        let own = self.hashes.get(name);
        let own_cost = own.map(|hash| cost(hash));
        let others = self.costs.iter().filter(move |(cost, _)| Some(*cost) != own_cost.as_ref());
        own.into_iter().chain(others.map(|(_, hash)| hash)).map(|hash| &**hash)
    }

    /// The line that asks for credentials.
    pub(crate) fn challenge(&self) -> &str {
        &self.challenge
    }

    /// A number that no other rule has while this one is there.
    pub(crate) fn number(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self) as usize
    }

    /// What stands for a field's value.
    pub(crate) fn tag(&self, field: &[u8]) -> Tag {
        let (high, low) = (self.secrets.0.hash_one(field), self.secrets.1.hash_one(field));
        Tag::from(high) << 64 | Tag::from(low)
    }

    /// Since when another worker's client is known to have shown these credentials, if one has.
    pub(crate) fn known_since(&self, tag: Tag, now_s: u32) -> Option<u32> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).since(tag, now_s)
    }

    /// Whether the credentials of a field are good, and since which second that is known. Takes long.
    pub(crate) fn verify(&self, field: &[u8], now_s: u32) -> Option<u32> {
        let tag = self.tag(field);
        let known = self.known_since(tag, now_s);
        if known.is_some() {
            return known;
        }
        let text = credentials(field)?;
        let colon = text.iter().position(|&byte| byte == b':')?;
        let (name, password) = (&text[..colon], &text[colon + 1..]);
        let mut tried = self.tried(name).map(|hash| black_box(fits(password, hash)));
        let is_right = self.hashes.contains_key(name) && tried.next() == Some(true);
        if !is_right {
            tried.for_each(drop);
            return None;
        }
        self.good.lock().unwrap_or_else(PoisonError::into_inner).add(tag, now_s);
        Some(now_s)
    }
}

/// Name, colon and password of a field (RFC 7617, section 2), if it is of that form.
pub(crate) fn credentials(field: &[u8]) -> Option<Vec<u8>> {
    let (scheme, rest) = field.split_at_checked(6)?;
    let text = STANDARD.decode(rest.trim_ascii()).ok()?;
    (scheme.eq_ignore_ascii_case(b"basic ") && text.contains(&b':')).then_some(text)
}

fn fits(password: &[u8], hash: &str) -> bool {
    if old_hashes::is_old(hash) {
        old_hashes::fits(password, hash)
    } else if hash.starts_with("$argon2id$") {
        Argon2::default().verify_password(password, hash).is_ok()
    } else {
        bcrypt::verify(password, hash).unwrap_or(false)
    }
}

/// By what the time of a check goes: hashes of which this is equal take equally long.
fn cost(hash: &str) -> String {
    if old_hashes::is_old(hash) {
        // The cost of apr1 differs by the length of the salt alone.
        return format!("{} {}", hash.get(..5).unwrap_or_default(), hash.len());
    }
    let mut parts = hash.split('$').skip(1);
    match parts.next() {
        Some("argon2id") => parts.take(2).collect::<Vec<_>>().join("$"),
        _ => format!("bcrypt {}", parts.next().unwrap_or_default()),
    }
}

/// Whether a hash is one that can be checked in reasonable time.
fn check_hash(hash: &str) -> Result<(), String> {
    if old_hashes::is_old(hash) {
        return old_hashes::check(hash);
    }
    if hash.starts_with("$argon2id$") {
        let wrong = |_| "the hash is not of the form $argon2id$v=19$m=...,t=...,p=...$SALT$HASH".to_owned();
        let parsed = PasswordHash::new(hash).map_err(|error| wrong(error.to_string()))?;
        let params = Params::try_from(&parsed).map_err(|error| wrong(error.to_string()))?;
        if parsed.salt.is_none() || parsed.hash.is_none() {
            return Err(wrong(String::new()));
        }
        if params.m_cost() > ARGON2_MEMORY_KIB_MAX || params.t_cost() > ARGON2_PASSES_MAX {
            let (memory, passes) = (ARGON2_MEMORY_KIB_MAX, ARGON2_PASSES_MAX);
            return Err(format!("the hash asks for more than {memory} KiB or {passes} passes a check"));
        }
        return Ok(());
    }
    if ["$2a$", "$2b$", "$2x$", "$2y$"].iter().any(|prefix| hash.starts_with(prefix)) {
        let parts: bcrypt::HashParts =
            hash.parse().map_err(|_| "the hash is not of the form $2b$COST$SALTANDHASH".to_owned())?;
        let cost = parts.get_cost();
        return match cost > BCRYPT_COST_MAX {
            true => Err(format!("the hash's cost is {cost}; above {BCRYPT_COST_MAX} a check takes seconds")),
            false => Ok(()),
        };
    }
    Err("the hash is neither argon2id ($argon2id$...) nor bcrypt ($2b$...), nor $apr1$ or {SHA}".to_owned())
}

/// This rule, with what stands in its file of users among its users.
///
/// # Errors
/// The file cannot be read, or a line of it.
pub(crate) fn with_users_file(config: &BasicAuth) -> Result<BasicAuth, String> {
    let mut config = config.clone();
    let Some(path) = config.users_file.take() else { return Ok(config) };
    let fault = |what: String| format!("users_file {}{what}", path.display());
    let text = read_text(&path, USERS_FILE_BYTES_MAX).map_err(|error| fault(format!(": {error}")))?;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, hash)) = line.split_once(':') else {
            return Err(fault(format!(":{}: write NAME:HASH", number + 1)));
        };
        check_hash(hash).map_err(|what| fault(format!(":{}: {what}", number + 1)))?;
        config.users.insert(name.to_owned(), hash.to_owned());
    }
    Ok(config)
}

/// This rule with no user that can come in, for a rule whose users cannot be read.
pub(crate) fn closed(config: &BasicAuth) -> BasicAuth {
    let users = [(NOBODY.0.to_owned(), NOBODY.1.to_owned())].into();
    BasicAuth { users, users_file: None, ..config.clone() }
}

/// A user whose password nobody knows: the hash was made of none.
const NOBODY: (&str, &str) = ("nobody", "$2b$10$.....................................................");

#[cfg(test)]
#[path = "auth/tests.rs"]
mod tests;

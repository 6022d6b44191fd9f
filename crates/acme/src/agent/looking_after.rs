//! Names that are looked after: which is due, what is done for it, what came of it.
//!
//! It owns the lock while an order is under way, and the words for the log. It must never order what another
//! server has just got, nor ask the authority before it may.

use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};
use staunch_netio::clock;
use staunch_tls::CertificatePair;

use super::inbox::{Event, Inbox};
use super::now_unix_s;
use crate::account_key::AccountKey;
use crate::client::Client;
use crate::fault::AcmeFault;
use crate::limits::{LOCK_PAUSE, PRESENT_TIME_MAX, WAIT_S_MAX, WINDOW_ASK_S};
use crate::line::Line;
use crate::message::{Challenge, ChallengeKind, NameState, ToServer, Wishes};
use crate::order::{self, Obtained, Presenter, Wish};
use crate::record::{Outcome, Record};
use crate::schedule;
use crate::store::Store;
use crate::web::Web;

/// See the module's text.
pub(super) struct LookingAfter {
    line: Line,
    store: Store,
    inbox: Inbox,
    wishes: Wishes,
    names: Vec<Name>,
}

/// A name, as it is known here; the store knows better.
struct Name {
    name: String,
    record: Record,
    /// First and last second of its certificate.
    life: Option<(u64, u64)>,
    /// By which the authority knows that.
    id: Option<String>,
    /// Somebody wants a renewal now.
    is_wished: bool,
    /// Another server holds the lock: not before then.
    locked_until_s: u64,
    /// That it does was said.
    is_lock_said: bool,
}

impl Name {
    /// When something is to be done for it, in seconds since 1970.
    fn due_s(&self) -> u64 {
        let ask_s = self.record.ask_unix_s.filter(|_| self.id.is_some()).unwrap_or(u64::MAX);
        self.order_s().min(ask_s).max(self.locked_until_s)
    }

    /// When a certificate is to be ordered.
    fn order_s(&self) -> u64 {
        if self.is_wished {
            return 0;
        }
        let wanted = if self.life.is_some() { self.record.renew_unix_s.unwrap_or(0) } else { 0 };
        wanted.max(self.record.not_before_unix_s.unwrap_or(0))
    }
}

impl LookingAfter {
    pub(super) fn new(line: Line, store: Store, inbox: Inbox) -> Self {
        Self { line, store, inbox, wishes: Wishes::default(), names: Vec::new() }
    }

    pub(super) fn next_event(&mut self, patience: Duration) -> Event {
        self.inbox.next(patience)
    }

    /// When something is due next, in seconds since 1970.
    pub(super) fn next_due_s(&self) -> Option<u64> {
        self.names.iter().map(Name::due_s).min()
    }

    /// Goes on with these wishes, and tells how each name stands.
    pub(super) fn configure(&mut self, wishes: Wishes) {
        let is_changed = wishes != self.wishes;
        self.wishes = wishes;
        if is_changed {
            let name = |name: &String| Name {
                name: name.clone(),
                record: Record::default(),
                life: None,
                id: None,
                is_wished: false,
                locked_until_s: 0,
                is_lock_said: false,
            };
            self.names = self.wishes.names.iter().map(name).collect();
        }
        if let Err(fault) = self.store.prepare() {
            self.say(&format!("acme: {fault}"));
        }
        self.take_wishes();
        for place in 0..self.names.len() {
            self.read(place);
            self.tell_state(place);
        }
    }

    /// Takes wishes for renewals from the folder for them.
    pub(super) fn take_wishes(&mut self) {
        for name in &mut self.names {
            name.is_wished |= self.store.take_wish(&name.name);
        }
    }

    /// Does what is due, one after the other.
    pub(super) fn do_due(&mut self) {
        // Where the folder was not there before, it may be now; without it nobody can wish.
        let _ = self.inbox.watch(&self.store.renew_folder());
        for place in 0..self.names.len() {
            if self.names[place].order_s().max(self.names[place].locked_until_s) <= now_unix_s() {
                self.order(place);
            } else if self.names[place].due_s() <= now_unix_s() {
                self.ask_when(place);
            }
        }
    }

    /// Reads what the store knows of a name.
    fn read(&mut self, place: usize) {
        let name = &mut self.names[place];
        // What cannot be read is ordered anew, and said when it cannot be written either.
        let directory = &self.wishes.directory;
        let record = self.store.record(&name.name).unwrap_or_default();
        // Of another authority: this one is asked at once, and what is there serves until then.
        let is_foreign = !record.directory.is_empty() && record.directory != *directory;
        let record = if is_foreign { Record::default() } else { record };
        name.record = Record { directory: directory.clone(), ..record };
        let pair = self.store.pair(&name.name).ok().flatten();
        let pair = pair.map(|(pair, _)| pair).filter(|pair| pair.covers(&name.name));
        name.life = pair.as_ref().map(CertificatePair::validity_unix_s);
        name.id = pair.as_ref().and_then(CertificatePair::renewal_id);
        if let Some(life) = name.life
            && name.record.renew_unix_s.is_none()
            && !is_foreign
        {
            name.record.renew_unix_s = Some(schedule::renewal_unix_s(life, chance()));
        }
    }

    /// Orders a certificate for a name, unless another server has done so or does.
    fn order(&mut self, place: usize) {
        let lock = match self.store.prepare().and_then(|()| self.store.try_lock()) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                self.names[place].locked_until_s = now_unix_s() + LOCK_PAUSE.as_secs();
                if !std::mem::replace(&mut self.names[place].is_lock_said, true) {
                    let folder = self.store.folder().display();
                    self.say(&format!("acme: another server orders with {folder}: this one waits"));
                }
                return;
            }
            Err(fault) => return self.failed(place, &fault.into()),
        };
        self.names[place].locked_until_s = 0;
        self.names[place].is_lock_said = false;
        self.read(place);
        if self.names[place].order_s() <= now_unix_s() {
            self.names[place].is_wished = false;
            match self.attempt(place) {
                Ok(obtained) => self.succeeded(place, &obtained),
                Err(fault) => self.failed(place, &fault),
            }
        }
        drop(lock);
        self.tell_state(place);
    }

    /// One attempt.
    fn attempt(&mut self, place: usize) -> Result<Obtained, AcmeFault> {
        let (known, key) = self.store.account(&self.wishes.directory)?;
        let mut web = Web::new(self.wishes.roots.as_deref())?;
        match self.attempt_as(place, &mut web, known.as_deref(), &key) {
            // The authority has forgotten it, as those for tests do.
            Err(fault) if known.is_some() && fault.is_unknown_account() => {
                self.attempt_as(place, &mut web, None, &key)
            }
            other => other,
        }
    }

    fn attempt_as(
        &mut self,
        place: usize,
        web: &mut Web,
        known: Option<&str>,
        key: &AccountKey,
    ) -> Result<Obtained, AcmeFault> {
        let now = now_unix_s();
        let wishes = self.wishes.clone();
        let mut client = Client::open(web, key, &wishes.directory, now)?;
        let account = client.sign_in(known, wishes.contact.as_deref())?;
        if known != Some(&account) {
            self.store.keep_account(&wishes.directory, Some(&account), key)?;
        }
        let Name { name, id, record, .. } = &self.names[place];
        let (name, replaces) = (name.clone(), id.clone());
        let kinds = kinds_for(&name, &wishes.kinds, record.failures);
        let wish = Wish {
            name: &name,
            kinds: &kinds,
            profile: wishes.profile.as_deref(),
            replaces: replaces.as_deref(),
            now_unix_s: now,
        };
        let obtained = order::obtain(&mut client, &wish, self)?;
        self.store.keep(&name, &obtained.chain_pem, &obtained.key_pem)?;
        Ok(obtained)
    }

    fn succeeded(&mut self, place: usize, obtained: &Obtained) {
        let now = now_unix_s();
        let pair = CertificatePair::read(&obtained.chain_pem, obtained.key_pem.as_bytes());
        let life = pair.as_ref().map_or((now, now), CertificatePair::validity_unix_s);
        let renew_s = schedule::renewal_unix_s(life, chance());
        self.names[place].record = Record {
            outcome: Outcome::Obtained,
            attempted_unix_s: Some(now),
            renew_unix_s: Some(renew_s),
            ask_unix_s: Some(now),
            directory: self.wishes.directory.clone(),
            ..Record::default()
        };
        self.keep_record(place);
        self.read(place);
        let span = |to: u64| spoken(to.saturating_sub(now));
        self.say(&format!(
            "acme: {}: a certificate of {}, good for {}, to be renewed in {}",
            self.names[place].name,
            host_of(&self.wishes.directory),
            span(life.1),
            span(renew_s)
        ));
        self.tell(&ToServer::Attempted { is_success: true });
    }

    fn failed(&mut self, place: usize, fault: &AcmeFault) {
        let now = now_unix_s();
        let name = &mut self.names[place];
        name.is_wished = false;
        name.record.failures = name.record.failures.saturating_add(1);
        let wait_s = schedule::wait_s(name.record.failures, fault, chance());
        name.record.outcome = Outcome::Failed(fault.to_string());
        name.record.attempted_unix_s = Some(now);
        name.record.not_before_unix_s = Some(now + wait_s);
        let text = format!("acme: {}: {fault}; the next attempt is in {}", name.name, spoken(wait_s));
        self.keep_record(place);
        self.say(&text);
        self.tell(&ToServer::Attempted { is_success: false });
        self.tell_state(place);
    }

    /// Asks the authority when a certificate is to be renewed (RFC 9773).
    fn ask_when(&mut self, place: usize) {
        let now = now_unix_s();
        let answer = self.window(place);
        let record = &mut self.names[place].record;
        let wait_s = match answer {
            Ok(Some((window, wait_s))) => {
                let is_within = record.renew_unix_s.is_some_and(|due| (window.0..=window.1).contains(&due));
                if !is_within {
                    record.renew_unix_s = Some(schedule::moment_unix_s(window, chance()));
                }
                wait_s.unwrap_or(WINDOW_ASK_S).clamp(60, WAIT_S_MAX)
            }
            // What it does not tell is as it was planned.
            Ok(None) | Err(_) => WINDOW_ASK_S,
        };
        record.ask_unix_s = Some(now + wait_s);
        self.keep_record(place);
        self.tell_state(place);
    }

    fn window(&self, place: usize) -> Result<Option<((u64, u64), Option<u64>)>, AcmeFault> {
        let Some(id) = &self.names[place].id else { return Ok(None) };
        let (_, key) = self.store.account(&self.wishes.directory)?;
        let mut web = Web::new(self.wishes.roots.as_deref())?;
        let mut client = Client::open(&mut web, &key, &self.wishes.directory, now_unix_s())?;
        client.renewal(id)
    }

    fn keep_record(&self, place: usize) {
        let name = &self.names[place];
        if let Err(fault) = self.store.keep_record(&name.name, &name.record) {
            self.say(&format!("acme: {fault}"));
        }
    }

    fn tell_state(&self, place: usize) {
        let name = &self.names[place];
        self.tell(&ToServer::State(Box::new(NameState {
            name: name.name.clone(),
            expires_unix_s: name.life.map(|(_, to)| to),
            record: name.record.clone(),
        })));
    }

    fn say(&self, text: &str) {
        self.tell(&ToServer::Say(text.to_owned()));
    }

    fn tell(&self, message: &ToServer) {
        // A server that is gone is heard of by the inbox.
        let _ = self.line.tell(message);
    }
}

impl Presenter for LookingAfter {
    fn present(&mut self, challenges: &[Challenge]) -> Result<(), AcmeFault> {
        self.tell(&ToServer::Present(challenges.to_vec()));
        let text = || AcmeFault::Here("the server does not answer the challenge".into());
        if self.inbox.await_presented(PRESENT_TIME_MAX) { Ok(()) } else { Err(text()) }
    }

    fn wait(&mut self, length: Duration) {
        clock::pause(length);
    }
}

/// Kinds of challenges for a name, the preferred first: after each failure another. An address is not proved
/// by a handshake, for which it would have a name of its own (RFC 8738, section 6).
fn kinds_for(name: &str, kinds: &[ChallengeKind], failures: u32) -> Vec<ChallengeKind> {
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let is_fit = |kind: &ChallengeKind| !is_address || *kind == ChallengeKind::Http01;
    let mut kinds: Vec<ChallengeKind> = kinds.iter().copied().filter(is_fit).collect();
    if !kinds.is_empty() {
        let count = kinds.len();
        kinds.rotate_left(failures as usize % count);
    }
    kinds
}

/// The host of an address, for the log.
fn host_of(url: &str) -> &str {
    let bare = url.strip_prefix("https://").unwrap_or(url);
    bare.split('/').next().unwrap_or(bare)
}

/// A span of time in words, rounded down.
fn spoken(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A number from 0 up to and without 1.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without random numbers nothing else works either; jitter can be left out.
    let _ = SystemRandom::new().fill(&mut bytes);
    f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_challenge_is_tried_after_a_failure_and_addresses_have_one() {
        use ChallengeKind::{Http01, TlsAlpn01};
        let both = [Http01, TlsAlpn01];
        assert_eq!(kinds_for("example.org", &both, 0), [Http01, TlsAlpn01]);
        assert_eq!(kinds_for("example.org", &both, 1), [TlsAlpn01, Http01]);
        assert_eq!(kinds_for("example.org", &both, 2), [Http01, TlsAlpn01]);
        assert_eq!(kinds_for("192.0.2.7", &both, 1), [Http01]);
        assert_eq!(kinds_for("::1", &[TlsAlpn01], 3), []);
    }

    #[test]
    fn spans_are_spoken_in_short() {
        let cases = [(5, "5 s"), (3_725, "62 minutes"), (86_399, "23 hours"), (90 * 86_400 - 1, "89 days")];
        for (seconds, expected) in cases {
            assert_eq!(spoken(seconds), expected);
        }
    }
}

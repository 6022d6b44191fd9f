//! The names the agent keeps certificates for: when each is due, its orders and renewals, and their outcome.
//!
//! An order holds the store's lock. A certificate that another server with the same store has just obtained
//! must never be ordered again, and the authority never be asked before the wait after a failure is over.

use std::path::PathBuf;
use std::time::Duration;

use staunch_netio::clock;
use staunch_netio::named_file::read_text;
use staunch_tls::CertificatePair;
use zeroize::Zeroizing;

use super::choices::{host_of, kinds_for, spoken};
use super::inbox::{AgentEvent, Inbox};
use super::outside::{chance, now_unix_s};
use crate::account_key::AccountKey;
use crate::client::{AcmeClient, RenewalAdvice};
use crate::fault::AcmeFault;
use crate::limits::{
    LOCK_PAUSE, PRESENT_TIME_MAX, REFUSED_WAIT_S, STORED_BYTES_MAX, WAIT_S_MAX, WINDOW_ASK_S,
};
use crate::line::Line;
use crate::message::{Challenge, NameState, ToServer, Wishes};
use crate::order::{self, Obtained, OrderWish, Presenter};
use crate::record::{AttemptOutcome, NameRecord};
use crate::schedule;
use crate::store::Store;
use crate::web::Web;

/// The agent's state: its settings, and how each name stands.
pub(super) struct LookingAfter {
    line: Line,
    store: Store,
    inbox: Inbox,
    wishes: Wishes,
    names: Vec<Name>,
    /// How often challenges were presented.
    presented: u64,
}

/// A host name or IP address with what was last read of it from the store, where another server may have
/// changed it since.
struct Name {
    name: String,
    record: NameRecord,
    /// First and last second of the certificate's validity, since 1970; `None` without a certificate.
    life: Option<(u64, u64)>,
    /// The certificate's identifier for renewal information (RFC 9773, section 4.1).
    id: Option<String>,
    /// `staunch certificates renew` asked for a renewal now.
    is_wished: bool,
    /// While another server holds the store's lock: when to try it again, in seconds since 1970.
    locked_until_s: u64,
    /// Whether the log was told that this name waits for the lock.
    is_lock_said: bool,
}

impl Name {
    /// When to order a certificate or to ask for renewal information, whichever is sooner; seconds since
    /// 1970.
    fn due_s(&self) -> u64 {
        let ask_s = self.record.ask_unix_s.filter(|_| self.id.is_some()).unwrap_or(u64::MAX);
        self.order_s().min(ask_s).max(self.locked_until_s)
    }

    /// When to order a certificate, in seconds since 1970; 0 means now.
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
        Self { line, store, inbox, wishes: Wishes::default(), names: Vec::new(), presented: 0 }
    }

    pub(super) fn next_event(&mut self, patience: Duration) -> AgentEvent {
        self.inbox.next(patience)
    }

    /// When the first of all names is due, in seconds since 1970; `None` without names.
    pub(super) fn next_due_s(&self) -> Option<u64> {
        self.names.iter().map(Name::due_s).min()
    }

    /// Takes the settings that the server sent, reads the store, and reports each name's state to the server.
    pub(super) fn configure(&mut self, wishes: Wishes) {
        let is_changed = wishes != self.wishes;
        self.wishes = wishes;
        if is_changed {
            let name = |name: &String| Name {
                name: name.clone(),
                record: NameRecord::default(),
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

    /// Collects the renewal requests that people have put into the store.
    pub(super) fn take_wishes(&mut self) {
        for name in &mut self.names {
            name.is_wished |= self.store.take_wish(&name.name);
        }
    }

    /// Orders each certificate that is due, and asks for renewal information where that is, one after the
    /// other.
    pub(super) fn do_due(&mut self) {
        // Tried again each time: the folder may be there now. While it is not, nobody can ask for a renewal.
        let _ = self.inbox.watch(&self.store.renew_folder());
        for place in 0..self.names.len() {
            if self.names[place].order_s().max(self.names[place].locked_until_s) <= now_unix_s() {
                self.order(place);
            } else if self.names[place].due_s() <= now_unix_s() {
                self.ask_when(place);
            }
        }
    }

    /// Reads a name's record and certificate from the store.
    fn read(&mut self, place: usize) {
        let name = &mut self.names[place];
        // A record or certificate that cannot be read counts as missing and is ordered anew; the log hears of
        // the store's fault when the new one cannot be written either.
        let directory = &self.wishes.directory;
        let record = self.store.record(&name.name).unwrap_or_default();
        // A certificate of another authority is used until this one has given its own, which is ordered at
        // once.
        let is_foreign = !record.directory.is_empty() && record.directory != *directory;
        let record = if is_foreign { NameRecord::default() } else { record };
        name.record = NameRecord { directory: directory.clone(), ..record };
        let pair = self.store.pair(&name.name).ok().flatten();
        let pair = pair.map(|(pair, _)| pair).filter(|pair| pair.covers(&name.name));
        name.life = pair.as_ref().map(CertificatePair::validity_unix_s);
        name.id = pair.as_ref().and_then(CertificatePair::renewal_id);
        // A plan behind the certificate's end would never be carried out.
        let is_planned = |life: (u64, u64)| name.record.renew_unix_s.is_some_and(|due| due < life.1);
        if let Some(life) = name.life
            && !is_planned(life)
            && !is_foreign
        {
            name.record.renew_unix_s = Some(schedule::renewal_unix_s(life, chance()));
        }
    }

    /// Orders a certificate for a name, unless another server holds the lock or has obtained one meanwhile.
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

    /// Makes one order, with the account that the store knows or, if the authority no longer knows it, a new
    /// one.
    fn attempt(&mut self, place: usize) -> Result<Obtained, AcmeFault> {
        let (known, key) = self.store.account(&self.wishes.directory)?;
        let mut web = Web::new(self.wishes.roots.as_deref())?;
        match self.attempt_as(place, &mut web, known.as_deref(), &key) {
            // An authority for tests forgets its accounts when it restarts.
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
        let mut client = AcmeClient::open(web, key, &wishes.directory, now)?;
        let secret = wishes.binding.as_ref().filter(|_| known.is_none()).map(read_binding).transpose()?;
        let binding = secret.as_ref().map(|(key_id, secret)| (key_id.as_str(), secret.as_str()));
        let account = client.sign_in(known, wishes.contact.as_deref(), binding)?;
        if known != Some(&account) {
            self.store.keep_account(&wishes.directory, Some(&account), key)?;
        }
        let Name { name, id, record, .. } = &self.names[place];
        let (name, replaces) = (name.clone(), id.clone());
        let kinds = kinds_for(&name, &wishes.kinds, record.failures);
        let wish = OrderWish {
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
        self.names[place].record = NameRecord {
            outcome: AttemptOutcome::Obtained,
            attempts: self.names[place].record.attempts + 1,
            attempted_unix_s: Some(now),
            renew_unix_s: Some(renew_s),
            ask_unix_s: Some(now),
            directory: self.wishes.directory.clone(),
            ..NameRecord::default()
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
        name.record.attempts += 1;
        name.record.failures = name.record.failures.saturating_add(1);
        let wait_s = schedule::wait_s(name.record.failures, fault, chance());
        name.record.outcome = AttemptOutcome::Failed(fault.to_string());
        name.record.attempted_unix_s = Some(now);
        name.record.not_before_unix_s = Some(now + wait_s);
        let text = format!("acme: {}: {fault}; the next attempt is in {}", name.name, spoken(wait_s));
        self.keep_record(place);
        self.say(&text);
        self.tell(&ToServer::Attempted { is_success: false });
        self.tell_state(place);
    }

    /// Asks the authority for renewal information (ARI, RFC 9773), and plans the renewal by it.
    fn ask_when(&mut self, place: usize) {
        let now = now_unix_s();
        let answer = self.window(place);
        let life = self.names[place].life;
        let record = &mut self.names[place].record;
        let wait_s = match answer {
            Ok(Some(RenewalAdvice { window, ask_again_s })) => {
                let window = schedule::window_within(window, life.unwrap_or((0, u64::MAX)));
                let is_within = record.renew_unix_s.is_some_and(|due| (window.0..=window.1).contains(&due));
                if !is_within {
                    record.renew_unix_s = Some(schedule::moment_unix_s(window, chance()));
                }
                ask_again_s.unwrap_or(WINDOW_ASK_S).clamp(REFUSED_WAIT_S, WAIT_S_MAX)
            }
            // An authority without ARI, or one that cannot be asked now, changes nothing: two thirds of the
            // life stay the plan (RFC 9773, section 4.3.3).
            Ok(None) | Err(_) => WINDOW_ASK_S,
        };
        record.ask_unix_s = Some(now + wait_s);
        self.keep_record(place);
        self.tell_state(place);
    }

    fn window(&self, place: usize) -> Result<Option<RenewalAdvice>, AcmeFault> {
        let Some(id) = &self.names[place].id else { return Ok(None) };
        let (_, key) = self.store.account(&self.wishes.directory)?;
        let mut web = Web::new(self.wishes.roots.as_deref())?;
        let mut client = AcmeClient::open(&mut web, &key, &self.wishes.directory, now_unix_s())?;
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
        // Fails when the server has ended, of which the inbox tells by itself.
        let _ = self.line.tell(message);
    }
}

/// The key id and the key of the external account binding; the key is read from its file.
fn read_binding((key_id, file): &(String, PathBuf)) -> Result<(String, Zeroizing<String>), AcmeFault> {
    let blame = |error| AcmeFault::Here(format!("acme_eab_key_file: {}: {error}", file.display()));
    Ok((key_id.clone(), Zeroizing::new(read_text(file, STORED_BYTES_MAX).map_err(blame)?)))
}

impl Presenter for LookingAfter {
    fn present(&mut self, challenges: &[Challenge]) -> Result<(), AcmeFault> {
        self.presented += 1;
        let number = self.presented;
        self.tell(&ToServer::Present { number, challenges: challenges.to_vec() });
        let text = || AcmeFault::Here("the server does not answer the challenge".into());
        if self.inbox.await_presented(number, PRESENT_TIME_MAX) { Ok(()) } else { Err(text()) }
    }

    fn wait(&mut self, length: Duration) {
        clock::pause(length);
    }
}

//! Certificates and keys: from files or of the local authority, read whole and exchanged as a whole; and who
//! vouches for clients.
//!
//! The module owns what handshakes go by as long as the process lives. It must never keep a key but within
//! the store, and never go on with a half of what was told: whatever is wrong is said in a sentence, and what
//! was there before goes on.

mod canonical;
mod clients;
mod listing;
mod metrics;
mod named_files;
mod of_authority;
mod sealed_memory;
mod state_folder;
mod ticket_keys;
mod watching;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use staunch_config::groups::Certificates as Told;
use staunch_config::{Config, Site};
use staunch_engine::{Notice, TlsSettings};
use staunch_netio::ListenPlace;
use staunch_program::Failure;
use staunch_server::HttpsHosts;
use staunch_tls::{
    CertificatePair, CertificateStore, LocalAuthority, TicketKeys, Tickets, TlsContext, WallTime,
};

use self::canonical::{HTTPS_PORT, canonical_origins};
use self::clients::{ClientPolicies, ClientsInUse};
pub use self::listing::{Listed, listed};
pub(crate) use self::metrics::expiries as expiry_metrics;
use self::named_files::{KnownPair, WARNED_PART, named_files, refuse_lone_key};
pub(crate) use self::of_authority::store;
pub use self::of_authority::{state_store, wanted_names};
use self::state_folder::StateFolder;
pub(crate) use self::ticket_keys::{hand_over as hand_over_tickets, take_over as take_over_tickets};
use self::watching::{WatchedFolders, blind, unseen};
use crate::reach::OwnAddresses;

/// Protocols that are offered, the preferred first. Whoever agrees on HTTP/2 begins with its preface, by
/// which the session knows it; it is offered while the setting `http2` is on.
const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// Keys, certificates and tickets of handshakes, and the files they come from.
pub(crate) struct Certificates {
    pub(crate) context: Arc<TlsContext>,
    store: Arc<CertificateStore>,
    /// Addresses of this host, for which the local authority signs as far as they are private.
    own: OwnAddresses,
    watched: WatchedFolders,
    /// The thread that looks after them is to end.
    are_ended: AtomicBool,
    in_use: Mutex<InUse>,
    /// The local authority, once it has signed: another user than the first may not read its key.
    authority: Mutex<Option<Arc<LocalAuthority>>>,
    /// Hosts that are led to HTTPS.
    pub(crate) https: Arc<HttpsHosts>,
    /// Those in use, and what is wrong with others that are not.
    told: Mutex<(Vec<Arc<CertificatePair>>, Vec<String>)>,
}

/// Files with the pair that was read of them last, and a hash of its chain.
type Known = HashMap<PathBuf, (Arc<CertificatePair>, u64)>;

/// The way on when the files of a pair cannot be used.
#[derive(Clone, Copy)]
enum Faulty<'a> {
    /// Nothing is read: an operator waits for the word.
    Refused,
    /// A single site of several goes without, so that the others do not.
    LeftOut,
    /// The pair that was read before goes on.
    AsBefore(&'a Known),
}

/// The certificates in use, and the settings that name them.
#[derive(Default)]
struct InUse {
    config: Option<Config>,
    mark: u64,
    renewal_unix_s: u64,
    /// How often files were read because they had changed.
    looks: u64,
    /// Files are to be read again: what was read for a reload is older than what was in use.
    is_overtaken: bool,
    /// Sentences said last of files that cannot be used.
    fault: String,
    /// The sentence said last of keys of tickets that cannot be used.
    ticket_fault: String,
    /// Where HTTPS is spoken.
    port: u16,
    clients: ClientsInUse,
    known: Known,
}

/// Everything that was read, to be taken into use.
#[derive(Default)]
pub(crate) struct Pairs {
    pairs: Vec<Arc<CertificatePair>>,
    /// Sentences about the pairs.
    pub(crate) warnings: Vec<String>,
    /// Faults of files that cannot be used.
    troubles: Vec<String>,
    known: Known,
    /// Names for which an authority is asked, and has not given a certificate yet.
    pub(crate) awaited: Vec<String>,
    /// The certificate of the local authority, if it signs.
    pub(crate) authority: Option<PathBuf>,
    /// Tells whether files have changed since.
    mark: u64,
    /// When the local authority has to sign anew; 0 if it never does.
    renewal_unix_s: u64,
    /// Read when the settings are, and looked after apart.
    clients: ClientPolicies,
    /// Keys of tickets, if they are from files.
    ticket_keys: Option<TicketKeys>,
    /// [`InUse::looks`] before it was read.
    looks: u64,
}

impl Pairs {
    /// How many certificates there are.
    pub(crate) fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The sentences about them: faults first.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.troubles.iter().chain(&self.warnings).cloned()
    }

    /// Everything that they are for: names, wildcards, addresses.
    fn names(&self) -> impl Iterator<Item = String> {
        self.pairs.iter().flat_map(|pair| {
            let addresses = pair.addresses().iter().map(|address| address.to_string());
            pair.names().iter().cloned().chain(addresses)
        })
    }
}

/// Whether the settings name any certificate.
pub(crate) fn are_named(config: &Config) -> bool {
    let tls = &config.tls;
    tls.tls.is_some() || tls.tls_certificate.is_some() || config.sites.iter().any(|site| site.tls.is_some())
}

/// All files that the settings name, with keys, and one that stands for those of the folder with keys of
/// tickets.
pub(crate) fn files(config: &Config) -> Vec<PathBuf> {
    let all = named_files(config);
    let named = all.into_iter().flat_map(|named| [Some(named.files.certificate), named.files.key]).flatten();
    named
        .chain(of_authority::files(config))
        .chain(clients::files(config))
        .chain(ticket_keys::file(config))
        .collect()
}

/// Names that are watched: the files, and links by which they may become others.
fn watched_files(config: &Config) -> Vec<PathBuf> {
    files(config).into_iter().chain(ticket_keys::link(config)).collect()
}

/// Reads and judges every file that the settings name, for a test of them: nothing is made or kept. Gives
/// what is to be said of those that can be used.
///
/// # Errors
/// The fault of a file, with its name.
pub(crate) fn test(config: &Config) -> Result<Vec<String>, Failure> {
    refuse_lone_key(config)?;
    store(config)?;
    ticket_keys::read(config)?;
    let now = now_unix_s();
    let mut warnings = Vec::new();
    for named in named_files(config) {
        warnings.extend(named.read(now)?.warnings);
    }
    clients::read(config, now)?;
    Ok(warnings)
}

/// The folder of the local authority, if it is asked for and known.
pub(crate) fn state_file(config: &Config) -> Option<PathBuf> {
    let is_asked = local_hosts(config).is_some();
    is_asked.then(|| StateFolder::of(config).ok())?.map(|folder| folder.authority_file())
}

/// Starts the thread that looks after certificates until [`Certificates::end`]: it reads files again when
/// they have changed, and makes new keys for tickets.
///
/// # Errors
/// No thread can be had.
pub(crate) fn start(certificates: &Arc<Certificates>, say: Notice) -> Result<JoinHandle<()>, String> {
    let certificates = Arc::clone(certificates);
    let look = move || {
        while !certificates.are_ended.load(Ordering::Relaxed) {
            let has_changed = certificates.watched.wait(certificates.are_in_use());
            certificates.look(has_changed, &say);
        }
    };
    let started = thread::Builder::new().name("certificates".into()).spawn(look);
    started.map_err(|error| format!("cannot start a thread: {error}"))
}

impl Certificates {
    /// An empty store, its tickets, and the time.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn new() -> Result<Self, Failure> {
        let store = Arc::new(CertificateStore::default());
        let time = Arc::new(WallTime::new(now_unix_s()));
        let tickets = Tickets::new(Arc::clone(&time)).map_err(|fault| fault.to_string())?;
        let context = TlsContext::new(Arc::clone(&store), Arc::new(tickets), time, PROTOCOLS);
        let watched = WatchedFolders::new().map_err(|error| format!("cannot watch for changes: {error}"))?;
        let own = OwnAddresses::ask();
        Ok(Self {
            context: Arc::new(context),
            store,
            own,
            watched,
            are_ended: AtomicBool::new(false),
            in_use: Mutex::default(),
            authority: Mutex::default(),
            https: Arc::default(),
            told: Mutex::default(),
        })
    }

    /// Ends the thread that looks after them, once it has done what it is at.
    pub(crate) fn end(&self) {
        self.are_ended.store(true, Ordering::Relaxed);
        self.watched.tell();
    }

    /// The settings of TLS for the engine.
    pub(crate) fn settings(&self, config: &Config, listen: Vec<ListenPlace>) -> TlsSettings {
        let timeout = config.deadlines.handshake_timeout;
        let handshake_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        TlsSettings { handshake_ms, ..TlsSettings::new(Arc::clone(&self.context), listen) }
    }

    /// Reads everything that the settings name, as it is now, for a start: what one site of several names and
    /// cannot be used is left out.
    ///
    /// # Errors
    /// The fault of a file, with its name.
    pub(crate) fn read_to_start(&self, config: &Config) -> Result<Pairs, Failure> {
        self.read_all(config, Faulty::LeftOut)
    }

    /// Reads everything that the settings name, as it is now. Nothing changes.
    ///
    /// # Errors
    /// The fault of a file, with its name.
    pub(crate) fn read(&self, config: &Config) -> Result<Pairs, Failure> {
        self.read_all(config, Faulty::Refused)
    }

    fn read_all(&self, config: &Config, faulty: Faulty<'_>) -> Result<Pairs, Failure> {
        // Changes from now on are seen. Which folders cannot be watched is said when they are in use.
        let _ = self.watched.add(&watched_files(config));
        let looks = self.in_use().looks;
        let clients = clients::read(config, now_unix_s())?;
        let ticket_keys = ticket_keys::read(config)?;
        let mut read = self.read_pairs(config, faulty)?;
        read.warnings.extend_from_slice(&clients.warnings);
        Ok(Pairs { clients, ticket_keys, looks, ..read })
    }

    /// The certificates and keys of the server.
    fn read_pairs(&self, config: &Config, faulty: Faulty<'_>) -> Result<Pairs, Failure> {
        let now = now_unix_s();
        let mut read = Pairs::default();
        let mut hasher = DefaultHasher::new();
        refuse_lone_key(config)?;
        for named in named_files(config) {
            let file = &named.files.certificate;
            let known = match (named.read(now), faulty) {
                (Ok(KnownPair { pair, chain, warnings }), _) => {
                    read.warnings.extend(warnings);
                    Some((Arc::new(pair), hash_of(&chain)))
                }
                (Err(failure), Faulty::LeftOut) if named.is_of_one_site => {
                    read.troubles.push(failure.text);
                    None
                }
                (Err(failure), Faulty::AsBefore(before)) => {
                    read.troubles.push(failure.text);
                    before.get(file).cloned()
                }
                (Err(failure), _) => return Err(failure),
            };
            if let Some((pair, hash)) = known {
                hash.hash(&mut hasher);
                read.pairs.push(Arc::clone(&pair));
                read.known.insert(file.clone(), (pair, hash));
            }
        }
        let stored = of_authority::read(config, now)?;
        for (pair, chain) in stored.pairs {
            chain.hash(&mut hasher);
            read.pairs.push(Arc::new(pair));
        }
        read.warnings.extend(stored.warnings);
        read.awaited = stored.awaited;
        read.mark = hasher.finish();
        if let Some(hosts) = local_hosts(config) {
            let folder = StateFolder::of(config)?;
            let authority = self.authority(&folder, now)?;
            let pair = self.local_pair(&authority, &hosts, now);
            let pair = pair.map_err(|text| Failure::from(format!("tls: {text}")))?;
            let (from, to) = pair.validity_unix_s();
            read.renewal_unix_s = to - (to - from) / WARNED_PART;
            read.pairs.push(Arc::new(pair));
            read.authority = Some(folder.certificate_file());
        }
        Ok(read)
    }

    /// Goes on with these certificates, which were read by these settings: handshakes from now on, at these
    /// addresses. Gives what is to be said of files that cannot be watched.
    pub(crate) fn replace(&self, read: &Pairs, config: &Config, addresses: &[SocketAddr]) -> Vec<String> {
        let usual = addresses.iter().find(|address| address.port() == HTTPS_PORT);
        let port = usual.or(addresses.first()).map_or(0, SocketAddr::port);
        // Held to the end: a look that began by the settings before must not end behind this.
        let mut in_use = self.in_use();
        // A port that the kernel has chosen stays as it was.
        let port = if port == 0 { in_use.port } else { port };
        self.take_into_use(read, config, port);
        let chosen = self.context.tickets().choose(read.ticket_keys.as_ref());
        *in_use = InUse {
            config: Some(config.clone()),
            mark: read.mark,
            renewal_unix_s: read.renewal_unix_s,
            port,
            clients: ClientsInUse::of(&read.clients, &self.context),
            known: read.known.clone(),
            looks: in_use.looks,
            is_overtaken: in_use.is_overtaken || in_use.looks != read.looks,
            ..InUse::default()
        };
        drop(in_use);
        let unwatched = self.watched.add(&watched_files(config));
        self.watched.tell();
        let unwatched = unwatched.map_or_else(
            |error| vec![blind(&error)],
            |folders| folders.iter().map(|folder| unseen(folder)).collect(),
        );
        unwatched.into_iter().chain(chosen.err().map(|fault| ticket_keys::stay(&fault))).collect()
    }

    fn take_into_use(&self, read: &Pairs, config: &Config, port: u16) {
        self.store.replace(&read.pairs, false);
        *self.told() = (read.pairs.clone(), read.troubles.clone());
        self.context.offer_http2(config.network.http2);
        self.context.offer_hybrid(config.tls.tls_hybrid);
        let leads = config.tls.https_redirect && port != 0;
        self.https.replace(read.names().filter(|_| leads), port, canonical_origins(config, port));
    }

    /// The names of each certificate in use, and its last second since 1970; and so of files about clients.
    pub(crate) fn expiries(&self) -> Vec<(String, u64)> {
        let one = |pair: &Arc<CertificatePair>| (pair.subjects_text(), pair.validity_unix_s().1);
        let own: Vec<_> = self.told().0.iter().map(one).collect();
        own.into_iter().chain(self.in_use().clients.ends()).collect()
    }

    /// Faults of certificates at this moment, in sentences.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let (pairs, troubles) = &*self.told();
        let now = now_unix_s();
        let late = pairs.iter().filter_map(|pair| {
            pair.check(now, &[]).err().map(|fault| format!("{}: {fault}", pair.subjects_text()))
        });
        late.chain(troubles.iter().cloned()).collect()
    }

    fn told(&self) -> MutexGuard<'_, (Vec<Arc<CertificatePair>>, Vec<String>)> {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Does what is due: makes new keys for tickets, reads files that have changed, has the local authority
    /// sign anew.
    fn look(&self, has_changed: bool, say: &Notice) {
        // Handshakes tell the time too, but only when there are any.
        self.context.tell_time(now_unix_s());
        if let Err(fault) = self.context.tickets().rotate() {
            say(&ticket_keys::stay(&fault));
        }
        let mut in_use = self.in_use();
        let Some(config) = in_use.config.clone() else { return };
        let has_changed = std::mem::take(&mut in_use.is_overtaken) || has_changed;
        if has_changed {
            in_use.looks += 1;
            // Some folders may be others now. What cannot be watched was said by `replace`.
            let _ = self.watched.add(&watched_files(&config));
        }
        in_use.clients.look((&config, now_unix_s()), &self.context, has_changed, say);
        let is_due = in_use.renewal_unix_s != 0 && in_use.renewal_unix_s <= now_unix_s();
        if !has_changed && !is_due {
            return;
        }
        ticket_keys::look(&config, self.context.tickets(), &mut in_use.ticket_fault, say);
        let fault = match self.read_pairs(&config, Faulty::AsBefore(&in_use.known)) {
            Ok(read) => {
                let is_other = read.mark != in_use.mark || is_due;
                if is_other {
                    self.take_into_use(&read, &config, in_use.port);
                    (in_use.mark, in_use.renewal_unix_s) = (read.mark, read.renewal_unix_s);
                    in_use.known = read.known;
                    say("the certificates have changed: new connections get the new ones");
                    read.warnings.iter().for_each(|text| say(text));
                }
                let fault = read.troubles.join("; ");
                self.told().1 = read.troubles;
                fault
            }
            Err(failure) => failure.text,
        };
        if !fault.is_empty() && fault != in_use.fault {
            say(&format!("the certificates stay as they were: {fault}"));
        }
        in_use.fault = fault;
    }

    /// The local authority: that which has signed before, or else that of the folder.
    fn authority(&self, folder: &StateFolder, now: u64) -> Result<Arc<LocalAuthority>, Failure> {
        let mut known = self.authority.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match &*known {
            Some(authority) => Ok(Arc::clone(authority)),
            None => Ok(Arc::clone(known.insert(Arc::new(folder.authority(now)?)))),
        }
    }

    /// Whether there are certificates.
    fn are_in_use(&self) -> bool {
        self.in_use().config.as_ref().is_some_and(are_named)
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A certificate of the local authority for this machine, and for the hosts of sites that it signs for.
    fn local_pair(
        &self,
        authority: &LocalAuthority,
        hosts: &[String],
        now: u64,
    ) -> Result<CertificatePair, String> {
        let own = self.own.addresses().map(|address| address.to_string());
        let fixed = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut names: Vec<String> = fixed.into_iter().chain(own).chain(hosts.iter().cloned()).collect();
        names.retain(|name| LocalAuthority::signs(name));
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let issued = authority.issue(&names, now).map_err(|fault| fault.to_string())?;
        let pair = CertificatePair::read(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes());
        pair.map_err(|fault| fault.to_string())
    }
}

fn hash_of(chain: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    chain.hash(&mut hasher);
    hasher.finish()
}

/// Hosts for which the local authority is asked to sign, if it is asked at all: those of all sites if the
/// server asks, else those of the sites that ask.
fn local_hosts(config: &Config) -> Option<Vec<String>> {
    let for_all = config.tls.tls == Some(Told::Local);
    let asks = |site: &&Site| for_all || site.tls == Some(Told::Local);
    let hosts: Vec<String> = config.sites.iter().filter(asks).flat_map(|site| site.hosts.clone()).collect();
    (for_all || config.sites.iter().any(|site| site.tls == Some(Told::Local))).then_some(hosts)
}

/// Seconds since 1970.
pub fn now_unix_s() -> u64 {
    // tidy: allow(clock): certificates are good for a time that the world's clock tells.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;

//! Authorities that vouch for clients, and lists of revoked certificates: files, read whole and exchanged as
//! a whole, apart from the server's own certificates.
//!
//! It owns the sentences with a file's name. A list that has grown stale must never keep a new certificate of
//! the server from being used, nor the other way round.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use staunch_config::Config;
use staunch_config::groups::ClientAuth;
use staunch_config::syntax::choice::ClientAuthMode;
use staunch_engine::Notice;
use staunch_program::Failure;
use staunch_tls::{CertificatePolicy, ClientAuthority, ClientAuthorityFault, SitePolicy, TlsContext};

use super::named_files::read_file;

/// An authority is warned about when fewer days are left.
const WARNED_DAYS: u64 = 30;
const DAY_SECONDS: u64 = 86_400;

/// Everything that was read, to be taken into use.
#[derive(Default)]
pub(crate) struct ClientPolicies {
    sites: Vec<SitePolicy>,
    /// What is to be said about them.
    pub(super) warnings: Vec<String>,
    /// Tells whether files have changed since.
    mark: u64,
    /// Each file once, and the last second in which it is good.
    ends: BTreeMap<String, u64>,
}

/// Files of every policy, each once.
pub(super) fn files(config: &Config) -> impl Iterator<Item = PathBuf> {
    let told = config.sites.iter().filter_map(|site| config.client_auth(site));
    told.flat_map(|told| [Some(told.authority.clone()), told.revoked.clone()]).flatten()
}

/// Reads everything that the settings name, as it is now. Nothing changes.
///
/// # Errors
/// What is wrong with a file, with its name.
pub(super) fn read(config: &Config, now: u64) -> Result<ClientPolicies, Failure> {
    let mut read = ClientPolicies::default();
    let mut known: HashMap<u64, Arc<ClientAuthority>> = HashMap::new();
    let mut hasher = DefaultHasher::new();
    for site in &config.sites {
        let clients = config.client_auth(site).map(|told| {
            let number = told.number();
            let authority = match known.get(&number) {
                Some(authority) => Arc::clone(authority),
                None => Arc::clone(known.entry(number).or_insert(read.add(told, now, &mut hasher)?)),
            };
            let is_required = told.mode == ClientAuthMode::Required;
            Ok::<_, Failure>(CertificatePolicy { number, authority, is_required })
        });
        let clients = clients.transpose()?;
        read.sites.push(SitePolicy { hosts: site.hosts.clone(), is_default: site.default, clients });
    }
    read.mark = hasher.finish();
    Ok(read)
}

impl ClientPolicies {
    /// Reads the files of one policy.
    fn add(
        &mut self,
        told: &ClientAuth,
        now: u64,
        hasher: &mut DefaultHasher,
    ) -> Result<Arc<ClientAuthority>, Failure> {
        let blame = |path: &Path, why: &dyn std::fmt::Display| {
            Failure::configuration(format!("client_auth: {}: {why}", path.display()))
        };
        let bytes = |path: &Path| read_file(path).map_err(|error| blame(path, &error));
        let authorities = bytes(&told.authority)?;
        let lists = told.revoked.as_deref().map(bytes).transpose()?;
        let lists = lists.as_ref().map(|bytes| &bytes[..]);
        (&authorities[..], lists).hash(hasher);
        let read = ClientAuthority::read(&authorities, lists, now);
        let authority = read.map_err(|fault| match (&fault, &told.revoked) {
            (ClientAuthorityFault::Lists(_), Some(revoked)) => blame(revoked, &fault),
            _ => blame(&told.authority, &fault),
        })?;
        let end = authority.authorities_until_unix_s();
        let days = end.saturating_sub(now) / DAY_SECONDS;
        if days < WARNED_DAYS {
            let path = told.authority.display();
            self.warnings.push(format!("{path}: an authority of clients expires in {days} days"));
        }
        self.ends.insert(told.authority.display().to_string(), end);
        let lists = told.revoked.iter().zip(authority.lists_until_unix_s());
        self.ends.extend(lists.map(|(path, until)| (path.display().to_string(), until)));
        Ok(Arc::new(authority))
    }
}

/// What is in use.
#[derive(Default)]
pub(super) struct ClientsInUse {
    mark: u64,
    ends: BTreeMap<String, u64>,
    /// What was said last of files that cannot be used.
    fault: String,
}

impl ClientsInUse {
    /// Goes on with these policies: handshakes from now on.
    pub(super) fn of(read: &ClientPolicies, context: &TlsContext) -> Self {
        context.ask_clients(&read.sites);
        Self { mark: read.mark, ends: read.ends.clone(), fault: String::new() }
    }

    /// Each file, and the last second in which it is good.
    pub(super) fn ends(&self) -> impl Iterator<Item = (String, u64)> {
        self.ends.iter().map(|(file, end)| (file.clone(), *end))
    }

    /// Reads files that have changed, or of which something has ended.
    pub(super) fn look(
        &mut self,
        (config, now): (&Config, u64),
        context: &TlsContext,
        has_changed: bool,
        say: &Notice,
    ) {
        let is_over = self.ends.values().any(|end| *end < now);
        if !has_changed && !is_over {
            return;
        }
        match read(config, now) {
            Ok(read) if read.mark == self.mark && !is_over => self.fault.clear(),
            Ok(read) => {
                *self = Self::of(&read, context);
                say("the authorities of clients have changed: new connections go by the new ones");
                read.warnings.iter().for_each(|text| say(text));
            }
            Err(failure) if failure.text == self.fault => {}
            Err(failure) => {
                say(&format!("the authorities of clients stay as they were: {}", failure.text));
                self.fault = failure.text;
            }
        }
    }
}

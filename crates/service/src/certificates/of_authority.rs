//! Certificates by ACME, as the server uses them: the names that need one, and those that the store has.
//!
//! The server must never ask an authority for anything: its agent does.

use std::path::PathBuf;

use staunch_acme::Store;
use staunch_config::Config;
use staunch_config::groups::Certificates as Told;
use staunch_program::Failure;
use staunch_tls::CertificatePair;

use super::state_folder::StateFolder;

/// Names for which the settings ask for a certificate by ACME, each once. IPv6 addresses stand without
/// brackets.
pub fn wanted_names(config: &Config) -> Vec<String> {
    let for_all = config.tls.tls == Some(Told::Auto);
    let of_sites = config.sites.iter().filter(|site| for_all || site.tls == Some(Told::Auto));
    let named = config.acme.name.iter().filter(|_| for_all);
    let mut names: Vec<String> = Vec::new();
    for name in named.chain(of_sites.flat_map(|site| &site.hosts)) {
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        if !names.iter().any(|known| known == bare) {
            names.push(bare.to_owned());
        }
    }
    names
}

/// Whether the settings ask for certificates by ACME.
fn are_wanted(config: &Config) -> bool {
    config.tls.tls == Some(Told::Auto) || config.sites.iter().any(|site| site.tls == Some(Told::Auto))
}

/// The store, if the settings ask for certificates by ACME.
///
/// # Errors
/// No setting says where the state folder is; no name is given, or one that cannot be proved here (a
/// wildcard).
pub(crate) fn store(config: &Config) -> Result<Option<Store>, Failure> {
    if !are_wanted(config) {
        return Ok(None);
    }
    let names = wanted_names(config);
    if let Some(name) = names.iter().find(|name| name.starts_with("*.")) {
        let text = format!(
            "tls: \"auto\" cannot get a certificate for {name}: a wildcard is proved by DNS (dns-01), which \
             is not spoken here; name its hosts, or use files"
        );
        return Err(Failure::configuration(text));
    }
    if config.acme.acme_eab_key_id.is_some() != config.acme.acme_eab_key_file.is_some() {
        let text = "acme_eab_key_id: it and acme_eab_key_file belong together: write both";
        return Err(Failure::configuration(text));
    }
    if names.is_empty() {
        let text = "tls: \"auto\" is for names, and there is none: write `name`, or `hosts` of a site";
        return Err(Failure::configuration(text));
    }
    state_store(config).map(Some)
}

/// The store in the state folder, whether certificates are asked for or not.
///
/// # Errors
/// No setting says where the state folder is.
pub fn state_store(config: &Config) -> Result<Store, Failure> {
    Ok(StateFolder::of(config)?.store())
}

/// The files in which certificates of these settings are or will be: they are watched for changes.
pub(crate) fn files(config: &Config) -> Vec<PathBuf> {
    let Ok(Some(store)) = store(config) else { return Vec::new() };
    wanted_names(config).iter().map(|name| store.certificate_file(name)).collect()
}

/// What the store has of the certificates that are asked for.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) pairs: Vec<(CertificatePair, Vec<u8>)>,
    /// Names that have no certificate yet.
    pub(super) awaited: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Reads the store. A certificate that cannot be used is reported and left out, as if there were none: the
/// agent orders another.
///
/// # Errors
/// Those of [`store`].
pub(super) fn read(config: &Config, now_unix_s: u64) -> Result<Stored, Failure> {
    let mut stored = Stored::default();
    let Some(store) = store(config)? else { return Ok(stored) };
    for name in wanted_names(config) {
        match store.pair(&name) {
            Ok(Some((pair, chain))) if pair.covers(&name) => {
                // Such a certificate goes on to be served: clients can tell better than we.
                if let Err(fault) = pair.check(now_unix_s, &[]) {
                    stored.warnings.push(format!("{}: {fault}", store.certificate_file(&name).display()));
                }
                stored.pairs.push((pair, chain));
            }
            Ok(_) => stored.awaited.push(name),
            Err(fault) => {
                stored.warnings.push(format!("tls: {fault}"));
                stored.awaited.push(name);
            }
        }
    }
    Ok(stored)
}

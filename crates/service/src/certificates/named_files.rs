//! Pairs of files that the settings name: a chain of certificates and its key, read whole or not at all.
//!
//! It owns the sentences with a file's name. It must never keep a key but within a pair.

use std::io;
use std::path::Path;

use staunch_config::Config;
use staunch_config::groups::{CertificateFiles, Certificates as Told};
use staunch_netio::named_file::read_file_into;
use staunch_program::Failure;
use staunch_tls::{CertificatePair, PairFault};
use zeroize::Zeroizing;

use crate::limits::CERTIFICATES_BYTES_MAX;

/// A certificate is warned about when less than one part in so many of its life is left.
pub(super) const WARNED_PART: u64 = 3;

/// A pair of files that the settings name.
pub(super) struct NamedFiles {
    /// The key of the settings that names them.
    key: &'static str,
    pub(super) files: CertificateFiles,
    /// Hosts that the certificate has to be for.
    hosts: Vec<String>,
    /// Whether one site among several names them.
    pub(super) is_of_one_site: bool,
}

/// Every pair of files.
pub(super) fn named_files(config: &Config) -> Vec<NamedFiles> {
    let tls = &config.tls;
    let by_flag = tls.tls_certificate.clone().map(|certificate| {
        let files = CertificateFiles { certificate, key: tls.tls_key.clone() };
        NamedFiles { key: "tls_certificate", files, hosts: Vec::new(), is_of_one_site: false }
    });
    let mut all: Vec<NamedFiles> = by_flag.into_iter().collect();
    let among_several = config.sites.len() > 1;
    let sites = config.sites.iter().map(|site| (&site.tls, &site.hosts[..], among_several));
    for (told, hosts, is_of_one_site) in [(&tls.tls, &[][..], false)].into_iter().chain(sites) {
        if let Some(Told::Files(files)) = told {
            let named = |files: &CertificateFiles| NamedFiles {
                key: "tls",
                files: files.clone(),
                hosts: hosts.to_vec(),
                is_of_one_site,
            };
            all.extend(files.iter().map(named));
        }
    }
    all
}

/// A key without a certificate means nothing.
///
/// # Errors
/// The sentence for it.
pub(super) fn refuse_lone_key(config: &Config) -> Result<(), Failure> {
    let is_lone = config.tls.tls_key.is_some() && config.tls.tls_certificate.is_none();
    let text = "tls_key: a key is named, and no certificate: write tls_certificate as well";
    if is_lone { Err(Failure::configuration(text)) } else { Ok(()) }
}

/// A pair that was read and is good.
pub(super) struct KnownPair {
    pub(super) pair: CertificatePair,
    /// The chain as it stands in the file, perhaps with its key.
    pub(super) chain: Zeroizing<Vec<u8>>,
    /// What is to be said about it.
    pub(super) warnings: Vec<String>,
}

impl NamedFiles {
    /// Reads a pair and judges it. The sentences name the file that is to blame. One out of its time is good:
    /// a clock may be wrong, and clients can tell better.
    ///
    /// # Errors
    /// What is wrong with the pair.
    pub(super) fn read(&self, now: u64) -> Result<KnownPair, Failure> {
        let CertificateFiles { certificate, key } = &self.files;
        let key = key.as_ref().unwrap_or(certificate);
        let blame = |path: &Path, why: &dyn std::fmt::Display| {
            Failure::configuration(format!("{}: {}: {why}", self.key, path.display()))
        };
        let read = |path: &Path| read_file(path).map_err(|error| blame(path, &error));
        let (chain, secret) = (read(certificate)?, read(key)?);
        let pair = CertificatePair::read(&chain, &secret).map_err(|fault| match fault {
            PairFault::NoKey
            | PairFault::Key
            | PairFault::KeyEncrypted
            | PairFault::KeyKind(_)
            | PairFault::Pem("key", _) => blame(key, &fault),
            PairFault::KeyMismatch => blame(certificate, &format!("{fault} ({})", key.display())),
            fault => blame(certificate, &fault),
        })?;
        let hosts: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        let warn = |what: &dyn std::fmt::Display| format!("{}: {what}", certificate.display());
        let mut warnings: Vec<String> = pair.notes().iter().map(|note| warn(note)).collect();
        let (from, to) = pair.validity_unix_s();
        match pair.check(now, &hosts) {
            Err(fault @ (PairFault::Expired(_) | PairFault::NotYetValid(_))) => {
                // Names are judged whatever the time is.
                pair.check(from, &hosts).map_err(|fault| blame(certificate, &fault))?;
                warnings
                    .push(warn(&format!("{fault}: browsers turn visitors away; it is served all the same")));
            }
            Err(fault) => return Err(blame(certificate, &fault)),
            Ok(()) if to.saturating_sub(now) < to.saturating_sub(from) / WARNED_PART => {
                warnings.push(warn(&format!("the certificate expires in {} days", (to - now) / 86_400)));
            }
            Ok(()) => {}
        }
        Ok(KnownPair { pair, chain, warnings })
    }
}

/// Reads a file, in which secrets may stand. A device or a pipe would never end.
pub(super) fn read_file(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    read_file_into(path, CERTIFICATES_BYTES_MAX, &mut bytes)?;
    Ok(bytes)
}

//! The list that people read: certificates of files and of the local authority.
//!
//! It must never make or keep a file: it reads.

use std::path::PathBuf;

use staunch_config::Config;
use staunch_tls::CertificatePair;

use super::named_files::{self, KnownPair, named_files};
use super::{now_unix_s, state_file};

/// A certificate that does not come from an authority by ACME: what it is for, where it stands, and its first
/// and last second since 1970, or why it cannot be used.
pub struct Listed {
    /// Names that the certificate is for.
    pub names: String,
    /// Where the certificate stands.
    pub place: PathBuf,
    /// First and last second since 1970, or why the certificate cannot be used.
    pub life: Result<(u64, u64), String>,
}

/// Certificates of files, and that of the local authority, which the settings name.
pub fn listed(config: &Config) -> Vec<Listed> {
    let now = now_unix_s();
    let of_files = named_files(config).into_iter().map(|named| {
        let place = named.files.certificate.clone();
        match named.read(now) {
            Ok(KnownPair { pair, .. }) => {
                Listed { names: pair.subjects_text(), place, life: Ok(pair.validity_unix_s()) }
            }
            Err(failure) => Listed { names: "-".into(), place, life: Err(failure.text) },
        }
    });
    let local = state_file(config).map(|place| {
        let names = "the local authority".to_owned();
        let read = named_files::read_file(&place).map_err(|error| error.to_string());
        let pair =
            read.and_then(|text| CertificatePair::read(&text, &text).map_err(|fault| fault.to_string()));
        Listed { names, place, life: pair.map(|pair| pair.validity_unix_s()) }
    });
    of_files.chain(local).collect()
}

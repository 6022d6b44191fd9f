//! Lists of revoked certificates (RFC 5280, section 5), read from PEM whole or not at all.
//!
//! It owns the sentences that say what is wrong with them, and which list counts where one file has several
//! of one authority: the newest. It must never judge by its own clock: time is an argument.
use std::fmt;

use rustls_pki_types::CertificateRevocationListDer;
use rustls_pki_types::pem::PemObject as _;
use webpki::{CertRevocationList, OwnedCertRevocationList};
use x509_cert::crl::CertificateList;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::db::rfc5280::{ID_CE_AUTHORITY_KEY_IDENTIFIER, ID_CE_ISSUING_DISTRIBUTION_POINT};

use crate::certificate::span;
use crate::limits::{LISTS_BYTES_MAX, LISTS_MAX};

/// A list that counts.
pub(super) struct List {
    /// The list in the form that webpki asks.
    pub(super) revoked: CertRevocationList<'static>,
    pub(super) der: CertificateRevocationListDer<'static>,
    /// The last second in which the list is current (its `nextUpdate`).
    pub(super) until_unix_s: u64,
    from_unix_s: u64,
    scope: Scope,
}

/// Of two lists with the same scope the newer one counts: issuer, which of its certificates, and by which of
/// its keys.
#[derive(PartialEq, Eq)]
struct Scope {
    issuer: Vec<u8>,
    part: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

/// What is wrong with lists of revoked certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListsFault {
    /// The file is longer than any.
    TooLong,
    /// The text is no PEM, or is cut.
    Pem(String),
    /// No list in the file.
    NoList,
    /// More lists than authorities can have.
    TooMany(usize),
    /// The list in that place (from 1) cannot be read.
    List(usize),
    /// The list in that place (from 1) is of a kind that is not understood, which is named.
    Kind(usize, &'static str),
    /// The list in that place (from 1) does not say when the next one is due.
    Endless(usize),
    /// The list in that place (from 1) should have been replaced so many seconds ago.
    Stale(usize, u64),
}

impl fmt::Display for ListsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the file is longer than 16 MiB"),
            Self::Pem(why) => write!(f, "the file is no PEM, or is cut: {why}"),
            Self::NoList => f.write_str("no list of revoked certificates (`BEGIN X509 CRL`) in the file"),
            Self::TooMany(count) => write!(f, "{count} lists; there may be {LISTS_MAX}"),
            Self::List(place) => write!(f, "list {place} of revoked certificates cannot be read"),
            Self::Kind(place, kind) => {
                write!(f, "list {place} of revoked certificates {kind}, which is not understood here")
            }
            Self::Endless(place) => write!(
                f,
                "list {place} of revoked certificates does not say when the next one is due (nextUpdate): \
                 have the authority say it"
            ),
            Self::Stale(place, ago) => {
                let ago = span(*ago);
                write!(
                    f,
                    "list {place} of revoked certificates is stale: its next was due {ago} ago; put that in \
                     its place"
                )
            }
        }
    }
}

/// Reads all lists of a file. Those that count are given back, the newest first.
pub(super) fn read(pem: &[u8], now_unix_s: u64) -> Result<Vec<List>, ListsFault> {
    let mut newest: Vec<(usize, List)> = Vec::new();
    for (place, der) in ders(pem)?.into_iter().enumerate() {
        let list = List::read(der, place + 1)?;
        match newest.iter_mut().find(|(_, known)| known.scope == list.scope) {
            // Of two lists made in the same second the one further down in the file was added later.
            Some(known) if known.1.from_unix_s <= list.from_unix_s => *known = (place + 1, list),
            Some(_) => {}
            None => newest.push((place + 1, list)),
        }
    }
    if let Some((place, list)) = newest.iter().find(|(_, list)| list.until_unix_s < now_unix_s) {
        return Err(ListsFault::Stale(*place, now_unix_s - list.until_unix_s));
    }
    let mut lists: Vec<List> = newest.into_iter().map(|(_, list)| list).collect();
    // webpki asks the first list that fits a certificate.
    lists.sort_by_key(|list| std::cmp::Reverse(list.from_unix_s));
    Ok(lists)
}

fn ders(pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, ListsFault> {
    if pem.len() > LISTS_BYTES_MAX {
        return Err(ListsFault::TooLong);
    }
    let all: Vec<_> = CertificateRevocationListDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| ListsFault::Pem(error.to_string()))?;
    match all.len() {
        0 => Err(ListsFault::NoList),
        count if count > LISTS_MAX => Err(ListsFault::TooMany(count)),
        _ => Ok(all),
    }
}

impl List {
    fn read(der: CertificateRevocationListDer<'static>, place: usize) -> Result<Self, ListsFault> {
        let parsed: CertificateList = CertificateList::from_der(&der).map_err(|_| ListsFault::List(place))?;
        let content = parsed.tbs_cert_list;
        let until = content.next_update.ok_or(ListsFault::Endless(place))?;
        let extension = |id| {
            let mut all = content.crl_extensions.iter().flatten();
            all.find(|one| one.extn_id == id).map(|one| one.extn_value.as_bytes().to_vec())
        };
        let revoked = OwnedCertRevocationList::from_der(&der).map_err(|error| fault(&error, place))?;
        let revoked = CertRevocationList::from(revoked);
        let scope = Scope {
            issuer: revoked.issuer().to_vec(),
            part: extension(ID_CE_ISSUING_DISTRIBUTION_POINT),
            key: extension(ID_CE_AUTHORITY_KEY_IDENTIFIER),
        };
        Ok(Self {
            until_unix_s: until.to_unix_duration().as_secs(),
            from_unix_s: content.this_update.to_unix_duration().as_secs(),
            revoked,
            scope,
            der,
        })
    }
}

/// What webpki does not understand of a list.
fn fault(error: &webpki::Error, place: usize) -> ListsFault {
    use webpki::Error as E;
    let kind = match error {
        E::UnsupportedDeltaCrl => "is a delta list",
        E::UnsupportedIndirectCrl => "speaks for another authority (an indirect list)",
        E::UnsupportedRevocationReason | E::UnsupportedRevocationReasonsPartitioning => {
            "is for some reasons alone"
        }
        E::UnsupportedCriticalExtension => "has a critical extension",
        E::UnsupportedCrlIssuingDistributionPoint => "is for a part of the certificates that no URI names",
        E::UnsupportedCrlVersion => "is of another version than 2",
        _ => return ListsFault::List(place),
    };
    ListsFault::Kind(place, kind)
}

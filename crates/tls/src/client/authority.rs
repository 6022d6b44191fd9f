//! Authorities that vouch for clients, and their lists of revoked certificates, read from PEM whole or not at
//! all.
//!
//! It owns the sentences that say what is wrong with them. It must never judge by its own clock: time is an
//! argument.
use std::fmt;
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_cert::Certificate;
use x509_cert::crl::CertificateList;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::BasicConstraints;

use crate::certificate::span;
use crate::limits::{AUTHORITIES_MAX, LISTS_BYTES_MAX, LISTS_MAX, PEM_BYTES_MAX};

/// Authorities of clients, ready for handshakes.
pub struct ClientAuthority {
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    /// Of everything that was read.
    pub(crate) digest: [u8; 32],
    /// The last second in which any of the authorities is valid.
    pub(crate) last_unix_s: u64,
    /// The last second in which all lists say how things stand, if there are any.
    lists_until_unix_s: Option<u64>,
    /// The last second in which the first of the authorities is valid.
    first_unix_s: u64,
}

/// What is wrong with authorities or lists. The sentence is for people; the path of the file is the caller's
/// to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAuthorityFault {
    /// The file of authorities is longer than any.
    TooLong,
    /// The text is no PEM, or is cut.
    Pem(String),
    /// No certificate in the file.
    NoCertificate,
    /// More authorities than are searched for each client.
    TooMany(usize),
    /// The certificate in that place (from 1) cannot be read.
    Certificate(usize),
    /// The certificate in that place (from 1) may not sign others.
    NoAuthority(usize),
    /// All authorities have ended; the last of them so many seconds ago.
    Expired(u64),
    /// No authority is valid before so many seconds from now.
    NotYetValid(u64),
    /// The lists are wrong.
    Lists(ListsFault),
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
    /// The list in that place (from 1) cannot be read, or is of a kind that is not understood.
    List(usize),
    /// The list in that place (from 1) should have been replaced so many seconds ago.
    Stale(usize, u64),
}

impl fmt::Display for ClientAuthorityFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the file is longer than 1 MiB"),
            Self::Pem(why) => write!(f, "the file is no PEM, or is cut: {why}"),
            Self::NoCertificate => f.write_str("no certificate (`BEGIN CERTIFICATE`) in the file"),
            Self::TooMany(count) => write!(f, "{count} authorities; there may be {AUTHORITIES_MAX}"),
            Self::Certificate(place) => write!(f, "certificate {place} cannot be read"),
            Self::NoAuthority(place) => {
                write!(f, "certificate {place} is no authority's: it may not sign others (basicConstraints)")
            }
            Self::Expired(ago) => write!(f, "the authority expired {} ago", span(*ago)),
            Self::NotYetValid(until) => {
                write!(f, "the authority is not valid before {} from now", span(*until))
            }
            Self::Lists(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for ListsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the file is longer than 16 MiB"),
            Self::Pem(why) => write!(f, "the file is no PEM, or is cut: {why}"),
            Self::NoList => f.write_str("no list of revoked certificates (`BEGIN X509 CRL`) in the file"),
            Self::TooMany(count) => write!(f, "{count} lists; there may be {LISTS_MAX}"),
            Self::List(place) => write!(f, "list {place} of revoked certificates cannot be read"),
            Self::Stale(place, ago) => {
                write!(
                    f,
                    "list {place} of revoked certificates is stale: its next was due {} ago",
                    span(*ago)
                )
            }
        }
    }
}

impl std::error::Error for ClientAuthorityFault {}

/// The authorities of a file, as far as they are valid.
struct Roots {
    store: RootCertStore,
    first_unix_s: u64,
    last_unix_s: u64,
}

impl ClientAuthority {
    /// Reads the certificates of authorities, and their lists of revoked certificates (RFC 5280, section 5)
    /// if there are any. An authority that is not valid now is left out, unless none is left.
    ///
    /// With lists there has to be one for every authority in the chain of a client, and each is good until
    /// its `nextUpdate`.
    ///
    /// # Errors
    /// Everything that makes them useless now.
    pub fn read(
        authorities_pem: &[u8],
        lists_pem: Option<&[u8]>,
        now_unix_s: u64,
    ) -> Result<Self, ClientAuthorityFault> {
        let mut digest = Context::new(&SHA256);
        let roots = read_roots(authorities_pem, now_unix_s, &mut digest)?;
        let lists = lists_pem.map_or(Ok(Vec::new()), read_lists).map_err(ClientAuthorityFault::Lists)?;
        let mut lists_until_unix_s = None;
        for (place, list) in lists.iter().enumerate() {
            let unreadable = ClientAuthorityFault::Lists(ListsFault::List(place + 1));
            let until = next_update(list).ok_or(unreadable)?;
            if until < now_unix_s {
                let stale = ListsFault::Stale(place + 1, now_unix_s - until);
                return Err(ClientAuthorityFault::Lists(stale));
            }
            lists_until_unix_s = Some(lists_until_unix_s.unwrap_or(until).min(until));
            feed(&mut digest, list);
        }
        Ok(Self {
            verifier: verifier(roots.store, lists).map_err(ClientAuthorityFault::Lists)?,
            digest: digest.finish().as_ref().try_into().expect("SHA-256 has 32 bytes"),
            last_unix_s: roots.last_unix_s,
            lists_until_unix_s,
            first_unix_s: roots.first_unix_s,
        })
    }

    /// The last second in which all that are used are valid.
    #[must_use]
    pub fn authorities_until_unix_s(&self) -> u64 {
        self.first_unix_s
    }

    /// The last second in which all lists say how things stand, if there are any.
    #[must_use]
    pub fn lists_until_unix_s(&self) -> Option<u64> {
        self.lists_until_unix_s
    }

    /// The last second in which what was read says the same as now: then an authority ends or a list is due.
    pub(crate) fn until_unix_s(&self) -> u64 {
        self.lists_until_unix_s.unwrap_or(u64::MAX).min(self.first_unix_s)
    }
}

fn read_roots(pem: &[u8], now: u64, digest: &mut Context) -> Result<Roots, ClientAuthorityFault> {
    if pem.len() > PEM_BYTES_MAX {
        return Err(ClientAuthorityFault::TooLong);
    }
    let all: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| ClientAuthorityFault::Pem(error.to_string()))?;
    if all.is_empty() {
        return Err(ClientAuthorityFault::NoCertificate);
    }
    if all.len() > AUTHORITIES_MAX {
        return Err(ClientAuthorityFault::TooMany(all.len()));
    }
    let mut roots = Roots { store: RootCertStore::empty(), first_unix_s: u64::MAX, last_unix_s: 0 };
    let mut unusable = ClientAuthorityFault::NoCertificate;
    for (place, der) in all.into_iter().enumerate() {
        let (from, to) = validity_of_authority(&der, place + 1)?;
        if to < now {
            unusable = ClientAuthorityFault::Expired(now - to);
        } else if now < from {
            unusable = ClientAuthorityFault::NotYetValid(from - now);
        } else {
            feed(digest, &der);
            roots.store.add(der).map_err(|_| ClientAuthorityFault::Certificate(place + 1))?;
            roots.first_unix_s = roots.first_unix_s.min(to);
            roots.last_unix_s = roots.last_unix_s.max(to);
        }
    }
    if roots.store.is_empty() { Err(unusable) } else { Ok(roots) }
}

/// First and last second of an authority's certificate.
fn validity_of_authority(der: &[u8], place: usize) -> Result<(u64, u64), ClientAuthorityFault> {
    let certificate = Certificate::from_der(der).map_err(|_| ClientAuthorityFault::Certificate(place))?;
    let certificate = certificate.tbs_certificate();
    match certificate.get_extension::<BasicConstraints>() {
        Ok(Some((_, constraints))) if constraints.ca => {}
        Ok(_) => return Err(ClientAuthorityFault::NoAuthority(place)),
        Err(_) => return Err(ClientAuthorityFault::Certificate(place)),
    }
    let validity = certificate.validity();
    let [from, to] =
        [&validity.not_before, &validity.not_after].map(|time| time.to_unix_duration().as_secs());
    Ok((from, to))
}

fn read_lists(pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, ListsFault> {
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

/// The last second in which a list is good.
fn next_update(list: &[u8]) -> Option<u64> {
    let list: CertificateList = CertificateList::from_der(list).ok()?;
    Some(list.tbs_cert_list.next_update?.to_unix_duration().as_secs())
}

fn verifier(
    roots: RootCertStore,
    lists: Vec<CertificateRevocationListDer<'static>>,
) -> Result<Arc<dyn ClientCertVerifier>, ListsFault> {
    let provider = Arc::new(default_provider());
    let roots = Arc::new(roots);
    let builder = || {
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        builder.enforce_revocation_expiration()
    };
    // One that cannot be read is looked for alone: the whole does not say which it is.
    builder().with_crls(lists.iter().cloned()).build().map_err(|_| {
        let is_bad = |list: &CertificateRevocationListDer<'static>| {
            builder().with_crls([list.clone()]).build().is_err()
        };
        ListsFault::List(lists.iter().position(is_bad).unwrap_or_default() + 1)
    })
}

/// Adds bytes to a digest, so that no other bytes give the same.
fn feed(digest: &mut Context, bytes: &[u8]) {
    digest.update(&(bytes.len() as u64).to_be_bytes());
    digest.update(bytes);
}

//! Authorities that vouch for clients, read from PEM whole or not at all.
//!
//! It owns the sentences that say what is wrong with them. It must never judge by its own clock: time is an
//! argument.
use std::cmp::Reverse;
use std::fmt;

use ring::digest::{Context, SHA256};
use rustls::DistinguishedName;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, TrustAnchor};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::BasicConstraints;

use super::lists::{self, List, ListsFault};
use crate::certificate::span;
use crate::limits::{AUTHORITIES_MAX, PEM_BYTES_MAX};

/// Authorities of clients, ready for handshakes.
pub struct ClientAuthority {
    /// The one that ends last stands first, so that those valid at a moment stand before those that have
    /// ended.
    pub(super) anchors: Vec<TrustAnchor<'static>>,
    /// The last second in which each authority is valid.
    pub(super) ends_unix_s: Vec<u64>,
    /// Names of the authorities, for handshakes.
    pub(super) subjects: Vec<DistinguishedName>,
    /// Lists that count, the newest first.
    pub(super) lists: Vec<List>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
    /// Of everything that was read and counts.
    pub(super) digest: [u8; 32],
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

impl std::error::Error for ClientAuthorityFault {}

/// An authority that is valid when it is read.
struct Root {
    anchor: TrustAnchor<'static>,
    until_unix_s: u64,
}

impl ClientAuthority {
    /// Reads the certificates of authorities, and their lists of revoked certificates (RFC 5280, section 5)
    /// if there are any. An authority that is not valid now is left out, unless none is left.
    ///
    /// With lists there has to be one for every authority in the chain of a client, and each is good until
    /// its `nextUpdate`. Of several lists of one authority the newest counts.
    ///
    /// # Errors
    /// Everything that makes them useless now.
    pub fn read(
        authorities_pem: &[u8],
        lists_pem: Option<&[u8]>,
        now_unix_s: u64,
    ) -> Result<Self, ClientAuthorityFault> {
        let mut digest = Context::new(&SHA256);
        let mut roots = read_roots(authorities_pem, now_unix_s, &mut digest)?;
        let lists = lists_pem.map_or(Ok(Vec::new()), |pem| lists::read(pem, now_unix_s));
        let lists = lists.map_err(ClientAuthorityFault::Lists)?;
        lists.iter().for_each(|list| feed(&mut digest, &list.der));
        roots.sort_by_key(|root| Reverse(root.until_unix_s));
        let subject = |root: &Root| DistinguishedName::in_sequence(&root.anchor.subject);
        Ok(Self {
            subjects: roots.iter().map(subject).collect(),
            ends_unix_s: roots.iter().map(|root| root.until_unix_s).collect(),
            anchors: roots.into_iter().map(|root| root.anchor).collect(),
            lists,
            algorithms: default_provider().signature_verification_algorithms,
            digest: digest.finish().as_ref().try_into().expect("SHA-256 has 32 bytes"),
        })
    }

    /// The last second in which all that are used are valid.
    #[must_use]
    pub fn authorities_until_unix_s(&self) -> u64 {
        self.ends_unix_s.last().copied().unwrap_or_default()
    }

    /// The last second in which all lists say how things stand, if there are any.
    #[must_use]
    pub fn lists_until_unix_s(&self) -> Option<u64> {
        self.lists.iter().map(|list| list.until_unix_s).min()
    }
}

fn read_roots(pem: &[u8], now: u64, digest: &mut Context) -> Result<Vec<Root>, ClientAuthorityFault> {
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
    let mut roots = Vec::new();
    let mut unusable = ClientAuthorityFault::NoCertificate;
    for (place, der) in all.iter().enumerate() {
        let (from, until) = validity_of_authority(der, place + 1)?;
        if until < now {
            unusable = ClientAuthorityFault::Expired(now - until);
        } else if now < from {
            unusable = ClientAuthorityFault::NotYetValid(from - now);
        } else {
            feed(digest, der);
            let anchor = webpki::anchor_from_trusted_cert(der);
            let anchor = anchor.map_err(|_| ClientAuthorityFault::Certificate(place + 1))?;
            roots.push(Root { anchor: anchor.to_owned(), until_unix_s: until });
        }
    }
    if roots.is_empty() { Err(unusable) } else { Ok(roots) }
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

/// Adds bytes to a digest, so that no other bytes give the same.
fn feed(digest: &mut Context, bytes: &[u8]) {
    digest.update(&(bytes.len() as u64).to_be_bytes());
    digest.update(bytes);
}

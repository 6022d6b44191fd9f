//! A chain of certificates and its key, read from PEM whole or not at all.
//!
//! It owns the sentences that say what is wrong with a pair. It must never judge by its own clock: time is an
//! argument.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, crypto::ring::sign::any_supported_type};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::Certificate;
use x509_cert::der::asn1::UintRef;
use x509_cert::der::{Decode, Reader, SliceReader};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use zeroize::Zeroizing;

use crate::compression::CompressedChain;
use crate::limits::{CHAIN_CERTIFICATES_MAX, PEM_BYTES_MAX, RSA_BITS_MIN};

/// `rsaEncryption` (RFC 8017, appendix A.1).
const RSA_KEY: &str = "1.2.840.113549.1.1.1";
/// Signatures with SHA-1 or MD5: RSA with either, ECDSA and DSA with SHA-1.
const WEAK_SIGNATURES: &[&str] =
    &["1.2.840.113549.1.1.5", "1.2.840.113549.1.1.4", "1.2.840.10045.4.1", "1.2.840.10040.4.3"];

/// A chain and its key, ready for handshakes. The key is rustls', which shows it to nobody.
pub struct CertificatePair {
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) compressed: Arc<CompressedChain>,
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    not_before_unix_s: u64,
    not_after_unix_s: u64,
}

/// What is wrong with a pair. The sentence is for people; the path of the file is the caller's to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairFault {
    /// A file is longer than any chain.
    TooLong,
    /// The text is no PEM, or is cut.
    Pem(&'static str, String),
    /// No certificate in the file of certificates.
    NoCertificate,
    /// No private key in the file of the key.
    NoKey,
    /// More certificates than a chain has.
    ChainTooLong(usize),
    /// The certificate in that place (from 1) cannot be read.
    Certificate(usize),
    /// The key is of a kind that is not spoken, or damaged.
    Key,
    /// The key belongs to another certificate.
    KeyMismatch,
    /// The certificate in that place (from 1) is not signed by the one that follows.
    ChainOrder(usize),
    /// The chain begins with an authority's own certificate.
    Reversed,
    /// The RSA key of the certificate in that place (from 1) has so many bits.
    WeakKey(usize, usize),
    /// The certificate in that place (from 1) is signed with SHA-1 or MD5.
    WeakSignature(usize),
    /// The certificate ended so many seconds ago.
    Expired(u64),
    /// The certificate begins in so many seconds.
    NotYetValid(u64),
    /// The certificate has no such name; it has these.
    WrongName(String, String),
}

impl fmt::Display for PairFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the file is longer than 1 MiB"),
            Self::Pem(what, why) => write!(f, "the {what} is no PEM, or is cut: {why}"),
            Self::NoCertificate => f.write_str("no certificate (`BEGIN CERTIFICATE`) in the file"),
            Self::NoKey => f.write_str("no private key (`BEGIN PRIVATE KEY`) in the file"),
            Self::ChainTooLong(count) => {
                write!(f, "{count} certificates; a chain has at most {CHAIN_CERTIFICATES_MAX}")
            }
            Self::Certificate(place) => write!(f, "certificate {place} of the chain cannot be read"),
            Self::Key => f.write_str("the key is damaged, encrypted, or neither ECDSA, Ed25519 nor RSA"),
            Self::KeyMismatch => f.write_str("the key does not match the certificate"),
            Self::ChainOrder(place) => {
                let next = place + 1;
                write!(
                    f,
                    "the chain is out of order: certificate {place} is not signed by certificate {next}"
                )
            }
            Self::Reversed => {
                f.write_str("the chain is out of order: the server's own certificate must come first")
            }
            Self::WeakKey(place, bits) => {
                write!(
                    f,
                    "weak key: certificate {place} has RSA with {bits} bits; {RSA_BITS_MIN} are the least"
                )
            }
            Self::WeakSignature(place) => write!(f, "certificate {place} is signed with SHA-1 or MD5"),
            Self::Expired(ago) => write!(f, "the certificate expired {} ago", span(*ago)),
            Self::NotYetValid(until) => {
                write!(f, "the certificate is not valid before {} from now", span(*until))
            }
            Self::WrongName(name, names) => {
                write!(f, "the certificate is not for `{name}`; it is for {names}")
            }
        }
    }
}

impl std::error::Error for PairFault {}

impl CertificatePair {
    /// Reads a chain (the server's certificate first) and its key. Both may stand in one file, given twice.
    ///
    /// # Errors Everything that makes the pair useless or weak, whatever the time is. See [`Self::check`] for
    /// the rest.
    pub fn read(chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, PairFault> {
        if chain_pem.len() > PEM_BYTES_MAX || key_pem.len() > PEM_BYTES_MAX {
            return Err(PairFault::TooLong);
        }
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain_pem)
            .collect::<Result<_, _>>()
            .map_err(|error| PairFault::Pem("chain", error.to_string()))?;
        if chain.is_empty() {
            return Err(PairFault::NoCertificate);
        }
        if chain.len() > CHAIN_CERTIFICATES_MAX {
            return Err(PairFault::ChainTooLong(chain.len()));
        }
        let parsed = parse_chain(&chain)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| match error {
            pem::Error::NoItemsFound => PairFault::NoKey,
            error => PairFault::Pem("key", error.to_string()),
        })?;
        let key = Zeroizing::new(key);
        check_chain(&parsed)?;
        let key = CertifiedKey::new(chain, any_supported_type(&key).map_err(|_| PairFault::Key)?);
        match key.keys_match() {
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(PairFault::KeyMismatch);
            }
            Ok(()) | Err(rustls::Error::InconsistentKeys(_)) => {}
            Err(_) => return Err(PairFault::Certificate(1)),
        }
        let validity = parsed[0].tbs_certificate().validity();
        let (names, addresses) = subjects(&parsed[0]);
        Ok(Self {
            compressed: Arc::new(CompressedChain::new(&key.cert)),
            key: Arc::new(key),
            names,
            addresses,
            not_before_unix_s: validity.not_before.to_unix_duration().as_secs(),
            not_after_unix_s: validity.not_after.to_unix_duration().as_secs(),
        })
    }

    /// Checks what changes with time and use: dates, and whether it covers these names (or IP addresses).
    ///
    /// # Errors
    /// [`PairFault::Expired`], [`PairFault::NotYetValid`], [`PairFault::WrongName`].
    pub fn check(&self, now_unix_s: u64, names: &[&str]) -> Result<(), PairFault> {
        if now_unix_s > self.not_after_unix_s {
            return Err(PairFault::Expired(now_unix_s - self.not_after_unix_s));
        }
        if now_unix_s < self.not_before_unix_s {
            return Err(PairFault::NotYetValid(self.not_before_unix_s - now_unix_s));
        }
        match names.iter().find(|name| !self.covers(name)) {
            Some(name) => Err(PairFault::WrongName((*name).to_owned(), self.subjects_text())),
            None => Ok(()),
        }
    }

    /// Whether the certificate is for this host name or IP address (RFC 9525, section 6).
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        if let Ok(address) = name.parse() {
            return self.addresses.contains(&address);
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        self.names.iter().any(|own| *own == name || wildcard_covers(own, &name))
    }

    /// Host names in it, in small letters; a wildcard begins with `*.`.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// IP addresses in it.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// First and last second in which it is valid, since 1970.
    #[must_use]
    pub fn validity_unix_s(&self) -> (u64, u64) {
        (self.not_before_unix_s, self.not_after_unix_s)
    }

    /// Everything that it is for, for people.
    #[must_use]
    pub fn subjects_text(&self) -> String {
        let addresses = self.addresses.iter().map(IpAddr::to_string);
        let all: Vec<String> = self.names.iter().cloned().chain(addresses).collect();
        if all.is_empty() { "no name at all".to_owned() } else { all.join(", ") }
    }
}

/// Whether `*.rest` covers the name: one label stands for the star.
fn wildcard_covers(wildcard: &str, name: &str) -> bool {
    let rest = wildcard.strip_prefix("*.");
    name.split_once('.').is_some_and(|(label, behind)| !label.is_empty() && rest == Some(behind))
}

fn parse_chain(chain: &[CertificateDer<'static>]) -> Result<Vec<Certificate>, PairFault> {
    let parse = |(place, der): (usize, &CertificateDer<'_>)| {
        Certificate::from_der(der).map_err(|_| PairFault::Certificate(place + 1))
    };
    chain.iter().enumerate().map(parse).collect()
}

/// Each certificate is issued by the next, the first is no authority over others, and none is weak.
fn check_chain(chain: &[Certificate]) -> Result<(), PairFault> {
    let is_issued = |one: &Certificate, by: &Certificate| {
        one.tbs_certificate().issuer() == by.tbs_certificate().subject()
    };
    for (place, pair) in chain.windows(2).enumerate() {
        if is_issued(&pair[0], &pair[1]) {
            continue;
        }
        let is_reversed = place == 0 && chain[1..].iter().any(|other| is_issued(other, &chain[0]));
        return Err(if is_reversed { PairFault::Reversed } else { PairFault::ChainOrder(place + 1) });
    }
    for (place, certificate) in chain.iter().enumerate() {
        let is_root = is_issued(certificate, certificate);
        let signature = certificate.signature_algorithm().oid.to_string();
        if !is_root && WEAK_SIGNATURES.contains(&signature.as_str()) {
            return Err(PairFault::WeakSignature(place + 1));
        }
        if let Some(bits) = rsa_bits(certificate).filter(|&bits| bits < RSA_BITS_MIN) {
            return Err(PairFault::WeakKey(place + 1, bits));
        }
    }
    Ok(())
}

/// Bits of the modulus, if the key is RSA's (RFC 8017, appendix A.1.1).
fn rsa_bits(certificate: &Certificate) -> Option<usize> {
    let key = certificate.tbs_certificate().subject_public_key_info();
    if key.algorithm.oid.to_string() != RSA_KEY {
        return None;
    }
    let mut reader = SliceReader::new(key.subject_public_key.raw_bytes()).ok()?;
    let modulus = reader
        .sequence(|fields| -> x509_cert::der::Result<usize> {
            let modulus = UintRef::decode(fields)?;
            let bytes = modulus.as_bytes();
            let unused = bytes.first().map_or(0, |byte| byte.leading_zeros() as usize);
            UintRef::decode(fields)?;
            Ok(bytes.len() * 8 - unused)
        })
        .ok();
    Some(modulus.unwrap_or(0))
}

/// Host names and IP addresses in the certificate (RFC 5280, section 4.2.1.6). The common name is not one.
fn subjects(certificate: &Certificate) -> (Vec<String>, Vec<IpAddr>) {
    let (mut names, mut addresses) = (Vec::new(), Vec::new());
    let Ok(Some((_, SubjectAltName(all)))) = certificate.tbs_certificate().get_extension::<SubjectAltName>()
    else {
        return (names, addresses);
    };
    for name in all {
        match name {
            GeneralName::DnsName(name) => names.push(name.as_str().to_ascii_lowercase()),
            GeneralName::IpAddress(bytes) => addresses.extend(address(bytes.as_bytes())),
            _ => {}
        }
    }
    (names, addresses)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into());
    let v6 = || <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into());
    v4().or_else(v6)
}

/// A span of time in days, or in hours if it is short.
pub(crate) fn span(seconds: u64) -> String {
    match seconds / 3_600 {
        0 => "less than an hour".to_owned(),
        1 => "an hour".to_owned(),
        hours @ 2..48 => format!("{hours} hours"),
        hours => format!("{} days", hours / 24),
    }
}

#[cfg(test)]
mod tests;

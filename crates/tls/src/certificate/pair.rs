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
use rustls_pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use x509_cert::Certificate;
use x509_cert::der::asn1::UintRef;
use x509_cert::der::{Decode, Encode as _, Reader, SliceReader};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use zeroize::Zeroizing;

use super::chain::{self, ChainLink, Ordered};
use crate::compression::CompressedChain;
use crate::limits::{CHAIN_CERTIFICATES_MAX, PEM_BYTES_MAX, RSA_BITS_MAX, RSA_BITS_MIN, RSA_KEY_BYTES_MAX};

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
    notes: Vec<String>,
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
    /// The key is damaged, or of no kind that is known.
    Key,
    /// The key can only be read with a phrase.
    KeyEncrypted,
    /// The key is of a kind that is not spoken.
    KeyKind(&'static str),
    /// The key belongs to another certificate.
    KeyMismatch,
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
            Self::Key => f.write_str("the key is damaged, or neither ECDSA, Ed25519 nor RSA"),
            Self::KeyEncrypted => f.write_str(
                "the key is encrypted, and nobody is there to give its phrase: `openssl pkey -in KEY -out \
                 PLAIN` writes it without one",
            ),
            Self::KeyKind(kind) => write!(
                f,
                "the key is {kind}, which is not spoken: ECDSA with P-256 or P-384, Ed25519, and RSA with up \
                 to {RSA_BITS_MAX} bits are"
            ),
            Self::KeyMismatch => f.write_str("the key does not match the certificate"),
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
    /// Reads a chain and its key. Both may stand in one file, given twice. The chain may be in any order, and
    /// hold what does not belong to it: [`Self::notes`] says so.
    ///
    /// # Errors
    /// Everything that makes the pair useless or weak, whatever the time is. See [`Self::check`] for the
    /// rest.
    pub fn read(chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, PairFault> {
        if chain_pem.len() > PEM_BYTES_MAX || key_pem.len() > PEM_BYTES_MAX {
            return Err(PairFault::TooLong);
        }
        let chain = read_chain(chain_pem)?;
        let key = read_key(key_pem)?;
        // A key may be refused because it is weak, as its certificate tells.
        let fault = |_| check_strength(&chain).err().unwrap_or_else(|| key_fault(&key));
        let signer = any_supported_type(&key).map_err(fault)?;
        let public = signer.public_key();
        let is_own = |link: &ChainLink| public.as_ref().is_none_or(|key| has_key(&link.content, key));
        let Ordered { links, notes } = chain::ordered(chain, is_own).ok_or(PairFault::KeyMismatch)?;
        check_strength(&links)?;
        let parsed = &links[0].content;
        let key = CertifiedKey::new(links.iter().map(|link| link.der.clone()).collect(), signer);
        match key.keys_match() {
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(PairFault::KeyMismatch);
            }
            Ok(()) | Err(rustls::Error::InconsistentKeys(_)) => {}
            Err(_) => return Err(PairFault::Certificate(links[0].place)),
        }
        let validity = parsed.tbs_certificate().validity();
        let (names, addresses) = subjects(parsed);
        Ok(Self {
            compressed: Arc::new(CompressedChain::new(&key.cert)),
            key: Arc::new(key),
            names,
            addresses,
            not_before_unix_s: validity.not_before.to_unix_duration().as_secs(),
            not_after_unix_s: validity.not_after.to_unix_duration().as_secs(),
            notes,
        })
    }

    /// What the file holds that is not as it should be, and does no harm, in sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
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

/// The certificates of a file, in its order.
fn read_chain(text: &[u8]) -> Result<Vec<ChainLink>, PairFault> {
    let text = plain_labels(text);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| PairFault::Pem("chain", error.to_string()))?;
    match chain.len() {
        0 => return Err(PairFault::NoCertificate),
        count if count > CHAIN_CERTIFICATES_MAX => return Err(PairFault::ChainTooLong(count)),
        _ => {}
    }
    let parse = |(index, der): (usize, CertificateDer<'static>)| {
        let place = index + 1;
        let der = without_trust(der).ok_or(PairFault::Certificate(place))?;
        let content = Certificate::from_der(&der).map_err(|_| PairFault::Certificate(place))?;
        Ok(ChainLink { der, content, place })
    };
    chain.into_iter().enumerate().map(parse).collect()
}

/// The key of a file, as it is used.
fn read_key(text: &[u8]) -> Result<Zeroizing<PrivateKeyDer<'static>>, PairFault> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let key = PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        _ if is_encrypted(text) => PairFault::KeyEncrypted,
        pem::Error::NoItemsFound => PairFault::NoKey,
        error => PairFault::Pem("key", error.to_string()),
    })?;
    let key = Zeroizing::new(key);
    if is_encrypted(text) { Err(PairFault::KeyEncrypted) } else { Ok(key) }
}

/// What editors of other systems put in front of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text with the label of RFC 7468 in the place of the older ones that OpenSSL knows too.
fn plain_labels(text: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut rest = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    // Of full size from the beginning: a key may stand in it, and growing would leave a copy behind.
    let mut plain = Zeroizing::new(Vec::with_capacity(rest.len()));
    while let Some(start) = find(rest, b"-----") {
        let (before, from) = rest.split_at(start);
        plain.extend_from_slice(before);
        let labels = [b"BEGIN", &b"END"[..]].into_iter().flat_map(|edge| {
            [&b" X509 "[..], b" TRUSTED "].map(|old| [b"-----", edge, old, b"CERTIFICATE-----"].concat())
        });
        let old = labels.into_iter().find(|label| from.starts_with(label));
        let length = old.as_ref().map_or(b"-----".len(), Vec::len);
        match old {
            Some(label) if label.starts_with(b"-----BEGIN") => {
                plain.extend_from_slice(b"-----BEGIN CERTIFICATE-----")
            }
            Some(_) => plain.extend_from_slice(b"-----END CERTIFICATE-----"),
            None => plain.extend_from_slice(b"-----"),
        }
        rest = &from[length..];
    }
    plain.extend_from_slice(rest);
    plain
}

fn find(text: &[u8], words: &[u8]) -> Option<usize> {
    text.windows(words.len()).position(|window| window == words)
}

/// The certificate alone: OpenSSL's trusted form has behind it what it is trusted for.
fn without_trust(der: CertificateDer<'static>) -> Option<CertificateDer<'static>> {
    let mut reader = SliceReader::new(&der).ok()?;
    let whole = reader.tlv_bytes().ok()?;
    Some(if whole.len() == der.len() { der } else { CertificateDer::from(whole.to_vec()) })
}

fn is_encrypted(text: &[u8]) -> bool {
    let has = |words: &[u8]| find(text, words).is_some();
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED")
}

/// Why a key cannot be used.
fn key_fault(key: &PrivateKeyDer<'_>) -> PairFault {
    let der = key.secret_der();
    let has = |oid: &[u8]| find(der, oid).is_some();
    // Identifiers with their tag and length: secp521r1, secp256k1 (RFC 5480), Ed448 (RFC 8410),
    // rsaEncryption.
    if has(&[6, 5, 0x2b, 0x81, 4, 0, 0x23]) {
        return PairFault::KeyKind("ECDSA with P-521");
    }
    if has(&[6, 5, 0x2b, 0x81, 4, 0, 0x0a]) {
        return PairFault::KeyKind("ECDSA with secp256k1");
    }
    if has(&[6, 3, 0x2b, 0x65, 0x71]) {
        return PairFault::KeyKind("Ed448");
    }
    let is_rsa =
        matches!(key, PrivateKeyDer::Pkcs1(_)) || has(&[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1]);
    if is_rsa && der.len() > RSA_KEY_BYTES_MAX {
        return PairFault::KeyKind("RSA with more bits");
    }
    PairFault::Key
}

/// Whether a certificate is for the key with this public part (SubjectPublicKeyInfo).
fn has_key(certificate: &Certificate, public: &SubjectPublicKeyInfoDer<'_>) -> bool {
    let own = certificate.tbs_certificate().subject_public_key_info().to_der();
    own.is_ok_and(|own| own == public.as_ref())
}

/// No certificate that is sent is weak; a root's signature says nothing.
fn check_strength(chain: &[ChainLink]) -> Result<(), PairFault> {
    for link in chain {
        let signature = link.content.signature_algorithm().oid.to_string();
        if !chain::is_root(link) && WEAK_SIGNATURES.contains(&signature.as_str()) {
            return Err(PairFault::WeakSignature(link.place));
        }
        if let Some(bits) = rsa_bits(&link.content).filter(|&bits| bits < RSA_BITS_MIN) {
            return Err(PairFault::WeakKey(link.place, bits));
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

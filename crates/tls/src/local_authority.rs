//! An authority of one's own, for names that no public authority signs: localhost, private networks.
//!
//! It owns a root whose signature counts for such names alone (name constraints, RFC 5280, section 4.2.1.10),
//! so that trusting it cannot open the rest of the web to whoever steals its key. It must never keep a key
//! longer than it works with it but in memory that is wiped.
use std::fmt;
use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, SanType,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use time::{Duration, OffsetDateTime};
use zeroize::{Zeroize, Zeroizing};

use crate::certificate::{CertificatePair, PairFault};
use crate::pem::pem;

/// Domains whose names it signs, and names below them: those that no public authority may sign.
const DOMAINS: &[&str] = &["localhost", "local", "internal", "home.arpa"];
/// Networks whose addresses it signs: loopback, private (RFC 1918, RFC 4193), link-local.
const NETWORKS: &[(&str, u8)] = &[
    ("127.0.0.0", 8),
    ("10.0.0.0", 8),
    ("172.16.0.0", 12),
    ("192.168.0.0", 16),
    ("169.254.0.0", 16),
    ("::1", 128),
    ("fc00::", 7),
    ("fe80::", 10),
];
/// Days the authority is good for: it is trusted by hand, so seldom.
const AUTHORITY_DAYS: i64 = 3_650;
/// Days a certificate is good for. Browsers bear at most 398, and it is renewed without anybody.
const CERTIFICATE_DAYS: i64 = 90;
/// Clocks of clients may be late by this much.
const LATE_CLOCK_HOURS: i64 = 24;

/// The authority: its certificate, and its key in memory that is wiped.
pub struct LocalAuthority {
    certificate_pem: String,
    /// PKCS #8.
    key: Zeroizing<Vec<u8>>,
}

/// A certificate and its key, both as PEM, to be written with rights 0600.
pub struct IssuedPair {
    /// The certificate alone: the authority's own is known to whoever trusts it.
    pub certificate_pem: String,
    /// The key (PKCS #8).
    pub key_pem: Zeroizing<String>,
}

/// Why the local authority cannot be used, or does not sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorityFault {
    /// No name at all.
    NoName,
    /// The name is not one that a local authority signs.
    OutsideName(String),
    /// The stored pair is faulty.
    Pair(PairFault),
    /// The stored certificate is not that of an authority made here.
    Foreign,
    /// A key or certificate could not be made.
    Making(String),
}

impl fmt::Display for AuthorityFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("a certificate needs at least one name"),
            Self::OutsideName(name) => write!(
                f,
                "`{name}` is no local name: the local authority signs {} and addresses of private networks",
                DOMAINS.join(", ")
            ),
            Self::Pair(fault) => write!(f, "the local authority: {fault}"),
            Self::Foreign => f.write_str("the stored certificate is not that of a local authority made here"),
            Self::Making(why) => write!(f, "a key or certificate could not be made: {why}"),
        }
    }
}

impl std::error::Error for AuthorityFault {}

impl LocalAuthority {
    /// Makes an authority, good for ten years from now (seconds since 1970).
    ///
    /// # Errors
    /// [`AuthorityFault::Making`]: no random numbers, or a time beyond what certificates can say.
    pub fn create(now_unix_s: u64) -> Result<Self, AuthorityFault> {
        let mut key = KeyPair::generate().map_err(|error| making(&error))?;
        let made = authority_params(&key, now_unix_s)?.self_signed(&key).map_err(|error| making(&error));
        let der = Zeroizing::new(key.serialize_der());
        key.zeroize();
        Ok(Self { certificate_pem: pem("CERTIFICATE", made?.der()), key: der })
    }

    /// An authority that was made before.
    ///
    /// # Errors
    /// The pair is faulty, out of its time, or not made here.
    pub fn read(certificate_pem: &str, key_pem: &str, now_unix_s: u64) -> Result<Self, AuthorityFault> {
        let pair = CertificatePair::read(certificate_pem.as_bytes(), key_pem.as_bytes())
            .map_err(AuthorityFault::Pair)?;
        pair.check(now_unix_s, &[]).map_err(AuthorityFault::Pair)?;
        let key =
            PrivatePkcs8KeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|_| AuthorityFault::Foreign)?;
        let key = Zeroizing::new(key.secret_pkcs8_der().to_vec());
        let authority = Self { certificate_pem: certificate_pem.to_owned(), key };
        // What it signs must be signed by the certificate that was read.
        let probe = authority.issue(&["localhost"], now_unix_s)?;
        let chain = format!("{}{certificate_pem}", probe.certificate_pem);
        match CertificatePair::read(chain.as_bytes(), probe.key_pem.as_bytes()) {
            Ok(made) if made.notes().is_empty() => Ok(authority),
            Ok(_) => Err(AuthorityFault::Foreign),
            Err(fault) => Err(AuthorityFault::Pair(fault)),
        }
    }

    /// The authority's certificate as PEM: what clients are to trust.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The authority's key as PEM (PKCS #8), to be written with rights 0600.
    #[must_use]
    pub fn key_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(pem("PRIVATE KEY", &self.key))
    }

    /// Signs a certificate with a new key for these host names and IP addresses, good for 90 days.
    ///
    /// # Errors
    /// A name is not local; the sentence says which.
    pub fn issue(&self, names: &[&str], now_unix_s: u64) -> Result<IssuedPair, AuthorityFault> {
        let mut authority_key = KeyPair::try_from(&PrivatePkcs8KeyDer::from(self.key.as_slice()))
            .map_err(|_| AuthorityFault::Foreign)?;
        let result = issue(&authority_key, names, now_unix_s);
        authority_key.zeroize();
        result
    }

    /// Whether a certificate for this name can be signed. A wildcard directly below a domain of the list
    /// (`*.local`) cannot: clients refuse it, as they do below a public suffix.
    #[must_use]
    pub fn signs(name: &str) -> bool {
        if let Ok(address) = name.parse::<IpAddr>() {
            return NETWORKS.iter().any(|&(network, bits)| is_within(address, network, bits));
        }
        let name = name.to_ascii_lowercase();
        let name = match name.strip_prefix("*.") {
            Some(rest) if rest == "home.arpa" || !rest.contains('.') => return false,
            Some(rest) => rest,
            None => &name,
        };
        let is_below = |rest: &str| rest.is_empty() || rest.ends_with('.');
        DOMAINS.iter().any(|domain| name.strip_suffix(domain).is_some_and(is_below))
    }
}

fn issue(authority_key: &KeyPair, names: &[&str], now_unix_s: u64) -> Result<IssuedPair, AuthorityFault> {
    if let Some(name) = names.iter().find(|name| !LocalAuthority::signs(name)) {
        return Err(AuthorityFault::OutsideName((*name).to_owned()));
    }
    let Some(first) = names.first() else { return Err(AuthorityFault::NoName) };
    let mut params = lasting(now_unix_s, CERTIFICATE_DAYS)?;
    params.distinguished_name = common_name(first);
    params.subject_alt_names = names.iter().map(|name| subject(name)).collect::<Result<_, _>>()?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let authority = authority_params(authority_key, now_unix_s)?;
    let issuer = Issuer::from_params(&authority, authority_key);
    let mut key = KeyPair::generate().map_err(|error| making(&error))?;
    let made = params.signed_by(&key, &issuer).map_err(|error| making(&error));
    let key_der = Zeroizing::new(key.serialize_der());
    key.zeroize();
    Ok(IssuedPair {
        certificate_pem: pem("CERTIFICATE", made?.der()),
        key_pem: Zeroizing::new(pem("PRIVATE KEY", &key_der)),
    })
}

/// What the authority's certificate says. Its name follows from its key, so it can be made again from the key
/// alone.
fn authority_params(key: &KeyPair, now_unix_s: u64) -> Result<CertificateParams, AuthorityFault> {
    let mut params = lasting(now_unix_s, AUTHORITY_DAYS)?;
    let identifier = params.key_identifier(key);
    let digits: String = identifier.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = common_name(&format!("Staunch local authority {digits}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let domains = DOMAINS.iter().map(|domain| GeneralSubtree::DnsName((*domain).to_owned()));
    let networks = NETWORKS.iter().map(|&(network, bits)| {
        let network = network.parse().expect("the networks above are addresses");
        GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(network, bits))
    });
    let permitted_subtrees = domains.chain(networks).collect();
    params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    Ok(params)
}

fn lasting(now_unix_s: u64, days: i64) -> Result<CertificateParams, AuthorityFault> {
    let beyond = || AuthorityFault::Making("the time is beyond what certificates can say".to_owned());
    let now = i64::try_from(now_unix_s).ok().and_then(|now| OffsetDateTime::from_unix_timestamp(now).ok());
    let now = now.ok_or_else(beyond)?;
    let mut params = CertificateParams::default();
    params.not_before = now.checked_sub(Duration::hours(LATE_CLOCK_HOURS)).ok_or_else(beyond)?;
    params.not_after = now.checked_add(Duration::days(days)).ok_or_else(beyond)?;
    Ok(params)
}

fn common_name(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

fn subject(name: &str) -> Result<SanType, AuthorityFault> {
    match name.parse() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.try_into().map_err(|error| making(&error))?)),
    }
}

fn is_within(address: IpAddr, network: &str, bits: u8) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let (network, length) = number(network.parse().expect("the networks above are addresses"));
    let (address, own_length) = number(address);
    own_length == length && (network ^ address) >> (128 - u32::from(bits)) == 0
}

fn making(error: &rcgen::Error) -> AuthorityFault {
    AuthorityFault::Making(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_000_000;

    #[test]
    fn it_signs_local_names_alone() {
        let local =
            ["localhost", "a.localhost", "printer.local", "x.y.internal", "*.x.local", "127.0.0.1", "::1"];
        let private = ["10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.1.1", "fd00::1", "fe80::1"];
        for name in local.into_iter().chain(private) {
            assert!(LocalAuthority::signs(name), "{name}");
        }
        for name in [
            "example.org",
            "notlocal",
            "*.local",
            "*.home.arpa",
            "local.example.org",
            "172.32.0.1",
            "8.8.8.8",
            "2001:db8::1",
            "::2",
            "",
        ] {
            assert!(!LocalAuthority::signs(name), "{name}");
        }
    }

    #[test]
    fn a_stored_authority_goes_on() {
        let made = LocalAuthority::create(NOW).expect("made");
        let read = LocalAuthority::read(made.certificate_pem(), &made.key_pem(), NOW + 1_000).expect("read");
        let issued = read.issue(&["localhost", "127.0.0.1"], NOW).expect("issued");
        let chain = format!("{}{}", issued.certificate_pem, made.certificate_pem());
        let pair = CertificatePair::read(chain.as_bytes(), issued.key_pem.as_bytes()).expect("a good pair");
        assert_eq!(pair.check(NOW, &["LOCALHOST", "127.0.0.1"]), Ok(()));
        let (from, to) = pair.validity_unix_s();
        assert_eq!((NOW - from, to - NOW), (24 * 3_600, 90 * 24 * 3_600));
    }

    #[test]
    fn faulty_authorities_are_refused() {
        let (one, other) =
            (LocalAuthority::create(NOW).expect("made"), LocalAuthority::create(NOW).expect("made"));
        let read = |certificate: &str, key: &str, now| LocalAuthority::read(certificate, key, now).err();
        let mismatch = AuthorityFault::Pair(PairFault::KeyMismatch);
        assert_eq!(read(one.certificate_pem(), &other.key_pem(), NOW), Some(mismatch));
        let ten_years = 3_650 * 24 * 3_600;
        let expired = AuthorityFault::Pair(PairFault::Expired(1));
        assert_eq!(read(one.certificate_pem(), &one.key_pem(), NOW + ten_years + 1), Some(expired));
        let leaf = one.issue(&["localhost"], NOW).expect("issued");
        assert_eq!(read(&leaf.certificate_pem, &leaf.key_pem, NOW), Some(AuthorityFault::Foreign));
        assert_eq!(one.issue(&[], NOW).err(), Some(AuthorityFault::NoName));
        let outside = one.issue(&["localhost", "example.org"], NOW).err().expect("refused");
        assert!(outside.to_string().starts_with("`example.org` is no local name"));
    }
}

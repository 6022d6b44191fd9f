//! Authorities, clients' certificates and lists of revoked ones, made for a test, good or bad.
#![allow(dead_code)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use time::OffsetDateTime;

/// Seconds of a day.
pub(crate) const DAY: u64 = 86_400;

/// An authority that signs certificates of these tests.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    /// Its certificate and those above it, but for the root's if it has one.
    chain: Vec<Vec<u8>>,
    is_root: bool,
}

/// A certificate with its chain, and its key (PKCS #8).
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) chain: Vec<Vec<u8>>,
    pub(crate) key: Vec<u8>,
    serial: SerialNumber,
}

impl Authority {
    /// A root that is valid for ten days from that moment on.
    pub(crate) fn root(name: &str, from_unix_s: u64) -> Self {
        let key = KeyPair::generate().expect("random numbers");
        let params = authority_params(name, from_unix_s);
        let chain = vec![params.self_signed(&key).expect("a certificate").der().to_vec()];
        Self { params, key, chain, is_root: true }
    }

    /// An authority below this one, changed so.
    pub(crate) fn below(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().expect("random numbers");
        let mut params = self.params.clone();
        params.distinguished_name = named(name);
        change(&mut params);
        let made = params.signed_by(&key, &self.issuer()).expect("a certificate");
        Self { params, key, chain: self.under(made.der()), is_root: false }
    }

    /// A certificate of a client, changed so.
    pub(crate) fn client(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Shown {
        let key = KeyPair::generate().expect("random numbers");
        let mut params = client_params(name, &self.params, &key);
        change(&mut params);
        let made = params.signed_by(&key, &self.issuer()).expect("a certificate");
        let serial = params.serial_number.expect("set above");
        Shown { chain: self.under(made.der()), key: key.serialize_der(), serial }
    }

    /// A list of revoked certificates, good between these moments.
    pub(crate) fn list(&self, revoked: &[&Shown], from_unix_s: u64, to_unix_s: u64) -> String {
        pem("X509 CRL", &self.list_der(revoked, from_unix_s, to_unix_s))
    }

    pub(crate) fn list_der(&self, revoked: &[&Shown], from_unix_s: u64, to_unix_s: u64) -> Vec<u8> {
        let revoked_certs = revoked.iter().map(|shown| RevokedCertParams {
            serial_number: shown.serial.clone(),
            revocation_time: moment(from_unix_s),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: moment(from_unix_s),
            next_update: moment(to_unix_s),
            crl_number: SerialNumber::from(from_unix_s),
            issuing_distribution_point: None,
            revoked_certs: revoked_certs.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer()).expect("a list").der().to_vec()
    }

    /// Its certificate as a file has it.
    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.chain[0])
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    /// The chain of a certificate that this one has signed.
    fn under(&self, der: &[u8]) -> Vec<Vec<u8>> {
        let above = if self.is_root { &[][..] } else { &self.chain };
        [&[der.to_vec()][..], above].concat()
    }
}

impl Shown {
    /// A certificate that only its own key has signed.
    pub(crate) fn self_signed(name: &str, from_unix_s: u64) -> Self {
        let key = KeyPair::generate().expect("random numbers");
        let params = client_params(name, &authority_params(name, from_unix_s), &key);
        let made = params.self_signed(&key).expect("a certificate");
        let serial = params.serial_number.expect("set above");
        Self { chain: vec![made.der().to_vec()], key: key.serialize_der(), serial }
    }

    /// The chain as a file has it.
    pub(crate) fn chain_pem(&self) -> String {
        self.chain.iter().map(|der| pem("CERTIFICATE", der)).collect()
    }

    /// The key as a file has it.
    pub(crate) fn key_pem(&self) -> String {
        pem("PRIVATE KEY", &self.key)
    }
}

/// Sets when a certificate is valid.
pub(crate) fn valid(params: &mut CertificateParams, from_unix_s: u64, to_unix_s: u64) {
    (params.not_before, params.not_after) = (moment(from_unix_s), moment(to_unix_s));
}

fn authority_params(name: &str, from_unix_s: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut params, from_unix_s, from_unix_s + 10 * DAY);
    params
}

/// As long as its authority; its serial number is told by its key.
fn client_params(name: &str, authority: &CertificateParams, key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = (authority.not_before, authority.not_after);
    let mut serial = key.public_key_raw()[..16].to_vec();
    serial[0] = 1;
    params.serial_number = Some(SerialNumber::from(serial));
    params
}

fn named(name: &str) -> rcgen::DistinguishedName {
    let mut subject = rcgen::DistinguishedName::new();
    subject.push(DnType::OrganizationName, "House");
    subject.push(DnType::CommonName, name);
    subject
}

fn moment(unix_s: u64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(unix_s.cast_signed()).expect("a date of this era")
}

/// Text of a binary value (RFC 7468).
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

//! The identity of a client by its certificate.
//!
//! It must never be made of a certificate that was not verified, and never keep the certificate itself.
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::limits::SUBJECT_BYTES_MAX;

/// What is known of a client that has proved to own a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientIdentity {
    /// The number of the policy whose authorities vouch for it: [`super::CertificatePolicy::number`].
    pub policy: u64,
    /// The subject of the certificate as text (RFC 4514), at most [`SUBJECT_BYTES_MAX`] bytes.
    pub subject: Box<str>,
    /// The SHA-256 digest of the certificate.
    pub fingerprint: [u8; 32],
    /// By what it was verified, and until when that holds.
    pub(crate) proof: Proof,
}

/// By what a certificate was verified, and the last second in which that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Proof {
    /// [`super::ClientAuthority::digest`], cut.
    pub(crate) authority: u64,
    pub(crate) until_unix_s: u64,
}

impl ClientIdentity {
    /// Whom this certificate names, which was verified. `None`: it cannot be read, or its subject is longer
    /// than any.
    pub(crate) fn of(der: &[u8], policy: u64, proof: Proof) -> Option<Self> {
        let subject = subject(&Certificate::from_der(der).ok()?)?;
        let fingerprint = digest(&SHA256, der).as_ref().try_into().ok()?;
        Some(Self { policy, subject: subject.into(), fingerprint, proof })
    }

    /// The fingerprint in small hexadecimal letters, without separators.
    #[must_use]
    pub fn fingerprint_hex(&self) -> String {
        self.fingerprint.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing into a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Memory that it takes, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.subject.len()
    }
}

/// The subject of a certificate, if it can be shown and is not longer than any.
pub(super) fn subject(certificate: &Certificate) -> Option<String> {
    let mut text = String::new();
    write!(text, "{}", certificate.tbs_certificate().subject()).ok()?;
    Some(text).filter(|text| text.len() <= SUBJECT_BYTES_MAX)
}

//! Certificates that prove a name to an authority by a handshake (RFC 8737, `tls-alpn-01`).
//!
//! They are kept for as long as an order is under way, and must never be given to a client that offers
//! another protocol than `acme-tls/1`. Other handshakes cost no more than a look at a flag.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use ring::digest::{SHA256, digest};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::server::{ClientHello as RustlsHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivatePkcs8KeyDer;

use crate::certificate::RequestFault;
use crate::hello::ClientHello;

/// The ALPN protocol by which an authority asks for such a certificate (RFC 8737, section 6.2).
pub(crate) const ACME_TLS: &[u8] = b"acme-tls/1";

/// The certificates for challenges that are being checked, shared by all workers.
#[derive(Default)]
pub struct ChallengeCertificates {
    is_on: AtomicBool,
    /// The certificates by host name in lower case.
    table: ArcSwap<HashMap<String, Arc<CertifiedKey>>>,
}

impl ChallengeCertificates {
    /// Answers challenges for these names from now on, each with its key authorization (RFC 8555, section
    /// 8.1), and for no others.
    ///
    /// # Errors
    /// A text is no host name, or the system gives no random numbers. The challenges stay as they were then.
    pub fn replace(&self, answers: &[(&str, &str)]) -> Result<(), RequestFault> {
        let make = |(name, authorization): &(&str, &str)| {
            Ok((name.to_ascii_lowercase(), Arc::new(certificate(name, authorization)?)))
        };
        let table: HashMap<_, _> = answers.iter().map(make).collect::<Result<_, RequestFault>>()?;
        let is_on = !table.is_empty();
        self.table.store(Arc::new(table));
        self.is_on.store(is_on, Ordering::Release);
        Ok(())
    }

    /// Whether a ClientHello is an authority's check of a challenge that is being answered.
    pub(crate) fn answers(&self, hello: &ClientHello<'_>) -> bool {
        self.is_on.load(Ordering::Acquire) && hello.protocols().eq([ACME_TLS]) && {
            let name = hello.server_name.unwrap_or_default();
            self.table.load().contains_key(&name.to_ascii_lowercase())
        }
    }
}

/// For rustls' trait, which wants Debug; nothing of the table is shown.
impl fmt::Debug for ChallengeCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChallengeCertificates").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ChallengeCertificates {
    fn resolve(&self, hello: RustlsHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.table.load().get(name.strip_suffix('.').unwrap_or(&name)).cloned()
    }
}

/// A self-signed certificate with the digest of the key authorization (RFC 8737, section 3).
fn certificate(name: &str, authorization: &str) -> Result<CertifiedKey, RequestFault> {
    let fault = |error: rcgen::Error| RequestFault(error.to_string());
    let key = KeyPair::generate().map_err(fault)?;
    let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(fault)?;
    let digest = digest(&SHA256, authorization.as_bytes());
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    let made = params.self_signed(&key).map_err(fault)?;
    let private = PrivatePkcs8KeyDer::from(key.serialize_der());
    let signer = any_supported_type(&private.into()).map_err(|error| RequestFault(error.to_string()))?;
    Ok(CertifiedKey::new(vec![made.der().clone()], signer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_proved_while_it_is_asked_for() {
        let challenges = ChallengeCertificates::default();
        challenges.replace(&[("Example.ORG", "token.thumbprint")]).expect("a certificate");
        assert!(challenges.is_on.load(Ordering::Relaxed));
        assert!(challenges.table.load().contains_key("example.org"));
        assert!(challenges.replace(&[("not a name \u{e9}", "x")]).is_err());
        assert!(challenges.table.load().contains_key("example.org"), "nothing has changed");
        challenges.replace(&[]).expect("none");
        assert!(!challenges.is_on.load(Ordering::Relaxed) && challenges.table.load().is_empty());
    }
}

//! Certificate signing requests (PKCS #10, RFC 2986), each with a new key pair that is never used for
//! another.

use std::fmt;

use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use zeroize::Zeroizing;

use crate::pem::pem;

/// A certificate signing request for one host name or IP address, signed by its own key (P-256).
pub struct CertificateRequest {
    /// The request in DER.
    pub der: Vec<u8>,
    /// The private key (PKCS #8, PEM), to be written with rights 0600.
    pub key_pem: Zeroizing<String>,
}

/// Why a request or a certificate cannot be made. Its `Display` is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFault(pub(crate) String);

impl fmt::Display for RequestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key and a request for a certificate cannot be made: {}", self.0)
    }
}

impl std::error::Error for RequestFault {}

impl CertificateRequest {
    /// Makes a key pair, and a signing request for this name with it.
    ///
    /// # Errors
    /// The text is no host name or IP address, or the system gives no random numbers.
    pub fn new(name: &str) -> Result<Self, RequestFault> {
        let fault = |error: rcgen::Error| RequestFault(error.to_string());
        let key = KeyPair::generate().map_err(fault)?;
        let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(fault)?;
        // The names stand in the extension for them; authorities leave out what else a subject says.
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&key).map_err(fault)?;
        let key_pem = Zeroizing::new(pem("PRIVATE KEY", &Zeroizing::new(key.serialize_der())));
        Ok(Self { der: request.der().to_vec(), key_pem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_a_key_of_its_own() {
        let [one, other] =
            ["example.org", "192.0.2.7"].map(|name| CertificateRequest::new(name).expect(name));
        assert_ne!(*one.key_pem, *other.key_pem);
        assert!(one.key_pem.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert!(CertificateRequest::new("caf\u{e9}").is_err());
    }
}

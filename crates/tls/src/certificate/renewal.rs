//! The identifier of a certificate for renewal information (ARI, RFC 9773, section 4.1), made of the
//! certificate alone.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::AuthorityKeyIdentifier;

use super::pair::CertificatePair;

impl CertificatePair {
    /// The certificate's identifier for renewal information (RFC 9773, section 4.1): the identifier of the
    /// issuer's key and the serial number. `None` where the certificate does not name that key.
    #[must_use]
    pub fn renewal_id(&self) -> Option<String> {
        name_of(self.key.cert.first()?)
    }
}

fn name_of(der: &[u8]) -> Option<String> {
    let certificate = Certificate::from_der(der).ok()?;
    let content = certificate.tbs_certificate();
    let (_, identifier) = content.get_extension::<AuthorityKeyIdentifier>().ok()??;
    let key = identifier.key_identifier?;
    Some(format!("{}.{}", encode(key.as_bytes()), encode(content.serial_number().as_bytes())))
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, CustomExtension, KeyPair, SerialNumber};

    use super::*;

    /// Key identifier and serial number of the example of RFC 9773, section 4.1. Its own certificate cannot
    /// be read here: it is of the year 1.
    const KEY: [u8; 20] = [
        0x69, 0x88, 0x5b, 0x6b, 0x87, 0x46, 0x40, 0x41, 0xe1, 0xb3, 0x7b, 0x84, 0x7b, 0xa0, 0xae, 0x2c, 0xde,
        0x01, 0xc8, 0xd4,
    ];
    const SERIAL: &[u8] = &[0x00, 0x87, 0x65, 0x43, 0x21];

    #[test]
    fn a_certificate_is_named_as_in_the_example_of_the_standard() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["example.com".to_owned()]).expect("a name");
        params.serial_number = Some(SerialNumber::from_slice(SERIAL));
        let nameless = params.clone().self_signed(&key).expect("a certificate");
        assert_eq!(name_of(nameless.der()), None);
        // AuthorityKeyIdentifier (RFC 5280, section 4.2.1.1), the identifier of the key alone.
        let content = [&[0x30, 22, 0x80, 20], &KEY[..]].concat();
        params.custom_extensions = vec![CustomExtension::from_oid_content(&[2, 5, 29, 35], content)];
        let named = params.self_signed(&key).expect("a certificate");
        assert_eq!(name_of(named.der()).as_deref(), Some("aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE"));
        assert_eq!(name_of(&named.der()[..100]), None);
    }
}

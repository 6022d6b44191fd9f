//! The text form of keys and certificates (RFC 7468), written. Reading is that of `rustls_pki_types`.
//!
//! It must never leave a copy of a key that is not wiped.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Text of a binary value (RFC 7468).
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = Zeroizing::new(STANDARD.encode(der));
    let mut pem = String::with_capacity(text.len() + text.len() / 64 + 2 * label.len() + 40);
    pem.push_str(&format!("-----BEGIN {label}-----\n"));
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = behind;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}

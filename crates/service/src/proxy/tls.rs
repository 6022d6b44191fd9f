//! Settings of connections by TLS to servers of applications, read while files may be opened.
//!
//! It must never let a server be believed that the settings do not.

use std::path::Path;

use staunch_config::Config;
use staunch_config::units::Wire;
use staunch_tls::{OutgoingTls, OutgoingTrust, is_certificate_name};

use crate::config::Failure;

/// The only protocol that is spoken with servers (RFC 7301).
const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

/// Whether a server is spoken to by TLS.
pub(crate) fn is_wanted(config: &Config) -> bool {
    let mut applications = config.sites.iter().flat_map(staunch_config::Site::applications);
    applications.any(|application| application.wire == Wire::Https)
}

/// The settings, if a server is spoken to so.
///
/// # Errors
/// A file that cannot be read or has nothing in it, a system without authorities, a name that no certificate
/// can have.
pub(crate) fn read(config: &Config) -> Result<Option<OutgoingTls>, Failure> {
    if !is_wanted(config) {
        return Ok(None);
    }
    let proxy = &config.proxy;
    if let Some(name) = &proxy.proxy_tls_name
        && !is_certificate_name(name)
    {
        return Err(format!("proxy_tls_name: no certificate can have the name '{name}'").into());
    }
    let identity = match &proxy.proxy_tls_certificate {
        None if proxy.proxy_tls_key.is_some() => {
            let text =
                "proxy_tls_key: a key is named, and no certificate: write proxy_tls_certificate as well";
            return Err(text.to_owned().into());
        }
        None => None,
        Some(chain) => {
            let key = proxy.proxy_tls_key.as_ref().unwrap_or(chain);
            Some((text("proxy_tls_certificate", chain)?, text("proxy_tls_key", key)?))
        }
    };
    let identity = identity.as_ref().map(|(chain, key)| (&chain[..], &key[..]));
    let made = |trust, of: &str| {
        let made = OutgoingTls::new(trust, identity, PROTOCOLS);
        made.map(Some).map_err(|fault| Failure::from(format!("proxy: TLS to servers{of}: {fault}")))
    };
    match &proxy.proxy_tls_ca {
        _ if proxy.proxy_tls_insecure => made(OutgoingTrust::Anything, ""),
        Some(file) => {
            let authorities = text("proxy_tls_ca", file)?;
            made(OutgoingTrust::Authorities(&authorities), &format!(": {}", file.display()))
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            let roots: Vec<Vec<u8>> = found.certs.iter().map(|root| root.to_vec()).collect();
            made(OutgoingTrust::Roots(&roots), ": authorities of the system (package ca-certificates)")
        }
    }
}

fn text(key: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| format!("{key}: {}: {error}", file.display()).into())
}

//! Settings of connections by TLS to servers of applications, read while files may be opened.
//!
//! It must never let a server be believed that the settings do not.

use std::path::Path;

use staunch_config::Config;
use staunch_config::units::{ServerAddress, Wire};
use staunch_netio::named_file::read_file;
use staunch_program::Failure;
use staunch_tls::{OutgoingTls, OutgoingTrust, is_certificate_name};

use crate::limits::CERTIFICATES_BYTES_MAX;

/// The only protocol that is spoken with servers (RFC 7301).
const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

/// Whether a server is spoken to by TLS.
pub(crate) fn is_wanted(config: &Config) -> bool {
    let mut applications = config.sites.iter().flat_map(staunch_config::Site::applications);
    applications.any(|application| application.wire == Wire::Https)
}

/// A line about settings of TLS that no server needs: `https://` may have been forgotten.
pub(crate) fn needless(config: &Config) -> Option<String> {
    let proxy = &config.proxy;
    let is_set = proxy.proxy_tls_ca.is_some() || proxy.proxy_tls_name.is_some() || proxy.proxy_tls_insecure;
    let has_identity = proxy.proxy_tls_certificate.is_some() || proxy.proxy_tls_key.is_some();
    let is_needless = (is_set || has_identity) && !is_wanted(config);
    is_needless
        .then(|| "proxy_tls_...: no server begins with https://, so none is spoken to by TLS".to_owned())
}

/// Refuses names that no certificate can have.
///
/// # Errors
/// The first of them.
pub(crate) fn expect_names(config: &Config) -> Result<(), Failure> {
    if let Some(name) = &config.proxy.proxy_tls_name {
        return expect_name("proxy_tls_name", name);
    }
    let applications = config.sites.iter().flat_map(staunch_config::Site::applications);
    let secured = applications.filter(|application| application.wire == Wire::Https);
    for server in secured.flat_map(|application| &application.servers) {
        if let ServerAddress::Name(name) = server {
            let host = name.rsplit_once(':').map_or(&**name, |(host, _)| host);
            expect_name("proxy", host)?;
        }
    }
    Ok(())
}

fn expect_name(key: &str, name: &str) -> Result<(), Failure> {
    if is_certificate_name(name) {
        return Ok(());
    }
    Err(format!("{key}: no certificate can have the name '{name}'").into())
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
    expect_names(config)?;
    let proxy = &config.proxy;
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
    if identity.is_some() {
        // Alone, so that a fault of it is told from one of authorities.
        OutgoingTls::new(OutgoingTrust::Anything, identity, PROTOCOLS)
            .map_err(|fault| format!("proxy_tls_certificate: {fault}"))?;
    }
    let made = |trust, of: &str| {
        let made = OutgoingTls::new(trust, identity, PROTOCOLS);
        made.map(Some).map_err(|fault| Failure::from(format!("{of}: {fault}")))
    };
    match &proxy.proxy_tls_ca {
        _ if proxy.proxy_tls_insecure => made(OutgoingTrust::Anything, "proxy_tls_insecure"),
        Some(file) => {
            let authorities = text("proxy_tls_ca", file)?;
            made(OutgoingTrust::Authorities(&authorities), &format!("proxy_tls_ca: {}", file.display()))
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            let roots: Vec<Vec<u8>> = found.certs.iter().map(|root| root.to_vec()).collect();
            let of = "proxy_tls_ca: authorities of the system (package ca-certificates)";
            made(OutgoingTrust::Roots(&roots), of)
        }
    }
}

fn text(key: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    read_file(file, CERTIFICATES_BYTES_MAX)
        .map_err(|error| format!("{key}: {}: {error}", file.display()).into())
}

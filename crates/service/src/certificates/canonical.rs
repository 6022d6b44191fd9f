//! Names of sites that lead to another: the canonical ones, with the port of HTTPS.
//!
//! It must never lead a canonical name anywhere.

use std::collections::HashMap;

use staunch_config::{Config, Site};

/// The port of HTTPS that an address need not name.
pub(super) const HTTPS_PORT: u16 = 443;

/// Names of sites that have another, canonical one, and the origin of that at this port.
pub(super) fn canonical_origins(config: &Config, port: u16) -> HashMap<String, String> {
    let of_site = |site: &Site| {
        let canonical = site.canonical_host.as_deref()?;
        let host = canonical.strip_prefix("https://").or((!canonical.contains("://")).then_some(canonical))?;
        let names_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let port = if port == HTTPS_PORT || names_port { String::new() } else { format!(":{port}") };
        Some((host.to_owned(), format!("https://{host}{port}"), site.hosts.clone()))
    };
    let all = config.sites.iter().filter_map(of_site);
    let leads = all.flat_map(|(host, origin, names)| {
        names.into_iter().filter(move |name| *name != host).map(move |name| (name, origin.clone()))
    });
    leads.collect()
}

//! Hosts that are led from plain HTTP to HTTPS: those that have a certificate.
//!
//! It owns their table, which is exchanged as a whole. It must never lead anybody to a host that was not
//! asked for, and never cost a request more than a look at a flag where nobody is led.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use staunch_engine::{Answer, Answered};
use staunch_protocol::http1::Request;

use crate::redirect;

/// The port that an address of HTTPS need not name.
const HTTPS_PORT: u16 = 443;

/// The table, shared by all workers.
#[derive(Debug, Default)]
pub struct HttpsHosts {
    is_on: AtomicBool,
    table: ArcSwap<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Exact names, wildcards with their `*.`, and addresses as they stand in a Host field.
    names: HashSet<String>,
    port: u16,
}

impl HttpsHosts {
    /// From now on requests for these names are led to this port. A wildcard begins with `*.`, an address of
    /// IPv6 has no brackets.
    pub fn replace(&self, names: impl IntoIterator<Item = String>, port: u16) {
        let bracketed = |name: String| if name.contains(':') { format!("[{name}]") } else { name };
        let names: HashSet<String> = names.into_iter().map(bracketed).collect();
        let is_on = !names.is_empty();
        self.table.store(Table { names, port }.into());
        self.is_on.store(is_on, Ordering::Release);
    }

    /// Whether anybody is led.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Answers a plain request by where it is to go, or gives the answer back to be given by others.
    #[cold]
    #[inline(never)]
    pub(crate) fn lead<'a>(&self, request: &Request<'_>, answer: Answer<'a>) -> Result<Answered, Answer<'a>> {
        if answer.is_secured() || !request.path.starts_with(b"/") {
            return Err(answer);
        }
        match self.table.load().origin(request.host) {
            Some(origin) => Ok(redirect::to_https(&origin, request.path, request.query, answer)),
            None => Err(answer),
        }
    }
}

impl Table {
    /// The beginning of the address to which a request for a host is led.
    fn origin(&self, host: &[u8]) -> Option<String> {
        let host = std::str::from_utf8(host).ok()?.to_ascii_lowercase();
        let name = host.strip_suffix('.').unwrap_or(&host);
        let by_wildcard = || {
            let (label, rest) = name.split_once('.')?;
            (!label.is_empty() && self.names.contains(&format!("*.{rest}"))).then_some(())
        };
        if !self.names.contains(name) {
            by_wildcard()?;
        }
        let port = self.port;
        Some(if port == HTTPS_PORT { format!("https://{name}") } else { format!("https://{name}:{port}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_a_certificate_are_led_and_no_others() {
        let hosts = HttpsHosts::default();
        assert!(!hosts.is_on());
        let names = ["example.org", "*.example.org", "192.0.2.7", "2001:db8::7"].map(str::to_owned);
        hosts.replace(names.clone(), 8443);
        let table = hosts.table.load();
        for (host, expected) in [
            ("example.org", Some("https://example.org:8443")),
            ("EXAMPLE.org.", Some("https://example.org:8443")),
            ("a.example.org", Some("https://a.example.org:8443")),
            ("a.b.example.org", None),
            (".example.org", None),
            ("192.0.2.7", Some("https://192.0.2.7:8443")),
            ("[2001:db8::7]", Some("https://[2001:db8::7]:8443")),
            ("example.com", None),
            ("", None),
        ] {
            assert_eq!(table.origin(host.as_bytes()).as_deref(), expected, "{host}");
        }
        hosts.replace(names, 443);
        assert_eq!(hosts.table.load().origin(b"example.org").as_deref(), Some("https://example.org"));
        hosts.replace([], 443);
        assert!(!hosts.is_on());
    }
}

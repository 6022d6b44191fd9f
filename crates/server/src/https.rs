//! What plain HTTP answers before any site: a redirect to HTTPS for hosts with a certificate, and the answers
//! to challenges by which an authority gives one (HTTP-01; RFC 8555, section 8.3).
//!
//! Both tables are owned here, each exchanged as a whole. Nobody must be led to another host than the one
//! asked for, or the canonical one of its site, and no token be answered that no order waits for. While both
//! tables are empty a request costs a look at a flag.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use staunch_engine::{Answer, Answered};
use staunch_protocol::{Method, Request, Status};

use crate::redirect;

/// The port that an address of HTTPS need not name.
const HTTPS_PORT: u16 = 443;

/// The path of HTTP-01 challenges, before the token.
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// The tables, shared by all workers.
#[derive(Debug, Default)]
pub struct HttpsHosts {
    is_on: AtomicBool,
    table: ArcSwap<Table>,
    /// Key authorizations by the token that an authority asks for.
    challenges: ArcSwap<HashMap<String, String>>,
    /// Held while one of both tables is exchanged, so that the flag fits both.
    exchanging: Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    /// Exact names, wildcards with their `*.`, and addresses as they stand in a Host field.
    names: HashSet<String>,
    port: u16,
    /// Names of sites that have another, canonical one, and the origin of that.
    canonical: HashMap<String, String>,
}

impl HttpsHosts {
    /// From now on requests for these names are led to this port. A wildcard begins with `*.`, an address of
    /// IPv6 has no brackets.
    /// `canonical` are names that lead to the origin of another one at once.
    pub fn replace(
        &self,
        names: impl IntoIterator<Item = String>,
        port: u16,
        canonical: HashMap<String, String>,
    ) {
        let bracketed = |name: String| if name.contains(':') { format!("[{name}]") } else { name };
        let names: HashSet<String> = names.into_iter().map(bracketed).collect();
        self.exchange(|| self.table.store(Table { names, port, canonical }.into()));
    }

    /// Answers challenges with these tokens from now on, each with its key authorization (RFC 8555, section
    /// 8.1), and no others.
    pub fn prove(&self, answers: impl IntoIterator<Item = (String, String)>) {
        let answers: HashMap<String, String> = answers.into_iter().collect();
        self.exchange(|| self.challenges.store(answers.into()));
    }

    fn exchange(&self, change: impl FnOnce()) {
        let _alone = self.exchanging.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        change();
        let is_on = !self.table.load().names.is_empty() || !self.challenges.load().is_empty();
        self.is_on.store(is_on, Ordering::Release);
    }

    /// Whether any host is led to HTTPS, or any challenge answered.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Answers a plain request by where it is to go, or gives the answer back to be given by others.
    #[cold]
    #[inline(never)]
    pub(crate) fn lead<'a>(&self, request: &Request<'_>, answer: Answer<'a>) -> Result<Answered, Answer<'a>> {
        if let Some(proof) = self.proof(request) {
            let length = proof.len();
            let fields = format!("Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n");
            return Ok(answer.bytes(Status::OK, fields.as_bytes(), proof.as_bytes()));
        }
        if answer.is_secured() || !request.path.starts_with(b"/") {
            return Err(answer);
        }
        match self.table.load().origin(request.host) {
            Some(origin) => Ok(redirect::to_https(&origin, request.path, request.query, answer)),
            None => Err(answer),
        }
    }

    /// The key authorization for the token that this request asks for, if an order waits for it.
    fn proof(&self, request: &Request<'_>) -> Option<String> {
        let token = request.path.strip_prefix(CHALLENGES)?;
        let token = std::str::from_utf8(token).ok().filter(|_| request.method == Method::Get)?;
        self.challenges.load().get(token).cloned()
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
        if let Some(origin) = self.canonical.get(name) {
            return Some(origin.clone());
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
        let canonical = HashMap::from([("a.example.org".to_owned(), "https://example.org:8443".to_owned())]);
        hosts.replace(names.clone(), 8443, canonical);
        let table = hosts.table.load();
        for (host, expected) in [
            ("example.org", Some("https://example.org:8443")),
            ("EXAMPLE.org.", Some("https://example.org:8443")),
            ("a.example.org", Some("https://example.org:8443")),
            ("b.example.org", Some("https://b.example.org:8443")),
            ("a.b.example.org", None),
            (".example.org", None),
            ("192.0.2.7", Some("https://192.0.2.7:8443")),
            ("[2001:db8::7]", Some("https://[2001:db8::7]:8443")),
            ("example.com", None),
            ("", None),
        ] {
            assert_eq!(table.origin(host.as_bytes()).as_deref(), expected, "{host}");
        }
        hosts.replace(names, 443, HashMap::new());
        assert_eq!(hosts.table.load().origin(b"example.org").as_deref(), Some("https://example.org"));
        hosts.replace([], 443, HashMap::new());
        assert!(!hosts.is_on());
        hosts.prove([("token".to_owned(), "token.thumbprint".to_owned())]);
        assert!(hosts.is_on());
        hosts.replace([], 443, HashMap::new());
        assert!(hosts.is_on(), "a token is waited for");
        hosts.prove([]);
        assert!(!hosts.is_on());
    }
}

//! What the admin address answers: metrics, health, readiness, figures.
//!
//! It must never be reachable from the address of a site: it says what peers have no business to know. Nor
//! from a web page that has given its own name this address (DNS rebinding): a request for a name that is not
//! known is refused. One request a connection, so that nobody holds a place.

mod operator;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use staunch_protocol::Status;
use staunch_protocol::http1::{Event, Session};
use staunch_protocol::{BodyRule, Method, Request};

use crate::metrics::{self, Readiness, Sources};

const TEXT: &str = "text/plain; charset=utf-8";
/// The form that Prometheus reads.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";
const INDEX: &str = "/metrics      for Prometheus\n/healthz      200 while the process lives\n\
    /readyz       200 when requests should be sent here, else 503; with what is wrong with single sites\n\
    /status.json  what `staunch top` shows\n\
    /operator     the same as a page that lives; a browser gets it at / too\n";
/// Pages that exist only where their part does.
const PROXY: &str = "/proxy        the applications behind, and how their limits came to be\n";
const FABRIC: &str = "/fabric       the other servers of this LAN\n";

/// Where the page for people stands.
const OPERATOR: &[u8] = b"/operator";

/// What stands at a path.
pub type Pages = Box<dyn Fn(&[u8]) -> Option<Page> + Send + Sync>;
/// Metrics of something else in this process, in the form that Prometheus reads.
pub type MoreMetrics = Box<dyn Fn() -> String + Send + Sync>;

/// The handler of the admin address: one value for all of its connections.
pub struct Admin {
    pages: Pages,
    /// Names it may be asked for by, in small letters; `*.` in front stands for any names before the rest.
    hosts: Vec<String>,
}

/// The time, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Milliseconds on a clock that never goes back.
    pub ms: u64,
    /// The time of day.
    pub wall: SystemTime,
}

/// An answer.
#[derive(Debug)]
pub struct Page {
    status: Status,
    media: &'static str,
    /// Further field lines.
    lines: String,
    body: String,
}

impl Admin {
    /// The pages of a server with these figures. `more` stands behind its metrics. `hosts` as for
    /// [`Admin::of`].
    pub fn new(sources: Arc<Sources>, more: Option<MoreMetrics>, hosts: Vec<String>) -> Self {
        Self::of(Box::new(move |path| page(&sources, more.as_ref(), path)), hosts)
    }

    /// These pages, and 404 for every other path. It may be asked for by these names (in small letters, `*.`
    /// in front stands for any), as localhost, by any IP address, and without a host (HTTP/1.0).
    pub fn of(pages: Pages, hosts: Vec<String>) -> Self {
        Self { pages, hosts }
    }

    /// Bytes came. Appends the answer, if there is one. Whether the conversation is over.
    pub fn converse(&self, session: &mut Session, bytes: &[u8], now: Now, out: &mut Vec<u8>) -> bool {
        let mut date = [b' '; 29];
        date.copy_from_slice(&httpdate::fmt_http_date(now.wall.max(SystemTime::UNIX_EPOCH)).as_bytes()[..29]);
        let joined = session.take_kept(bytes);
        let mut input = &joined[..];
        match session.poll_event(&mut input, now.ms, &date, out) {
            Event::Request(request) => {
                let page = self.page(&request);
                session.close_after_response();
                let rule = session.begin_response(page.status, &date, out);
                page.write(rule, out);
                true
            }
            Event::NeedInput | Event::Body(_) | Event::BodyEnd => {
                session.keep(input);
                false
            }
            Event::Preface => {
                session.refuse_preface(&date, out);
                true
            }
            Event::Close { .. } => true,
        }
    }

    fn page(&self, request: &Request<'_>) -> Page {
        if !self.is_known(request.host) {
            return Page::text(
                Status::MISDIRECTED_REQUEST,
                "this host is not known here: ask for localhost or an IP address, or allow the name\n",
            );
        }
        if !matches!(request.method, Method::Get | Method::Head) {
            return Page::text(Status::METHOD_NOT_ALLOWED, "GET and HEAD only\n");
        }
        let by_browser = request.path == b"/" && operator::is_wanted(request);
        let page = by_browser.then(|| (self.pages)(OPERATOR)).flatten();
        let page = page.or_else(|| (self.pages)(request.path));
        page.unwrap_or_else(|| Page::text(Status::NOT_FOUND, "nothing here; see /\n"))
    }

    /// Whether it may be asked for by this host. An address is not a name that somebody could have given it.
    fn is_known(&self, host: &[u8]) -> bool {
        let Ok(host) = std::str::from_utf8(host) else { return false };
        let host = host.to_ascii_lowercase();
        let name = host.strip_suffix('.').unwrap_or(&host);
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_one = |known: &String| match known.strip_prefix('*') {
            Some(end) => name.len() > end.len() && name.ends_with(end),
            None => name == known,
        };
        name.is_empty()
            || name == "localhost"
            || name.ends_with(".localhost")
            || address.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(is_one)
    }
}

fn page(sources: &Sources, more: Option<&MoreMetrics>, path: &[u8]) -> Option<Page> {
    Some(match path {
        b"/" => {
            let fabric = if sources.fabric().is_some() { FABRIC } else { "" };
            let proxy = if sources.proxy().is_some() { PROXY } else { "" };
            Page::text(Status::OK, &[INDEX, proxy, fabric].concat())
        }
        b"/metrics" => {
            let more = more.map(|more| more()).unwrap_or_default();
            Page::metrics(metrics::text(&sources.snapshot()) + &more)
        }
        b"/healthz" => Page::text(Status::OK, "ok\n"),
        b"/readyz" => match sources.readiness() {
            Readiness::Ready => {
                // Not 503: that would take the sites that are served from their visitors, too.
                let troubles = sources.troubles();
                let lines = troubles.iter().map(|trouble| format!("but: {trouble}\n"));
                Page::text(Status::OK, &format!("ready\n{}", lines.collect::<String>()))
            }
            Readiness::Preparing => Page::text(Status::SERVICE_UNAVAILABLE, "preparing\n"),
            Readiness::Draining => Page::text(Status::SERVICE_UNAVAILABLE, "draining\n"),
        },
        OPERATOR => {
            let (lines, body) = operator::page();
            Page { status: Status::OK, media: "text/html; charset=utf-8", lines, body }
        }
        b"/status.json" => Page::json(&sources.snapshot()),
        b"/proxy" => match sources.proxy() {
            Some(figures) => Page::text(Status::OK, &figures.page()),
            None => {
                Page::text(Status::NOT_FOUND, "no site has an application: see `proxy` in the settings\n")
            }
        },
        b"/fabric" => match sources.fabric() {
            Some(figures) => Page::text(Status::OK, &figures.page()),
            None => Page::text(Status::NOT_FOUND, "there is no fabric: see `fabric` in the settings\n"),
        },
        _ => return None,
    })
}

impl Page {
    /// A text for people.
    pub fn text(status: Status, body: &str) -> Self {
        Self { status, media: TEXT, lines: String::new(), body: body.to_owned() }
    }

    /// Metrics in the form that Prometheus reads.
    pub fn metrics(body: String) -> Self {
        Self { status: Status::OK, media: EXPOSITION, lines: String::new(), body }
    }

    /// A value as JSON.
    pub fn json(value: &impl serde::Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self {
                status: Status::OK,
                media: "application/json",
                lines: String::new(),
                body: body + "\n",
            },
            Err(error) => Self::text(Status::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
        }
    }

    fn write(&self, rule: BodyRule, out: &mut Vec<u8>) {
        let allow = if self.status == Status::METHOD_NOT_ALLOWED { "Allow: GET, HEAD\r\n" } else { "" };
        let fields = format!(
            "{allow}{}Content-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n\r\n",
            self.lines,
            self.media,
            self.body.len()
        );
        out.extend_from_slice(fields.as_bytes());
        if rule == BodyRule::Send {
            out.extend_from_slice(self.body.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use staunch_engine::Stats;

    use super::*;
    use crate::About;
    use crate::log::{AccessLog, ErrorLog};
    use crate::metrics::{ContentFigures, Snapshot};

    fn admin() -> (Admin, Arc<Sources>) {
        let about = About { version: "1", io: "epoll", stats: vec![Arc::new(Stats::default())] };
        let log = AccessLog::new(Arc::new(|_| {}));
        let logs = (log, ErrorLog::new().unwrap());
        let sources =
            Arc::new(Sources::new(about, 10, Instant::now(), Box::new(ContentFigures::default), logs, false));
        let more: MoreMetrics = Box::new(|| "# TYPE more gauge\nmore 1\n".to_owned());
        let hosts = vec!["web1.example".to_owned(), "*.example.org".to_owned()];
        (Admin::new(Arc::clone(&sources), Some(more), hosts), sources)
    }

    fn ask(admin: &Admin, pieces: &[&str]) -> String {
        let (mut session, mut out) = (Session::new(0), Vec::new());
        let now = Now { ms: 0, wall: SystemTime::UNIX_EPOCH };
        for (index, piece) in pieces.iter().enumerate() {
            let over = admin.converse(&mut session, piece.as_bytes(), now, &mut out);
            assert_eq!(over, index + 1 == pieces.len());
        }
        String::from_utf8(out).unwrap()
    }

    fn get(admin: &Admin, path: &str) -> String {
        ask(admin, &[&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")])
    }

    #[test]
    fn every_page_is_there() {
        let (admin, sources) = admin();
        assert!(get(&admin, "/readyz").ends_with("\r\n\r\npreparing\n"));
        sources.serve();
        for (path, status, words) in [
            ("/", "200", "/metrics"),
            ("/metrics", "200", "\n# TYPE staunch_requests_total counter\nstaunch_requests_total 0\n"),
            ("/metrics", "200", "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            ("/metrics", "200", "\n# TYPE more gauge\nmore 1\n"),
            ("/healthz", "200", "\r\n\r\nok\n"),
            ("/readyz?x", "200", "\r\n\r\nready\n"),
            ("/else", "404", "see /"),
        ] {
            let answer = get(&admin, path);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(answer.contains(words) && answer.contains("\r\nConnection: close\r\n"), "{answer}");
        }
        sources.drain();
        assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 503 "));
        assert!(get(&admin, "/healthz").starts_with("HTTP/1.1 200 "));
        let status = get(&admin, "/status.json");
        let snapshot: Snapshot = serde_json::from_str(status.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!((snapshot.workers.len(), snapshot.readiness), (1, Readiness::Draining));
    }

    #[test]
    fn a_browser_is_shown_a_page_that_loads_nothing_else() {
        let (admin, _) = admin();
        let shown = |path: &str, accept: &str| {
            ask(&admin, &[&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n")])
        };
        let nonce = |answer: &str| {
            let (_, rest) = answer.split_once("script-src 'nonce-").unwrap();
            rest.split_once('\'').unwrap().0.to_owned()
        };
        let page = shown("/", "text/html,application/xhtml+xml,*/*;q=0.8");
        let own = nonce(&page);
        assert_eq!(page.matches(&format!("nonce=\"{own}\"")).count(), 2, "style and script");
        assert!(page.contains("default-src 'none'") && !page.contains("\"NONCE\""));
        assert!(!page.contains("src=") && page.contains("<link rel=\"icon\" href=\"data:,\">"));
        assert_ne!(nonce(&shown("/operator", "*/*")), own);
        assert!(shown("/", "*/*").contains("/metrics      for Prometheus"));
        let bare = Admin::of(Box::new(|path| (path == b"/").then(|| Page::text(Status::OK, "bare"))), vec![]);
        let head = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n";
        assert!(ask(&bare, &[head]).ends_with("bare"));
    }

    #[test]
    fn a_name_that_is_not_known_is_refused() {
        let (admin, _) = admin();
        for (line, status) in [
            ("Host: localhost:9090", "200"),
            ("Host: LOCALHOST.", "200"),
            ("Host: staunch.localhost", "200"),
            ("Host: 127.0.0.1:9090", "200"),
            ("Host: 192.0.2.7", "200"),
            ("Host: [::1]:9090", "200"),
            ("Host: Web1.Example:9090", "200"),
            ("Host: a.b.example.org", "200"),
            ("Host: example.org", "421"),
            ("Host: evil.example", "421"),
            ("Host: localhost.evil.example", "421"),
            ("Host: 127.0.0.1.evil.example", "421"),
            ("Host: notlocalhost", "421"),
            ("Accept: */*", "400"),
        ] {
            for path in ["/metrics", "/healthz", "/nowhere"] {
                let status = if (path, status) == ("/nowhere", "200") { "404" } else { status };
                let answer = ask(&admin, &[&format!("GET {path} HTTP/1.1\r\n{line}\r\n\r\n")]);
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
            }
        }
        let evil = ask(&admin, &["GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"]);
        assert!(evil.starts_with("HTTP/1.1 421 "), "{evil}");
        let old = ask(&admin, &["GET /healthz HTTP/1.0\r\n\r\n"]);
        assert!(old.contains(" 200 "), "{old}");
    }

    #[test]
    fn only_reading_is_allowed_and_nonsense_is_refused() {
        let (admin, _) = admin();
        let post = ask(&admin, &["POST /metrics HTTP/1.1\r\nHost: [::1]\r\n", "Content-Length: 0\r\n\r\n"]);
        assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("\r\nAllow: GET, HEAD\r\n"), "{post}");
        assert!(ask(&admin, &["nonsense\r\n\r\n"]).starts_with("HTTP/1.1 400 "));
        let head = ask(&admin, &["HEAD /healthz HTTP/1.1\r\nHost: 10.0.0.1:9090\r\n\r\n"]);
        assert!(head.contains("Content-Length: 3\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    }
}

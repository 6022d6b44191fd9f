//! Differences instead of documents (RFC 9842), as far as files and live data have them in common: whether a
//! request may be answered by one, and what is counted.
//!
//! This module must never look up a dictionary: its owner compares the hash with those that it made itself.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};
use staunch_dictionary::{Facts, Hash, accepts_dcz, available, is_local_host};
use staunch_protocol::Request;

/// The hash of the dictionary that a request says it has, if the difference to it may be the answer: the
/// client takes one, nobody in between sees it, and the page that asks may read the answer, which does not
/// depend on who asks. `allow_origin` is what the answer says of who may read it.
pub(crate) fn held_dictionary(
    request: &Request<'_>,
    is_secured: bool,
    allow_origin: Option<&[u8]>,
) -> Option<Hash> {
    let mut values = request.values(b"available-dictionary");
    let hash = available(values.next()?)?;
    if values.next().is_some() || !accepts_dcz(request.values(b"accept-encoding")) {
        return None;
    }
    let [site, mode, origin] = [&b"sec-fetch-site"[..], b"sec-fetch-mode", b"origin"];
    let [site, mode, origin] = [site, mode, origin].map(|name| joined(request, name));
    let facts = Facts {
        is_secure: is_secured || request.values(b"host").next().is_some_and(is_local_host),
        depends_on_client: false,
        site: site.as_deref(),
        mode: mode.as_deref(),
        origin: origin.as_deref(),
        allow_origin,
    };
    facts.allow_difference().then_some(hash)
}

/// The value of a field; what stands twice as both values, which is no known one.
fn joined<'a>(request: &Request<'a>, name: &[u8]) -> Option<Cow<'a, [u8]>> {
    let mut values = request.values(name);
    let first = values.next()?;
    Some(match values.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned([first, b", ", second].concat()),
    })
}

/// Counters of differences. One worker writes them.
#[derive(Debug, Default)]
pub(crate) struct DictionaryCounts {
    asked: AtomicU64,
    answered: AtomicU64,
    unknown: AtomicU64,
    saved_bytes: AtomicU64,
}

impl DictionaryCounts {
    /// A request has a dictionary that may be used; `is_known`: it is one of the versions that are held.
    pub(crate) fn ask(&self, is_known: bool) {
        self.asked.fetch_add(1, Relaxed);
        self.unknown.fetch_add(u64::from(!is_known), Relaxed);
    }

    /// A difference was the answer, and so many bytes shorter than what would have been sent without it.
    pub(crate) fn answer(&self, saved_bytes: usize) {
        self.answered.fetch_add(1, Relaxed);
        self.saved_bytes.fetch_add(saved_bytes as u64, Relaxed);
    }

    /// The counts so far.
    pub(crate) fn figures(&self) -> DictionaryFigures {
        DictionaryFigures {
            asked: self.asked.load(Relaxed),
            answered: self.answered.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            saved_bytes: self.saved_bytes.load(Relaxed),
        }
    }
}

/// Counts of differences since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DictionaryFigures {
    /// Requests with a dictionary to which a difference may be told.
    pub asked: u64,
    /// Requests that were answered by a difference, of those asked.
    pub answered: u64,
    /// Requests whose dictionary is not, or no more, known here, of those asked.
    pub unknown: u64,
    /// Bytes of bodies that were saved by differences.
    pub saved_bytes: u64,
}

impl DictionaryFigures {
    /// Adds those of another worker, site or kind.
    pub fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.unknown += other.unknown;
        self.saved_bytes += other.saved_bytes;
    }
}

#[cfg(test)]
mod tests {
    use staunch_protocol::http1::{Event, Session};

    use super::*;

    const HASH: &str = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";

    /// Whether a request with these lines may be answered by a difference.
    fn may(lines: &str, is_secured: bool, allow_origin: Option<&[u8]>) -> bool {
        let head = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        let (mut session, mut out) = (Session::new(0), Vec::new());
        let mut input = head.as_bytes();
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        let Event::Request(request) = session.poll_event(&mut input, 0, date, &mut out) else {
            panic!("{head:?} is not a request")
        };
        held_dictionary(&request, is_secured, allow_origin).is_some()
    }

    #[test]
    fn who_may_get_a_difference() {
        let asks = format!("Available-Dictionary: {HASH}\r\nAccept-Encoding: gzip, dcz\r\n");
        let table = [
            ("Host: a\r\n", true, None, true),
            ("Host: a\r\n", false, None, false),
            ("Host: localhost:8080\r\n", false, None, true),
            ("Host: a\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n", true, None, true),
            ("Host: a\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", true, None, false),
            (
                "Host: a\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b\r\n",
                true,
                Some(&b"https://b"[..]),
                true,
            ),
            (
                "Host: a\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b\r\n",
                true,
                None,
                false,
            ),
            (
                "Host: a\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n\
                 Sec-Fetch-Mode: no-cors\r\n",
                true,
                None,
                false,
            ),
        ];
        for (lines, is_secured, allow_origin, expected) in table {
            assert_eq!(may(&format!("{lines}{asks}"), is_secured, allow_origin), expected, "{lines}");
        }
        for asks in [
            String::new(),
            format!("Available-Dictionary: {HASH}\r\n"),
            format!("Available-Dictionary: {HASH}\r\nAccept-Encoding: dcz;q=0\r\n"),
            format!(
                "Available-Dictionary: {HASH}\r\nAvailable-Dictionary: {HASH}\r\nAccept-Encoding: dcz\r\n"
            ),
            format!("Available-Dictionary: {HASH}, {HASH}\r\nAccept-Encoding: dcz\r\n"),
            "Available-Dictionary: :AAAA:\r\nAccept-Encoding: dcz\r\n".to_owned(),
        ] {
            assert!(!may(&format!("Host: a\r\n{asks}"), true, None), "{asks}");
        }
    }
}

//! The standing of a request: how urgent it is, and whether its client was here before.
//!
//! This module owns the rules for both. It must never let a request raise its own class: what a client says
//! lowers it, and rules of the path alone raise it. Whether a client is known it may say itself, by the name
//! of a cookie; what that wins has a bound where places are given (`staunch_engine::Places`).

use staunch_engine::{PlaceClass, Standing};
use staunch_protocol::Request;
use staunch_protocol::http1::relay::cookies_in;

/// The facts about a request that it does not say itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clues<'a> {
    /// The class that rules give to its path.
    pub(crate) of_path: PlaceClass,
    /// Names of cookies that known clients have.
    pub(crate) cookies: &'a [Box<[u8]>],
    /// Whether the client has come with a ticket of ours.
    pub(crate) has_ticket: bool,
}

/// The standing of a request.
pub(crate) fn standing(clues: &Clues<'_>, request: &Request<'_>) -> Standing {
    judge(clues, request.values(b"sec-purpose"), request.values(b"cookie"))
}

/// Whether a request is made ahead, for a page that may never be seen.
pub(crate) fn is_ahead(request: &Request<'_>) -> bool {
    request.values(b"sec-purpose").any(is_purpose_ahead)
}

fn judge<'a>(
    clues: &Clues<'_>,
    mut purposes: impl Iterator<Item = &'a [u8]>,
    cookies: impl Iterator<Item = &'a [u8]>,
) -> Standing {
    let class = if purposes.any(is_purpose_ahead) { PlaceClass::Low } else { clues.of_path };
    Standing { class, is_known: clues.has_ticket || has_cookie(clues.cookies, cookies) }
}

/// Whether a value of Sec-Purpose (Fetch standard, section 2.1; a token with parameters) says so: browsers
/// write `prefetch`, and `prefetch;prerender` for a page that is made ready whole.
fn is_purpose_ahead(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|item| {
        let token = item.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        token == b"prefetch" || token == b"prerender"
    })
}

fn has_cookie<'a>(names: &[Box<[u8]>], mut lines: impl Iterator<Item = &'a [u8]>) -> bool {
    let has = |line: &'a [u8]| names.iter().any(|name| cookies_in(line, name).any(|value| !value.is_empty()));
    !names.is_empty() && lines.any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&[u8]; 2] = [b"session", b"id"];

    /// The standing by a class of the path, a ticket, values of Sec-Purpose and lines of cookies.
    fn of(of_path: PlaceClass, has_ticket: bool, purposes: &[&str], cookies: &[&str]) -> &'static str {
        let names: [Box<[u8]>; 2] = NAMES.map(Box::from);
        let clues = Clues { of_path, cookies: &names, has_ticket };
        let [purposes, cookies] = [purposes, cookies].map(|texts| texts.iter().map(|text| text.as_bytes()));
        judge(&clues, purposes, cookies).name()
    }

    #[test]
    fn the_class_is_that_of_the_path_unless_the_request_is_made_ahead() {
        use PlaceClass::{High, Low, Normal};
        let table: [(PlaceClass, &[&str], &str); 16] = [
            (Normal, &[], "normal"),
            (High, &[], "high"),
            (Low, &[], "low"),
            (Normal, &["prefetch"], "low"),
            (High, &["prefetch"], "low"),
            (Normal, &["prefetch;prerender"], "low"),
            (Normal, &["prefetch; anonymous-client-ip"], "low"),
            (Normal, &[" prerender "], "low"),
            (Normal, &["", "prefetch"], "low"),
            (Normal, &["other, prefetch"], "low"),
            // A client can make nothing urgent, and these are no words of the standard.
            (Normal, &["high"], "normal"),
            (Low, &["navigate"], "low"),
            (Normal, &["Prefetch"], "normal"),
            (Normal, &["prefetching"], "normal"),
            (Normal, &["x;prefetch"], "normal"),
            (High, &[""], "high"),
        ];
        for (of_path, purposes, wanted) in table {
            assert_eq!(of(of_path, false, purposes, &[]), wanted, "{of_path:?} {purposes:?}");
        }
    }

    #[test]
    fn a_ticket_or_a_cookie_makes_a_client_known_in_its_class() {
        use PlaceClass::{High, Low, Normal};
        let table: [(PlaceClass, bool, &[&str], &str); 12] = [
            (Normal, true, &[], "normal-known"),
            (High, true, &[], "high-known"),
            (Low, true, &[], "low-known"),
            (Normal, false, &["session=1"], "normal-known"),
            (Normal, false, &["a=b; id=2"], "normal-known"),
            (Normal, false, &["a=b", "c=d; session=x"], "normal-known"),
            (Low, false, &["session=1"], "low-known"),
            (Normal, false, &["session="], "normal"),
            (Normal, false, &["session"], "normal"),
            (Normal, false, &["Session=1"], "normal"),
            (Normal, false, &["xsession=1; a=session=1"], "normal"),
            (Normal, false, &[""], "normal"),
        ];
        for (of_path, has_ticket, cookies, wanted) in table {
            assert_eq!(of(of_path, has_ticket, &[], cookies), wanted, "{of_path:?} {has_ticket} {cookies:?}");
        }
    }

    #[test]
    fn without_names_no_cookie_is_looked_at() {
        assert!(!has_cookie(&[], std::iter::once(b"=1; session=1".as_slice())));
    }
}

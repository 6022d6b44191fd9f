//! Cookies of a request that is passed on: joined, and without one that is not the application's business.
//!
//! It must never change a pair of name and value that is passed on.

use crate::message::Request;

/// Writes all cookies of a request as one line (RFC 9113, section 8.2.3, and RFC 6265, section 5.4),
/// whichever version it came by. `without` names one that is left out; where none is left there is no line.
pub(super) fn push_cookies(request: &Request<'_>, without: Option<&[u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"Cookie: ");
    let empty = out.len();
    for value in request.values(b"cookie") {
        match without {
            Some(name) => {
                pairs(value).filter(|pair| !is_named(pair, name)).for_each(|pair| push(pair, empty, out))
            }
            None => push(value, empty, out),
        }
    }
    match out.len() {
        len if len == empty && without.is_some() => out.truncate(start),
        _ => out.extend_from_slice(b"\r\n"),
    }
}

fn push(pair: &[u8], empty: usize, out: &mut Vec<u8>) {
    if out.len() > empty {
        out.extend_from_slice(b"; ");
    }
    out.extend_from_slice(pair);
}

/// The values of all cookies of this name in a line of them.
pub fn cookies_in<'a>(line: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let named = pairs(line).filter(move |pair| is_named(pair, name));
    named.map(|pair| pair.get(name.len() + 1..).unwrap_or_default())
}

fn pairs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty())
}

/// Names of cookies are told apart by case (RFC 6265, section 5.3).
fn is_named(pair: &[u8], name: &[u8]) -> bool {
    pair.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        for (line, expected) in [
            (&b"a=1; mine=2; b=3"[..], Some(&b"2"[..])),
            (b"mine=2;mine=3", Some(b"2")),
            (b"xmine=1; mine2=2; Mine=3", None),
            (b"mine", Some(b"")),
            (b"mine=", Some(b"")),
            (b"", None),
            (b" ; ;mine=a=b", Some(b"a=b")),
        ] {
            assert_eq!(cookies_in(line, b"mine").next(), expected, "{}", String::from_utf8_lossy(line));
        }
    }
}

//! Which fields are passed on, by their names.
//!
//! It owns the fields of one connection (RFC 9110, section 7.6.1), those that only a proxy may write, and
//! those that an application behind a proxy would take for its word. It must never look at a value.

/// What becomes of a field of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Passed on as it stands.
    Passed,
    /// Not passed on: of one connection, written anew, or not a client's to say.
    Dropped,
    /// `Connection`, which names others that are not passed on.
    Connection,
    /// `Cookie`: several are joined.
    Cookie,
    /// `TE`
    Te,
    /// `Upgrade`
    Upgrade,
    /// `Via`
    Via,
    /// `Max-Forwards`
    MaxForwards,
    /// Only a trusted proxy may say it: one of the bits below, or none for a field that we never write.
    Proxys(u8),
}

/// `X-Forwarded-For`
pub(super) const FORWARDED_FOR: u8 = 1;
/// `X-Forwarded-Proto`
pub(super) const FORWARDED_PROTO: u8 = 1 << 1;
/// `X-Forwarded-Host`
pub(super) const FORWARDED_HOST: u8 = 1 << 2;
/// `X-Real-IP`
pub(super) const REAL_IP: u8 = 1 << 3;
/// `Forwarded` (RFC 7239)
pub(super) const FORWARDED: u8 = 1 << 4;

/// Sorts by length and first letter, so that most fields cost one jump and no comparison.
pub(super) fn judge_asked(name: &[u8]) -> Asked {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    match (name.len(), first_letter(name)) {
        (2, b't') if is(b"te") => Asked::Te,
        (3, b'v') if is(b"via") => Asked::Via,
        (4, b'h') if is(b"host") => Asked::Dropped,
        // CGI makes HTTP_PROXY of it, which programs take for a setting (CVE-2016-5385).
        (5, b'p') if is(b"proxy") => Asked::Dropped,
        (6, b'c') if is(b"cookie") => Asked::Cookie,
        // The body is read by us.
        (6, b'e') if is(b"expect") => Asked::Dropped,
        (7, b'u') if is(b"upgrade") => Asked::Upgrade,
        (7, b't') if is(b"trailer") => Asked::Dropped,
        (9, b'f') if is(b"forwarded") => Asked::Proxys(FORWARDED),
        (9, b'x') if is(b"x-real-ip") => Asked::Proxys(REAL_IP),
        (10, b'c') if is(b"connection") => Asked::Connection,
        (10, b'k') if is(b"keep-alive") => Asked::Dropped,
        // RFC 9440, section 2.4: only the end of TLS says whose certificate was shown.
        (11, b'c') if is(b"client-cert") => Asked::Dropped,
        (17, b'c') if is(b"client-cert-chain") => Asked::Dropped,
        (12, b'm') if is(b"max-forwards") => Asked::MaxForwards,
        (13, b'x') if is(b"x-rewrite-url") => Asked::Dropped,
        (14, b'c') if is(b"content-length") => Asked::Dropped,
        (14, b'h') if is(b"http2-settings") => Asked::Dropped,
        (14, b'x') if is(b"x-original-url") => Asked::Dropped,
        (16, b'p') if is(b"proxy-connection") => Asked::Dropped,
        (17, b't') if is(b"transfer-encoding") => Asked::Dropped,
        // RFC 9110, section 11.7.2: credentials for the first proxy.
        (19, b'p') if is(b"proxy-authorization") => Asked::Dropped,
        (22, b'x') if is(b"x-http-method-override") => Asked::Dropped,
        (11.., b'x') if begins(name, b"x-forwarded") => judge_forwarded(name),
        // CGI cannot tell it from a hyphen, so `X_Forwarded_For` would be X-Forwarded-For.
        _ if name.contains(&b'_') => Asked::Dropped,
        _ => Asked::Passed,
    }
}

fn judge_forwarded(name: &[u8]) -> Asked {
    match name.get(b"x-forwarded".len()..).unwrap_or_default() {
        rest if rest.contains(&b'_') => Asked::Dropped,
        rest if rest.eq_ignore_ascii_case(b"-for") => Asked::Proxys(FORWARDED_FOR),
        rest if rest.eq_ignore_ascii_case(b"-proto") => Asked::Proxys(FORWARDED_PROTO),
        rest if rest.eq_ignore_ascii_case(b"-host") => Asked::Proxys(FORWARDED_HOST),
        _ => Asked::Proxys(0),
    }
}

/// Whether a connection option names a field that is dropped anyway, or none.
pub(super) fn is_usual_option(option: &[u8]) -> bool {
    [&b"close"[..], b"keep-alive", b"te", b"upgrade", b"http2-settings", b"transfer-encoding", b"trailer"]
        .iter()
        .any(|known| option.eq_ignore_ascii_case(known))
}

/// What becomes of a field of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Passed on as it stands.
    Passed,
    /// Not passed on: of one connection, written by us, or meant for a proxy.
    Dropped,
    /// `Connection`
    Connection,
    /// `Content-Length`
    Length,
    /// `Transfer-Encoding`
    Coding,
}

/// Sorts as [`judge_asked`] does.
pub(super) fn judge_said(name: &[u8]) -> Said {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    match (name.len(), first_letter(name)) {
        (2, b't') if is(b"te") => Said::Dropped,
        (4, b'd') if is(b"date") => Said::Dropped,
        (6, b's') if is(b"server") => Said::Dropped,
        (7, b't') if is(b"trailer") => Said::Dropped,
        (7, b'u') if is(b"upgrade") => Said::Dropped,
        (10, b'c') if is(b"connection") => Said::Connection,
        (10, b'k') if is(b"keep-alive") => Said::Dropped,
        (14, b'c') if is(b"content-length") => Said::Length,
        (16, b'p') if is(b"proxy-connection") => Said::Dropped,
        (17, b't') if is(b"transfer-encoding") => Said::Coding,
        // RFC 9110, sections 11.7.1 and 11.7.3: for the client next to it, which we are.
        (18, b'p') if is(b"proxy-authenticate") => Said::Dropped,
        (25, b'p') if is(b"proxy-authentication-info") => Said::Dropped,
        (8.., b'x') if begins(name, b"x-accel-") => Said::Dropped,
        _ => Said::Passed,
    }
}

/// Whether a field may stand in a trailer section that is passed on (RFC 9110, section 6.5.1): none that
/// frames, routes, authenticates, or says how an answer is to be read or stored.
pub(super) fn is_trailer(name: &[u8]) -> bool {
    const HEADS: [&[u8]; 18] = [
        b"age",
        b"authorization",
        b"cache-control",
        b"content-encoding",
        b"content-range",
        b"content-type",
        b"expires",
        b"host",
        b"location",
        b"max-forwards",
        b"pragma",
        b"range",
        b"retry-after",
        b"set-cookie",
        b"vary",
        b"via",
        b"warning",
        b"www-authenticate",
    ];
    judge_said(name) == Said::Passed && !HEADS.iter().any(|head| name.eq_ignore_ascii_case(head))
}

fn first_letter(name: &[u8]) -> u8 {
    name.first().map_or(0, |letter| letter | 0x20)
}

fn begins(name: &[u8], start: &[u8]) -> bool {
    name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        for (names, expected) in [
            ("Accept X-Forward Cookie2 Proxy2 Via2 X-Real-IP2 Authorization X-Requested-With", Asked::Passed),
            (
                "Host Proxy EXPECT Trailer keep-alive Client-Cert CLIENT-CERT-CHAIN X-Rewrite-URL \
                 Content-Length HTTP2-Settings X-Original-Url Proxy-Connection Transfer-Encoding \
                 Proxy-Authorization X-HTTP-Method-Override X_Forwarded_For Content_Length a_b _ \
                 X-Forwarded_For X-Real_IP",
                Asked::Dropped,
            ),
            ("Connection", Asked::Connection),
            ("cookie", Asked::Cookie),
            ("TE", Asked::Te),
            ("Via", Asked::Via),
            ("Upgrade", Asked::Upgrade),
            ("Max-Forwards", Asked::MaxForwards),
            ("X-Forwarded-For", Asked::Proxys(FORWARDED_FOR)),
            ("x-forwarded-proto", Asked::Proxys(FORWARDED_PROTO)),
            ("X-Forwarded-HOST", Asked::Proxys(FORWARDED_HOST)),
            ("X-Forwarded X-Forwarded-Port X-Forwarded-Prefix X-Forwardedness", Asked::Proxys(0)),
            ("X-Real-IP", Asked::Proxys(REAL_IP)),
            ("Forwarded", Asked::Proxys(FORWARDED)),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(judge_asked(name.as_bytes()), expected, "{name}");
            }
        }
    }

    #[test]
    fn answers() {
        for (names, expected) in [
            (
                "Set-Cookie Content-Type Servers Via X-Accelerated X_Y ETag Last-Modified Alt-Svc",
                Said::Passed,
            ),
            (
                "TE Date SERVER Trailer Upgrade Keep-Alive Proxy-Connection Proxy-Authenticate \
                 Proxy-Authentication-Info X-Accel-Redirect x-accel-buffering X-Accel-",
                Said::Dropped,
            ),
            ("Connection", Said::Connection),
            ("Content-length", Said::Length),
            ("Transfer-Encoding", Said::Coding),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(judge_said(name.as_bytes()), expected, "{name}");
            }
        }
    }

    #[test]
    fn trailers() {
        for name in ["Server-Timing", "ETag", "Digest", "grpc-status", "X-Checksum"] {
            assert!(is_trailer(name.as_bytes()), "{name}");
        }
        for name in ["Content-Length", "transfer-encoding", "Set-Cookie", "HOST", "Connection", "Date"] {
            assert!(!is_trailer(name.as_bytes()), "{name}");
        }
    }
}

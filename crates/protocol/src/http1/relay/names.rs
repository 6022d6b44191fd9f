//! Which fields are passed on, by their names.
//!
//! It owns the fields of one connection (RFC 9110, section 7.6.1), those that only a proxy may write, and
//! those that an application behind a proxy would take for its word. It must never look at a value.

/// What becomes of a field of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestField {
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
pub(super) fn judge_asked(name: &[u8]) -> RequestField {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    match (name.len(), first_letter(name)) {
        (2, b't') if is(b"te") => RequestField::Te,
        (3, b'v') if is(b"via") => RequestField::Via,
        (4, b'h') if is(b"host") => RequestField::Dropped,
        // CGI makes HTTP_PROXY of it, which programs take for a setting (CVE-2016-5385).
        (5, b'p') if is(b"proxy") => RequestField::Dropped,
        (6, b'c') if is(b"cookie") => RequestField::Cookie,
        // The body is read by us.
        (6, b'e') if is(b"expect") => RequestField::Dropped,
        (7, b'u') if is(b"upgrade") => RequestField::Upgrade,
        (7, b't') if is(b"trailer") => RequestField::Dropped,
        (9, b'f') if is(b"forwarded") => RequestField::Proxys(FORWARDED),
        (9, b'x') if is(b"x-real-ip") => RequestField::Proxys(REAL_IP),
        (10, b'c') if is(b"connection") => RequestField::Connection,
        (10, b'k') if is(b"keep-alive") => RequestField::Dropped,
        // RFC 9440, section 2.4: only the end of TLS says whose certificate was shown.
        (11, b'c') if is(b"client-cert") => RequestField::Dropped,
        (17, b'c') if is(b"client-cert-chain") => RequestField::Dropped,
        (12, b'm') if is(b"max-forwards") => RequestField::MaxForwards,
        (13, b'x') if is(b"x-rewrite-url") => RequestField::Dropped,
        (14, b'c') if is(b"content-length") => RequestField::Dropped,
        (14, b'h') if is(b"http2-settings") => RequestField::Dropped,
        (14, b'x') if is(b"x-original-url") => RequestField::Dropped,
        (16, b'p') if is(b"proxy-connection") => RequestField::Dropped,
        (17, b't') if is(b"transfer-encoding") => RequestField::Dropped,
        // RFC 9110, section 11.7.2: credentials for the first proxy.
        (19, b'p') if is(b"proxy-authorization") => RequestField::Dropped,
        (22, b'x') if is(b"x-http-method-override") => RequestField::Dropped,
        (11.., b'x') if begins(name, b"x-forwarded") => judge_forwarded(name),
        // CGI cannot tell it from a hyphen, so `X_Forwarded_For` would be X-Forwarded-For.
        _ if name.contains(&b'_') => RequestField::Dropped,
        _ => RequestField::Passed,
    }
}

fn judge_forwarded(name: &[u8]) -> RequestField {
    match name.get(b"x-forwarded".len()..).unwrap_or_default() {
        rest if rest.contains(&b'_') => RequestField::Dropped,
        rest if rest.eq_ignore_ascii_case(b"-for") => RequestField::Proxys(FORWARDED_FOR),
        rest if rest.eq_ignore_ascii_case(b"-proto") => RequestField::Proxys(FORWARDED_PROTO),
        rest if rest.eq_ignore_ascii_case(b"-host") => RequestField::Proxys(FORWARDED_HOST),
        _ => RequestField::Proxys(0),
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
pub(super) enum AnswerField {
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
    /// `Upgrade`, which goes on where the protocol changes.
    Upgrade,
}

/// Sorts as [`judge_asked`] does.
pub(super) fn judge_said(name: &[u8]) -> AnswerField {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    match (name.len(), first_letter(name)) {
        (2, b't') if is(b"te") => AnswerField::Dropped,
        (4, b'd') if is(b"date") => AnswerField::Dropped,
        (6, b's') if is(b"server") => AnswerField::Dropped,
        (7, b't') if is(b"trailer") => AnswerField::Dropped,
        (7, b'u') if is(b"upgrade") => AnswerField::Upgrade,
        (10, b'c') if is(b"connection") => AnswerField::Connection,
        (10, b'k') if is(b"keep-alive") => AnswerField::Dropped,
        (14, b'c') if is(b"content-length") => AnswerField::Length,
        (16, b'p') if is(b"proxy-connection") => AnswerField::Dropped,
        (17, b't') if is(b"transfer-encoding") => AnswerField::Coding,
        // RFC 9110, sections 11.7.1 and 11.7.3: for the client next to it, which we are.
        (18, b'p') if is(b"proxy-authenticate") => AnswerField::Dropped,
        (25, b'p') if is(b"proxy-authentication-info") => AnswerField::Dropped,
        (8.., b'x') if begins(name, b"x-accel-") => AnswerField::Dropped,
        _ => AnswerField::Passed,
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
    judge_said(name) == AnswerField::Passed && !HEADS.iter().any(|head| name.eq_ignore_ascii_case(head))
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
            (
                "Accept X-Forward Cookie2 Proxy2 Via2 X-Real-IP2 Authorization X-Requested-With",
                RequestField::Passed,
            ),
            (
                "Host Proxy EXPECT Trailer keep-alive Client-Cert CLIENT-CERT-CHAIN X-Rewrite-URL \
                 Content-Length HTTP2-Settings X-Original-Url Proxy-Connection Transfer-Encoding \
                 Proxy-Authorization X-HTTP-Method-Override X_Forwarded_For Content_Length a_b _ \
                 X-Forwarded_For X-Real_IP",
                RequestField::Dropped,
            ),
            ("Connection", RequestField::Connection),
            ("cookie", RequestField::Cookie),
            ("TE", RequestField::Te),
            ("Via", RequestField::Via),
            ("Upgrade", RequestField::Upgrade),
            ("Max-Forwards", RequestField::MaxForwards),
            ("X-Forwarded-For", RequestField::Proxys(FORWARDED_FOR)),
            ("x-forwarded-proto", RequestField::Proxys(FORWARDED_PROTO)),
            ("X-Forwarded-HOST", RequestField::Proxys(FORWARDED_HOST)),
            ("X-Forwarded X-Forwarded-Port X-Forwarded-Prefix X-Forwardedness", RequestField::Proxys(0)),
            ("X-Real-IP", RequestField::Proxys(REAL_IP)),
            ("Forwarded", RequestField::Proxys(FORWARDED)),
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
                AnswerField::Passed,
            ),
            (
                "TE Date SERVER Trailer Keep-Alive Proxy-Connection Proxy-Authenticate \
                 Proxy-Authentication-Info X-Accel-Redirect x-accel-buffering X-Accel-",
                AnswerField::Dropped,
            ),
            ("Connection", AnswerField::Connection),
            ("Content-length", AnswerField::Length),
            ("Transfer-Encoding", AnswerField::Coding),
            ("Upgrade", AnswerField::Upgrade),
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

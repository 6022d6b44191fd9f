//! Pure helpers of the agent: the order in which challenges are tried, and words for its log lines.

use std::net::IpAddr;

use crate::message::ChallengeKind;

/// The kinds of challenges to try for a name, the preferred first. They rotate by one with each failure, so
/// that the next attempt begins with another. For an IP address HTTP-01 alone is tried: in the handshake of
/// TLS-ALPN-01 it would have to be named as in reverse DNS (RFC 8738, section 6).
pub(super) fn kinds_for(name: &str, kinds: &[ChallengeKind], failures: u32) -> Vec<ChallengeKind> {
    let is_address = name.parse::<IpAddr>().is_ok();
    let is_fit = |kind: &ChallengeKind| !is_address || *kind == ChallengeKind::Http01;
    let mut kinds: Vec<ChallengeKind> = kinds.iter().copied().filter(is_fit).collect();
    if !kinds.is_empty() {
        let count = kinds.len();
        kinds.rotate_left(failures as usize % count);
    }
    kinds
}

/// The host in a URL, for log lines.
pub(super) fn host_of(url: &str) -> &str {
    let bare = url.strip_prefix("https://").unwrap_or(url);
    bare.split('/').next().unwrap_or(bare)
}

/// A length of time in words, rounded down: `62 minutes`.
pub(super) fn spoken(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_challenge_is_tried_after_a_failure_and_addresses_have_one() {
        use ChallengeKind::{Http01, TlsAlpn01};
        let both = [Http01, TlsAlpn01];
        assert_eq!(kinds_for("example.org", &both, 0), [Http01, TlsAlpn01]);
        assert_eq!(kinds_for("example.org", &both, 1), [TlsAlpn01, Http01]);
        assert_eq!(kinds_for("example.org", &both, 2), [Http01, TlsAlpn01]);
        assert_eq!(kinds_for("192.0.2.7", &both, 1), [Http01]);
        assert_eq!(kinds_for("::1", &[TlsAlpn01], 3), []);
    }

    #[test]
    fn spans_are_spoken_in_short() {
        let cases = [(5, "5 s"), (3_725, "62 minutes"), (86_399, "23 hours"), (90 * 86_400 - 1, "89 days")];
        for (seconds, expected) in cases {
            assert_eq!(spoken(seconds), expected);
        }
    }
}

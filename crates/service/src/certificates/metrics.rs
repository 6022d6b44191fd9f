//! When certificates end, as a metric.

use std::fmt::Write as _;

/// When each of these certificates ends, in the text format of Prometheus.
pub(crate) fn expiries(certificates: &[(String, u64)]) -> String {
    if certificates.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "# HELP staunch_certificate_expiry_seconds Last second of a certificate in use, since 1970.\n\
         # TYPE staunch_certificate_expiry_seconds gauge\n",
    );
    for (names, expires_unix_s) in certificates {
        let names = names.replace(['\\', '"', '\n'], "?");
        let _ = writeln!(text, "staunch_certificate_expiry_seconds{{names=\"{names}\"}} {expires_unix_s}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_have_their_ends() {
        assert!(expiries(&[]).is_empty());
        let text = expiries(&[("a\"b".into(), 7)]);
        assert!(text.ends_with("staunch_certificate_expiry_seconds{names=\"a?b\"} 7\n"), "{text}");
    }
}

//! The faults of an order: a sentence for the log, whose fault it was, and when to try again.
//!
//! Problem documents (RFC 7807) are read here. The authority's words must never reach a log as they came:
//! they are cut, and lose their control characters.

use std::fmt;

use serde_json::Value;

use crate::limits::WORDS_MAX;

/// The namespace of ACME's problem types (RFC 8555, section 6.7).
const NAMESPACE: &str = "urn:ietf:params:acme:error:";

/// Why an order came to nothing. Its `Display` is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcmeFault {
    /// The authority was not reached: no network, a proxy that refuses, a certificate that is not trusted.
    Unreachable(String),
    /// The authority answered with a problem.
    Refused {
        /// The type of the problem, without the namespace: `rateLimited`.
        kind: String,
        /// The authority's description of it, cut and cleaned.
        detail: String,
        /// The seconds of its `Retry-After`, if there was one.
        retry_after_s: Option<u64>,
    },
    /// The authority's answer cannot be used, or what it sent is no certificate for the name.
    Answer(String),
    /// The fault is on this machine: a file of the store, a setting, a server that does not answer the
    /// challenge.
    Here(String),
}

impl AcmeFault {
    /// The fault that an answer with a status of error tells of.
    #[must_use]
    pub fn of_problem(status: u16, body: &[u8], retry_after_s: Option<u64>) -> Self {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        let (kind, detail) = describe(&document, status);
        // An error of the server behind ACME, or of a proxy before it, has spent no limit there.
        if status >= 500 && document["type"].as_str().is_none_or(|kind| kind.ends_with("serverInternal")) {
            return Self::Unreachable(format!("status {status}: {detail}"));
        }
        Self::Refused { kind, detail, retry_after_s }
    }

    /// The fault in the member `error` of an order or a challenge (RFC 8555, sections 7.1.3 and 8).
    #[must_use]
    pub fn of_error(document: &Value) -> Self {
        let (kind, detail) = describe(document, 0);
        Self::Refused { kind, detail, retry_after_s: None }
    }

    /// Whether only the nonce was refused, so that the request may be sent again with another.
    #[must_use]
    pub fn is_bad_nonce(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "badNonce")
    }

    /// Whether the authority no longer knows the account.
    #[must_use]
    pub fn is_unknown_account(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "accountDoesNotExist")
    }

    /// The seconds that the authority asked to wait (`Retry-After`), if it did.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        if let Self::Refused { retry_after_s, .. } = self { *retry_after_s } else { None }
    }
}

impl fmt::Display for AcmeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the authority cannot be reached: {why}"),
            Self::Refused { kind, detail, .. } => write!(f, "the authority refuses ({kind}): {detail}"),
            Self::Answer(why) => write!(f, "the authority's answer cannot be used: {why}"),
            Self::Here(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for AcmeFault {}

/// The type of a problem, and its description with those of its subproblems.
fn describe(document: &Value, status: u16) -> (String, String) {
    let kind = document["type"].as_str().unwrap_or("");
    let kind = kind.strip_prefix(NAMESPACE).unwrap_or(kind);
    let kind = if kind.is_empty() { format!("status {status}") } else { plain(kind) };
    let own = document["detail"].as_str().or(document["title"].as_str()).unwrap_or("it does not say why");
    let below = document["subproblems"].as_array().into_iter().flatten();
    let below = below.filter_map(|problem| problem["detail"].as_str());
    let all: Vec<&str> = [own].into_iter().chain(below).collect();
    (kind, plain(&all.join("; ")))
}

/// A text from outside, made fit for one log line: cut, without control characters.
pub(crate) fn plain(text: &str) -> String {
    let visible = text.chars().map(|one| if one.is_control() { ' ' } else { one });
    visible.take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_said_in_one_line() {
        let body = br#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many\ncertificates",
            "subproblems": [{"detail": "for example.org"}]}"#;
        let fault = AcmeFault::of_problem(429, body, Some(60));
        let text = "the authority refuses (rateLimited): too many certificates; for example.org";
        assert_eq!((fault.to_string().as_str(), fault.retry_after_s()), (text, Some(60)));
    }

    #[test]
    fn what_is_no_problem_document_is_told_by_its_status() {
        let refused = AcmeFault::of_problem(403, b"<html>", None);
        assert_eq!(refused.to_string(), "the authority refuses (status 403): it does not say why");
        let broken = AcmeFault::of_problem(502, b"<html>", None);
        assert!(matches!(broken, AcmeFault::Unreachable(_)), "{broken}");
    }

    #[test]
    fn words_of_others_have_an_end() {
        let body = serde_json::json!({"type": "x", "detail": "a".repeat(10_000)}).to_string();
        let fault = AcmeFault::of_problem(400, body.as_bytes(), None);
        assert!(fault.to_string().len() < WORDS_MAX + 100);
    }
}

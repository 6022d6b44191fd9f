//! Reads what the authority's answers say: JSON documents, URLs, tokens, times.
//!
//! Nothing is used unchecked: a URL has to begin with https://, a token to consist of characters that can
//! stand in a path.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::fault::{AcmeFault, plain};
use crate::limits::TOKEN_BYTES_MAX;
use crate::web::WebAnswer;

/// The JSON document of an answer with a status of success.
///
/// # Errors
/// The problem that an answer with another status tells of; a body that is no JSON.
pub(crate) fn document(answer: &WebAnswer, now_unix_s: u64) -> Result<Value, AcmeFault> {
    succeed(answer, now_unix_s)?;
    serde_json::from_slice(&answer.body).map_err(|error| AcmeFault::Answer(format!("no JSON: {error}")))
}

/// The answer itself, if its status is one of success.
///
/// # Errors
/// The problem that it tells of.
pub(crate) fn succeed(answer: &WebAnswer, now_unix_s: u64) -> Result<(), AcmeFault> {
    match answer.status {
        200..=299 => Ok(()),
        300..=399 => Err(AcmeFault::Answer(format!("status {}: redirects are not followed", answer.status))),
        status => Err(AcmeFault::of_problem(status, &answer.body, retry_after_s(answer, now_unix_s))),
    }
}

/// The URL in this member of a document.
///
/// # Errors
/// The member is missing, or is no URL of https.
pub(crate) fn address(document: &Value, member: &str) -> Result<String, AcmeFault> {
    let text = document[member].as_str().filter(|text| text.starts_with("https://"));
    text.map(str::to_owned).ok_or_else(|| AcmeFault::Answer(format!("`{member}` is no address of https")))
}

/// The URL in the answer's field `Location`: that of the account or order it has made.
///
/// # Errors
/// As for [`address`].
pub(crate) fn location(answer: &WebAnswer) -> Result<String, AcmeFault> {
    let text = answer.location.as_deref().filter(|text| text.starts_with("https://"));
    let text = text.map(str::to_owned);
    text.ok_or_else(|| AcmeFault::Answer("`Location` is no address of https".into()))
}

/// The `status` of an order, an authorization or a challenge: `pending`, `valid` and so on (RFC 8555, section
/// 7.1.6); empty if the document has none.
pub(crate) fn status(document: &Value) -> &str {
    document["status"].as_str().unwrap_or_default()
}

/// The token of a challenge: letters of base64url alone (RFC 8555, section 8.3).
///
/// # Errors
/// The member is missing, too long, or has other characters.
pub(crate) fn token(challenge: &Value) -> Result<&str, AcmeFault> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_token = |text: &&str| (1..=TOKEN_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain);
    let text = challenge["token"].as_str().filter(is_token);
    text.ok_or_else(|| AcmeFault::Answer("the token of a challenge is no base64url".into()))
}

/// The seconds that an answer asks to wait: `Retry-After` is seconds or a date (RFC 9110, section 10.2.3).
pub(crate) fn retry_after_s(answer: &WebAnswer, now_unix_s: u64) -> Option<u64> {
    let text = answer.retry_after.as_deref()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(unix_s(date)?.saturating_sub(now_unix_s))
}

/// The window in which a certificate is to be renewed (RFC 9773, section 4.2), in seconds since 1970.
///
/// # Errors
/// The document has no window, or one that ends before it begins.
pub(crate) fn window(document: &Value) -> Result<(u64, u64), AcmeFault> {
    let window = &document["suggestedWindow"];
    let time = |member: &str| {
        let text = window[member].as_str().unwrap_or_default();
        let time = humantime::parse_rfc3339(text).ok().and_then(unix_s);
        time.ok_or_else(|| AcmeFault::Answer(format!("`{member}` of a window is no time: {}", plain(text))))
    };
    let (start, end) = (time("start")?, time("end")?);
    let text = || AcmeFault::Answer("a window of renewal ends before it begins".into());
    if start <= end { Ok((start, end)) } else { Err(text()) }
}

/// A point in time as seconds since 1970; `None` for one before.
pub(crate) fn unix_s(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().as_ref().map(Duration::as_secs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now = 1_445_412_480;
        let cases = [
            (Some("120"), Some(120)),
            (Some(" 0 "), Some(0)),
            (Some("Wed, 21 Oct 2015 07:28:30 GMT"), Some(30)),
            (Some("Wed, 21 Oct 2015 07:00:00 GMT"), Some(0)),
            (Some("soon"), None),
            (Some("-1"), None),
            (None, None),
        ];
        for (text, expected) in cases {
            let answer = WebAnswer { retry_after: text.map(str::to_owned), ..WebAnswer::default() };
            assert_eq!(retry_after_s(&answer, now), expected, "{text:?}");
        }
    }

    #[test]
    fn a_token_is_no_path() {
        for (text, is_good) in
            [("abc-_9", true), ("", false), ("../x", false), ("a b", false), ("a/b", false)]
        {
            assert_eq!(token(&json!({"token": text})).is_ok(), is_good, "{text}");
        }
        assert!(token(&json!({"token": "a".repeat(TOKEN_BYTES_MAX + 1)})).is_err());
        assert!(token(&json!({"token": 1})).is_err());
    }

    #[test]
    fn addresses_are_of_https() {
        let document = json!({"a": "https://x/", "b": "http://x/", "c": 1});
        assert!(address(&document, "a").is_ok());
        for member in ["b", "c", "d"] {
            assert!(address(&document, member).is_err(), "{member}");
        }
    }

    #[test]
    fn a_window_has_a_beginning_and_an_end() {
        let of = |start: &str, end: &str| window(&json!({"suggestedWindow": {"start": start, "end": end}}));
        assert_eq!(of("1970-01-02T00:00:00Z", "1970-01-03T00:00:00.5Z"), Ok((86_400, 172_800)));
        assert!(of("1970-01-03T00:00:00Z", "1970-01-02T00:00:00Z").is_err());
        assert!(of("yesterday", "1970-01-02T00:00:00Z").is_err());
        assert!(window(&json!({})).is_err());
    }

    #[test]
    fn redirects_and_errors_are_no_answers() {
        let answer = |status| WebAnswer { status, body: b"{}".to_vec(), ..WebAnswer::default() };
        assert!(document(&answer(200), 0).is_ok() && document(&answer(201), 0).is_ok());
        for status in [301, 400, 404, 500] {
            assert!(document(&answer(status), 0).is_err(), "{status}");
        }
    }
}

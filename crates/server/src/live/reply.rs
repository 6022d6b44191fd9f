//! Short answers of the endpoints, and what they say to pages of other origins.
//!
//! It owns their words. It must never name what a peer has no business to know.

use std::borrow::Cow;

use staunch_engine::{Answer, Answered};
use staunch_protocol::{Request, Status};

use super::mail::NotTaken;

/// What is told to who shows a token that does not grant what is asked.
pub(crate) const INSUFFICIENT_SCOPE: &[u8] = b"WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\n";

/// Answers with one sentence.
pub(crate) fn refuse(status: Status, sentence: &str, lines: &[u8], answer: Answer<'_>) -> Answered {
    let body = format!("{} {}: {sentence}\n", status.code(), status.reason());
    text(status, "text/plain; charset=utf-8", body.as_bytes(), lines, answer)
}

/// Answers that too much is to be done.
pub(crate) fn come_back(sentence: &str, answer: Answer<'_>) -> Answered {
    refuse(Status::SERVICE_UNAVAILABLE, sentence, b"Retry-After: 1\r\n", answer)
}

/// Answers with what is wrong with a publication.
pub(crate) fn not_taken(not_taken: &NotTaken, lines: &[u8], answer: Answer<'_>) -> Answered {
    let status = Status::from_code(not_taken.status).unwrap_or(Status::BAD_REQUEST);
    let own: &[u8] = match status {
        Status::SERVICE_UNAVAILABLE => b"Retry-After: 1\r\n",
        // The token does not grant the topic (RFC 6750, section 3.1).
        Status::FORBIDDEN => INSUFFICIENT_SCOPE,
        _ => b"",
    };
    refuse(status, &not_taken.sentence, &[lines, own].concat(), answer)
}

/// Answers with a short body that no cache keeps.
pub(crate) fn text(
    status: Status,
    content_type: &str,
    body: &[u8],
    lines: &[u8],
    answer: Answer<'_>,
) -> Answered {
    let mut fields = lines.to_vec();
    let own = format!(
        "Content-Type: {content_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\n",
        body.len()
    );
    fields.extend_from_slice(own.as_bytes());
    answer.bytes(status, &fields, body)
}

/// Answers OPTIONS, also those that a browser sends before it asks for something (Fetch standard, section
/// 4.8).
pub(crate) fn options(allow: &str, lines: &[u8], answer: Answer<'_>) -> Answered {
    let mut fields = lines.to_vec();
    fields.extend_from_slice(format!("Allow: {allow}\r\n").as_bytes());
    if !lines.is_empty() {
        let more = format!(
            "Access-Control-Allow-Methods: {allow}\r\nAccess-Control-Allow-Headers: Authorization, \
             Content-Type, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID, Cache-Control\r\n\
             Access-Control-Max-Age: 600\r\n"
        );
        fields.extend_from_slice(more.as_bytes());
    }
    answer.bytes(Status::NO_CONTENT, &fields, b"")
}

/// Answers a method that the endpoint has not.
pub(crate) fn method(allow: &str, lines: &[u8], answer: Answer<'_>) -> Answered {
    let lines = [lines, format!("Allow: {allow}\r\n").as_bytes()].concat();
    refuse(Status::METHOD_NOT_ALLOWED, &format!("here are {allow}"), &lines, answer)
}

/// Field lines that let the page read that asks, if its origin is one of these; none if it is not.
pub(crate) fn sharing(origins: &[String], request: &Request<'_>) -> Vec<u8> {
    if origins.is_empty() {
        return Vec::new();
    }
    let origin = request.values(b"origin").next().and_then(|origin| std::str::from_utf8(origin).ok());
    if origins.iter().any(|known| known == "*") {
        return match origin {
            Some(_) => b"Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: ETag\r\n".to_vec(),
            None => Vec::new(),
        };
    }
    // Whether or not this one asks from a page: a cache must not answer another with it.
    let vary = b"Vary: Origin\r\n".to_vec();
    match origin.filter(|origin| origins.iter().any(|known| known == origin)) {
        Some(origin) => {
            let lines = format!(
                "Access-Control-Allow-Origin: {origin}\r\nAccess-Control-Allow-Credentials: true\r\n\
                 Access-Control-Expose-Headers: ETag\r\n"
            );
            [vary, lines.into_bytes()].concat()
        }
        None => vary,
    }
}

/// The origin that may read the answer, by its fields for CORS.
pub(crate) fn allowed_origin(lines: &[u8]) -> Option<&[u8]> {
    let mut all = lines.split(|byte| *byte == b'\n');
    all.find_map(|line| line.strip_prefix(b"Access-Control-Allow-Origin: ")).map(<[u8]>::trim_ascii)
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The name of a topic as it stands in a path, decoded; what is no UTF-8 or no name is left to who reads it.
pub(crate) fn decode_name(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return Cow::Borrowed(path);
    }
    let digit = |at: usize| path.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::with_capacity(path.len()), 0);
    while let Some(&byte) = path.get(at) {
        at += 1;
        match (byte, digit(at), digit(at + 1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 2;
            }
            _ => decoded.push(byte),
        }
    }
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_once() {
        for (path, name) in [("a%2Fb", "a/b"), ("a%252F", "a%2F"), ("a+b", "a+b"), ("100%", "100%"), ("", "")]
        {
            assert_eq!(&*decode_name(path.as_bytes()), name.as_bytes());
        }
    }
}

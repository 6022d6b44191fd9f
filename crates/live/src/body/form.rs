//! A publication as a form (`application/x-www-form-urlencoded`), also that of Mercure
//! (draft-dunglas-mercure, section 5).
//!
//! It must never guess a charset: forms are UTF-8.

use super::{BodyFault, publication};
use crate::hub::Publication;
use crate::update::Value;

/// Names and values of a form or a query, decoded (WHATWG URL, section 5.1).
///
/// # Errors
/// A name or value is not UTF-8.
pub fn decode_form(body: &[u8]) -> Result<Vec<(String, String)>, BodyFault> {
    let pairs = body.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let mut half = || decode(halves.next().unwrap_or(&[]));
            Ok((half()?, half()?))
        })
        .collect()
}

/// A name or a value of a form, decoded.
pub(crate) fn decode(text: &[u8]) -> Result<String, BodyFault> {
    let digit = |at: usize| text.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (byte, digit(at), digit(at + 1)) {
            (b'+', ..) => decoded.push(b' '),
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 2;
            }
            _ => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).map_err(|_| BodyFault::NotUtf8)
}

/// Reads a publication: `topic` (several: the first one names it), `data`, `id`, `type`, `retry`, `private`
/// (with any value). Other fields are skipped, as Mercure asks.
///
/// # Errors
/// Names the field.
pub fn read_form(body: &[u8]) -> Result<Publication, BodyFault> {
    let fields = decode_form(body)?;
    let all =
        |name: &'static str| fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value);
    let first = |name| all(name).next().cloned();
    let retry_ms = match first("retry").filter(|retry| !retry.is_empty()) {
        None => None,
        Some(retry) if retry.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(retry.parse().map_err(|_| BodyFault::Retry)?)
        }
        Some(_) => return Err(BodyFault::Retry),
    };
    let topics: Vec<&String> = all("topic").collect();
    if topics.is_empty() && matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Err(BodyFault::JsonAsForm);
    }
    let value = Value::of_bytes(first("data").unwrap_or_default().as_bytes());
    publication(&topics, value, first("id"), first("type"), retry_ms, first("private").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Content;

    #[test]
    fn the_request_of_a_mercure_publisher() {
        let body = b"topic=https%3A%2F%2Fexample.com%2Fbooks%2F1&topic=b&data=%7B%22a%22%3A+1%7D&private=on\
            &id=urn%3A1&type=t&retry=7&unknown=1";
        let publication = read_form(body).unwrap();
        assert_eq!(publication.topics[0].as_str(), "https://example.com/books/1");
        assert_eq!(publication.topics.len(), 2);
        assert_eq!(publication.content, Content::Whole(Value::of_bytes(b"{\"a\": 1}")));
        assert_eq!((publication.id.as_deref(), publication.kind.as_deref()), (Some("urn:1"), Some("t")));
        assert_eq!((publication.retry_ms, publication.private), (Some(7), true));
    }

    #[test]
    fn faults_and_what_is_none() {
        let table = [
            (&b"data=1"[..], BodyFault::NoTopic),
            (b"topic=a&retry=1x", BodyFault::Retry),
            (b"topic=a&retry=-1", BodyFault::Retry),
            (b"topic=a&retry=99999999999", BodyFault::Retry),
            (b"topic=a&data=%ff", BodyFault::NotUtf8),
            (b"{\"topic\":\"a\",\"data\":1}", BodyFault::JsonAsForm),
            (b" [1]", BodyFault::JsonAsForm),
        ];
        for (body, fault) in table {
            assert_eq!(read_form(body), Err(fault));
        }
        let plain = read_form(b"&topic=100%&&data&id=").unwrap();
        assert_eq!((plain.topics[0].as_str(), plain.id), ("100%", None));
    }
}

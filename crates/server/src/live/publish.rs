//! Publications as they come by requests, and what publishers are told.
//!
//! It owns which body is read how. It must never number an update: the writer does.

use staunch_live::limits::{BATCH_BYTES_MAX, BATCH_LINES_MAX};
use staunch_live::{
    BodyFault, Content, Expected, LineReader, LinesMax, NameFault, Publication, TopicName, Value, Version,
    read_form, read_json,
};
use staunch_protocol::{Method, Request};

use super::mail::{BodyOutcome, LineOutcome, NotTaken};
use super::reply::{decode_name, quoted};
use crate::limits::{PUBLICATION_BYTES_EXTRA, PUBLICATION_BYTES_PART};

/// How the body of a publication is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    Form,
    Lines,
}

/// What a request without a type that is known is told.
pub(crate) const TYPES: &str = "`Content-Type` is application/json, application/x-www-form-urlencoded or \
                                application/x-ndjson";

/// The answer to a publisher of Mercure whose type is not known.
pub(crate) const MERCURE_TYPE: &str = "`Content-Type` is application/x-www-form-urlencoded";

impl BodyKind {
    /// The kind of a request's body, by Content-Type.
    pub(crate) fn of(request: &Request<'_>) -> Option<Self> {
        match &media_type(request)[..] {
            b"application/json" => Some(Self::Json),
            b"application/x-www-form-urlencoded" => Some(Self::Form),
            b"application/x-ndjson" | b"application/ndjson" | b"application/jsonl" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// The media type of a request's body in small letters, without parameters.
fn media_type(request: &Request<'_>) -> Vec<u8> {
    let value = request.values(b"content-type").next().unwrap_or_default();
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase()
}

/// Longest body of one publication.
pub(crate) fn body_bytes_max(value_bytes_max: usize) -> usize {
    value_bytes_max.saturating_mul(PUBLICATION_BYTES_PART).saturating_add(PUBLICATION_BYTES_EXTRA)
}

/// How long lines of a feed may be, and of a batch besides how many.
pub(crate) fn lines_max(value_bytes_max: usize, is_batch: bool) -> LinesMax {
    LinesMax {
        line_bytes: body_bytes_max(value_bytes_max),
        lines: is_batch.then_some(BATCH_LINES_MAX),
        bytes: is_batch.then_some(BATCH_BYTES_MAX),
    }
}

/// Publications of a body, and what is wrong with the line behind them.
#[derive(Debug, Default)]
pub(crate) struct ReadBody {
    pub(crate) lines: Vec<(u64, Publication)>,
    pub(crate) fault: Option<LineOutcome>,
}

impl ReadBody {
    /// Takes a line as it was read.
    pub(crate) fn take(&mut self, line: u64, read: Result<Publication, BodyFault>) {
        match read {
            Ok(publication) => self.lines.push((line, publication)),
            Err(fault) => self.fault = Some(LineOutcome { line, became: Err(fault.into()) }),
        }
    }

    fn one(read: Result<Publication, BodyFault>) -> Self {
        let mut body = Self::default();
        body.take(0, read);
        body
    }
}

impl From<BodyFault> for NotTaken {
    fn from(fault: BodyFault) -> Self {
        let names_line = matches!(fault, BodyFault::Json { .. });
        Self { names_line, ..Self::new(fault.status(), fault.to_string()) }
    }
}

/// Reads a whole body of `/publish`.
pub(crate) fn read_body(kind: BodyKind, body: &[u8], value_bytes_max: usize) -> ReadBody {
    match kind {
        BodyKind::Json => ReadBody::one(read_json(body, 1)),
        BodyKind::Form => ReadBody::one(read_form(body)),
        BodyKind::Lines => {
            let mut read = ReadBody::default();
            let mut lines = LineReader::new(lines_max(value_bytes_max, true));
            lines.read(body, |line, publication| read.take(line, publication));
            lines.end(|line, publication| read.take(line, publication));
            read
        }
    }
}

/// A publication of bytes as they stand: JSON if they are an object, a list, a number, true or false alone;
/// else text if they are UTF-8.
pub(crate) fn read_bytes(topic: &str, data: &[u8]) -> ReadBody {
    let value = || match data.first() {
        Some(b'{' | b'[' | b't' | b'f' | b'-' | b'0'..=b'9') if is_json(data) => Value::Json(data.into()),
        _ => Value::of_bytes(data),
    };
    let topic = TopicName::new(topic).map_err(BodyFault::Topic);
    ReadBody::one(topic.map(|topic| Publication::new(topic, value())))
}

/// Whether bytes are JSON, with nothing around it.
fn is_json(data: &[u8]) -> bool {
    let read = serde_json::from_slice::<&serde_json::value::RawValue>(data);
    read.is_ok_and(|whole| whole.get().len() == data.len())
}

/// Reads a request for `/topics/NAME`: its body is the value, or what changes in it.
pub(crate) fn read_change(name: &[u8], request: &Request<'_>, body: &[u8]) -> Result<Publication, NotTaken> {
    let refuse = |status, sentence: String| NotTaken::new(status, sentence);
    let name = decode_name(name);
    let faulty = |fault: NameFault| refuse(400, fault.to_string());
    let topic = TopicName::from_bytes(&name).map_err(faulty)?;
    let malformed = |error: serde_json::Error| {
        let told = error.to_string();
        let expected = told.split(" at line ").next().unwrap_or(&told);
        refuse(400, format!("line {}, column {}: {expected}", error.line(), error.column()))
    };
    let media_type = media_type(request);
    let content = match (request.method, &media_type[..]) {
        (Method::Delete, _) => Content::Gone,
        (Method::Patch, b"application/merge-patch+json" | b"application/json") => {
            Content::Patch(serde_json::from_slice(body).map_err(malformed)?)
        }
        (Method::Patch, _) => {
            let sentence = "`Content-Type` of a patch is application/merge-patch+json";
            return Err(refuse(415, sentence.to_owned()));
        }
        (_, b"application/json") => {
            serde_json::from_slice::<serde::de::IgnoredAny>(body).map_err(malformed)?;
            Content::Whole(Value::Json(body.into()))
        }
        (_, b"application/octet-stream") => Content::Whole(Value::Binary(body.into())),
        _ => Content::Whole(Value::of_bytes(body)),
    };
    let expected = expected(request);
    Ok(Publication { content, expected, ..Publication::new(topic, Value::Gone) })
}

/// What If-Match or If-None-Match ask of the topic; the first goes before (RFC 9110, section 13.2.2).
fn expected(request: &Request<'_>) -> Expected {
    let versions = |name: &'static [u8]| -> (bool, Vec<Version>) {
        let texts = request.values(name).filter_map(|value| std::str::from_utf8(value).ok());
        let tags: Vec<&str> = texts.flat_map(|text| text.split(',')).map(str::trim).collect();
        (tags.contains(&"*"), tags.iter().filter_map(|tag| version_of_tag(tag)).collect())
    };
    if request.has_any(Request::IF_MATCH) {
        return match versions(b"if-match") {
            (true, _) => Expected::Something,
            (false, versions) => Expected::OneOf(versions),
        };
    }
    if request.has_any(Request::IF_NONE_MATCH) {
        return match versions(b"if-none-match") {
            (true, _) => Expected::Nothing,
            (false, versions) => Expected::NoneOf(versions),
        };
    }
    Expected::Anything
}

/// The version that an entity tag names, whatever coding it is of.
pub(crate) fn version_of_tag(tag: &str) -> Option<Version> {
    let text = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')?;
    let bare = text.strip_suffix("-gzip").or_else(|| text.strip_suffix("-zstd")).unwrap_or(text);
    // The tag of a difference names the update from which it leads.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let of_difference = bare.rsplit_once("-dcz").filter(|(_, from)| is_number(from));
    of_difference.map_or(bare, |(bare, _)| bare).parse().ok()
}

/// What became of a line, as JSON, with a line end.
pub(crate) fn outcome_line(outcome: &LineOutcome) -> String {
    let line = if outcome.line > 0 { format!("\"line\":{},", outcome.line) } else { String::new() };
    match &outcome.became {
        Ok(accepted) => {
            let version = accepted.version.map_or("null".to_owned(), |version| quoted(&version.to_string()));
            format!("{{{line}\"version\":{version},\"readers\":{}}}\n", accepted.readers)
        }
        Err(NotTaken { status, sentence, .. }) => {
            format!("{{{line}\"status\":{status},\"error\":{}}}\n", quoted(sentence))
        }
    }
}

/// What became of a body, as JSON, with a line end: of one publication its version and readers; of a batch
/// how many lines were published, the version of the last, and readers of the one that had most.
pub(crate) fn body_line(outcome: &BodyOutcome) -> String {
    let published =
        if outcome.has_lines { format!("\"published\":{},", outcome.published) } else { String::new() };
    let version = outcome.version.map_or("null".to_owned(), |version| quoted(&version.to_string()));
    format!("{{{published}\"version\":{version},\"readers\":{}}}\n", outcome.readers)
}

#[cfg(test)]
mod tests {
    use staunch_live::{Accepted, Epoch};

    use super::*;

    const VERSION: Version = Version { epoch: Epoch(0xe), number: 9 };

    #[test]
    fn bytes_are_kept_as_they_stand_whatever_they_are() {
        let value = |data: &[u8]| {
            let (_, publication) = read_bytes("a", data).lines.remove(0);
            publication.content
        };
        for data in ["{\"x\": 1}", "[1]", "5", "-1.5e3", "true"] {
            assert_eq!(value(data.as_bytes()), Content::Whole(Value::Json(data.as_bytes().into())), "{data}");
        }
        for data in ["", "hello", "\"quoted\"", "null", " 5", "{}\n", "5 5", "{x"] {
            assert_eq!(value(data.as_bytes()), Content::Whole(Value::Text(data.as_bytes().into())), "{data}");
        }
        assert_eq!(value(b"\x08\xff"), Content::Whole(Value::Binary(b"\x08\xff"[..].into())));
        assert!(read_bytes("", b"5").fault.is_some());
    }

    #[test]
    fn tags_name_versions() {
        for tag in ["\"e-9\"", "W/\"e-9\"", "\"e-9-gzip\"", "\"e-9-zstd\"", "\"e-9-dcz7\""] {
            assert_eq!(version_of_tag(tag), Some(VERSION), "{tag}");
        }
        for tag in ["e-9", "\"e-9-br\"", "\"e-9-dcz\"", "\"e-9-dczx\"", "\"\"", "*", "\"e-9"] {
            assert_eq!(version_of_tag(tag), None, "{tag}");
        }
    }

    #[test]
    fn what_publishers_are_told() {
        let accepted = |number| Accepted { version: Some(Version { number, ..VERSION }), readers: number };
        let taken = |line, number| LineOutcome { line, became: Ok(accepted(number)) };
        let refused = LineOutcome { line: 3, became: Err(NotTaken::new(400, "\"a\"")) };
        assert_eq!(outcome_line(&taken(0, 9)), "{\"version\":\"e-9\",\"readers\":9}\n");
        assert_eq!(outcome_line(&taken(2, 9)), "{\"line\":2,\"version\":\"e-9\",\"readers\":9}\n");
        assert_eq!(outcome_line(&refused), "{\"line\":3,\"status\":400,\"error\":\"\\\"a\\\"\"}\n");
        let held = LineOutcome { line: 0, became: Ok(Accepted { version: None, readers: 1 }) };
        assert_eq!(body_line(&BodyOutcome::of(&[held])), "{\"version\":null,\"readers\":1}\n");
        let batch = BodyOutcome::of(&[taken(1, 5), taken(2, 3), refused]);
        assert_eq!(batch.fault.as_ref().map(|(line, _)| *line), Some(3));
        assert_eq!(body_line(&batch), "{\"published\":2,\"version\":\"e-3\",\"readers\":5}\n");
    }
}

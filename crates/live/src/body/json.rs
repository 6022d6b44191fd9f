//! A publication as JSON: `{"topic","data","id","type","retry","private"}`.
//!
//! It must never change a value: JSON is kept as it stands.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BodyFault, publication};
use crate::hub::Publication;
use crate::update::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow, default)]
    topic: Topics<'a>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    retry: Option<u32>,
    #[serde(default)]
    private: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`topic` must be a string or a list of strings")]
enum Topics<'a> {
    One(#[serde(borrow)] std::borrow::Cow<'a, str>),
    Several(Vec<String>),
}

impl Default for Topics<'_> {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

/// Reads a publication. `data` that is a string is text, `null` or missing is empty text, anything else is
/// JSON. `line` is the number of the body's line it begins at, from 1.
///
/// # Errors
/// Names the place or the field.
pub fn read_json(body: &[u8], line: u64) -> Result<Publication, BodyFault> {
    // A struct is read from a list as well, which is not meant here.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(BodyFault::Json { line, column: 1, expected: "expected an object".to_owned() });
    }
    let fields: Fields<'_> = serde_json::from_slice(body).map_err(|error| fault(&error, line))?;
    let value = match fields.data.map(RawValue::get) {
        None | Some("null") => Value::of_bytes(b""),
        Some(text) if text.starts_with('"') => {
            let text: String = serde_json::from_str(text).map_err(|error| fault(&error, line))?;
            Value::of_bytes(text.as_bytes())
        }
        Some(document) => Value::Json(document.as_bytes().into()),
    };
    let topics = match fields.topic {
        Topics::One(topic) => vec![topic.into_owned()],
        Topics::Several(topics) => topics,
    };
    publication(&topics, value, fields.id, fields.kind, fields.retry, fields.private)
}

fn fault(error: &serde_json::Error, line: u64) -> BodyFault {
    let told = error.to_string();
    let expected = told.split(" at line ").next().unwrap_or(&told).to_owned();
    BodyFault::Json { line: line + error.line().saturating_sub(1) as u64, column: error.column(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Content;
    use crate::limits::TOPICS_PER_PUBLICATION_MAX;
    use crate::name::NameFault;

    fn read(text: &str) -> Result<Publication, BodyFault> {
        read_json(text.as_bytes(), 1)
    }

    #[test]
    fn values_are_kept_as_they_stand() {
        let table = [
            (r#"{"topic":"a","data":"x\ny"}"#, Value::of_bytes(b"x\ny")),
            (r#"{"topic":"a","data":{ "b": 1.10 }}"#, Value::Json(b"{ \"b\": 1.10 }"[..].into())),
            (
                r#"{"topic":"a","data":12345678901234567890123}"#,
                Value::Json(b"12345678901234567890123"[..].into()),
            ),
            (r#"{"topic":"a","data":null}"#, Value::of_bytes(b"")),
            (r#"{"topic":"a"}"#, Value::of_bytes(b"")),
        ];
        for (text, value) in table {
            assert_eq!(read(text).unwrap().content, Content::Whole(value), "{text}");
        }
    }

    #[test]
    fn all_fields() {
        let text = r#"{"topic":["a","b","a"],"data":1,"id":"i","type":"t","retry":5,"private":true}"#;
        let publication = read(text).unwrap();
        let topics: Vec<&str> = publication.topics.iter().map(|topic| topic.as_str()).collect();
        assert_eq!(topics, ["a", "b"]);
        assert_eq!((publication.id.as_deref(), publication.kind.as_deref()), (Some("i"), Some("t")));
        assert_eq!((publication.retry_ms, publication.private), (Some(5), true));
    }

    #[test]
    fn topics_are_bounded() {
        let text = |count| {
            let topics: Vec<String> = (0..count).map(|number| format!("\"{number}\"")).collect();
            format!("{{\"topic\":[{}]}}", topics.join(","))
        };
        assert_eq!(read(&text(TOPICS_PER_PUBLICATION_MAX)).unwrap().topics.len(), TOPICS_PER_PUBLICATION_MAX);
        let fault = read(&text(TOPICS_PER_PUBLICATION_MAX + 1)).unwrap_err();
        assert_eq!((fault.status(), fault.to_string()), (400, "a publication has at most 100 topics".into()));
    }

    #[test]
    fn faults_name_the_place() {
        let json = |line, column, expected: &str| BodyFault::Json { line, column, expected: expected.into() };
        let table = [
            ("", json(1, 0, "EOF while parsing a value")),
            ("{\n\"topic\":\"a\",\n!}", json(3, 1, "key must be a string")),
            (r#"{"data":1}"#, BodyFault::NoTopic),
            (r#"{"topic":[]}"#, BodyFault::NoTopic),
            (r#"{"topic":"*"}"#, BodyFault::Topic(NameFault::All)),
            (r#"{"topic":["a","$x"]}"#, BodyFault::Topic(NameFault::Reserved)),
        ];
        for (text, fault) in table {
            assert_eq!(read(text).unwrap_err(), fault, "{text}");
            assert_eq!(fault.status(), 400);
        }
        for text in
            [r#"{"topic":1}"#, r#"{"topic":"a","retry":-1}"#, r#"{"topic":"a","tpye":1}"#, "[]", "1 2"]
        {
            assert!(matches!(read(text), Err(BodyFault::Json { .. })), "{text}");
        }
        let told = read(r#"{"topic":"a","tpye":1}"#).unwrap_err().to_string();
        assert!(told.starts_with("line 1, column 19: unknown field `tpye`"), "{told}");
    }
}

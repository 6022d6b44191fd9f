//! Values and texts as JSON.
//!
//! It must never make a whole message: forms and replies do.

use crate::update::Value;

/// Appends a value as JSON, and gives the mark of one that is not what it seems.
pub(crate) fn append_value(value: &Value, text: &mut String) -> Option<&'static str> {
    match value {
        Value::Json(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
        Value::Text(bytes) => text.push_str(&quoted(&String::from_utf8_lossy(bytes))),
        Value::Binary(bytes) => {
            text.push_str(&quoted(&base64(bytes)));
            return Some("base64");
        }
        Value::Gone => {
            text.push_str("null");
            return Some("deleted");
        }
    }
    None
}

/// Bytes as text.
pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

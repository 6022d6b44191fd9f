//! Marks that tell a reader of a log how much it missed.
//!
//! It must never repeat itself: a mark has an id, so that a reader that is cut behind it resumes behind it.

use crate::encoder::quoted;
use crate::form::{Form, Shape, Transport};
use crate::name::TopicName;
use crate::ring::Missed;
use crate::update::Bytes;
use crate::version::Version;

/// The mark in a reader's form: so many updates up to `version` are missing. On a WebSocket whose messages
/// are bare values there is no place for it.
pub(crate) fn mark(form: Form, version: Version, topic: &TopicName, missed: Missed) -> Option<Bytes> {
    let name = quoted(topic.as_str());
    let at_least = if missed.at_least { ",\"at_least\":true" } else { "" };
    let count = missed.count;
    let payload = match (form.transport(), form.shape()) {
        (Transport::Socket, Shape::Bare) => return None,
        (Transport::Socket, _) => format!(
            "{{\"push\":{{\"channel\":{name},\"message\":{{\"data\":{{\"missed\":{count}{at_least}}}}}}}}}"
        ),
        _ => {
            format!("event: gap\nid: {version}\ndata: {{\"topic\":{name},\"missed\":{count}{at_least}}}\n\n")
        }
    };
    Some(form.frame(payload.as_bytes()))
}

//! Marks that tell a reader of a log how much it missed.
//!
//! It must never move the place a reader resumes from: a mark has no id, so one that was cut behind it is
//! told again.

use crate::encoder::quoted;
use crate::form::{Form, Shape, Transport};
use crate::name::TopicName;
use crate::ring::Missed;
use crate::update::Bytes;

/// The mark in a reader's form. On a WebSocket whose messages
/// are bare values there is no place for it.
pub(crate) fn mark(form: Form, topic: &TopicName, missed: Missed) -> Option<Bytes> {
    let name = quoted(topic.as_str());
    let at_least = if missed.at_least { ",\"at_least\":true" } else { "" };
    let count = missed.count;
    let payload = match (form.transport(), form.shape()) {
        (Transport::Socket, Shape::Bare) => return None,
        (Transport::Socket, _) => format!(
            "{{\"push\":{{\"channel\":{name},\"message\":{{\"data\":{{\"missed\":{count}{at_least}}}}}}}}}"
        ),
        _ => {
            format!("event: gap\ndata: {{\"topic\":{name},\"missed\":{count}{at_least}}}\n\n")
        }
    };
    Some(form.frame(payload.as_bytes()))
}

//! Marks that tell a reader of a log how much it missed.
//!
//! It must never move the place a reader resumes from: a mark has no id, so one that was cut behind it is
//! told again.

use crate::form::{Form, Shape, Transport};
use crate::json_text::quoted;
use crate::name::TopicName;
use crate::ring::Missed;
use crate::update::Bytes;

/// The mark in a reader's form. On a WebSocket whose messages
/// are bare values there is no place for it.
pub(crate) fn mark(form: Form, topic: &TopicName, missed: Missed) -> Option<Bytes> {
    if (form.transport(), form.shape()) == (Transport::Socket, Shape::Bare) {
        return None;
    }
    if let Some(language) = form.transport().language() {
        return Some(form.frame(&language.missed(topic, missed.count, missed.at_least)));
    }
    let name = quoted(topic.as_str());
    let at_least = if missed.at_least { ",\"at_least\":true" } else { "" };
    let payload = format!("event: gap\ndata: {{\"topic\":{name},\"missed\":{}{at_least}}}\n\n", missed.count);
    Some(form.frame(payload.as_bytes()))
}

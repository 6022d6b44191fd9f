//! Checks of a publication against what its topics hold.
//!
//! It owns what a publication makes of a value. It must never change a topic.

use super::publication::{Content, Expected, Publication, PublishFault};
use super::settings::HubSettings;
use super::shelf::Shelf;
use crate::limits::ID_BYTES_MAX;
use crate::merge_patch::{difference, merge};
use crate::topic::Kind;
use crate::update::{Bytes, Value};
use crate::version::{Epoch, Version};

/// A publication that may be numbered.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) value: Value,
    pub(crate) patch: Option<Bytes>,
    pub(crate) private: bool,
    /// Topics that do not exist yet.
    pub(crate) new_topics: usize,
    /// Topics that hold more afterwards: new ones, and those whose value so far is shorter.
    pub(crate) growing_topics: usize,
}

impl Prepared {
    /// Bytes of the value and of its patch.
    pub(crate) fn bytes(&self) -> usize {
        self.value.bytes().len() + self.patch.as_ref().map_or(0, |patch| patch.len())
    }
}

/// Checks a publication against its topics.
pub(crate) fn prepare(
    publication: &Publication,
    shelf: &Shelf,
    settings: &HubSettings,
    epoch: Epoch,
) -> Result<Prepared, PublishFault> {
    let first = publication.topics.first().ok_or(PublishFault::NoTopic)?;
    check_texts(publication)?;
    let topic = shelf.find(first).map(|(_, topic)| topic);
    let last = topic.and_then(|topic| topic.ring.last()).map(|entry| &entry.update);
    let present = last.filter(|update| update.value != Value::Gone);
    let version = present.map(|update| Version { epoch, number: update.number });
    if !holds(&publication.expected, version) {
        return Err(PublishFault::NotAsExpected);
    }
    let new_rules = || settings.rules_of_new(first, publication.begins_log);
    let rules = topic.map_or_else(new_rules, |topic| topic.rules.clone());
    // A publisher that changes or ends a private value says nothing of who may read: the value stays private.
    let goes_on = !matches!(publication.content, Content::Whole(_));
    let was_private = last.is_some_and(|last| last.private);
    let private = publication.private || rules.private || (goes_on && was_private);
    let is_alone = publication.topics.len() == 1;
    let patches = is_alone && rules.kind == Kind::Json && last.is_some_and(|last| last.private == private);
    let (value, patch) = apply(&publication.content, present.map(|update| &update.value), rules.kind)?;
    if value.bytes().len() > settings.value_bytes_max {
        return Err(PublishFault::TooLong(settings.value_bytes_max));
    }
    let patch = patch.filter(|patch| patches && patch.len() < value.bytes().len());
    let (new_topics, growing_topics) = count_growing(publication, shelf, value.bytes().len());
    if new_topics > 0 && shelf.len() + new_topics > settings.topics_max {
        return Err(PublishFault::Topics(settings.topics_max));
    }
    Ok(Prepared { value, patch, private, new_topics, growing_topics })
}

/// Topics that do not exist yet, and all that would hold a longer value than so far.
fn count_growing(publication: &Publication, shelf: &Shelf, value_bytes: usize) -> (usize, usize) {
    let (mut new, mut growing) = (0, 0);
    for name in &publication.topics {
        let topic = shelf.find(name).map(|(_, topic)| topic);
        let last = topic.and_then(|topic| topic.ring.last());
        new += usize::from(topic.is_none());
        growing += usize::from(last.is_none_or(|last| last.update.value.bytes().len() < value_bytes));
    }
    (new, growing)
}

fn check_texts(publication: &Publication) -> Result<(), PublishFault> {
    let fits = |text: &str| text.len() <= ID_BYTES_MAX && !text.contains(char::is_control);
    let is_id = |id: &str| fits(id) && !id.is_empty() && !id.starts_with('#') && id != "earliest";
    if publication.id.as_deref().is_some_and(|id| !is_id(id)) {
        return Err(PublishFault::Id);
    }
    if publication.kind.as_deref().is_some_and(|kind| !fits(kind) || kind == "mercure") {
        return Err(PublishFault::Kind);
    }
    Ok(())
}

fn holds(expected: &Expected, version: Option<Version>) -> bool {
    let is_one = |versions: &[Version]| version.is_some_and(|version| versions.contains(&version));
    match expected {
        Expected::Anything => true,
        Expected::Something => version.is_some(),
        Expected::Nothing => version.is_none(),
        Expected::OneOf(versions) => is_one(versions),
        Expected::NoneOf(versions) => !is_one(versions),
    }
}

/// The value that comes out, and the patch that leads to it.
fn apply(
    content: &Content,
    before: Option<&Value>,
    kind: Kind,
) -> Result<(Value, Option<Bytes>), PublishFault> {
    match content {
        Content::Gone => Ok((Value::Gone, None)),
        Content::Whole(Value::Json(bytes)) if kind != Kind::Json => Ok((Value::Json(trimmed(bytes)), None)),
        Content::Whole(value) if kind != Kind::Json => Ok((value.clone(), None)),
        Content::Whole(value) => {
            let to = serde_json::from_slice(value.bytes()).map_err(|_| PublishFault::NotJson)?;
            let from = before.and_then(|before| serde_json::from_slice(before.bytes()).ok());
            let patch = from.and_then(|from| difference(&from, &to)).map(|patch| json(&patch));
            Ok((Value::Json(value.bytes().trim_ascii().into()), patch))
        }
        Content::Patch(patch) => {
            let before = before.ok_or(PublishFault::NothingToPatch)?;
            Ok((Value::Json(patched(before, patch)?), Some(json(patch))))
        }
    }
}

/// A document without the white space around it, such as the line end that an editor leaves.
fn trimmed(document: &Bytes) -> Bytes {
    let inner = document.trim_ascii();
    if inner.len() == document.len() { document.clone() } else { inner.into() }
}

/// A value that is JSON with a patch.
pub(crate) fn patched(value: &Value, patch: &serde_json::Value) -> Result<Bytes, PublishFault> {
    let mut document = serde_json::from_slice(value.bytes()).map_err(|_| PublishFault::NothingToPatch)?;
    merge(&mut document, patch.clone());
    Ok(json(&document))
}

fn json(value: &serde_json::Value) -> Bytes {
    value.to_string().into_bytes().into()
}

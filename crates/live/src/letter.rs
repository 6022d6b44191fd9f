//! What the hub tells workers, and what they ask of it.
//!
//! It owns the words of this mail. It must never carry anything that changes afterwards.

use std::sync::Arc;

use crate::form::Form;
use crate::name::TopicName;
use crate::pattern::Pattern;
use crate::topic::{Kind, TopicId};
use crate::update::{Bytes, Update};
use crate::version::Epoch;

/// The forms of an update that were made when it was published.
pub type Made = Arc<[(Form, Bytes)]>;

/// A letter of a batch: each worker gets the same.
#[derive(Debug, Clone)]
pub struct Letter {
    /// The life of the numbering.
    pub epoch: Epoch,
    /// In the order in which they happened.
    pub news: Arc<[News]>,
    /// The number of the last update.
    pub number: u64,
}

impl Letter {
    /// Whether the letter changes topics or updates, so that it has to be stored. Forms are not stored.
    pub fn changes(&self) -> bool {
        self.news.iter().any(|news| !matches!(news, News::Form(..) | News::FormsDropped(_)))
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum News {
    /// There is a new topic.
    Topic(TopicFacts),
    /// There is an update. Numbers only grow.
    Update(Arc<Update>, Made),
    /// Updates of a topic up to a number left its ring.
    Dropped(UpdateKey),
    /// A topic is not there any more.
    Forgotten(UpdateKey),
    /// A form of an earlier update, which was asked for.
    Form(UpdateKey, Form, Bytes),
    /// The forms of an update are not kept any more: they are made again when they are wanted.
    FormsDropped(UpdateKey),
}

/// A new topic.
#[derive(Debug, Clone)]
pub struct TopicFacts {
    pub(crate) id: TopicId,
    pub(crate) name: TopicName,
    pub(crate) kind: Kind,
}

/// An update of a topic: the topic, and the number of the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UpdateKey {
    pub(crate) topic: TopicId,
    pub(crate) number: u64,
}

/// What a worker asks of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// This worker has a reader with the form from now on.
    Hold(Form),
    /// This worker has no reader with the form any more.
    Release(Form),
    /// Make these forms of updates.
    Make(Vec<(UpdateKey, Form)>),
    /// Readers of a topic came or left.
    Readers(TopicName, i64),
    /// Readers of a pattern came or left.
    PatternReaders(Pattern, i64),
    /// Everything up to this number was read.
    Read(u64),
}

//! Live data without input or output: an update is a numbered, immutable thing that is made once; a reader is
//! a place in that numbering, and nothing else.
//!
//! It owns topics, updates in every form they are sent in, the one writer (`hub`), what each worker sees of
//! it (`view`), and the order in which readers are served (`wave`). It must never open a socket, start a
//! thread, read a clock or draw a random number: bytes, time and the numbers drawn are arguments. It knows no
//! connection: a reader's connection is a number given by who owns it.
#![forbid(unsafe_code)]

pub mod limits;

mod body;
mod carry;
mod catch_up;
pub mod centrifugo;
mod differences;
mod encoder;
mod following;
mod form;
mod gap;
mod group;
mod hub;
mod interest;
mod json_text;
mod keys;
mod letter;
pub mod mercure;
mod merge_patch;
mod name;
mod pattern;
pub mod quotes;
mod reader;
mod ring;
#[cfg(test)]
mod simulation;
mod stamp;
mod state;
pub mod token;
mod topic;
mod update;
mod version;
mod view;
mod wave;

pub use body::{BodyFault, LineReader, LinesMax, decode_form, read_form, read_json};
pub use carry::{read_states, write_end, write_state};
pub use catch_up::{Batch, CatchUp};
pub use encoder::Encoder;
pub use following::{FollowedValue, Following};
pub use form::{Coding, Form, FormSet, Shape, Transport};
pub use hub::{Accepted, Content, DifferenceMade, Expected, Hub, HubSettings, Publication, PublishFault};
pub use interest::{Grants, Interest, InterestFault};
pub use keys::{IdempotencyKeys, KeyUse};
pub use letter::{Letter, Made, News, Request, UpdateKey};
pub use merge_patch::{difference, merge};
pub use name::{NameFault, TopicName};
pub use pattern::Pattern;
pub use reader::{Marks, Reader, Start};
pub use stamp::UpdateStamp;
pub use state::{Former, KeptState, KeptTopic, StateFault, StateFaultKind, StateStore, Sync};
pub use topic::{Kind, TopicRules};
pub use update::{Bytes, Update, Value};
pub use version::{Epoch, NotOurs, Version};
pub use view::{Awaited, First, Joined, View};
pub use wave::{Audience, Delivery, Waves};

//! Requests as they are passed on, and an application's answers as they are read: what is, and what is not.

#[path = "../relay_messages/mod.rs"]
mod relay_messages;
#[path = "../relay_reading/mod.rs"]
mod relay_reading;
#[path = "../relay_writing/mod.rs"]
mod relay_writing;

mod answers;
mod faults;
mod http2;
mod properties;
mod replays;
mod requests;
mod trusted;

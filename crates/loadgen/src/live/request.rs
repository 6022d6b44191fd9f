//! The requests of readers and publishers, as far as they are the same each time.
//!
//! It must never hold a line end that came from outside: the command line has refused it.

use super::plan::{LiveWay, PublishPlan, ReaderPlan};
use crate::url::Url;

/// The request of readers of a topic, without its last, empty line.
pub(crate) fn of(url: &Url, readers: &ReaderPlan) -> Vec<u8> {
    let accept = match readers.way {
        LiveWay::Events => "Accept: text/event-stream\r\nCache-Control: no-cache\r\n",
        LiveWay::WebSocket => &super::socket::handshake_fields(),
    };
    let fields = lines(&readers.fields);
    format!("GET {} HTTP/1.1\r\nHost: {}\r\n{accept}{fields}", url.target, url.authority()).into_bytes()
}

/// The head of publications to a topic, without the length of the body.
pub(crate) fn publication_head(url: &Url, publishing: &PublishPlan) -> String {
    let fields = lines(&publishing.fields);
    format!("{} {} HTTP/1.1\r\nHost: {}\r\n{fields}", publishing.method, url.target, url.authority())
}

fn lines(fields: &[(String, String)]) -> String {
    fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

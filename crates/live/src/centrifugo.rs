//! Centrifugo's JSON client protocol, version 2: commands in, replies out.
//!
//! It owns the words on the wire (github.com/centrifugal/protocol, `client.proto`, as JSON, one command or
//! reply per line). It must never keep what a client has subscribed to. Pushes of updates are a form, made by
//! the hub.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::encoder::{append_value, quoted};
use crate::limits::COMMANDS_PER_MESSAGE_MAX;
use crate::update::Update;
use crate::version::{Epoch, Version};

/// One command of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The reply has the same; 0 for a command without a reply.
    pub id: u32,
    /// What is asked.
    pub ask: Ask,
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// The first command, with a token if the client has one.
    Connect(Option<String>),
    /// To read a channel; with the version up to which it was read before.
    Subscribe {
        /// The topic.
        channel: String,
        /// A token for the channel alone.
        token: Option<String>,
        /// Where the client was: epoch and offset.
        recover: Option<(String, u64)>,
    },
    /// To read it no more.
    Unsubscribe(String),
    /// To publish JSON, as it stands.
    Publish(String, Vec<u8>),
    /// The last updates of a channel, so many at most, behind an offset.
    History(String, u32, Option<u64>),
    /// A token that follows the one of the connection.
    Refresh(String),
    /// A sign of life: the empty command.
    Pong,
    /// Anything else: answered by error 108.
    Other,
}

/// An error of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientError {
    /// Its number.
    pub code: u32,
    /// Its name.
    pub message: &'static str,
    /// Whether trying again may help.
    pub temporary: bool,
}

impl ClientError {
    /// The server failed, or has no room now.
    pub const INTERNAL: Self = Self { code: 100, message: "internal server error", temporary: true };
    /// No token, or one that does not hold.
    pub const UNAUTHORIZED: Self = Self { code: 101, message: "unauthorized", temporary: false };
    /// No such channel can be.
    pub const UNKNOWN_CHANNEL: Self = Self { code: 102, message: "unknown channel", temporary: false };
    /// The token does not grant it.
    pub const PERMISSION_DENIED: Self = Self { code: 103, message: "permission denied", temporary: false };
    /// A channel that is subscribed to already.
    pub const ALREADY_SUBSCRIBED: Self = Self { code: 105, message: "already subscribed", temporary: false };
    /// More channels than allowed.
    pub const LIMIT_EXCEEDED: Self = Self { code: 106, message: "limit exceeded", temporary: false };
    /// A command that says nothing that is understood.
    pub const BAD_REQUEST: Self = Self { code: 107, message: "bad request", temporary: false };
    /// A command that is not served here.
    pub const NOT_AVAILABLE: Self = Self { code: 108, message: "not available", temporary: false };
    /// The token's time is over.
    pub const TOKEN_EXPIRED: Self = Self { code: 109, message: "token expired", temporary: false };
    /// Too many at once: later.
    pub const TOO_MANY_REQUESTS: Self = Self { code: 111, message: "too many requests", temporary: true };
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    id: u32,
    #[serde(default)]
    connect: Option<WireConnect>,
    #[serde(default)]
    subscribe: Option<WireSubscribe>,
    #[serde(default)]
    unsubscribe: Option<WireChannel>,
    #[serde(borrow, default)]
    publish: Option<WirePublish<'a>>,
    #[serde(default)]
    history: Option<WireHistory>,
    #[serde(default)]
    refresh: Option<WireConnect>,
    #[serde(default)]
    ping: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct WireConnect {
    #[serde(default)]
    token: Option<String>,
}

#[derive(Deserialize)]
struct WireSubscribe {
    channel: String,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    recover: bool,
    #[serde(default)]
    epoch: String,
    #[serde(default)]
    offset: u64,
}

#[derive(Deserialize)]
struct WireChannel {
    channel: String,
}

#[derive(Deserialize)]
struct WirePublish<'a> {
    channel: String,
    #[serde(borrow)]
    data: &'a serde_json::value::RawValue,
}

#[derive(Deserialize)]
struct WireHistory {
    channel: String,
    #[serde(default)]
    limit: u32,
    #[serde(default)]
    since: Option<WireSince>,
}

#[derive(Deserialize)]
struct WireSince {
    #[serde(default)]
    offset: u64,
}

/// Reads the commands of a message.
///
/// # Errors
/// A line that is no command, or too many: the connection is closed with code 3501 (bad request).
pub fn read_commands(message: &str) -> Result<Vec<Command>, ClientError> {
    let mut commands = Vec::new();
    for line in message.lines().filter(|line| !line.trim().is_empty()) {
        if commands.len() == COMMANDS_PER_MESSAGE_MAX || !line.trim_start().starts_with('{') {
            return Err(ClientError::BAD_REQUEST);
        }
        let wire: Wire<'_> = serde_json::from_str(line).map_err(|_| ClientError::BAD_REQUEST)?;
        let is_pong = line.trim() == "{}";
        commands.push(Command { id: wire.id, ask: if is_pong { Ask::Pong } else { ask(wire) } });
    }
    Ok(commands)
}

fn ask(wire: Wire<'_>) -> Ask {
    if let Some(connect) = wire.connect {
        return Ask::Connect(connect.token.filter(|token| !token.is_empty()));
    }
    if let Some(subscribe) = wire.subscribe {
        let recover = subscribe.recover.then_some((subscribe.epoch, subscribe.offset));
        let token = subscribe.token.filter(|token| !token.is_empty());
        return Ask::Subscribe { channel: subscribe.channel, token, recover };
    }
    if let Some(unsubscribe) = wire.unsubscribe {
        return Ask::Unsubscribe(unsubscribe.channel);
    }
    if let Some(publish) = wire.publish {
        return Ask::Publish(publish.channel, publish.data.get().as_bytes().to_vec());
    }
    if let Some(history) = wire.history {
        return Ask::History(history.channel, history.limit, history.since.map(|since| since.offset));
    }
    if let Some(token) = wire.refresh.and_then(|refresh| refresh.token) {
        return Ask::Refresh(token);
    }
    if wire.ping.is_some() { Ask::Pong } else { Ask::Other }
}

/// The reply to `connect`: the client, and how often the server asks for a sign of life.
pub fn connected(id: u32, client: &str, ping_s: u32, expires_in_s: Option<u32>) -> String {
    let expires = expires_in_s.map_or(String::new(), |ttl| format!(",\"expires\":true,\"ttl\":{ttl}"));
    let client = quoted(client);
    let ping = format!("\"ping\":{ping_s},\"pong\":true");
    format!("{{\"id\":{id},\"connect\":{{\"client\":{client},\"version\":\"staunch\",{ping}{expires}}}}}")
}

/// The reply to `subscribe`: where the channel is, and what the client lacked of it, in order. `recovered`
/// tells whether nothing is missing between where the client was and these; without recovery it is none.
pub fn subscribed(id: u32, version: Version, publications: &[&Update], recovered: Option<bool>) -> String {
    let mut text = format!("{{\"id\":{id},\"subscribe\":{{\"recoverable\":true,");
    append_position(version.epoch, version.number, &mut text);
    if let Some(recovered) = recovered {
        let _ = write!(text, ",\"was_recovering\":true,\"recovered\":{recovered}");
    }
    append_publications(publications, &mut text);
    text.push_str("}}");
    text
}

/// The reply to `history`.
pub fn history(id: u32, version: Version, publications: &[&Update]) -> String {
    let mut text = format!("{{\"id\":{id},\"history\":{{");
    append_position(version.epoch, version.number, &mut text);
    append_publications(publications, &mut text);
    text.push_str("}}");
    text
}

/// The reply to `unsubscribe`, `publish` and `refresh`, whose result is empty.
pub fn done(id: u32, ask: &Ask) -> Option<String> {
    let name = match ask {
        Ask::Unsubscribe(_) => "unsubscribe",
        Ask::Publish(..) => "publish",
        Ask::Refresh(_) => "refresh",
        _ => return None,
    };
    Some(format!("{{\"id\":{id},\"{name}\":{{}}}}"))
}

/// The reply that says why not.
pub fn refused(id: u32, error: ClientError) -> String {
    let ClientError { code, message, temporary } = error;
    let temporary = if temporary { ",\"temporary\":true" } else { "" };
    format!("{{\"id\":{id},\"error\":{{\"code\":{code},\"message\":{}{temporary}}}}}", quoted(message))
}

fn append_position(epoch: Epoch, offset: u64, text: &mut String) {
    let _ = write!(text, "\"epoch\":\"{epoch}\",\"offset\":{offset}");
}

fn append_publications(publications: &[&Update], text: &mut String) {
    text.push_str(",\"publications\":[");
    for (place, update) in publications.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str("{\"data\":");
        let coded = append_value(&update.value, text);
        let _ = write!(text, ",\"offset\":{}", update.number);
        if let Some(coded) = coded {
            let _ = write!(text, ",\"tags\":{{\"{coded}\":\"1\"}}");
        }
        text.push('}');
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::TopicName;
    use crate::topic::TopicId;
    use crate::update::Value;

    fn read(message: &str) -> Vec<(u32, Ask)> {
        read_commands(message).unwrap().into_iter().map(|command| (command.id, command.ask)).collect()
    }

    #[test]
    fn commands_of_the_client_for_browsers() {
        let subscribe = |recover| Ask::Subscribe { channel: "a".into(), token: None, recover };
        let table = [
            (r#"{"id":1,"connect":{"token":"","name":"js"}}"#, vec![(1, Ask::Connect(None))]),
            (r#"{"id":1,"connect":{"token":"t"}}"#, vec![(1, Ask::Connect(Some("t".into())))]),
            (r#"{"id":2,"subscribe":{"channel":"a"}}"#, vec![(2, subscribe(None))]),
            (
                r#"{"id":2,"subscribe":{"channel":"a","recover":true,"epoch":"e","offset":9}}"#,
                vec![(2, subscribe(Some(("e".into(), 9))))],
            ),
            (r#"{"id":3,"unsubscribe":{"channel":"a"}}"#, vec![(3, Ask::Unsubscribe("a".into()))]),
            (
                r#"{"id":4,"publish":{"channel":"a","data":{ "x":1.0 }}}"#,
                vec![(4, Ask::Publish("a".into(), b"{ \"x\":1.0 }".to_vec()))],
            ),
            (
                r#"{"id":5,"history":{"channel":"a","limit":3,"since":{"offset":7,"epoch":"e"}}}"#,
                vec![(5, Ask::History("a".into(), 3, Some(7)))],
            ),
            (r#"{"id":6,"refresh":{"token":"t"}}"#, vec![(6, Ask::Refresh("t".into()))]),
            (r#"{"id":7,"presence":{"channel":"a"}}"#, vec![(7, Ask::Other)]),
            ("{}", vec![(0, Ask::Pong)]),
            ("{\"id\":8,\"rpc\":{}}\n{}\n", vec![(8, Ask::Other), (0, Ask::Pong)]),
        ];
        for (message, expected) in table {
            assert_eq!(read(message), expected, "{message}");
        }
    }

    #[test]
    fn what_is_no_command() {
        let many = "{}\n".repeat(COMMANDS_PER_MESSAGE_MAX + 1);
        for message in ["[]", "x", "{", r#"{"id":-1}"#, r#"{"id":1,"subscribe":{}}"#, &many] {
            assert_eq!(read_commands(message), Err(ClientError::BAD_REQUEST), "{message}");
        }
    }

    #[test]
    fn replies() {
        let update = |number, value| Update {
            number,
            topics: [(TopicId(0), TopicName::new("a").unwrap())].into(),
            value,
            patch: None,
            id: None,
            kind: None,
            retry_ms: None,
            private: false,
        };
        let json = update(3, Value::Json(b"{\"x\":1}"[..].into()));
        let text = update(6, Value::Text(b"a\"b"[..].into()));
        let version = Version { epoch: Epoch(0xe), number: 9 };
        let replies = [
            (
                connected(1, "c", 25, None),
                r#"{"id":1,"connect":{"client":"c","version":"staunch","ping":25,"pong":true}}"#,
            ),
            (
                connected(1, "c", 25, Some(60)),
                concat!(
                    r#"{"id":1,"connect":{"client":"c","version":"staunch","ping":25,"pong":true,"#,
                    r#""expires":true,"ttl":60}}"#
                ),
            ),
            (
                subscribed(2, version, &[], None),
                r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"e","offset":9,"publications":[]}}"#,
            ),
            (
                subscribed(2, version, &[&json, &text], Some(true)),
                concat!(
                    r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"e","offset":9,"#,
                    r#""was_recovering":true,"recovered":true,"#,
                    r#""publications":[{"data":{"x":1},"offset":3},{"data":"a\"b","offset":6}]}}"#
                ),
            ),
            (
                history(3, version, &[&json]),
                r#"{"id":3,"history":{"epoch":"e","offset":9,"publications":[{"data":{"x":1},"offset":3}]}}"#,
            ),
            (
                refused(4, ClientError::NOT_AVAILABLE),
                r#"{"id":4,"error":{"code":108,"message":"not available"}}"#,
            ),
            (
                refused(5, ClientError::TOO_MANY_REQUESTS),
                r#"{"id":5,"error":{"code":111,"message":"too many requests","temporary":true}}"#,
            ),
        ];
        for (reply, expected) in replies {
            assert_eq!(reply, expected);
            assert!(serde_json::from_str::<serde_json::Value>(&reply).is_ok());
        }
        assert_eq!(done(6, &Ask::Unsubscribe("a".into())).as_deref(), Some(r#"{"id":6,"unsubscribe":{}}"#));
        assert_eq!(done(6, &Ask::Pong), None);
    }
}

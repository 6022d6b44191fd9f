//! Commands and replies as JSON, one object a line.
//!
//! It must never frame one: several go in one message.

use std::fmt::Write as _;

use serde::Deserialize;

use super::command::{Ask, Command, History, Published, Subscription};
use super::reply::{ClientError, Reply, VERSION};
use crate::json_text::{append_value, quoted};
use crate::limits::COMMANDS_PER_MESSAGE_MAX;
use crate::update::Update;
use crate::version::Version;

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    id: u32,
    #[serde(default)]
    connect: Option<WireToken>,
    #[serde(default)]
    subscribe: Option<WireSubscribe>,
    #[serde(default)]
    unsubscribe: Option<WireChannel>,
    #[serde(borrow, default)]
    publish: Option<WirePublish<'a>>,
    #[serde(default)]
    history: Option<WireHistory>,
    #[serde(default)]
    refresh: Option<WireToken>,
    #[serde(default)]
    ping: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct WireToken {
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
    limit: i64,
    #[serde(default)]
    since: Option<WireSince>,
    #[serde(default)]
    reverse: bool,
}

#[derive(Deserialize)]
struct WireSince {
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    epoch: String,
}

/// Reads the commands of a message.
///
/// # Errors
/// A line that is no command, or too many.
pub(super) fn read_commands(message: &[u8]) -> Result<Vec<Command>, ClientError> {
    let message = std::str::from_utf8(message).map_err(|_| ClientError::BAD_REQUEST)?;
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
    if let Some(WireSubscribe { channel, token, recover, epoch, offset }) = wire.subscribe {
        let has_token = token.is_some_and(|token| !token.is_empty());
        let recover = recover.then_some((epoch, offset));
        return Ask::Subscribe(Subscription { channel, has_token, recover });
    }
    if let Some(unsubscribe) = wire.unsubscribe {
        return Ask::Unsubscribe(unsubscribe.channel);
    }
    if let Some(publish) = wire.publish {
        return Ask::Publish(publish.channel, Published::Json(publish.data.get().as_bytes().to_vec()));
    }
    if let Some(WireHistory { channel, limit, since, reverse }) = wire.history {
        // What is negative stands for all.
        let limit = usize::try_from(limit).ok();
        let since = since.map(|WireSince { offset, epoch }| (epoch, offset));
        return Ask::History(History { channel, limit, since, reverse });
    }
    if let Some(token) = wire.refresh.and_then(|refresh| refresh.token) {
        return Ask::Refresh(token);
    }
    if wire.ping.is_some() { Ask::Ping } else { Ask::Other }
}

/// Appends a reply, on a line of its own.
pub(super) fn append_reply(id: u32, reply: &Reply<'_>, message: &mut Vec<u8>) {
    let (name, result) = match reply {
        Reply::Connected { client, ping_s, expires_in_s } => (
            "connect",
            format!("{},\"ping\":{ping_s},\"pong\":true{}", named(client), expires(*expires_in_s)),
        ),
        Reply::Refreshed { client, expires_in_s } => {
            ("refresh", format!("{}{}", named(client), expires(*expires_in_s)))
        }
        Reply::Subscribed { from, recovered } => ("subscribe", subscribed(*from, *recovered)),
        Reply::History { version, publications } => ("history", kept(*version, publications)),
        Reply::Unsubscribed => ("unsubscribe", String::new()),
        Reply::Published => ("publish", String::new()),
        Reply::Ping => ("ping", String::new()),
        Reply::Refused(ClientError { code, message, temporary }) => {
            let temporary = if *temporary { ",\"temporary\":true" } else { "" };
            ("error", format!("\"code\":{code},\"message\":{}{temporary}", quoted(message)))
        }
    };
    if !message.is_empty() {
        message.push(b'\n');
    }
    message.extend_from_slice(format!("{{\"id\":{id},\"{name}\":{{{result}}}}}").as_bytes());
}

fn named(client: &str) -> String {
    format!("\"client\":{},\"version\":\"{VERSION}\"", quoted(client))
}

fn expires(in_s: Option<u64>) -> String {
    in_s.map_or(String::new(), |ttl| format!(",\"expires\":true,\"ttl\":{ttl}"))
}

fn subscribed(from: Version, recovered: Option<bool>) -> String {
    let Version { epoch, number } = from;
    let recovered = recovered
        .map_or(String::new(), |recovered| format!(",\"was_recovering\":true,\"recovered\":{recovered}"));
    format!("\"recoverable\":true,\"epoch\":\"{epoch}\",\"offset\":{number}{recovered}")
}

fn kept(version: Version, publications: &[&Update]) -> String {
    let Version { epoch, number } = version;
    let mut text = format!("\"epoch\":\"{epoch}\",\"offset\":{number},\"publications\":[");
    for (place, update) in publications.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        append_publication(update, None, &mut text);
    }
    text.push(']');
    text
}

/// A push of an update, or of the patch that leads to it.
pub(super) fn push(update: &Update, patch: Option<&[u8]>) -> Vec<u8> {
    let channel = quoted(update.topic().as_str());
    let mut text = format!("{{\"push\":{{\"channel\":{channel},\"pub\":");
    append_publication(update, patch, &mut text);
    text.push_str("}}");
    text.into_bytes()
}

/// A push that tells how much is lost.
pub(super) fn push_of_message(channel: &str, data: &str) -> Vec<u8> {
    let channel = quoted(channel);
    format!("{{\"push\":{{\"channel\":{channel},\"message\":{{\"data\":{data}}}}}}}").into_bytes()
}

fn append_publication(update: &Update, patch: Option<&[u8]>, text: &mut String) {
    text.push_str("{\"data\":");
    let coded = match patch {
        None => append_value(&update.value, text),
        Some(patch) => {
            text.push_str(&String::from_utf8_lossy(patch));
            Some("patch")
        }
    };
    let _ = write!(text, ",\"offset\":{}", update.number);
    if let Some(coded) = coded {
        let _ = write!(text, ",\"tags\":{{\"{coded}\":\"1\"}}");
    }
    text.push('}');
}

#[cfg(test)]
mod tests;

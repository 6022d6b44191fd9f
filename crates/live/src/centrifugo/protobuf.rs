//! Commands and replies as Protobuf, by `client.proto`. Each has its length before it.
//!
//! It must never understand or say more than the messages as JSON.

use super::command::{Ask, Command, History, Published, Subscription};
use super::fields::{Field, Fields, Malformed, append_bytes, append_number, append_varint};
use super::reply::{ClientError, Reply, VERSION};
use crate::limits::COMMANDS_PER_MESSAGE_MAX;
use crate::update::{Update, Value};
use crate::version::Version;

/// Fields of `Reply`.
mod replies {
    pub(super) const ID: u64 = 1;
    pub(super) const ERROR: u64 = 2;
    pub(super) const PUSH: u64 = 4;
    pub(super) const CONNECT: u64 = 5;
    pub(super) const SUBSCRIBE: u64 = 6;
    pub(super) const UNSUBSCRIBE: u64 = 7;
    pub(super) const PUBLISH: u64 = 8;
    pub(super) const HISTORY: u64 = 11;
    pub(super) const PING: u64 = 12;
    pub(super) const REFRESH: u64 = 14;
}

/// Reads the commands of a message.
///
/// # Errors
/// Bytes that are no command, or too many of them.
pub(super) fn read_commands(message: &[u8]) -> Result<Vec<Command>, ClientError> {
    let mut rest = Fields(message);
    let mut commands = Vec::new();
    while !rest.0.is_empty() {
        if commands.len() == COMMANDS_PER_MESSAGE_MAX {
            return Err(ClientError::BAD_REQUEST);
        }
        let command = rest.delimited().and_then(command).map_err(|Malformed| ClientError::BAD_REQUEST)?;
        commands.push(command);
    }
    Ok(commands)
}

/// What a command may ask, in the order in which the first is taken.
#[derive(Default)]
struct Asked<'a> {
    id: u64,
    connect: Option<&'a [u8]>,
    subscribe: Option<&'a [u8]>,
    unsubscribe: Option<&'a [u8]>,
    publish: Option<&'a [u8]>,
    history: Option<&'a [u8]>,
    refresh: Option<&'a [u8]>,
    ping: Option<&'a [u8]>,
}

fn command(bytes: &[u8]) -> Result<Command, Malformed> {
    if bytes.is_empty() {
        return Ok(Command { id: 0, ask: Ask::Pong });
    }
    let mut asked = Asked::default();
    each(bytes, |number, field| {
        match number {
            1 => asked.id = field.number()?,
            4 => asked.connect = Some(field.bytes()?),
            5 => asked.subscribe = Some(field.bytes()?),
            6 => asked.unsubscribe = Some(field.bytes()?),
            7 => asked.publish = Some(field.bytes()?),
            10 => asked.history = Some(field.bytes()?),
            11 => asked.ping = Some(field.bytes()?),
            14 => asked.refresh = Some(field.bytes()?),
            _ => {}
        }
        Ok(())
    })?;
    let id = u32::try_from(asked.id).map_err(|_| Malformed)?;
    Ok(Command { id, ask: asked.ask()? })
}

impl Asked<'_> {
    fn ask(self) -> Result<Ask, Malformed> {
        if let Some(connect) = self.connect {
            let token = text_of(connect, 1)?;
            return Ok(Ask::Connect((!token.is_empty()).then_some(token)));
        }
        if let Some(asked) = self.subscribe {
            return subscribe(asked).map(Ask::Subscribe);
        }
        if let Some(asked) = self.unsubscribe {
            return text_of(asked, 1).map(Ask::Unsubscribe);
        }
        if let Some(asked) = self.publish {
            return publish(asked);
        }
        if let Some(asked) = self.history {
            return history(asked).map(Ask::History);
        }
        if let Some(asked) = self.refresh {
            return text_of(asked, 1).map(Ask::Refresh);
        }
        Ok(if self.ping.is_some() { Ask::Ping } else { Ask::Other })
    }
}

fn subscribe(bytes: &[u8]) -> Result<Subscription, Malformed> {
    let mut asked = Subscription { channel: String::new(), has_token: false, recover: None };
    let (mut recovers, mut epoch, mut offset) = (false, String::new(), 0);
    each(bytes, |number, field| {
        match number {
            1 => asked.channel = field.text()?,
            2 => asked.has_token = !field.bytes()?.is_empty(),
            3 => recovers = field.number()? != 0,
            6 => epoch = field.text()?,
            7 => offset = field.number()?,
            _ => {}
        }
        Ok(())
    })?;
    asked.recover = recovers.then_some((epoch, offset));
    Ok(asked)
}

fn publish(bytes: &[u8]) -> Result<Ask, Malformed> {
    let (mut channel, mut data) = (String::new(), Vec::new());
    each(bytes, |number, field| {
        match number {
            1 => channel = field.text()?,
            2 => data = field.bytes()?.to_vec(),
            _ => {}
        }
        Ok(())
    })?;
    Ok(Ask::Publish(channel, Published::Bytes(data)))
}

fn history(bytes: &[u8]) -> Result<History, Malformed> {
    let mut asked = History { channel: String::new(), limit: Some(0), since: None, reverse: false };
    each(bytes, |number, field| {
        match number {
            1 => asked.channel = field.text()?,
            // What is negative stands for all.
            7 => asked.limit = usize::try_from(field.number()? as i64 as i32).ok(),
            8 => asked.since = Some(position(field.bytes()?)?),
            9 => asked.reverse = field.number()? != 0,
            _ => {}
        }
        Ok(())
    })?;
    Ok(asked)
}

fn position(bytes: &[u8]) -> Result<(String, u64), Malformed> {
    let mut position = (String::new(), 0);
    each(bytes, |number, field| {
        match number {
            1 => position.1 = field.number()?,
            2 => position.0 = field.text()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(position)
}

/// The text of a message that has one that matters.
fn text_of(bytes: &[u8], wanted: u64) -> Result<String, Malformed> {
    let mut text = String::new();
    each(bytes, |number, field| {
        if number == wanted {
            text = field.text()?;
        }
        Ok(())
    })?;
    Ok(text)
}

/// Looks at all fields of a message. Of a field that comes twice the last one counts.
fn each<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(u64, Field<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut fields = Fields(bytes);
    while let Some((number, field)) = fields.next()? {
        take(number, field)?;
    }
    Ok(())
}

/// Appends a reply, with its length before it.
pub(super) fn append_reply(id: u32, reply: &Reply<'_>, output: &mut Vec<u8>) {
    let (field, result) = match reply {
        Reply::Connected { client, ping_s, expires_in_s } => {
            let mut result = session(client, *expires_in_s);
            append_number(7, (*ping_s).into(), &mut result);
            append_number(8, 1, &mut result);
            (replies::CONNECT, result)
        }
        Reply::Refreshed { client, expires_in_s } => (replies::REFRESH, session(client, *expires_in_s)),
        Reply::Subscribed { from, recovered } => (replies::SUBSCRIBE, subscribed(*from, *recovered)),
        Reply::History { version, publications } => (replies::HISTORY, kept(*version, publications)),
        Reply::Unsubscribed => (replies::UNSUBSCRIBE, Vec::new()),
        Reply::Published => (replies::PUBLISH, Vec::new()),
        Reply::Ping => (replies::PING, Vec::new()),
        Reply::Refused(ClientError { code, message, temporary }) => {
            let mut error = Vec::new();
            append_number(1, (*code).into(), &mut error);
            append_bytes(2, message.as_bytes(), &mut error);
            append_number(3, (*temporary).into(), &mut error);
            (replies::ERROR, error)
        }
    };
    let mut whole = Vec::with_capacity(result.len() + 16);
    append_number(replies::ID, id.into(), &mut whole);
    append_bytes(field, &result, &mut whole);
    append_delimited(&whole, output);
}

/// The fields that `ConnectResult` and `RefreshResult` share.
fn session(client: &str, expires_in_s: Option<u64>) -> Vec<u8> {
    let mut result = Vec::new();
    append_bytes(1, client.as_bytes(), &mut result);
    append_bytes(2, VERSION.as_bytes(), &mut result);
    append_number(3, expires_in_s.is_some().into(), &mut result);
    append_number(4, expires_in_s.unwrap_or(0).min(u32::MAX.into()), &mut result);
    result
}

fn subscribed(from: Version, recovered: Option<bool>) -> Vec<u8> {
    let mut result = Vec::new();
    append_number(3, 1, &mut result);
    append_bytes(6, from.epoch.to_string().as_bytes(), &mut result);
    append_number(8, recovered.unwrap_or(false).into(), &mut result);
    append_number(9, from.number, &mut result);
    append_number(12, recovered.is_some().into(), &mut result);
    result
}

fn kept(version: Version, publications: &[&Update]) -> Vec<u8> {
    let mut result = Vec::new();
    for update in publications {
        append_bytes(1, &publication(update, None), &mut result);
    }
    append_bytes(2, version.epoch.to_string().as_bytes(), &mut result);
    append_number(3, version.number, &mut result);
    result
}

/// An update as `Publication`: the bytes of its value as they were published, or the patch that leads to it.
fn publication(update: &Update, patch: Option<&[u8]>) -> Vec<u8> {
    let data = patch.unwrap_or_else(|| update.value.bytes());
    let mut output = Vec::with_capacity(data.len() + 32);
    append_bytes(4, data, &mut output);
    append_number(6, update.number, &mut output);
    let tag = match (patch, &update.value) {
        (Some(_), _) => Some("patch"),
        (None, Value::Gone) => Some("deleted"),
        (None, _) => None,
    };
    if let Some(tag) = tag {
        let mut pair = Vec::new();
        append_bytes(1, tag.as_bytes(), &mut pair);
        append_bytes(2, b"1", &mut pair);
        append_bytes(7, &pair, &mut output);
    }
    output
}

/// A push of an update to a channel, or of the patch that leads to it.
pub(super) fn push_of_update(channel: &str, update: &Update, patch: Option<&[u8]>) -> Vec<u8> {
    push(channel, 4, &publication(update, patch))
}

/// A push that tells how much is lost.
pub(super) fn push_of_message(channel: &str, data: &str) -> Vec<u8> {
    let mut message = Vec::new();
    append_bytes(1, data.as_bytes(), &mut message);
    push(channel, 8, &message)
}

/// The push that begins where no command is awaited.
pub(super) fn push_of_welcome(data: &str) -> Vec<u8> {
    let mut connect = Vec::new();
    append_bytes(2, VERSION.as_bytes(), &mut connect);
    append_bytes(3, data.as_bytes(), &mut connect);
    push("", 10, &connect)
}

fn push(channel: &str, field: u64, message: &[u8]) -> Vec<u8> {
    let mut push = Vec::with_capacity(message.len() + channel.len() + 16);
    if !channel.is_empty() {
        append_bytes(2, channel.as_bytes(), &mut push);
    }
    append_bytes(field, message, &mut push);
    let mut whole = Vec::with_capacity(push.len() + 16);
    append_bytes(replies::PUSH, &push, &mut whole);
    let mut output = Vec::with_capacity(whole.len() + 16);
    append_delimited(&whole, &mut output);
    output
}

fn append_delimited(message: &[u8], output: &mut Vec<u8>) {
    append_varint(message.len() as u64, output);
    output.extend_from_slice(message);
}

#[cfg(test)]
mod tests;

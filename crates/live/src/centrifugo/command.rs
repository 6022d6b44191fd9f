//! Commands of a client, as they stand in a message: one JSON object a line.
//!
//! It must never answer one.

use serde::Deserialize;

use super::ClientError;
use crate::limits::COMMANDS_PER_MESSAGE_MAX;

/// A command of a client.
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
    /// To read a channel.
    Subscribe(Subscription),
    /// To read it no more.
    Unsubscribe(String),
    /// To publish JSON, as it stands.
    Publish(String, Vec<u8>),
    /// The last updates of a channel.
    History(History),
    /// A token that follows the one of the connection.
    Refresh(String),
    /// Whether the server is there.
    Ping,
    /// A sign of life: the empty command, without a reply.
    Pong,
    /// Anything else: answered by error 108.
    Other,
}

/// A channel that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The topic.
    pub channel: String,
    /// The client has a token for the channel alone.
    pub has_token: bool,
    /// Where the client was: epoch and offset.
    pub recover: Option<(String, u64)>,
}

/// Last updates that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The topic.
    pub channel: String,
    /// So many at most; `None` for all that there are.
    pub limit: Option<usize>,
    /// Behind this epoch and offset.
    pub since: Option<(String, u64)>,
    /// The newest first.
    pub reverse: bool,
}

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
    if let Some(WireSubscribe { channel, token, recover, epoch, offset }) = wire.subscribe {
        let has_token = token.is_some_and(|token| !token.is_empty());
        let recover = recover.then_some((epoch, offset));
        return Ask::Subscribe(Subscription { channel, has_token, recover });
    }
    if let Some(unsubscribe) = wire.unsubscribe {
        return Ask::Unsubscribe(unsubscribe.channel);
    }
    if let Some(publish) = wire.publish {
        return Ask::Publish(publish.channel, publish.data.get().as_bytes().to_vec());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Vec<(u32, Ask)> {
        read_commands(message).unwrap().into_iter().map(|command| (command.id, command.ask)).collect()
    }

    #[test]
    fn commands_of_the_client_for_browsers() {
        let subscribe =
            |recover, has_token| Ask::Subscribe(Subscription { channel: "a".into(), has_token, recover });
        let history =
            |limit, since, reverse| Ask::History(History { channel: "a".into(), limit, since, reverse });
        let since = || Some(("e".to_owned(), 7));
        let table = [
            (r#"{"id":1,"connect":{"token":"","name":"js"}}"#, vec![(1, Ask::Connect(None))]),
            (r#"{"id":1,"connect":{"token":"t"}}"#, vec![(1, Ask::Connect(Some("t".into())))]),
            (r#"{"id":2,"subscribe":{"channel":"a"}}"#, vec![(2, subscribe(None, false))]),
            (r#"{"id":2,"subscribe":{"channel":"a","token":"t"}}"#, vec![(2, subscribe(None, true))]),
            (
                r#"{"id":2,"subscribe":{"channel":"a","recover":true,"epoch":"e","offset":9}}"#,
                vec![(2, subscribe(Some(("e".into(), 9)), false))],
            ),
            (r#"{"id":3,"unsubscribe":{"channel":"a"}}"#, vec![(3, Ask::Unsubscribe("a".into()))]),
            (
                r#"{"id":4,"publish":{"channel":"a","data":{ "x":1.0 }}}"#,
                vec![(4, Ask::Publish("a".into(), b"{ \"x\":1.0 }".to_vec()))],
            ),
            (
                r#"{"id":5,"history":{"channel":"a","limit":3,"since":{"offset":7,"epoch":"e"}}}"#,
                vec![(5, history(Some(3), since(), false))],
            ),
            (r#"{"id":5,"history":{"channel":"a"}}"#, vec![(5, history(Some(0), None, false))]),
            (
                r#"{"id":5,"history":{"channel":"a","limit":-1,"reverse":true}}"#,
                vec![(5, history(None, None, true))],
            ),
            (r#"{"id":6,"refresh":{"token":"t"}}"#, vec![(6, Ask::Refresh("t".into()))]),
            (r#"{"id":7,"presence":{"channel":"a"}}"#, vec![(7, Ask::Other)]),
            (r#"{"id":8,"ping":{}}"#, vec![(8, Ask::Ping)]),
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
}

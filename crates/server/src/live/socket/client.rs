//! A client of a WebSocket that sends commands.
//!
//! It owns the commands that wait for their turn, and what the first of them waits for. It must never obey
//! one: the worker does.

use std::collections::VecDeque;
use std::sync::Arc;

use staunch_live::centrifugo::{Ask, ClientError, Command, Disconnect, Language};
use staunch_live::{Awaited, Interest};
use staunch_protocol::websocket::Opcode;

use super::Closing;
use crate::limits::COMMANDS_WAITING_MAX;
use crate::live::permit::Rights;
use crate::live::tokens::Verdict;
use crate::live::turns::LineClient;

/// A client of a WebSocket that sends commands.
#[derive(Debug)]
pub(crate) struct CommandClient {
    pub(crate) rights: Rights,
    pub(crate) is_connected: bool,
    /// In the order in which they came.
    pub(crate) commands: VecDeque<Command>,
    /// What the first of them waits for.
    pub(crate) waits: Option<Wait>,
    /// What it was told meanwhile.
    pub(crate) heard: Option<Heard>,
    /// A channel that owes more than one delivery, and up to which number it was handed over.
    pub(crate) catching_up: Option<(Arc<Interest>, u64)>,
    /// The channel that waits for a form, or for its turn to be compared with topics.
    pub(crate) held: Option<Arc<Interest>>,
    /// The number of the client, by which work on patterns is shared out.
    pub(crate) number: u64,
    /// When its token ends, in seconds since 1970; 0 for never.
    pub(crate) ends_at_s: u64,
    /// The earliest end it stands in line for; 0 for none.
    pub(crate) watched_at_s: u64,
    /// Whose turn it is when it asks for something.
    pub(crate) by: LineClient,
}

/// What a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A token is checked.
    Token,
    /// The writer numbers an update.
    Writer,
    /// The worker's next letter, or a turn of its view.
    View(Awaited),
}

/// What a command was told.
#[derive(Debug)]
pub(crate) enum Heard {
    Token(Verdict),
    Published(Result<(), ClientError>),
}

impl CommandClient {
    pub(crate) fn new(rights: Rights, by: LineClient, number: u64) -> Self {
        Self {
            rights,
            is_connected: false,
            commands: VecDeque::new(),
            waits: None,
            heard: None,
            catching_up: None,
            held: None,
            number,
            ends_at_s: 0,
            watched_at_s: 0,
            by,
        }
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It is none, or too much waits.
    pub(super) fn take(&mut self, language: Language, opcode: Opcode, message: &[u8]) -> Result<(), Closing> {
        match (language, opcode) {
            (Language::Json, Opcode::Binary) => return Err(Closing::NO_BYTES),
            (Language::Protobuf, Opcode::Text) => return Err(Closing::NO_TEXT),
            _ => {}
        }
        let commands = language.read_commands(message);
        let commands = commands.map_err(|_| Closing::from(Disconnect::BAD_REQUEST))?;
        if self.commands.len() + commands.len() > COMMANDS_WAITING_MAX {
            return Err(Disconnect::TOO_MANY_REQUESTS.into());
        }
        self.commands.extend(commands);
        Ok(())
    }

    /// Whether something is to be done before more is read.
    pub(crate) fn is_busy(&self) -> bool {
        !self.commands.is_empty() || self.catching_up.is_some()
    }

    /// Bytes that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        let texts = self.commands.iter().map(text_bytes).sum::<usize>();
        let channels = self.held.iter().chain(self.catching_up.iter().map(|(channel, _)| channel));
        let channels_bytes = channels.map(|channel| channel.held_bytes()).sum::<usize>();
        size_of::<Self>() + self.commands.capacity() * size_of::<Command>() + texts + channels_bytes
    }
}

/// Bytes of a command's texts.
fn text_bytes(command: &Command) -> usize {
    let of_place = |place: &Option<(String, u64)>| place.as_ref().map_or(0, |(epoch, _)| epoch.capacity());
    match &command.ask {
        Ask::Connect(token) => token.as_ref().map_or(0, String::capacity),
        Ask::Subscribe(asked) => asked.channel.capacity() + of_place(&asked.recover),
        Ask::Unsubscribe(text) | Ask::Refresh(text) => text.capacity(),
        Ask::Publish(channel, data) => channel.capacity() + data.capacity(),
        Ask::History(history) => history.channel.capacity() + of_place(&history.since),
        Ask::Ping | Ask::Pong | Ask::Other => 0,
    }
}

//! Commands of a WebSocket, obeyed one after the other.
//!
//! It owns their meaning. It must never answer one before those that came before it, nor wait: a command that
//! cannot be obeyed yet stays the first, and is looked at again when what it waits for has come.

use staunch_engine::{Open, Piece};
use staunch_live::centrifugo::{Ask, ClientError, Command, Disconnect, History, Language, Published, Reply};
use staunch_live::{Awaited, Grants, TopicName, Update};

use super::super::counts::count;
use super::super::mail::{LineOutcome, NotTaken};
use super::super::permit::Rights;
use super::super::publish::{BodyKind, read_body, read_bytes};
use super::super::queue::{Publisher, Publishing};
use super::super::reply::quoted;
use super::super::socket::{Closing, CommandClient, Heard, Socket, Wait, frame_of};
use super::super::tokens::Verdict;
use super::reading::drawn;
use super::{Asker, LiveWorker};
use crate::limits::{HEARTBEAT_ROUND_S, HEARTBEAT_S, HISTORY_BYTES_MAX};

/// How often at least a client is asked for a sign of life, in seconds, as it is told.
const PING_S: u32 = HEARTBEAT_S + HEARTBEAT_ROUND_S;
/// So long before its end, in seconds, a client is asked to show its token anew; of a short one, a quarter.
const RENEWED_S: u64 = 30;

/// What becomes of a command.
pub(super) enum Obeyed {
    /// The command is answered by this message.
    Reply(Language, Vec<u8>),
    /// The command has no answer, or has been given it.
    Done,
    /// The command stays the first in line until this has come.
    Waits(Wait),
    /// The command stays the first in line until what is about to be sent was sent.
    Later,
    /// The connection is closed.
    Close(Closing),
}

impl From<Disconnect> for Obeyed {
    fn from(disconnect: Disconnect) -> Self {
        Self::Close(disconnect.into())
    }
}

/// To whom the reply to a command goes, and how it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addressee {
    pub(super) slot: u32,
    id: u32,
    language: Language,
}

impl Addressee {
    pub(super) fn reply(self, reply: &Reply<'_>) -> Obeyed {
        let mut message = Vec::new();
        self.language.append_reply(self.id, reply, &mut message);
        Obeyed::Reply(self.language, message)
    }

    pub(super) fn refuse(self, error: ClientError) -> Obeyed {
        self.reply(&Reply::Refused(error))
    }
}

impl LiveWorker {
    /// Obeys the first command of a WebSocket on which nothing is under way. Whether there is more to do at
    /// once.
    pub(super) fn obey(&mut self, slot: u32, open: &mut Open<'_>) -> bool {
        let Some(client) = self.client(slot).filter(|client| client.waits.is_none()) else { return false };
        let obeyed = if client.catching_up.is_some() {
            self.subscribe_channels(slot, open)
        } else {
            let is_connected = client.is_connected;
            let Some(command) = client.commands.front().cloned() else { return false };
            self.answer_command(slot, &command, is_connected, open)
        };
        match obeyed {
            Obeyed::Reply(language, message) => say(language, &message, open),
            Obeyed::Done => {}
            Obeyed::Later => return true,
            Obeyed::Waits(wait) => {
                self.wait(slot, wait);
                return false;
            }
            Obeyed::Close(closing) => {
                if let Some(socket) = self.seats.socket(slot) {
                    socket.close(closing);
                }
                return true;
            }
        }
        count(&self.counts().commands);
        if let Some(client) = self.client(slot) {
            client.commands.pop_front();
        }
        true
    }

    fn answer_command(
        &mut self,
        slot: u32,
        command: &Command,
        is_connected: bool,
        open: &mut Open<'_>,
    ) -> Obeyed {
        let id = command.id;
        let language = self.seats.socket(slot).map_or(Language::Json, |socket| socket.language());
        let to = Addressee { slot, id, language };
        match &command.ask {
            Ask::Pong => Obeyed::Done,
            Ask::Other if id == 0 => Obeyed::Done,
            _ if id == 0 => Disconnect::BAD_REQUEST.into(),
            Ask::Connect(token) => self.connect(to, token.as_deref(), open),
            _ if !is_connected => Disconnect::BAD_REQUEST.into(),
            Ask::Subscribe(_) => self.subscribe_channels(slot, open),
            Ask::Unsubscribe(channel) => self.unsubscribe(to, channel),
            Ask::Publish(channel, data) => self.publish_by_socket(to, channel, data, open),
            Ask::History(wanted) => self.history(to, wanted),
            Ask::Refresh(token) => self.refresh(to, token, open),
            Ask::Ping => to.reply(&Reply::Ping),
            Ask::Other => to.refuse(ClientError::NOT_AVAILABLE),
        }
    }

    pub(super) fn client(&mut self, slot: u32) -> Option<&mut CommandClient> {
        self.seats.socket(slot).and_then(Socket::client)
    }

    /// The first command waits.
    fn wait(&mut self, slot: u32, wait: Wait) {
        if let Some(client) = self.client(slot) {
            client.waits = Some(wait);
        }
        if let Wait::View(awaited) = wait {
            self.wait_for(slot, awaited);
        }
    }

    /// The first command of a WebSocket was told something.
    pub(super) fn tell_socket(&mut self, slot: u32, heard: Heard) {
        let Some(client) = self.client(slot) else { return };
        let awaited = match heard {
            Heard::Token(_) => Wait::Token,
            Heard::Published(_) => Wait::Writer,
        };
        if client.waits == Some(awaited) {
            (client.waits, client.heard) = (None, Some(heard));
            self.seats.wake(slot);
        }
    }

    /// The writer tells what became of a publication.
    pub(super) fn tell_published(&mut self, slot: u32, outcomes: &[LineOutcome]) {
        self.tell_socket(slot, Heard::Published(published(outcomes)));
    }

    fn connect(&mut self, to: Addressee, token: Option<&str>, open: &Open<'_>) -> Obeyed {
        let slot = to.slot;
        let Some(client) = self.client(slot) else { return Obeyed::Done };
        if client.is_connected {
            return Disconnect::BAD_REQUEST.into();
        }
        let rights = match token {
            None => client.rights.clone(),
            Some(token) => match self.rights_of(to, token, open) {
                Ok(rights) => rights,
                Err(obeyed) => return obeyed,
            },
        };
        let (_, ends_at_s) = rights.reading();
        self.watch_end(slot, ends_at_s, open);
        let Some(client) = self.client(slot) else { return Obeyed::Done };
        (client.rights, client.is_connected) = (rights, true);
        let now_s = open.unix_ms() / 1000;
        let (client, expires_in_s) = (&client_id(open), expires_in_s(ends_at_s, now_s));
        to.reply(&Reply::Connected { client, ping_s: PING_S, expires_in_s })
    }

    fn refresh(&mut self, to: Addressee, token: &str, open: &Open<'_>) -> Obeyed {
        let slot = to.slot;
        if !self.is_settled(slot) {
            return self.unsettled(slot);
        }
        let rights = match self.rights_of(to, token, open) {
            Ok(rights) => rights,
            Err(obeyed) => return obeyed,
        };
        let (grants, ends_at_s) = rights.reading();
        let number = self.client(slot).map_or(0, |client| client.number);
        if self.seats.reader_seat(slot).is_some()
            && !self.waves.grant(&mut self.view, &mut self.seats, slot, (grants, number))
        {
            return to.refuse(ClientError::TOO_MANY_REQUESTS);
        }
        self.watch_end(slot, ends_at_s, open);
        if let Some(client) = self.client(slot) {
            client.rights = rights;
        }
        let now_s = open.unix_ms() / 1000;
        let (client, expires_in_s) = (&client_id(open), expires_in_s(ends_at_s, now_s));
        to.reply(&Reply::Refreshed { client, expires_in_s })
    }

    /// What a token grants; or what becomes of the command that shows it.
    fn rights_of(&mut self, to: Addressee, token: &str, open: &Open<'_>) -> Result<Rights, Obeyed> {
        let Some(client) = self.client(to.slot) else { return Err(Obeyed::Done) };
        let (heard, by) = (client.heard.take(), client.by);
        let rights = match heard {
            Some(Heard::Token(Verdict::Good(granted))) => Rights::Granted(granted),
            Some(Heard::Token(Verdict::Over)) => {
                return Err(to.refuse(ClientError::TOKEN_EXPIRED));
            }
            Some(Heard::Token(Verdict::Bad)) => Rights::Invalid,
            _ => match self.asker_of(token.as_bytes(), open.unix_ms() / 1000, by, open.address()) {
                Asker::Known(rights) => rights,
                Asker::Over => return Err(to.refuse(ClientError::TOKEN_EXPIRED)),
                Asker::Unknown => return Err(Obeyed::Waits(Wait::Token)),
                Asker::TooMany => return Err(to.refuse(ClientError::TOO_MANY_REQUESTS)),
            },
        };
        match rights {
            Rights::Invalid => Err(Disconnect::INVALID_TOKEN.into()),
            rights => Ok(rights),
        }
    }

    /// The WebSocket is closed when its token ends.
    fn watch_end(&mut self, slot: u32, ends_at_s: u64, open: &Open<'_>) {
        let Some(client) = self.client(slot) else { return };
        client.ends_at_s = ends_at_s;
        let is_watched = client.watched_at_s > 0 && client.watched_at_s <= ends_at_s;
        if ends_at_s > 0 && !is_watched {
            client.watched_at_s = ends_at_s;
            self.watch_token(ends_at_s, open.address());
        }
    }

    fn publish_by_socket(
        &mut self,
        to: Addressee,
        channel: &str,
        data: &Published,
        open: &Open<'_>,
    ) -> Obeyed {
        let Some(client) = self.client(to.slot) else { return Obeyed::Done };
        if let Some(Heard::Published(became)) = client.heard.take() {
            return became.map_or_else(|error| to.refuse(error), |()| to.reply(&Reply::Published));
        }
        if !client.rights.may_publish_something() {
            return to.refuse(ClientError::PERMISSION_DENIED);
        }
        let (rights, by) = (client.rights.clone(), client.by);
        let mut read = match data {
            Published::Json(data) => {
                let body = [b"{\"topic\":", quoted(channel).as_bytes(), b",\"data\":", data, b"}"].concat();
                read_body(BodyKind::Json, &body, self.shared.config.value_bytes_max)
            }
            Published::Bytes(data) => read_bytes(channel, data),
        };
        rights.restrict(&mut read);
        let refusal = |refused: &NotTaken| error_of(refused.status);
        if let Some(error) = read.fault.as_ref().and_then(|fault| fault.became.as_ref().err().map(refusal)) {
            return to.refuse(error);
        }
        let publisher = Publisher::Feed(open.address());
        let publishing = Publishing { lines: read.lines, fault: None, key: None, to: publisher, client: by };
        match self.shared.queue.publish(publishing) {
            Ok(()) => Obeyed::Waits(Wait::Writer),
            Err(_) => to.refuse(ClientError::TOO_MANY_REQUESTS),
        }
    }

    /// Answers with last updates of a channel; so many bytes of them as one answer may have.
    fn history(&mut self, to: Addressee, wanted: &History) -> Obeyed {
        // A publisher that was told of its update finds it, also at a worker that has not read its mail yet.
        if self.is_behind() {
            return Obeyed::Waits(Wait::View(Awaited::Letter));
        }
        let version = self.view.version();
        let Ok(topic) = TopicName::new(&wanted.channel) else {
            return to.refuse(ClientError::UNKNOWN_CHANNEL);
        };
        let grants = self.client(to.slot).map_or(Grants::default(), |client| client.rights.reading().0);
        if self.shared.is_private(&topic) && !grants.cover(&topic) {
            return to.refuse(ClientError::PERMISSION_DENIED);
        }
        let after = match &wanted.since {
            None => 0,
            Some((epoch, offset)) if *epoch == version.epoch.to_string() => *offset,
            Some(_) => return to.refuse(ClientError::UNRECOVERABLE),
        };
        let updates = self.view.history(&topic, after, &grants);
        let mut updates: Vec<&Update> = updates.into_iter().map(|update| &**update).collect();
        if wanted.reverse {
            updates.reverse();
        }
        let mut left_bytes = HISTORY_BYTES_MAX;
        let has_room = |update: &&Update| {
            let is_first = left_bytes == HISTORY_BYTES_MAX;
            let fits = update.value.bytes().len() <= left_bytes;
            left_bytes = left_bytes.saturating_sub(update.value.bytes().len().max(1));
            is_first || fits
        };
        let updates: Vec<&Update> =
            updates.into_iter().take(wanted.limit.unwrap_or(usize::MAX)).take_while(has_room).collect();
        to.reply(&Reply::History { version, publications: &updates })
    }
}

/// Sends one message.
pub(super) fn say(language: Language, message: &[u8], open: &mut Open<'_>) {
    open.push(Piece::Bytes(frame_of(language.opcode(), message)));
}

/// What a client is called: only it hears of it.
fn client_id(open: &Open<'_>) -> String {
    format!("{:x}-{:x}", drawn(open.address(), 0), open.address().slot)
}

/// In how many seconds a client is to show its token anew: before its end, which closes the connection.
fn expires_in_s(ends_at_s: u64, now_s: u64) -> Option<u64> {
    let left_s = ends_at_s.checked_sub(now_s).filter(|_| ends_at_s > 0)?;
    Some((left_s - RENEWED_S.min(left_s / 4)).max(1))
}

/// What a client is told of a publication that was not taken, by the status a request would get.
fn error_of(status: u16) -> ClientError {
    match status {
        403 => ClientError::PERMISSION_DENIED,
        413 => ClientError::LIMIT_EXCEEDED,
        503 => ClientError::TOO_MANY_REQUESTS,
        _ => ClientError::BAD_REQUEST,
    }
}

/// What a client is told of its publication.
fn published(outcomes: &[LineOutcome]) -> Result<(), ClientError> {
    outcomes.iter().try_for_each(|outcome| match &outcome.became {
        Ok(_) => Ok(()),
        Err(refused) => Err(error_of(refused.status)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_anew_before_its_end() {
        assert_eq!(expires_in_s(0, 100), None);
        assert_eq!(expires_in_s(101, 100), Some(1));
        assert_eq!(expires_in_s(140, 100), Some(30));
        assert_eq!(expires_in_s(3700, 100), Some(3570));
        assert_eq!(expires_in_s(100, 100), Some(1), "the end is now, and comes with the next second");
    }
}

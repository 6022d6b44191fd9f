//! WebSockets as they are asked for: the handshake, who may open one, and what its URL says.
//!
//! It must never switch to frames before there is a seat for what follows.

use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Answer, Answered};
use staunch_live::centrifugo::Language;
use staunch_live::{Joined, Marks};
use staunch_protocol::limits::MESSAGE_BYTES_MAX;
use staunch_protocol::websocket::{Accepted, Refusal, UpgradeRequest, accept, accept_stream};
use staunch_protocol::{Method, Request, Status};

use super::super::counts::{count, place};
use super::super::events::Wish;
use super::super::pending::Pending;
use super::super::permit::{Rights, is_allowed_page, refuse_invalid};
use super::super::reply::{method, refuse};
use super::super::route::SocketKind;
use super::super::seat::{JoiningSeat, ReaderSeat, Seat};
use super::super::socket::{Closing, CommandClient, Socket, Speech};
use super::super::turns::LineClient;
use super::LiveWorker;
use super::reading::client_of;
use crate::limits::PUBLICATION_BYTES_EXTRA;

/// A WebSocket that is about to be opened.
struct Opening {
    socket: Box<Socket>,
    /// What its URL asks for.
    wish: Option<Wish>,
    ends_at_s: u64,
}

impl LiveWorker {
    /// Answers a request for a WebSocket.
    pub(super) fn open_socket(
        &mut self,
        rights: &Rights,
        kind: SocketKind,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        if kind == SocketKind::Echo && !self.shared.config.echo {
            return refuse(Status::NOT_FOUND, "`live_echo` is off", lines, answer);
        }
        let accepted = match handshake(request) {
            Ok(accepted) => accepted,
            Err(refusal) => return refuse_upgrade(refusal, lines, request, answer),
        };
        let origins = &self.shared.config.origins;
        let is_listed =
            |origin: &[u8]| origins.iter().any(|known| known == "*" || known.as_bytes() == origin);
        if !is_allowed_page(request, answer.is_secured(), is_listed) {
            let sentence = "pages of this origin may not read here: it is none of `live_origins`";
            return refuse(Status::FORBIDDEN, sentence, lines, answer);
        }
        if matches!(rights, Rights::Invalid) {
            return refuse_invalid(lines, answer);
        }
        let client = client_of(request, &answer);
        let offered = offered_language(request);
        let language = match offered.map_or_else(|| named_language(request), Ok) {
            Ok(language) => language,
            Err(sentence) => return refuse(Status::BAD_REQUEST, sentence, lines, answer),
        };
        let about = (accepted.extensions.is_some(), language, client);
        let opening = match self.opening(rights, kind, about, request, &answer) {
            Ok(opening) => opening,
            Err(sentence) => return refuse(Status::BAD_REQUEST, &sentence, lines, answer),
        };
        let forbidden = opening.wish.as_ref().and_then(|wish| self.forbidden(rights, wish));
        if let Some(topic) = forbidden {
            return rights.refuse_reading(&topic, lines, answer);
        }
        if self.has_no_room() {
            count(&self.counts().refused);
            let sentence = "there are as many readers as `live_connections` allows";
            return self.send_away(sentence, lines, answer);
        }
        let protocol = offered.filter(|_| opening.socket.speaks_centrifugo()).map(Language::sub_protocol);
        self.admit(opening, &answer);
        let Accepted { key, extensions } = accepted;
        let field = |name: &str, value: Option<&str>| {
            value.map_or(String::new(), |value| format!("Sec-WebSocket-{name}: {value}\r\n"))
        };
        let own = format!(
            "Upgrade: websocket\r\n{}{}{}",
            field("Accept", key.as_deref()),
            field("Extensions", extensions),
            field("Protocol", protocol)
        );
        answer.upgrade(&[lines, own.as_bytes()].concat())
    }

    fn opening(
        &self,
        rights: &Rights,
        kind: SocketKind,
        (deflates, language, client): (bool, Language, u64),
        request: &Request<'_>,
        answer: &Answer<'_>,
    ) -> Result<Opening, String> {
        let (grants, ends_at_s) = rights.reading();
        let by = LineClient::of(answer.client(request), answer.address());
        let asks = |pair: &[u8]| pair.starts_with(b"topic=");
        let names_topics = request.query.is_some_and(|query| query.split(|byte| *byte == b'&').any(asks));
        let speech = match kind {
            SocketKind::Echo => Speech::Echo,
            SocketKind::Own if names_topics => Speech::Url,
            SocketKind::Own | SocketKind::Centrifugo => {
                Speech::Commands(Box::new(CommandClient::new(rights.clone(), by, client)))
            }
        };
        let value_bytes_max = self.shared.config.value_bytes_max;
        let message_bytes_max =
            MESSAGE_BYTES_MAX.max(value_bytes_max.saturating_add(PUBLICATION_BYTES_EXTRA));
        let message_bytes_max = u32::try_from(message_bytes_max).unwrap_or(u32::MAX);
        let reads_url = matches!(speech, Speech::Url);
        let mut socket = Box::new(Socket::new(speech, (deflates, language), message_bytes_max));
        let wish = match reads_url {
            true => Some(Wish::read_socket(request, grants, (deflates, language))?.of(client)),
            false => None,
        };
        if let Some(wish) = &wish {
            socket.form = wish.form;
        }
        Ok(Opening { socket, wish, ends_at_s })
    }

    /// Gives a WebSocket its seat, and a reader if its URL asks for something.
    fn admit(&mut self, opening: Opening, answer: &Answer<'_>) {
        let Opening { mut socket, wish, ends_at_s } = opening;
        let (address, form) = (answer.address(), socket.form);
        if let Some(client) = socket.client() {
            (client.ends_at_s, client.watched_at_s) = (ends_at_s, ends_at_s);
        }
        let counts = self.counts();
        counts.readers[place(form.transport())].fetch_add(1, Relaxed);
        count(&counts.joined);
        let number = self.seats.promise(address);
        match wish {
            Some(wish) => self.join_by_url(number, address.generation, wish, socket),
            None => self.seats.put(number, Seat::Socket(address.generation, socket)),
        }
        self.watch_token(ends_at_s, address);
        self.ask_for(LineClient::of(None, address));
        // The writer is the clock of readers, and may be asleep while there are none.
        self.shared.queue.ring();
    }

    /// Makes a reader of a WebSocket whose URL says what it reads, or lets it wait for a form.
    pub(super) fn join_by_url(&mut self, slot: u32, generation: u32, wish: Wish, mut socket: Box<Socket>) {
        let (form, start) = (wish.form, wish.start(&self.view));
        let interest = (&wish.interest, wish.client);
        let seat = match self.view.join(slot, interest, form, start, Marks::default(), generation) {
            Joined::Reader(mut reader, batch) => {
                reader.marks.set(Marks::SENDING);
                socket.begins_at = batch.from;
                let pending = Pending::of(&batch.slices);
                let (opening, socket) = (Some(wish.head()), Some(socket));
                Seat::Reader(ReaderSeat { reader, opening, is_leaving: false, pending, socket })
            }
            Joined::Later(awaited) => {
                self.wait_for(slot, awaited);
                let (opening, socket) = (None, Some(socket));
                let seat = JoiningSeat { wish, generation, opening, is_refused: false, socket };
                Seat::Joining(Box::new(seat))
            }
            Joined::Full => {
                count(&self.counts().refused);
                socket.close(Closing::FULL);
                Seat::Socket(generation, socket)
            }
        };
        self.seats.put(slot, seat);
    }
}

/// The language of the sub-protocol that is spoken: the first one that is known of those that the client
/// offers. Clients that offer some end where none is named (WHATWG WebSockets, section 2.2).
fn offered_language(request: &Request<'_>) -> Option<Language> {
    let of_name = |name: &[u8]| {
        let is_named = |language: &Language| language.sub_protocol().as_bytes() == name.trim_ascii();
        [Language::Json, Language::Protobuf].into_iter().find(is_named)
    };
    let mut offered =
        request.values(b"sec-websocket-protocol").flat_map(|list| list.split(|byte| *byte == b','));
    offered.find_map(of_name)
}

/// The language that the URL names, for clients that cannot offer sub-protocols.
fn named_language(request: &Request<'_>) -> Result<Language, &'static str> {
    let query = request.query.unwrap_or_default();
    let mut pairs = query.split(|byte| *byte == b'&');
    let named =
        pairs.find_map(|pair| pair.strip_prefix(b"format=").or_else(|| pair.strip_prefix(b"cf_protocol=")));
    match named {
        None | Some(b"json") => Ok(Language::Json),
        Some(b"protobuf") => Ok(Language::Protobuf),
        Some(_) => Err("`format` is `json` or `protobuf`"),
    }
}

/// Reads the handshake of a request.
fn handshake(request: &Request<'_>) -> Result<Accepted, Refusal> {
    let joined = |name: &[u8]| {
        let values: Vec<&[u8]> = request.values(name).collect();
        (!values.is_empty()).then(|| values.join(&b","[..]))
    };
    let [upgrade, connection, version, key, extensions] = [
        &b"upgrade"[..],
        b"connection",
        b"sec-websocket-version",
        b"sec-websocket-key",
        b"sec-websocket-extensions",
    ]
    .map(joined);
    if request.asks_websocket() {
        return accept_stream(version.as_deref(), extensions.as_deref());
    }
    accept(&UpgradeRequest {
        is_get: request.method == Method::Get,
        is_http11: request.version == staunch_protocol::Version::Http11,
        upgrade: upgrade.as_deref(),
        connection: connection.as_deref(),
        version: version.as_deref(),
        key: key.as_deref(),
        extensions: extensions.as_deref(),
    })
}

/// Answers a request that is no handshake.
fn refuse_upgrade(refusal: Refusal, lines: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
    let (status, own) = match refusal {
        // A stream has no Upgrade that could be asked for.
        Refusal::Version if request.asks_websocket() => {
            (Status::BAD_REQUEST, "Sec-WebSocket-Version: 13\r\n")
        }
        Refusal::Method => return method("GET, OPTIONS", lines, answer),
        Refusal::Http10 | Refusal::Key => (Status::BAD_REQUEST, ""),
        Refusal::NoUpgrade => (Status::UPGRADE_REQUIRED, "Upgrade: websocket\r\nConnection: Upgrade\r\n"),
        Refusal::Version => (
            Status::UPGRADE_REQUIRED,
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n",
        ),
    };
    refuse(status, &refusal.to_string(), &[lines, own.as_bytes()].concat(), answer)
}

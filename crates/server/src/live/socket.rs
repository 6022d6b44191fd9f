//! A WebSocket: what arrives on it, and what it is about to say beside what it reads.
//!
//! It owns the frames, the commands that wait for their turn, and why it is closed. It must never hold more
//! than one message and the commands of a few, nor keep what it has subscribed to: its reader's group
//! does.

mod client;

use staunch_live::centrifugo::{Disconnect, Language};
use staunch_live::{Coding, Form, Shape, Transport};
use staunch_protocol::websocket::{
    CloseCode, Fault, Happening, Inflater, Opcode, Role, Session, append_frame,
};

use super::pending::Pending;
use crate::limits::{MESSAGE_BYTES_PER_S_MIN, MESSAGE_S_MAX, SOCKET_ANSWERS_BYTES};
pub(crate) use client::{CommandClient, Heard, Wait};

/// The state of a WebSocket.
#[derive(Debug)]
pub(crate) struct Socket {
    session: Session,
    /// What came and was not looked at, for there was no room for what answers it.
    unread: Vec<u8>,
    /// The form in which it gets updates.
    pub(crate) form: Form,
    pub(crate) speech: Speech,
    /// Why it is about to be closed.
    pub(crate) closing: Option<Closing>,
    /// What is sent before anything of its reader.
    pub(crate) pending: Pending,
    /// When it was last asked for a sign of life, in seconds of the worker's clock, the lower 16 bits; `None`
    /// before that clock was looked at.
    pub(crate) asked_at_s: Option<u16>,
    /// The peer is to be asked for a sign of life.
    pub(crate) is_to_be_asked: bool,
    /// Nothing has come since it was asked.
    pub(crate) is_silent: bool,
    /// From which number it reads, if its URL says what.
    pub(crate) begins_at: u64,
    /// Since when a message arrives that is not complete, in seconds of the worker's clock, the lower 16
    /// bits.
    half_since_s: Option<u16>,
}

/// The language in which a WebSocket names the topics it reads.
#[derive(Debug)]
pub(crate) enum Speech {
    /// The URL: no message is awaited.
    Url,
    /// Nothing: the WebSocket sends back what it gets.
    Echo,
    /// The commands of a client.
    Commands(Box<CommandClient>),
}

/// Why a WebSocket is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closing {
    /// `None` answers a close frame without a code.
    code: Option<CloseCode>,
    reason: &'static str,
}

impl Closing {
    /// The server ends.
    pub(crate) const GOING_AWAY: Self = Self::new(CloseCode::GOING_AWAY, "the server ends");
    /// The client showed a certificate that has ended or was revoked since.
    pub(crate) const OUTDATED: Self = Self::new(CloseCode::GOING_AWAY, "the certificate is outdated");
    /// There is no room for what it asks.
    pub(crate) const FULL: Self = Self::new(CloseCode::TRY_AGAIN, "too many groups of readers, or patterns");
    /// A message where none is awaited.
    const NO_MESSAGES: Self = Self::new(CloseCode::UNSUPPORTED, "the URL says what is read");
    /// A message of bytes where commands are awaited as JSON.
    const NO_BYTES: Self = Self::new(CloseCode::UNSUPPORTED, "commands are text");
    /// A message of text where commands are awaited as Protobuf.
    const NO_TEXT: Self = Self::new(CloseCode::UNSUPPORTED, "commands are bytes");
    /// A message that is not complete long after it began.
    pub(crate) const SLOW_MESSAGE: Self = Self::new(CloseCode::POLICY, "a message came too slowly");

    const fn new(code: CloseCode, reason: &'static str) -> Self {
        Self { code: Some(code), reason }
    }

    /// The close frame.
    pub(crate) fn frame(self) -> Vec<u8> {
        let payload = self.code.map_or(Vec::new(), |code| code.payload(self.reason));
        frame_of(Opcode::Close, &payload)
    }
}

impl From<Disconnect> for Closing {
    fn from(disconnect: Disconnect) -> Self {
        Self { code: CloseCode::new(disconnect.code), reason: disconnect.reason }
    }
}

impl From<Fault> for Closing {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code, fault.reason)
    }
}

impl Socket {
    /// Behind the handshake. `deflates` says whether messages may be compressed.
    pub(crate) fn new(
        speech: Speech,
        (deflates, language): (bool, Language),
        message_bytes_max: u32,
    ) -> Self {
        let coding = if deflates { Coding::Deflate } else { Coding::Identity };
        Self {
            session: Session::new(Role::Server, deflates, message_bytes_max),
            unread: Vec::new(),
            form: Form::new(Shape::Enveloped, Transport::of_language(language), coding),
            speech,
            closing: None,
            pending: Pending::Nothing,
            asked_at_s: None,
            is_to_be_asked: false,
            is_silent: false,
            begins_at: 0,
            half_since_s: None,
        }
    }

    /// The client that sends commands, if commands are awaited.
    pub(crate) fn client(&mut self) -> Option<&mut CommandClient> {
        match &mut self.speech {
            Speech::Commands(client) => Some(client),
            Speech::Url | Speech::Echo => None,
        }
    }

    /// The language of commands, replies and pushes.
    pub(crate) fn language(&self) -> Language {
        self.form.transport().language().unwrap_or(Language::Json)
    }

    /// Whether it speaks Centrifugo's protocol, and not in bare values.
    pub(crate) fn speaks_centrifugo(&self) -> bool {
        match self.speech {
            Speech::Commands(_) => true,
            Speech::Url => self.form.shape() != Shape::Bare,
            Speech::Echo => false,
        }
    }

    /// Is closed for this reason, unless there is one already.
    pub(crate) fn close(&mut self, closing: impl Into<Closing>) {
        self.closing.get_or_insert(closing.into());
    }

    /// Bytes that it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        let of_client = match &self.speech {
            Speech::Commands(client) => client.held_bytes(),
            Speech::Url | Speech::Echo => 0,
        };
        size_of::<Self>() + self.session.held_bytes() + self.unread.capacity() + of_client
    }

    /// Whether something came that was not looked at.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Puts what was not looked at before what came.
    pub(crate) fn take_unread(&mut self, bytes: &mut Vec<u8>) {
        if self.has_unread() {
            bytes.splice(..0, std::mem::take(&mut self.unread));
        }
    }

    /// Takes what came. What is to be sent at once is appended to `output`: pongs, and what is sent back.
    /// Once that is long, the rest stays unread. Nothing that follows a reason to close is looked at. Whether
    /// the peer broke the protocol or a limit.
    pub(crate) fn read(&mut self, bytes: &mut [u8], inflater: &mut Inflater, output: &mut Vec<u8>) -> bool {
        let language = self.language();
        let Self { session, speech, closing, is_silent, unread, half_since_s, .. } = self;
        let mut rest = bytes;
        while closing.is_none() {
            if output.len() >= SOCKET_ANSWERS_BYTES {
                unread.extend_from_slice(rest);
                return false;
            }
            let is_within_message = session.is_within_message();
            let happening = match session.step(rest, inflater) {
                Ok((None, _)) => return false,
                Ok((Some(happening), behind)) => {
                    rest = behind;
                    happening
                }
                Err(fault) => {
                    *closing = Some(fault.into());
                    return true;
                }
            };
            *is_silent = false;
            let is_control = matches!(happening, Happening::Ping(_) | Happening::Pong(_));
            if !(is_control && is_within_message) {
                *half_since_s = None;
            }
            let asked = match happening {
                Happening::Ping(payload) => {
                    append_frame(Opcode::Pong, false, None, payload, output);
                    Ok(())
                }
                Happening::Pong(_) => Ok(()),
                Happening::Close(code, _) => Err(Closing { code, reason: "" }),
                Happening::Text(text) => speech.take((language, Opcode::Text), text.as_bytes(), output),
                Happening::Binary(bytes) => speech.take((language, Opcode::Binary), bytes, output),
            };
            if let Err(reason) = asked {
                *closing = Some(reason);
            }
        }
        false
    }

    /// Notes when a message began to arrive that is not complete: to be called after `read`.
    pub(crate) fn note_half(&mut self, now_s: u16) {
        let since_s = self.half_since_s.unwrap_or(now_s);
        self.half_since_s = self.session.has_begun().then_some(since_s);
    }

    /// Whether a message comes so slowly that it is not awaited: it has a time, and more for what is there.
    pub(crate) fn is_slow(&self, now_s: u16) -> bool {
        let more_s = self.session.held_bytes() / MESSAGE_BYTES_PER_S_MIN;
        let took_s = self.half_since_s.map(|since_s| usize::from(now_s.wrapping_sub(since_s)));
        took_s.is_some_and(|took_s| took_s > MESSAGE_S_MAX + more_s)
    }

    /// What asks for a sign of life: clients of commands answer the empty one, others the frame.
    pub(crate) fn ask_for_life(&self) -> Vec<u8> {
        match &self.speech {
            Speech::Commands(client) if client.is_connected => {
                let language = self.language();
                frame_of(language.opcode(), language.sign_of_life())
            }
            _ => frame_of(Opcode::Ping, b""),
        }
    }
}

impl Speech {
    fn take(
        &mut self,
        (language, opcode): (Language, Opcode),
        message: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), Closing> {
        match self {
            Self::Url => Err(Closing::NO_MESSAGES),
            Self::Echo => {
                append_frame(opcode, false, None, message, output);
                Ok(())
            }
            Self::Commands(client) => client.take(language, opcode, message),
        }
    }
}

/// A whole frame of the server.
pub(crate) fn frame_of(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    append_frame(opcode, false, None, payload, &mut frame);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::COMMANDS_WAITING_MAX;
    use crate::live::permit::Rights;
    use crate::live::turns::LineClient;

    type Frame<'a> = (Opcode, &'a [u8]);

    /// What a client sends: masked frames.
    fn sent(frames: &[Frame<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (opcode, payload) in frames {
            append_frame(*opcode, false, Some([1, 2, 3, 4]), payload, &mut bytes);
        }
        bytes
    }

    fn read(socket: &mut Socket, frames: &[Frame<'_>]) -> (bool, Vec<u8>) {
        let mut output = Vec::new();
        let is_faulty = socket.read(&mut sent(frames), &mut Inflater::default(), &mut output);
        (is_faulty, output)
    }

    fn of_commands(language: Language) -> Socket {
        Socket::new(
            Speech::Commands(Box::new(CommandClient::new(Rights::Anonymous, LineClient::Node, 0))),
            (false, language),
            1000,
        )
    }

    #[test]
    fn commands_wait_in_their_order_and_are_counted() {
        let mut socket = of_commands(Language::Json);
        let before_bytes = socket.held_bytes();
        let messages: [(Opcode, &[u8]); 3] = [
            (Opcode::Text, b"{\"id\":1,\"connect\":{}}"),
            (Opcode::Ping, b"p"),
            (Opcode::Text, b"{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n{}"),
        ];
        assert_eq!(read(&mut socket, &messages), (false, b"\x8a\x01p".to_vec()));
        assert!(socket.held_bytes() > before_bytes && socket.closing.is_none());
        let ids: Vec<u32> = socket.client().unwrap().commands.iter().map(|command| command.id).collect();
        assert_eq!(ids, [1, 2, 0]);
        let many = "{}\n".repeat(250);
        let messages = vec![(Opcode::Text, many.as_bytes()); COMMANDS_WAITING_MAX / 250 + 1];
        assert_eq!(read(&mut socket, &messages), (false, Vec::new()));
        assert_eq!(socket.closing, Some(Disconnect::TOO_MANY_REQUESTS.into()));
        assert!(socket.client().unwrap().commands.len() <= COMMANDS_WAITING_MAX);
    }

    #[test]
    fn commands_of_protobuf_wait_like_those_of_json() {
        let mut socket = of_commands(Language::Protobuf);
        let message: Frame<'_> = (Opcode::Binary, b"\x04\x08\x01\x22\0\0\x07\x08\x02\x2a\x03\x0a\x01a");
        assert_eq!(read(&mut socket, &[message]), (false, Vec::new()));
        let ids: Vec<u32> = socket.client().unwrap().commands.iter().map(|command| command.id).collect();
        assert_eq!((ids, socket.closing), (vec![1, 0, 2], None));
        socket.client().unwrap().is_connected = true;
        assert_eq!(socket.ask_for_life(), b"\x82\x01\0");
    }

    #[test]
    fn what_ends_a_websocket() {
        let faulty: (Opcode, &[u8]) = (Opcode::Text, b"\xff");
        let url = || Socket::new(Speech::Url, (false, Language::Json), 1000);
        let echo = || Socket::new(Speech::Echo, (false, Language::Json), u32::MAX);
        let protobuf = || of_commands(Language::Protobuf);
        let table: [(Socket, Frame<'_>, bool, u16); 8] = [
            (protobuf(), (Opcode::Text, b"{}"), false, 1003),
            (protobuf(), (Opcode::Binary, b"{}"), false, 3501),
            (of_commands(Language::Json), (Opcode::Text, b"hello"), false, 3501),
            (of_commands(Language::Json), (Opcode::Binary, b"{}"), false, 1003),
            (of_commands(Language::Json), faulty, true, 1007),
            (of_commands(Language::Json), (Opcode::Close, &[0x03, 0xe8]), false, 1000),
            (url(), (Opcode::Text, b"hello"), false, 1003),
            (echo(), (Opcode::Pong, &[0; 126]), true, 1002),
        ];
        for (mut socket, frame, is_faulty, code) in table {
            let name = format!("{frame:?}").chars().take(60).collect::<String>();
            assert_eq!(read(&mut socket, &[frame, (Opcode::Ping, b"late")]).0, is_faulty, "{name}");
            let bytes = socket.closing.expect("a reason").frame();
            assert_eq!(u16::from_be_bytes([bytes[2], bytes[3]]), code, "{name}");
        }
        let mut socket = url();
        assert_eq!(read(&mut socket, &[(Opcode::Close, b"")]), (false, Vec::new()));
        assert_eq!(socket.closing.map(Closing::frame), Some(b"\x88\0".to_vec()));
    }

    #[test]
    fn what_is_sent_comes_back() {
        let mut socket = Socket::new(Speech::Echo, (false, Language::Json), 1000);
        let frames: [(Opcode, &[u8]); 2] = [(Opcode::Text, b"a"), (Opcode::Binary, b"\xff")];
        assert_eq!(read(&mut socket, &frames), (false, b"\x81\x01a\x82\x01\xff".to_vec()));
    }

    /// Signs of life between its frames do not make a message quick, and one that is long has more time.
    #[test]
    fn a_message_that_comes_too_slowly_is_not_awaited() {
        let masked = |first: u8, payload: &[u8]| {
            let mut frame = Vec::new();
            append_frame(Opcode::Text, false, Some([1, 2, 3, 4]), payload, &mut frame);
            frame[0] = first;
            frame
        };
        let take = |socket: &mut Socket, mut bytes: Vec<u8>, now_s| {
            let is_faulty = socket.read(&mut bytes, &mut Inflater::default(), &mut Vec::new());
            socket.note_half(now_s);
            assert!(!is_faulty);
        };
        let late_s = 65_530 + MESSAGE_S_MAX + 2;
        let late_s = u16::try_from(late_s % 65_536).unwrap();
        for begin in [masked(0x01, b"{}"), masked(0x81, b"{}")[..4].to_vec()] {
            let mut socket = Socket::new(Speech::Echo, (false, Language::Json), u32::MAX);
            take(&mut socket, begin.clone(), 65_530);
            assert!(!socket.is_slow(65_535) && !socket.is_slow(2));
            if begin[0] == 0x01 {
                take(&mut socket, sent(&[(Opcode::Ping, b"p")]), 1);
            }
            assert!(socket.is_slow(late_s), "{begin:?}");
        }
        let mut socket = Socket::new(Speech::Echo, (false, Language::Json), u32::MAX);
        take(&mut socket, masked(0x01, &vec![b'x'; 100 * MESSAGE_BYTES_PER_S_MIN]), 65_530);
        assert!(!socket.is_slow(late_s), "much of it is there");
        take(&mut socket, masked(0x80, b"y"), late_s);
        assert!(!socket.is_slow(late_s.wrapping_add(60_000)), "it is complete");
    }

    #[test]
    fn what_has_no_room_for_its_answer_is_read_later() {
        let mut socket = Socket::new(Speech::Echo, (false, Language::Json), u32::MAX);
        let long = vec![b'x'; SOCKET_ANSWERS_BYTES];
        let frames: [Frame<'_>; 3] = [(Opcode::Binary, &long), (Opcode::Text, b"a"), (Opcode::Ping, b"p")];
        let before_bytes = socket.held_bytes();
        let (_, output) = read(&mut socket, &frames);
        assert_eq!(output, frame_of(Opcode::Binary, &long));
        assert!(socket.has_unread() && socket.held_bytes() > before_bytes);
        let (mut bytes, mut output) = (sent(&[(Opcode::Text, b"b")]), Vec::new());
        socket.take_unread(&mut bytes);
        socket.read(&mut bytes, &mut Inflater::default(), &mut output);
        assert_eq!(output, b"\x81\x01a\x8a\x01p\x81\x01b");
        assert!(!socket.has_unread());
    }
}

//! The WebSocket of a reader: the answer to its handshake, messages in, and what is to be said in return.
//!
//! It must never send: it appends to what the thread sends. It offers no compression, so that a reader holds
//! no memory for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use staunch_protocol::websocket::{Happening, Opcode, Role, Session, accept_key, append_frame};

use super::head::AnswerHead;
use super::ledger::Ledger;
use super::meter::Meter;

/// What each client's key is made of: 16 bytes. It guards against caches that take a WebSocket for a page,
/// and there is none between a generator and its server.
const KEY: [u8; 16] = *b"staunch-load-liv";

/// The mask of every frame. It guards proxies against scripts of pages, and there is neither here.
const MASK: [u8; 4] = [0x5a, 0xc3, 0x3c, 0xa5];

/// Longest message that is taken, in bytes.
const MESSAGE_BYTES_MAX: u32 = 24 * 1024 * 1024;

/// A sign of life of Centrifugo's protocol, which is answered by itself. Its messages may hold several lines,
/// each of them a message.
const EMPTY_COMMAND: &str = "{}";

/// Fields of the handshake's request.
pub(crate) fn handshake_fields() -> String {
    let key = STANDARD.encode(KEY);
    format!(
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: {key}\r\n"
    )
}

/// Whether the answer opens a WebSocket.
pub(crate) fn is_upgrade(head: AnswerHead<'_>, meter: &mut Meter) -> bool {
    if head.status != 101 {
        meter.note_fault(|| format!("a reader's WebSocket was answered {}", head.status));
        return false;
    }
    let expected = accept_key(STANDARD.encode(KEY).as_bytes()).ok();
    let is_right = head.field("sec-websocket-accept").map(str::to_owned) == expected;
    if !is_right {
        meter.note_fault(|| {
            "the answer to a WebSocket's handshake has a wrong Sec-WebSocket-Accept".to_owned()
        });
    }
    is_right
}

/// How far a reader's WebSocket has come.
#[derive(Debug)]
pub(crate) struct SocketStream {
    session: Session,
}

impl Default for SocketStream {
    fn default() -> Self {
        Self { session: Session::new(Role::Client, false, MESSAGE_BYTES_MAX) }
    }
}

/// What came of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Read {
    /// Messages that came.
    pub(crate) messages: usize,
    /// The server has ended.
    pub(crate) is_ended: bool,
    /// The server broke the protocol.
    pub(crate) is_broken: bool,
}

impl SocketStream {
    /// Takes bytes, gives messages to the meter, and appends what is to be said.
    pub(crate) fn read(
        &mut self,
        mut bytes: &mut [u8],
        ledger: &mut Ledger,
        meter: &mut Meter,
        reply: &mut Vec<u8>,
    ) -> Read {
        let mut read = Read::default();
        let mut inflater = meter.inflater.take().unwrap_or_default();
        loop {
            let (happening, rest) = match self.session.step(std::mem::take(&mut bytes), &mut inflater) {
                Ok(step) => step,
                Err(fault) => {
                    meter.note_fault(|| fault.to_string());
                    read.is_broken = true;
                    break;
                }
            };
            let Some(happening) = happening else { break };
            match happening {
                Happening::Text(text) => {
                    for line in text.lines() {
                        if line == EMPTY_COMMAND {
                            meter.counts.signs_of_life += 1;
                            append_message(EMPTY_COMMAND, reply);
                        } else {
                            read.messages += 1;
                            meter.note_event(ledger, "message", line.as_bytes());
                        }
                    }
                }
                Happening::Binary(message) => {
                    read.messages += 1;
                    meter.note_event(ledger, "message", message);
                }
                Happening::Ping(payload) => {
                    meter.counts.signs_of_life += 1;
                    append_frame(Opcode::Pong, false, Some(MASK), payload, reply);
                }
                Happening::Pong(_) => meter.counts.signs_of_life += 1,
                Happening::Close(..) => {
                    read.is_ended = true;
                    break;
                }
            }
            bytes = rest;
        }
        meter.inflater = Some(inflater);
        read
    }
}

/// Appends a message of text.
pub(crate) fn append_message(text: &str, output: &mut Vec<u8>) {
    append_frame(Opcode::Text, false, Some(MASK), text.as_bytes(), output);
}

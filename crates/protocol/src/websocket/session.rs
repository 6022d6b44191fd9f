//! A WebSocket as its frames arrive: bytes in, messages out (RFC 6455, sections 5 to 8).
//!
//! It owns the order of frames, masks, fragments, and what a message must be. It must never hold memory while
//! nothing is half received: a message that arrives whole is unmasked where it stands and given from there.
//! Order: for each piece that was received call `step` with it, then with the rest it returns, until it tells
//! nothing and returns no rest. After a fault send a close frame with its code, and end.

use super::close::CloseCode;
use super::deflate::{InflateFault, Inflater};
use super::frame::{FrameHead, HEAD_BYTES_MAX, Opcode, apply_mask};
use crate::limits::EMPTY_FRAMES_MAX;

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Frames of the peer are masked.
    Server,
    /// Frames of the peer are not.
    Client,
}

/// What arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening<'a> {
    /// A message of text.
    Text(&'a str),
    /// A message of bytes.
    Binary(&'a [u8]),
    /// To be answered by a pong with this payload.
    Ping(&'a [u8]),
    /// A sign of life.
    Pong(&'a [u8]),
    /// The peer ends: to be answered by a close frame with its code. What follows is thrown away.
    Close(Option<CloseCode>, &'a str),
}

/// How the peer broke the protocol, or a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The code of the close frame.
    pub code: CloseCode,
    /// The rule that was broken, in a few words.
    pub reason: &'static str,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.reason, self.code.number())
    }
}

impl std::error::Error for Fault {}

/// The protocol state of a WebSocket connection.
#[derive(Debug)]
pub struct Session {
    /// What is half received; none most of the time.
    half: Option<Box<Half>>,
    message_bytes_max: u32,
    role: Role,
    deflate: bool,
    ended: bool,
}

/// A session stands where that of HTTP stood: it costs an idle connection nothing more.
const _: () = assert!(size_of::<Session>() <= 24);

/// What is half received, or was given out by the last step.
#[derive(Debug, Default)]
struct Half {
    /// The beginning of a frame's head.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: u8,
    /// The frame whose payload arrives, and how much of that is there.
    frame: Option<FrameHead>,
    received: u64,
    /// What is there of a control frame's payload.
    control: Vec<u8>,
    /// The message that arrives in frames: text or not, compressed or not, and what is there.
    message: Option<(bool, bool)>,
    /// Frames of it that carried nothing.
    empty_frames: u32,
    payload: Vec<u8>,
    /// The payload was given out: it is dropped by the next step.
    given: bool,
}

impl Half {
    fn is_empty(&self) -> bool {
        self.head_bytes == 0 && self.frame.is_none() && self.message.is_none()
    }
}

/// A frame of which everything is there.
enum Whole<'a> {
    /// In the bytes that were received.
    Here(FrameHead, &'a mut [u8]),
    /// In what was kept.
    Kept(FrameHead),
}

impl Session {
    /// After the handshake. `deflate` says whether compression was negotiated.
    pub fn new(role: Role, deflate: bool, message_bytes_max: u32) -> Self {
        Self { half: None, message_bytes_max, role, deflate, ended: false }
    }

    /// Whether memory is held for what is half received.
    pub fn is_half_received(&self) -> bool {
        self.half.is_some()
    }

    /// Whether frames of a message are there, and others are to come.
    pub fn is_within_message(&self) -> bool {
        self.half.as_ref().is_some_and(|half| half.message.is_some())
    }

    /// Whether a frame or a message has begun to arrive, and is not complete.
    pub fn has_begun(&self) -> bool {
        self.half.as_ref().is_some_and(|half| !half.is_empty())
    }

    /// Bytes held for what is half received.
    pub fn held_bytes(&self) -> usize {
        self.half
            .as_ref()
            .map_or(0, |half| size_of::<Half>() + half.payload.capacity() + half.control.capacity())
    }

    /// Takes bytes until something happened, or all are taken; gives what happened and the bytes behind it.
    ///
    /// # Errors
    /// The peer broke the protocol or a limit. Nothing that follows is to be read.
    pub fn step<'s, 'i: 's>(
        &'s mut self,
        input: &'i mut [u8],
        inflater: &'s mut Inflater,
    ) -> Result<(Option<Happening<'s>>, &'i mut [u8]), Fault> {
        self.drop_what_was_given();
        let mut rest = input;
        loop {
            if self.ended {
                return Ok((None, &mut []));
            }
            let (whole, behind) = self.take_frame(rest)?;
            rest = behind;
            let Some(whole) = whole else { break };
            if self.continues(&whole)? {
                self.drop_what_was_given();
                continue;
            }
            return Ok((Some(self.tell(whole, inflater)?), rest));
        }
        Ok((None, rest))
    }

    fn drop_what_was_given(&mut self) {
        let Some(half) = &mut self.half else { return };
        if half.frame.is_none() {
            half.control.clear();
        }
        if std::mem::take(&mut half.given) {
            half.payload = Vec::new();
        }
        if half.is_empty() {
            self.half = None;
        }
    }

    /// The next frame, once all of it is there.
    fn take_frame<'i>(
        &mut self,
        mut input: &'i mut [u8],
    ) -> Result<(Option<Whole<'i>>, &'i mut [u8]), Fault> {
        let open = self.half.as_ref().and_then(|half| half.frame);
        let head = match open {
            Some(head) => head,
            None => {
                let (head, rest) = self.take_head(input)?;
                input = rest;
                let Some(head) = head else { return Ok((None, input)) };
                self.check(head)?;
                if self.half.is_none() && head.length <= input.len() as u64 {
                    return Ok(self.take_whole(head, input));
                }
                let half = self.half.get_or_insert_default();
                (half.frame, half.received, half.head_bytes) = (Some(head), 0, 0);
                head
            }
        };
        Ok(self.take_payload(head, input))
    }

    /// A frame that stands in the input as a whole, while nothing is kept.
    fn take_whole<'i>(&mut self, head: FrameHead, input: &'i mut [u8]) -> (Option<Whole<'i>>, &'i mut [u8]) {
        let (payload, rest) = input.split_at_mut(head.length as usize);
        if let Some(mask) = head.mask {
            apply_mask(mask, 0, payload);
        }
        if head.last {
            return (Some(Whole::Here(head, payload)), rest);
        }
        self.half.get_or_insert_default().payload.extend_from_slice(payload);
        (Some(Whole::Kept(head)), rest)
    }

    fn take_head<'i>(&mut self, input: &'i mut [u8]) -> Result<(Option<FrameHead>, &'i mut [u8]), Fault> {
        let broken = |reason| Fault { code: CloseCode::PROTOCOL_ERROR, reason };
        let kept = self.half.as_ref().map_or(0, |half| usize::from(half.head_bytes));
        let mut bytes = [0; HEAD_BYTES_MAX];
        if let Some(half) = &self.half {
            bytes[..kept].copy_from_slice(&half.head[..kept]);
        }
        let more = input.len().min(HEAD_BYTES_MAX - kept);
        bytes[kept..kept + more].copy_from_slice(&input[..more]);
        if let Some((width, head)) = FrameHead::read(&bytes[..kept + more]).map_err(broken)? {
            if let Some(half) = &mut self.half {
                half.head_bytes = 0;
            }
            self.drop_what_was_given();
            return Ok((Some(head), &mut input[width - kept..]));
        }
        if more > 0 {
            let half = self.half.get_or_insert_default();
            half.head = bytes;
            half.head_bytes = (kept + more) as u8;
        }
        Ok((None, &mut input[more..]))
    }

    /// Whether the frame may come here, before anything of its payload is kept.
    fn check(&self, head: FrameHead) -> Result<(), Fault> {
        let broken = |reason| Err(Fault { code: CloseCode::PROTOCOL_ERROR, reason });
        match (self.role, head.mask) {
            (Role::Server, None) => return broken("a frame of a client must be masked"),
            (Role::Client, Some(_)) => return broken("a frame of a server must not be masked"),
            _ => {}
        }
        if head.compressed && !self.deflate {
            return broken("a reserved bit is set");
        }
        if head.opcode.is_control() {
            return Ok(());
        }
        let half = self.half.as_ref();
        let within = half.is_some_and(|half| half.message.is_some());
        match (within, head.opcode == Opcode::Continuation) {
            (false, true) => return broken("a continuation of nothing"),
            (true, false) => return broken("a message within another"),
            _ => {}
        }
        let before = half.map_or(0, |half| half.payload.len()) as u64;
        if before.saturating_add(head.length) > u64::from(self.message_bytes_max) {
            return Err(TOO_LONG);
        }
        Ok(())
    }

    fn take_payload<'i>(
        &mut self,
        head: FrameHead,
        input: &'i mut [u8],
    ) -> (Option<Whole<'i>>, &'i mut [u8]) {
        let half = self.half.get_or_insert_default();
        let missing = head.length - half.received;
        let taken = usize::try_from(missing).unwrap_or(usize::MAX).min(input.len());
        let (bytes, rest) = input.split_at_mut(taken);
        if let Some(mask) = head.mask {
            apply_mask(mask, half.received, bytes);
        }
        let store = if head.opcode.is_control() { &mut half.control } else { &mut half.payload };
        store.extend_from_slice(bytes);
        half.received += taken as u64;
        if half.received < head.length {
            return (None, rest);
        }
        half.frame = None;
        (Some(Whole::Kept(head)), rest)
    }

    /// Whether more frames of the message are to come.
    fn continues(&mut self, whole: &Whole<'_>) -> Result<bool, Fault> {
        let (Whole::Here(head, _) | Whole::Kept(head)) = whole;
        if head.opcode.is_control() {
            return Ok(false);
        }
        if !head.last {
            let half = self.half.get_or_insert_default();
            half.message.get_or_insert((head.opcode == Opcode::Text, head.compressed));
            half.empty_frames += u32::from(head.length == 0);
            if half.empty_frames > EMPTY_FRAMES_MAX {
                return Err(Fault { code: CloseCode::POLICY, reason: "too many frames without content" });
            }
        }
        Ok(!head.last)
    }

    /// What a complete frame means: a control frame, or the last one of a message.
    fn tell<'s, 'i: 's>(
        &'s mut self,
        whole: Whole<'i>,
        inflater: &'s mut Inflater,
    ) -> Result<Happening<'s>, Fault> {
        let (Whole::Here(head, _) | Whole::Kept(head)) = whole;
        if head.opcode.is_control() {
            self.ended = head.opcode == Opcode::Close;
            let payload = match whole {
                Whole::Here(_, payload) => &*payload,
                Whole::Kept(_) => self.half.as_deref().map_or(&[][..], |half| &half.control),
            };
            return tell_control(head.opcode, payload);
        }
        let begun = self.half.as_mut().and_then(|half| {
            half.empty_frames = 0;
            half.message.take()
        });
        let (is_text, compressed) = begun.unwrap_or((head.opcode == Opcode::Text, head.compressed));
        let bytes_max = self.message_bytes_max as usize;
        let payload = match whole {
            Whole::Here(_, payload) => &*payload,
            Whole::Kept(_) => self.half.as_deref_mut().map_or(&[][..], |half| {
                half.given = true;
                &half.payload
            }),
        };
        let payload = if compressed { inflate(inflater, payload, bytes_max)? } else { payload };
        if !is_text {
            return Ok(Happening::Binary(payload));
        }
        let text = std::str::from_utf8(payload).map_err(|_| NOT_UTF8)?;
        Ok(Happening::Text(text))
    }
}

const TOO_LONG: Fault = Fault { code: CloseCode::TOO_LONG, reason: "a message longer than the limit" };
const NOT_UTF8: Fault = Fault { code: CloseCode::INVALID_DATA, reason: "text that is not UTF-8" };

fn inflate<'a>(inflater: &'a mut Inflater, payload: &[u8], bytes_max: usize) -> Result<&'a [u8], Fault> {
    inflater.inflate(payload, bytes_max).map_err(|fault| match fault {
        InflateFault::TooLong => TOO_LONG,
        InflateFault::Broken => {
            Fault { code: CloseCode::INVALID_DATA, reason: "a compressed message that cannot be inflated" }
        }
    })
}

fn tell_control(opcode: Opcode, payload: &[u8]) -> Result<Happening<'_>, Fault> {
    let broken = |reason| Err(Fault { code: CloseCode::PROTOCOL_ERROR, reason });
    match opcode {
        Opcode::Ping => return Ok(Happening::Ping(payload)),
        Opcode::Pong => return Ok(Happening::Pong(payload)),
        _ => {}
    }
    let Some((code, reason)) = payload.split_at_checked(2) else {
        return match payload {
            [] => Ok(Happening::Close(None, "")),
            _ => broken("a close frame with half a code"),
        };
    };
    let number = u16::from_be_bytes([code[0], code[1]]);
    let Some(code) = CloseCode::new(number) else { return broken("a close code that may not be sent") };
    let reason = std::str::from_utf8(reason).map_err(|_| NOT_UTF8)?;
    Ok(Happening::Close(Some(code), reason))
}

#[cfg(test)]
mod tests;

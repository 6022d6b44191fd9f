//! The way of a frame through a node.
//!
//! This file owns the order of the checks behind those of bytes. A message must never be handed on before the
//! last of them.

use std::borrow::Cow;

use super::{Message, Node};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::greeting::{Greeting, Link};
use crate::header::{EVERYBODY, Flags, Header, Kind};
use crate::joined::JoinedFrames;
use crate::limits::HEADER_BYTES;
use crate::peers::Trust;
use crate::reassembly::Added;

impl Node {
    /// Takes frames that came from that link address, up to one with which a message is complete, and hands
    /// it on. To be called until there is none: several frames may have come joined.
    #[inline]
    pub fn receive<'a>(
        &mut self,
        link: Link,
        joined: &mut JoinedFrames<'a>,
        now_ms: u64,
    ) -> Option<Message<'a>> {
        self.passed.frames_received += u64::from(joined.is_untouched());
        while let Some(frame) = joined.next_frame(self.settings.cluster) {
            match frame.and_then(|(header, bytes)| self.take(link, header, bytes, now_ms)) {
                Ok(None) => {}
                Ok(message) => {
                    self.passed.messages_received += 1;
                    return message;
                }
                Err(fault) => self.drops.count(fault),
            }
        }
        None
    }

    #[inline]
    fn take<'a>(
        &mut self,
        link: Link,
        header: Header,
        bytes: &'a mut [u8],
        now_ms: u64,
    ) -> Result<Option<Message<'a>>, Fault> {
        if header.destination != self.settings.own.address && header.destination != EVERYBODY {
            return Err(Fault::Foreign);
        }
        if !Frame::of(header, bytes).is_sum_right(self.settings.cluster) {
            return Err(Fault::Sum);
        }
        if header.kind.is_control() {
            return self.take_control(link, &header, bytes, now_ms).map(|()| None);
        }
        let trust = self.prove(link, &header, None, bytes, now_ms)?;
        self.peers.heard(link, &header, None, trust, now_ms)?;
        if !self.ports.is_open(header.destination_port) {
            return Err(Fault::Closed);
        }
        if !self.ports.takes(header.destination_port, header.kind) {
            return Err(Fault::Kind);
        }
        self.digest_events();
        self.assemble(&header, &bytes[HEADER_BYTES..HEADER_BYTES + usize::from(header.length)], now_ms)
    }

    /// Takes a control frame, which hands nothing on.
    #[inline(never)]
    fn take_control(
        &mut self,
        link: Link,
        header: &Header,
        bytes: &mut [u8],
        now_ms: u64,
    ) -> Result<(), Fault> {
        let greeting = Frame::of(*header, bytes).greeting();
        // The tag covers the link address in a greeting, not that of the frame: only together they tell where
        // the sender is.
        if greeting.is_some_and(|greeting| greeting.link != link) {
            return Err(Fault::Relayed);
        }
        let trust = self.prove(link, header, greeting.as_ref(), bytes, now_ms)?;
        let heard = self.peers.heard(link, header, greeting.as_ref(), trust, now_ms);
        self.passed.control_received += u64::from(heard.is_ok());
        self.digest_events();
        heard
    }

    /// The proof of a frame's sender. With keys the frame is decrypted.
    #[inline]
    fn prove(
        &mut self,
        link: Link,
        header: &Header,
        greeting: Option<&Greeting>,
        bytes: &mut [u8],
        now_ms: u64,
    ) -> Result<Trust, Fault> {
        let Some(keys) = &mut self.keys else {
            return if header.flags.has(Flags::AUTH) { Err(Fault::Auth) } else { Ok(Trust::Open) };
        };
        let (head, behind) = bytes.split_first_chunk_mut::<HEADER_BYTES>().ok_or(Fault::Short)?;
        if !header.flags.has(Flags::AUTH) {
            return Err(Fault::Auth);
        }
        if let Some(greeting) = greeting {
            keys.verify_control(head, header, greeting.boot, behind)?;
            return Ok(Trust::Claimed);
        }
        if header.source == self.settings.own.address {
            // Whatever it proves, it is this node's own frame or a conflict.
            return Ok(Trust::Claimed);
        }
        let Some(boot) = self.peers.boot(header.source) else {
            self.peers.suspect(header.source, link, now_ms);
            return Err(Fault::Unknown);
        };
        keys.open(head, header, boot, behind, now_ms)?;
        Ok(Trust::Proven)
    }

    #[inline]
    fn assemble<'a>(
        &mut self,
        header: &Header,
        payload: &'a [u8],
        now_ms: u64,
    ) -> Result<Option<Message<'a>>, Fault> {
        let flow = (header.source, header.source_port, header.destination_port);
        let remembers = header.kind == Kind::Data;
        let first = header.flags.has(Flags::FIRST);
        if remembers && first && self.flows.has(flow, header.message_id, now_ms) {
            return Err(Fault::Duplicate);
        }
        let payload = if header.flags.has(Flags::WHOLE) {
            if self.reassembly.void(header) {
                self.drops.count(Fault::Order);
            }
            if payload.len() > self.settings.bounds.message_bytes_max {
                return Err(Fault::Size);
            }
            Cow::Borrowed(payload)
        } else {
            for _ in 0..self.reassembly.expire(now_ms) {
                self.drops.count(Fault::Expired);
            }
            match self.reassembly.add(header, payload, now_ms, &mut self.drops) {
                Added::Message(message) => Cow::Owned(message),
                Added::Stored | Added::Dropped(_) => return Ok(None),
            }
        };
        if remembers && !self.flows.note(flow, header.message_id, now_ms) {
            return Err(Fault::Duplicate);
        }
        Ok(Some(Message {
            kind: header.kind,
            source: header.source,
            source_port: header.source_port,
            destination: header.destination,
            destination_port: header.destination_port,
            message_id: header.message_id,
            payload,
        }))
    }
}

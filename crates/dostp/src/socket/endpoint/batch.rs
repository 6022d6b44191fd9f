//! Many messages by one call: their frames are handed to the body together, small ones joined.
//!
//! This file owns which messages go together, and how many of them were taken. It must never let a message
//! pass one before it that was not taken.

use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;

use super::Endpoint;
use crate::header::{EVERYBODY, Kind};
use crate::node::Sending;
use crate::outgoing::Outbound;
use crate::socket::joining::FrameGroup;
use crate::socket::transmitting::transmit_together;

/// Datagrams after which a group of messages goes, the last of them with one message: a packet ring takes as
/// many by one call. In UDP each is a call of its own.
const DATAGRAMS_COUNT: usize = 64;

/// Messages whose frames go together.
#[derive(Default)]
struct Messages<'a> {
    group: FrameGroup<'a>,
    /// How many datagrams there are up to the end of each message.
    ends: Vec<usize>,
}

impl Endpoint {
    /// Sends messages in order, up to one that finds no room or cannot be sent. Says how many were taken, and
    /// why the next one was not: EAGAIN where it finds no room just now.
    pub(in crate::socket) fn send_batch(
        &mut self,
        batch: &[(&[u8], SocketAddrV4)],
        may_broadcast: bool,
        now_ms: u64,
    ) -> (usize, io::Result<()>) {
        let mut taken = 0;
        let mut stopped = Ok(());
        while taken < batch.len() && stopped.is_ok() {
            let rest = &batch[taken..];
            let mut count;
            (count, stopped) = self.send_group(rest, may_broadcast, now_ms);
            if count == 0 && rest.len() > 1 && is_too_long(&stopped) {
                // The interface may take less by now than when the node began: a frame alone may still go.
                (count, stopped) = self.send_group(&rest[..1], may_broadcast, now_ms);
            }
            taken += count;
        }
        (taken, self.flush(now_ms).and(stopped))
    }

    /// Sends the first of these messages, and with it those behind it that can go at once.
    fn send_group(
        &mut self,
        batch: &[(&[u8], SocketAddrV4)],
        may_broadcast: bool,
        now_ms: u64,
    ) -> (usize, io::Result<()>) {
        let mut messages = Messages::default();
        for &(payload, to) in batch {
            let outbound = self.outbound(to, messages.ends.len(), may_broadcast);
            let is_first = messages.ends.is_empty();
            let added = outbound.and_then(|outbound| {
                self.tell_of(outbound.destination, now_ms);
                if self.node.is_open(outbound.destination) {
                    return self.add(&mut messages, &outbound, payload, now_ms);
                }
                // Its address has to be found, or it has others to wait for.
                if is_first { self.send_alone(&outbound, payload, now_ms) } else { Ok(false) }
            });
            match added {
                Ok(true) if messages.ends.is_empty() => return (1, Ok(())),
                Ok(true) if messages.group.datagrams_count() < DATAGRAMS_COUNT => {}
                Err(error) if is_first => return (0, Err(error)),
                // What stands in the way of this message is met again once those before it are taken.
                Ok(_) | Err(_) => break,
            }
        }
        self.send_frames(&messages, now_ms)
    }

    /// A message to this address with so many before it in its group.
    fn outbound(&mut self, to: SocketAddrV4, before: usize, may_broadcast: bool) -> io::Result<Outbound> {
        let destination = self.destination(*to.ip())?;
        if destination == EVERYBODY && !may_broadcast {
            return Err(ErrorKind::PermissionDenied.into());
        }
        Ok(Outbound {
            kind: Kind::Data,
            destination,
            source_port: self.port,
            destination_port: to.port(),
            message_id: self.next_id.wrapping_add(before as u16),
            priority: false,
        })
    }

    /// Adds the frames of a message that can go at once.
    fn add<'a>(
        &mut self,
        messages: &mut Messages<'a>,
        outbound: &Outbound,
        payload: &'a [u8],
        now_ms: u64,
    ) -> io::Result<bool> {
        let sending = self.node.send(outbound, payload, now_ms).map_err(|fault| self.send_error(fault))?;
        if let Sending::Frames { link, frames } = sending {
            messages.group.add(link, frames);
            messages.ends.push(messages.group.datagrams_count());
        }
        Ok(true)
    }

    /// Sends a message that has to wait for its address.
    fn send_alone(&mut self, outbound: &Outbound, payload: &[u8], now_ms: u64) -> io::Result<bool> {
        // The id is this message's, whatever becomes of it: another one must not have it.
        self.draw_id();
        if !self.send_message(outbound, payload, now_ms)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(true)
    }

    /// Sends a group. Says how many of its messages were taken, and why the next one was not.
    fn send_frames(&mut self, messages: &Messages<'_>, now_ms: u64) -> (usize, io::Result<()>) {
        let Self { node, body, .. } = self;
        let (datagrams_taken, stopped) = transmit_together(node, body, &messages.group, now_ms);
        let ends = &messages.ends;
        let taken = ends.partition_point(|end| *end <= datagrams_taken);
        node.unsent(ends.len() - taken);
        // A message of which a part has left has had its id, even if it is given up.
        let begun = taken + usize::from(datagrams_taken > ends[..taken].last().copied().unwrap_or(0));
        self.next_id = self.next_id.wrapping_add(begun as u16);
        (taken, stopped)
    }
}

/// Whether a frame was longer than the interface takes.
fn is_too_long(stopped: &io::Result<()>) -> bool {
    let errno = stopped.as_ref().err().and_then(io::Error::raw_os_error);
    errno == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

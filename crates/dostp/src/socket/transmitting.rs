//! The frames of messages, on their way.
//!
//! This file owns the order in which frames are handed to the body. It must never send a part of a message
//! behind one that found no room.

use std::io;

use staunch_netio::datagram::{LinkAddress, Transmit};

use super::body::{self, Carrier};
use super::joining::FrameGroup;
use crate::greeting::Link;
use crate::header::Flags;
use crate::node::Node;
use crate::outgoing::{FrameOut, Frames};

/// Sends the frames of a message; says whether all of them were taken. What was not finds no room just now.
///
/// # Errors
/// Why a frame was refused, in the words of UDP's errors.
pub(super) fn transmit(
    node: &mut Node,
    body: &mut Carrier,
    link: Link,
    mut frames: Frames<'_>,
    now_ms: u64,
) -> io::Result<bool> {
    let Some(first) = frames.next() else { return Ok(true) };
    if node.has_trailer() {
        return transmit_trailed(node, body, link, std::iter::once(first).chain(frames), now_ms);
    }
    if first.header.flags.has(Flags::FINAL) {
        return is_whole(send_all(body, &[body::transmit(link, &first.head, first.payload)]));
    }
    let frames: Vec<FrameOut<'_>> = std::iter::once(first).chain(frames).collect();
    let batch: Vec<_> = frames.iter().map(|frame| body::transmit(link, &frame.head, frame.payload)).collect();
    is_whole(send_all(body, &batch))
}

/// Frames with a trailer are put together first.
fn transmit_trailed<'a>(
    node: &mut Node,
    body: &mut Carrier,
    link: Link,
    frames: impl Iterator<Item = FrameOut<'a>>,
    now_ms: u64,
) -> io::Result<bool> {
    let written: Vec<Vec<u8>> = frames.map(|frame| written(node, &frame, now_ms)).collect();
    let batch: Vec<_> = written.iter().map(|bytes| body::transmit(link, &[], bytes)).collect();
    is_whole(send_all(body, &batch))
}

/// Sends the frames of a group in order. Says how many of its datagrams were taken, and why the next one was
/// not, as [`send_all`] does.
pub(super) fn transmit_together(
    node: &mut Node,
    body: &mut Carrier,
    group: &FrameGroup<'_>,
    now_ms: u64,
) -> (usize, io::Result<()>) {
    let mut bytes = Vec::new();
    let mut ends = Vec::with_capacity(group.datagrams_count());
    for (_, frames) in group.datagrams() {
        if node.has_trailer() || frames.len() > 1 {
            frames.iter().for_each(|frame| node.write(frame, now_ms, &mut bytes));
        }
        ends.push(bytes.len());
    }
    let mut begin = 0;
    let transmits = group.datagrams().zip(ends).map(|((link, frames), end)| {
        let written = &bytes[begin..end];
        begin = end;
        match frames {
            [frame] if written.is_empty() => body::transmit(link, &frame.head, frame.payload),
            _ => body::transmit(link, &[], written),
        }
    });
    send_all(body, &transmits.collect::<Vec<_>>())
}

fn written(node: &mut Node, frame: &FrameOut<'_>, now_ms: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    node.write(frame, now_ms, &mut bytes);
    bytes
}

/// Sends frames in order. Says how many were taken, and why the next one was not: EAGAIN where it finds no
/// room just now.
fn send_all(body: &mut Carrier, batch: &[Transmit<'_, LinkAddress>]) -> (usize, io::Result<()>) {
    let mut taken = 0;
    while taken < batch.len() {
        match body.send(&batch[taken..]) {
            Ok(sent) if sent.refused > 0 => {
                // The last one that is done with.
                return (taken + sent.done - 1, Err(io::Error::from_raw_os_error(sent.errno)));
            }
            Ok(sent) if sent.done == 0 => return (taken, Err(io::ErrorKind::WouldBlock.into())),
            Ok(sent) => taken += sent.done,
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

/// Whether a message left with all of its frames. A part that is missing makes the rest worthless: the
/// receiver drops what has come.
fn is_whole((_, stopped): (usize, io::Result<()>)) -> io::Result<bool> {
    match stopped {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

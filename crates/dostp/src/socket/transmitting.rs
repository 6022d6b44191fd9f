//! The frames of one message, on their way.
//!
//! It must never send a part of a message behind one that found no room.

use std::io;

use staunch_netio::datagram::{LinkAddress, Transmit};

use super::body::{self, Carrier};
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
        let sent = body.send(&[body::transmit(link, &first.head, first.payload)])?;
        return refused(sent.errno, sent.refused).map(|()| sent.done == 1);
    }
    let frames: Vec<FrameOut<'_>> = std::iter::once(first).chain(frames).collect();
    let batch: Vec<_> = frames.iter().map(|frame| body::transmit(link, &frame.head, frame.payload)).collect();
    send_all(body, &batch)
}

/// Frames with a trailer are put together first.
fn transmit_trailed<'a>(
    node: &mut Node,
    body: &mut Carrier,
    link: Link,
    frames: impl Iterator<Item = FrameOut<'a>>,
    now_ms: u64,
) -> io::Result<bool> {
    let mut written: Vec<Vec<u8>> = Vec::new();
    for frame in frames {
        let mut bytes = Vec::new();
        node.write(&frame, now_ms, &mut bytes);
        written.push(bytes);
    }
    let batch: Vec<_> = written.iter().map(|bytes| body::transmit(link, &[], bytes)).collect();
    send_all(body, &batch)
}

fn send_all(body: &mut Carrier, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<bool> {
    let mut done = 0;
    while done < batch.len() {
        let sent = body.send(&batch[done..])?;
        refused(sent.errno, sent.refused)?;
        done += sent.done;
        if sent.done == 0 {
            // A part that is missing makes the rest worthless: the receiver drops what has come.
            return Ok(false);
        }
    }
    Ok(true)
}

fn refused(errno: i32, count: usize) -> io::Result<()> {
    if count == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

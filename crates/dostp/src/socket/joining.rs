//! Frames of several messages that are handed to the body together, small messages joined.
//!
//! This file owns which frames go in one datagram. It must never join more than goes to the receiver in one
//! frame of the link, nor keep a message back for the sake of those that may come.

use std::ops::Range;

use crate::greeting::Link;
use crate::limits::{HEADER_BYTES, JOINED_FRAMES_MAX};
use crate::outgoing::{FrameOut, Frames};

/// Frames in the order in which they go, and which of them are joined.
#[derive(Default)]
pub(super) struct FrameGroup<'a> {
    frames: Vec<FrameOut<'a>>,
    datagrams: Vec<Joint>,
}

/// Frames that go in one datagram.
struct Joint {
    link: Link,
    frames: Range<usize>,
    bytes: usize,
}

impl<'a> FrameGroup<'a> {
    /// Adds the frames of a message that goes to this link address.
    pub(super) fn add(&mut self, link: Link, frames: Frames<'a>) {
        let (bytes_max, beside) = (frames.bytes_max(), HEADER_BYTES + frames.trailer_bytes());
        for frame in frames {
            let bytes = beside + frame.payload.len();
            if !self.join(link, &frame, bytes, bytes_max) {
                let place = self.frames.len();
                self.datagrams.push(Joint { link, frames: place..place + 1, bytes });
            }
            self.frames.push(frame);
        }
    }

    /// Makes room for a frame behind the last one; says whether it may go there.
    fn join(&mut self, link: Link, frame: &FrameOut<'_>, bytes: usize, bytes_max: usize) -> bool {
        let (Some(joint), Some(before)) = (self.datagrams.last_mut(), self.frames.last_mut()) else {
            return false;
        };
        let is_joined = joint.link == link
            && joint.bytes + bytes <= bytes_max
            && joint.frames.len() < JOINED_FRAMES_MAX
            && before.may_precede(frame);
        if is_joined {
            before.tell_of_more();
            joint.frames.end += 1;
            joint.bytes += bytes;
        }
        is_joined
    }

    /// How many datagrams there are.
    pub(super) fn datagrams_count(&self) -> usize {
        self.datagrams.len()
    }

    /// Each datagram: where it goes, and its frames.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (Link, &[FrameOut<'a>])> {
        self.datagrams.iter().map(|joint| (joint.link, &self.frames[joint.frames.clone()]))
    }
}

#[cfg(test)]
mod tests;

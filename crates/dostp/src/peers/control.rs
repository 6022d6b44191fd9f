//! Control frames that are to be sent, each at its time.
//!
//! It owns the bounds on answers. It must never decide whom to answer.

use std::collections::BTreeMap;

use crate::greeting::Link;
use crate::header::Kind;
use crate::limits::{
    CONFLICTS_PER_SECOND_MAX, CONTROL_WAITING_MAX, REPLIES_PER_SECOND_MAX, REPLIES_WAITING_MAX,
};

/// A control frame to be sent. Boot number, MTU and link address of its greeting are the node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Where it goes on the wire.
    pub to: Link,
    /// Its type.
    pub kind: Kind,
    /// The address it is for.
    pub destination: u16,
    /// What is to be echoed; 0 if nothing.
    pub challenge: u64,
    /// What is echoed; 0 if nothing.
    pub echo: u64,
    /// The length the whole frame is padded to, if it is longer than it would be.
    pub frame_bytes: u16,
}

/// Control frames by the time they are due.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: BTreeMap<(u64, u64), Control>,
    serial: u64,
    replies_waiting: usize,
    replies: Rate,
    conflicts: Rate,
}

impl Outbox {
    /// Sends a frame at that time. A flood of them is cut off: whatever matters is repeated.
    pub(super) fn push(&mut self, due_ms: u64, control: Control) -> bool {
        if self.waiting.len() >= CONTROL_WAITING_MAX {
            return false;
        }
        self.serial += 1;
        self.replies_waiting += usize::from(control.kind == Kind::HelloReply);
        self.waiting.insert((due_ms, self.serial), control);
        true
    }

    /// Sends an answer at that time, unless there are too many.
    pub(super) fn reply(&mut self, now_ms: u64, due_ms: u64, control: Control) -> bool {
        self.replies_waiting < REPLIES_WAITING_MAX
            && self.replies.allows(now_ms, REPLIES_PER_SECOND_MAX)
            && self.push(due_ms, control)
    }

    /// Asks whoever sent a greeting, at that time: within the bound on answers of a second.
    pub(super) fn question(&mut self, due_ms: u64, control: Control) -> bool {
        self.replies.allows(due_ms, REPLIES_PER_SECOND_MAX) && self.push(due_ms, control)
    }

    /// Tells of a conflict now, unless there were too many.
    pub(super) fn conflict(&mut self, now_ms: u64, control: Control) -> bool {
        self.conflicts.allows(now_ms, CONFLICTS_PER_SECOND_MAX) && self.push(now_ms, control)
    }

    /// The next frame whose time has come.
    pub(super) fn pop(&mut self, now_ms: u64) -> Option<Control> {
        let first = self.waiting.first_entry()?;
        if first.key().0 > now_ms {
            return None;
        }
        let control = first.remove();
        self.replies_waiting -= usize::from(control.kind == Kind::HelloReply);
        Some(control)
    }

    /// When the next frame is due.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((due_ms, _), _)| *due_ms)
    }

    /// Nothing is sent any more.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.replies_waiting = 0;
    }
}

/// So many in a second, counted in seconds that begin with the first.
#[derive(Debug, Default)]
pub(super) struct Rate {
    second_began_ms: u64,
    count: u32,
}

impl Rate {
    /// Whether there may be one more.
    pub(super) fn allows(&mut self, now_ms: u64, per_second_max: u32) -> bool {
        if now_ms >= self.second_began_ms + 1_000 {
            *self = Self { second_began_ms: now_ms, count: 0 };
        }
        self.count += 1;
        self.count <= per_second_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: Control = Control {
        to: Link::EVERYBODY,
        kind: Kind::HelloReply,
        destination: 7,
        challenge: 0,
        echo: 1,
        frame_bytes: 0,
    };

    #[test]
    fn frames_come_in_order_of_their_time() {
        let mut outbox = Outbox::default();
        outbox.push(20, Control { echo: 2, ..REPLY });
        outbox.push(10, REPLY);
        outbox.push(20, Control { echo: 3, ..REPLY });
        assert_eq!((outbox.pop(9), outbox.due_ms()), (None, Some(10)));
        let echoes: Vec<u64> = std::iter::from_fn(|| outbox.pop(20)).map(|control| control.echo).collect();
        assert_eq!(echoes, [1, 2, 3]);
    }

    #[test]
    fn answers_are_bounded_in_a_second_and_in_number() {
        let mut outbox = Outbox::default();
        let sent = (0..1_500).filter(|_| outbox.reply(5_000, 5_000, REPLY)).count();
        assert_eq!(sent, 1_000);
        let more = (0..1_500).filter(|_| outbox.reply(6_000, 6_000, REPLY)).count();
        assert_eq!(more, 24);
        while outbox.pop(6_000).is_some() {}
        assert!(outbox.reply(7_000, 7_000, REPLY));
        let told =
            (0..100).filter(|_| outbox.conflict(7_000, Control { kind: Kind::Conflict, ..REPLY })).count();
        assert_eq!(told, 10);
    }
}

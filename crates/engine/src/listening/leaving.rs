//! Where a worker listens, by name, and which listeners it is about to give up.
//!
//! It must never give up a listener while connections that came before wait in its queue, unless the time for
//! it is over.

use staunch_netio::Io;

use crate::limits::{LEAVE_CROWD, LEAVE_CROWD_QUIET_MS, LEAVE_LOOK_MS, LEAVE_MS_MAX, LEAVE_QUIET_MS};
use crate::order::ListenerName;

/// The listeners of one worker.
#[derive(Debug, Default)]
pub(crate) struct OpenListeners {
    open: Vec<(ListenerName, u16)>,
    leaving: Vec<Leaving>,
}

#[derive(Debug)]
struct Leaving {
    listener: u16,
    from_ms: u64,
    until_ms: u64,
    at_once: bool,
    dropped: bool,
}

impl OpenListeners {
    /// A listener of the backend stands for this name. Several may stand for one.
    pub(crate) fn add(&mut self, name: ListenerName, listener: u16) {
        self.open.push((name, listener));
    }

    /// The listeners for which `is_meant` says yes are to be given up: once their queues are empty, to which
    /// nobody is let in any more, or at once, and then newcomers are let in for whoever else accepts there.
    pub(crate) fn leave(
        &mut self,
        io: &mut impl Io,
        is_meant: impl Fn(ListenerName) -> bool,
        at_once: bool,
        now_ms: u64,
    ) {
        let (from_ms, until_ms) = (now_ms + LEAVE_QUIET_MS, now_ms + LEAVE_MS_MAX);
        let left = self.open.extract_if(.., |(name, _)| is_meant(*name));
        let left = left.inspect(|(_, listener)| {
            if at_once {
                io.admit_syn(*listener);
            } else {
                io.drop_syn(*listener);
            }
        });
        self.leaving.extend(left.map(|(_, listener)| Leaving {
            listener,
            from_ms,
            until_ms,
            at_once,
            dropped: false,
        }));
    }

    /// The listeners that are not being given up.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = u16> {
        self.open.iter().map(|(_, listener)| *listener)
    }

    /// How many connections wait in the queues of those that are not being given up.
    pub(crate) fn waiting(&self, io: &impl Io) -> u32 {
        self.listeners().filter_map(|listener| io.queue(listener)).map(|queue| queue.waiting).sum()
    }

    /// Newcomers are kept out of these queues, or let in again.
    pub(crate) fn keep_out(&self, io: &mut impl Io, keeps_out: bool) {
        for listener in self.listeners() {
            if keeps_out {
                io.drop_syn(listener);
            } else {
                io.admit_syn(listener);
            }
        }
    }

    /// Whether nothing is listened at any more, and nothing can come from what was.
    pub(crate) fn are_gone(&self) -> bool {
        self.open.is_empty() && self.leaving.is_empty()
    }

    /// When to look again, if a listener is being given up.
    #[inline]
    pub(crate) fn next_ms(&self, now_ms: u64) -> Option<u64> {
        (!self.leaving.is_empty()).then_some(now_ms + LEAVE_LOOK_MS)
    }

    /// Those being given up do not wait for their queues any more.
    pub(crate) fn hurry(&mut self) {
        self.leaving.iter_mut().for_each(|leaving| leaving.at_once = true);
    }

    /// Gives up what can be. The time of a listener that rests for want of room begins afterwards.
    #[inline]
    pub(crate) fn look(&mut self, io: &mut impl Io, rests: impl Fn(u16) -> bool, now_ms: u64) {
        if !self.leaving.is_empty() {
            self.leaving.retain_mut(|leaving| {
                if rests(leaving.listener) {
                    leaving.until_ms = now_ms + LEAVE_MS_MAX;
                }
                !leaving.is_gone(io, now_ms)
            });
        }
    }
}

impl Leaving {
    fn is_gone(&mut self, io: &mut impl Io, now_ms: u64) -> bool {
        let Some(queue) = io.queue(self.listener) else { return true };
        let quiet_ms = match queue.waiting {
            0 => 0,
            1..LEAVE_CROWD => LEAVE_QUIET_MS,
            _ => LEAVE_CROWD_QUIET_MS,
        };
        self.from_ms = self.from_ms.max(now_ms + quiet_ms);
        if !self.dropped && (self.at_once || now_ms >= self.from_ms.min(self.until_ms)) {
            self.dropped = true;
            io.drop_listener(self.listener);
        }
        io.queue(self.listener).is_none()
    }
}

//! Which process numbers updates while an upgrade is under way: this one, or the new one.
//!
//! It owns what the thread that runs an upgrade says to a writer. It must never let both number: a writer
//! stops before it hands anything over, and goes on only if the new process is known to be gone; that of the
//! new process begins only when the former one has left or is gone.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use staunch_live::Letter;

/// Which process numbers updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hand {
    /// This process.
    Own,
    /// Not known yet: a new process may take over; if it does not come to serve, this one goes on.
    Lent,
    /// The new process, which serves.
    Gone,
    /// Not known yet, and this is the new process: the former one may go on.
    Awaited,
}

/// What a hub without a store hands over: the name of its site, and its introduction.
pub(crate) type Carried = (String, Letter);

/// The state of an upgrade, as the writer sees it.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    hand: AtomicU8,
    /// The receiver of what a hub without a store holds, if one has asked.
    wanted: Mutex<Option<Sender<Carried>>>,
}

impl Hands {
    /// The writer is to stop, and then to give what it holds, if there is nobody to read its store.
    pub(crate) fn lend(&self, to: Option<Sender<Carried>>) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = to;
        self.hand.store(Hand::Lent as u8, Relaxed);
    }

    /// The writer goes on (`Own`), never will (`Gone`), or waits for the former process (`Awaited`).
    pub(crate) fn settle(&self, hand: Hand) {
        drop(self.take_wanted());
        self.hand.store(hand as u8, Relaxed);
    }

    /// The receiver of what the writer holds. Given once.
    pub(crate) fn take_wanted(&self) -> Option<Sender<Carried>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn get(&self) -> Hand {
        match self.hand.load(Relaxed) {
            0 => Hand::Own,
            1 => Hand::Lent,
            2 => Hand::Gone,
            _ => Hand::Awaited,
        }
    }
}

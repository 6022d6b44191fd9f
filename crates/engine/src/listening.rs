//! The listeners of one worker: which accept, which rest, and which are about to be given up.
//!
//! It owns their names and their state; `sockets` binds them or takes them over. It must never lose a
//! listener, nor a connection that waits at one.

mod leaving;
mod resting;
mod sockets;

use staunch_netio::Io;

use self::leaving::OpenListeners;
use self::resting::Resting;
pub use self::sockets::Inherited;
pub(crate) use self::sockets::{Bound, bind, bind_beside, refused};
use crate::order::Name;

/// The listeners of one worker.
pub(crate) struct Listening {
    pub(crate) resting: Resting,
    pub(crate) open: OpenListeners,
}

impl Listening {
    /// So many listeners of the backend, all known by the name 0.
    pub(crate) fn new(count: u16) -> Self {
        let mut listening = Self { resting: Resting::new(count), open: OpenListeners::default() };
        (0..count).for_each(|listener| listening.open.add(0, listener));
        listening
    }

    /// Gives the listeners names, in their order, in place of the common one.
    pub(crate) fn rename(&mut self, names: &[Name]) {
        self.open = OpenListeners::default();
        for (listener, name) in names.iter().enumerate() {
            self.open.add(*name, listener as u16);
        }
    }

    /// One more listener.
    pub(crate) fn add(&mut self, name: Name, listener: u16) {
        self.resting.add(listener);
        self.open.add(name, listener);
    }

    /// Gives up what can be.
    #[inline]
    pub(crate) fn look(&mut self, io: &mut impl Io, now_ms: u64) {
        let resting = &self.resting;
        self.open.look(io, |listener| resting.rests(listener), now_ms);
    }
}

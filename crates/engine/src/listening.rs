//! The listeners of one worker: which accept, which rest, and which are about to be given up.
//!
//! It owns their names and their state; `sockets` binds them or takes them over. It must never lose a
//! listener, nor a connection that waits at one.

mod leaving;
mod queues;
mod resting;
mod sockets;

use std::io;
use std::os::fd::OwnedFd;

use staunch_netio::Io;

use self::leaving::OpenListeners;
use self::resting::Resting;
pub use self::sockets::Inherited;
pub(crate) use self::sockets::{Bound, bind, bind_beside, refused};
use crate::order::ListenerName;
use crate::stats::Stats;

/// The listeners of one worker.
pub(crate) struct Listening {
    pub(crate) resting: Resting,
    pub(crate) open: OpenListeners,
    /// By listener of the backend, whether TLS is spoken there.
    secured: Vec<bool>,
}

impl Listening {
    /// So many listeners of the backend, all known by one name, and plain.
    pub(crate) fn new(count: u16) -> Self {
        let (resting, open) = (Resting::new(count), OpenListeners::default());
        let mut listening = Self { resting, open, secured: Vec::new() };
        (0..count).for_each(|listener| listening.name(ListenerName::default(), listener));
        listening
    }

    /// Gives the listeners names, in their order, in place of the common one.
    pub(crate) fn rename(&mut self, names: &[ListenerName]) {
        self.open = OpenListeners::default();
        for (listener, name) in names.iter().enumerate() {
            self.name(*name, listener as u16);
        }
    }

    /// Adds a listener with its name.
    fn add(&mut self, name: ListenerName, listener: u16) {
        self.resting.add(listener);
        self.name(name, listener);
    }

    fn name(&mut self, name: ListenerName, listener: u16) {
        let index = usize::from(listener);
        self.secured.resize(self.secured.len().max(index + 1), false);
        self.secured[index] = name.is_secured;
        self.open.add(name, listener);
    }

    /// TLS is spoken at every listener there is.
    pub(crate) fn secure_all(&mut self) {
        self.secured.fill(true);
    }

    /// Whether TLS is spoken at a listener.
    pub(crate) fn is_secured(&self, listener: u16) -> bool {
        self.secured.get(usize::from(listener)).is_some_and(|secured| *secured)
    }

    /// Listens at a socket from now on.
    pub(crate) fn listen(&mut self, io: &mut impl Io, name: ListenerName, socket: OwnedFd) -> io::Result<()> {
        let listener = io.add_listener(socket)?;
        self.add(name, listener);
        io.admit_syn(listener);
        io.accept(listener);
        Ok(())
    }

    /// Accepts anew wherever it is accepted. A listener that rests looks again by itself.
    pub(crate) fn look_again(&self, io: &mut impl Io) {
        for listener in self.open.listeners() {
            if !self.resting.rests(listener) {
                io.refuse(listener);
                io.accept(listener);
            }
        }
    }

    /// No more in this turn: what was accepted is more work than may wait.
    pub(crate) fn pause(&mut self, io: &mut impl Io, stats: &Stats) {
        for listener in 0..self.resting.count() {
            if self.resting.pause(listener) {
                stats.pressure.accept_pauses.add(1);
                io.refuse(listener);
            }
        }
    }

    /// Gives up what can be.
    #[inline]
    pub(crate) fn look(&mut self, io: &mut impl Io, now_ms: u64) {
        let resting = &self.resting;
        self.open.look(io, |listener| resting.rests(listener), now_ms);
    }
}

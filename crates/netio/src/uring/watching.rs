//! What is watched beside connections: descriptors of others that get ready, such as UDP sockets.
//!
//! A poll of many shots tells of things to come, and one of a single shot of room to send. It must never read
//! from what is watched.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{cqueue, opcode};

use super::ring::Ring;
use super::token::{Operation, pack};
use super::watched::{Watched, Watches};
use crate::Completion;
use crate::datagram::Watch;

impl Watches {
    /// See [`crate::Io::watch`].
    pub(crate) fn add(&mut self, ring: &mut Ring, descriptor: OwnedFd) -> io::Result<Watch> {
        let gone = |watched: &Watched| watched.descriptor.is_none();
        let free = self.all.iter().position(gone).unwrap_or(self.all.len());
        let watched = Watched { descriptor: Some(descriptor), wanted: true, polls: 0 };
        self.all.splice(free..self.all.len().min(free + 1), [watched]);
        self.push_poll(ring, free as Watch, Operation::Watch);
        Ok(free as Watch)
    }

    /// See [`crate::Io::watch_room`].
    pub(crate) fn push_poll(&mut self, ring: &mut Ring, watch: Watch, operation: Operation) {
        let Some(watched) = self.all.get_mut(watch as usize).filter(|watched| watched.wanted) else {
            return;
        };
        let Some(descriptor) = &watched.descriptor else { return };
        watched.polls += 1;
        let (events, multi) = match operation {
            Operation::Watch => (libc::POLLIN, true),
            _ => (libc::POLLOUT, false),
        };
        let poll = opcode::PollAdd::new(Fd(descriptor.as_raw_fd()), events as u32).multi(multi).build();
        ring.push(&poll.user_data(pack(operation, 0, watch)));
    }

    /// See [`crate::Io::unwatch`].
    pub(crate) fn remove(&mut self, ring: &mut Ring, watch: Watch) {
        let Some(watched) = self.all.get_mut(watch as usize) else { return };
        if !std::mem::replace(&mut watched.wanted, false) {
            return;
        }
        for operation in [Operation::Watch, Operation::WatchRoom] {
            let polls = CancelBuilder::user_data(pack(operation, 0, watch)).all();
            let cancel = opcode::AsyncCancel2::new(polls).build().flags(Flags::SKIP_SUCCESS);
            ring.push(&cancel.user_data(pack(Operation::CancelSilently, 0, 0)));
        }
        self.forget(watch);
    }

    /// A poll has told something, or has ended.
    pub(crate) fn watched(
        &mut self,
        ring: &mut Ring,
        operation: Operation,
        watch: Watch,
        flags: u32,
    ) -> Option<Completion> {
        let watched = self.all.get_mut(watch as usize)?;
        let wanted = watched.wanted;
        if !cqueue::more(flags) {
            watched.polls -= 1;
            if wanted && operation == Operation::Watch {
                self.push_poll(ring, watch, operation);
            }
            self.forget(watch);
        }
        wanted.then_some(Completion::Ready { watch })
    }

    fn forget(&mut self, watch: Watch) {
        let watched = &mut self.all[watch as usize];
        if !watched.wanted && watched.polls == 0 {
            watched.descriptor = None;
        }
    }
}

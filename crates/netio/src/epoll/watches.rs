//! What is watched beside connections: descriptors of others that get ready, such as UDP sockets.
//!
//! It owns a duplicate of each. It must never read from one. Edge-triggered: what is ready is told once, and
//! again only for what comes after.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::datagram::Watch;

/// Things to come.
const INPUT: EventFlags = EventFlags::IN.union(EventFlags::ET);
/// Room to send, told once.
const ROOM: EventFlags = INPUT.union(EventFlags::OUT);

/// Those of one backend, by number; numbers are used again.
#[derive(Debug, Default)]
pub(super) struct Watches {
    descriptors: Vec<Option<OwnedFd>>,
}

impl Watches {
    /// Watches one more. `slot_first` is what epoll is told for number 0.
    ///
    /// # Errors
    /// ENFILE: `count_max` are watched. Those of epoll_ctl(2).
    pub(super) fn add(
        &mut self,
        epoll: &OwnedFd,
        descriptor: OwnedFd,
        slot_first: u32,
        count_max: u32,
    ) -> io::Result<Watch> {
        let free = self.descriptors.iter().position(Option::is_none).unwrap_or(self.descriptors.len());
        if free >= count_max as usize {
            return Err(Errno::NFILE.into());
        }
        epoll::add(epoll, &descriptor, data(slot_first + free as u32), INPUT)?;
        self.descriptors.splice(free..self.descriptors.len().min(free + 1), [Some(descriptor)]);
        Ok(free as Watch)
    }

    /// Tells of room to send too, once.
    pub(super) fn await_room(&self, epoll: &OwnedFd, watch: Watch, slot_first: u32) {
        self.modify(epoll, watch, slot_first, ROOM);
    }

    /// There was an event. Returns whether it is still watched.
    pub(super) fn take(&self, epoll: &OwnedFd, watch: Watch, slot_first: u32, flags: EventFlags) -> bool {
        if flags.contains(EventFlags::OUT) {
            self.modify(epoll, watch, slot_first, INPUT);
        }
        self.get(watch).is_some()
    }

    /// Ends the watching, also where somebody else holds the same socket.
    pub(super) fn remove(&mut self, epoll: &OwnedFd, watch: Watch) {
        if let Some(descriptor) = self.descriptors.get_mut(watch as usize).and_then(Option::take) {
            // The descriptor was added and is open: `delete` does not fail.
            let _ = epoll::delete(epoll, &descriptor);
        }
    }

    fn get(&self, watch: Watch) -> Option<&OwnedFd> {
        self.descriptors.get(watch as usize)?.as_ref()
    }

    fn modify(&self, epoll: &OwnedFd, watch: Watch, slot_first: u32, flags: EventFlags) {
        if let Some(descriptor) = self.get(watch) {
            // No memory is needed for it: what is watched is changed where it stands.
            let _ = epoll::modify(epoll, descriptor, data(slot_first + watch), flags);
        }
    }
}

fn data(slot: u32) -> EventData {
    EventData::new_u64(u64::from(slot))
}

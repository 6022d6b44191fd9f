//! Accepting: where and how the accepts of each listener are armed, so that no peer is accepted only to be
//! closed.
//!
//! Rule 1: a multishot accept is armed only in a ring with more free slots than the listeners' queues could
//! fill in one turn: it takes what it finds, and closes what finds no slot. Rule 2: below that, single
//! accepts, never more than slots are free. Rule 3: with no slot free none is armed, and the engine is told.
//! Rule 4: what ended without our doing is armed again, unless the system is short of something: then the
//! engine decides when. Rule 5: an accept has room for one address, so where peers are to be learnt all
//! accepts are single. The kernel tells the address with the connection: no further call, and no normal
//! descriptor.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, DestinationSlot, Fd, Fixed};
use io_uring::{cqueue, opcode};

use super::callers::{CALLERS_MAX, Caller};
use super::listeners::{AcceptMode, Listener, multishot_reserve};
use super::ring_set::RingSet;
use super::state::{Accepting, Uring};
use super::token::{Operation, pack};
use crate::Completion;

/// Single accepts of one listener with the kernel at a time: enough that a burst is taken in few turns, few
/// enough that one listener does not keep the last slots from another.
const SINGLE_ACCEPTS_MAX: u32 = 8;

/// Like `SINGLE_ACCEPTS_MAX` while peers are learnt and slots are plenty: a burst takes few turns there too.
const LEARNING_ACCEPTS_MAX: u32 = CALLERS_MAX;

impl Accepting {
    /// See [`crate::Io::accept`].
    pub(crate) fn start_accepting(
        &mut self,
        rings: &mut RingSet,
        pending: &mut VecDeque<Completion>,
        listener: u16,
    ) {
        self.listeners[usize::from(listener)].wanted = true;
        self.arm_accepts(rings, pending, usize::from(listener));
    }

    /// See [`crate::Io::refuse`].
    pub(crate) fn stop_accepting(&mut self, rings: &mut RingSet, listener: u16) {
        self.listeners[usize::from(listener)].wanted = false;
        self.cancel_accepts(rings, usize::from(listener));
    }

    /// See [`crate::Io::add_listener`].
    pub(crate) fn take_listener(&mut self, socket: OwnedFd) -> io::Result<u16> {
        let listener = Listener::new(socket)?;
        let free = self.listeners.iter().position(Listener::is_gone).unwrap_or(self.listeners.len());
        self.listeners.splice(free..self.listeners.len().min(free + 1), [listener]);
        self.multishot_reserve = multishot_reserve(&self.listeners);
        Ok(free as u16)
    }

    /// See [`crate::Io::drop_listener`]. Its descriptor stays open until what names it has come back from the
    /// kernel: an accept that is not handed over yet would find another socket under that number.
    pub(crate) fn give_up_listener(&mut self, rings: &mut RingSet, listener: u16) {
        self.stop_accepting(rings, listener);
        let listener = &mut self.listeners[usize::from(listener)];
        let socket = listener.socket.take();
        listener.leaving = socket.filter(|_| listener.outstanding > 0);
        listener.backlog = 0;
        self.multishot_reserve = multishot_reserve(&self.listeners);
    }

    /// See [`crate::Io::learn_peers`].
    pub(crate) fn start_learning_peers(&mut self, rings: &mut RingSet) {
        if !std::mem::replace(&mut self.learns_peers, true) {
            // Those with the kernel learn nothing. Others follow when they are back.
            (0..self.listeners.len()).for_each(|index| self.cancel_accepts(rings, index));
        }
    }

    /// The cancelling of a listener's accepts has been done, or found nothing: only then it is reported.
    pub(crate) fn accepts_cancelled(
        &mut self,
        rings: &mut RingSet,
        pending: &mut VecDeque<Completion>,
        index: u32,
    ) -> Option<Completion> {
        let listener = &mut self.listeners[index as usize];
        if listener.outstanding > 0 && listener.cancelling {
            // An accept was just being carried out: neither over nor to be found. Its completion is near.
            listener.cancelling = false;
        }
        self.arm_accepts(rings, pending, index as usize);
        None
    }

    /// Brings what is armed in line with what is wanted and possible.
    pub(super) fn arm_accepts(
        &mut self,
        rings: &mut RingSet,
        pending: &mut VecDeque<Completion>,
        index: usize,
    ) {
        let listener = &self.listeners[index];
        if listener.cancelling {
            return;
        }
        if !listener.wanted {
            return self.cancel_accepts(rings, index);
        }
        if listener.device.is_some() {
            return self.watch_device(rings, pending, index);
        }
        let (outstanding, present) = (listener.outstanding, listener.accept_mode);
        match self.choose_accept_mode(rings, index) {
            Some(accept_mode) if outstanding == 0 || accept_mode == present => {
                self.arm_accepts_at(rings, index, accept_mode)
            }
            None if outstanding == 0 => {
                let stopped = self.accept_stopped(index, libc::ENFILE);
                pending.extend(stopped);
            }
            Some(_) => self.cancel_accepts(rings, index),
            None => {}
        }
    }

    fn arm_accepts_at(&mut self, rings: &mut RingSet, index: usize, accept_mode: AcceptMode) {
        let listener = &mut self.listeners[index];
        let ring = &mut rings.all[accept_mode.ring];
        let plenty = self.learns_peers && ring.free() > self.multishot_reserve;
        let most = if plenty { LEARNING_ACCEPTS_MAX } else { SINGLE_ACCEPTS_MAX };
        listener.accept_mode = accept_mode;
        let Some(socket) = &listener.socket else { return };
        let descriptor = Fd(socket.as_raw_fd());
        if accept_mode.multishot {
            if listener.outstanding == 0 {
                listener.outstanding = 1;
                let accept = opcode::AcceptMulti::new(descriptor).allocate_file_index(true).build();
                ring.push(&accept.user_data(pack(Operation::Accept, 0, index as u32)));
            }
            return;
        }
        while listener.outstanding < most && ring.free() > 0 {
            listener.outstanding += 1;
            ring.claims += 1;
            let caller = if self.learns_peers { listener.callers.expect() } else { Caller::UNKNOWN };
            let accept = opcode::Accept::new(descriptor, caller.address, caller.address_bytes)
                .file_index(Some(DestinationSlot::auto_target()))
                .build();
            ring.push(&accept.user_data(pack(Operation::Accept, caller.number, index as u32)));
        }
    }

    /// The best way to arm the accepts of a listener; `None` if no slot is free anywhere.
    fn choose_accept_mode(&mut self, rings: &mut RingSet, index: usize) -> Option<AcceptMode> {
        let listener = &self.listeners[index];
        let (present, armed) = (listener.accept_mode, listener.outstanding > 0);
        let reserve = self.multishot_reserve;
        let multishot = !self.learns_peers;
        if multishot && armed && present.multishot && rings.all[present.ring].free() > reserve {
            return Some(present);
        }
        // Going back to multishot needs some more room than staying with it, so that it does not alternate.
        let roomy = reserve.saturating_add(reserve / 4);
        if multishot && let Some(ring) = rings.all.iter().position(|ring| ring.free() > roomy) {
            return Some(AcceptMode { ring, multishot: true });
        }
        if armed && !present.multishot {
            // Each of them has its slot, so this ring is not full.
            return Some(present);
        }
        let ring = rings.with_room()?;
        Some(AcceptMode { ring, multishot: multishot && rings.all[ring].free() > roomy })
    }

    fn cancel_accepts(&mut self, rings: &mut RingSet, index: usize) {
        let listener = &mut self.listeners[index];
        if listener.outstanding == 0 || listener.cancelling {
            return;
        }
        listener.cancelling = true;
        if listener.device.is_some() {
            return self.unwatch_device(rings, index);
        }
        let ring = &mut rings.all[listener.accept_mode.ring];
        let cancel = |caller| {
            let accepts = CancelBuilder::user_data(pack(Operation::Accept, caller, index as u32)).all();
            opcode::AsyncCancel2::new(accepts).build()
        };
        for caller in listener.callers.expected() {
            let cancel = cancel(caller).flags(Flags::SKIP_SUCCESS);
            ring.push(&cancel.user_data(pack(Operation::CancelSilently, 0, 0)));
        }
        // Those without a room, and the sign that all has been tried.
        ring.push(&cancel(0).user_data(pack(Operation::AcceptCancel, 0, index as u32)));
    }

    pub(super) fn accept_stopped(&mut self, index: usize, errno: i32) -> Option<Completion> {
        let listener = &mut self.listeners[index];
        let was_wanted = std::mem::replace(&mut listener.wanted, false);
        was_wanted.then_some(Completion::AcceptStopped { listener: index as u16, errno })
    }
}

impl Uring {
    /// A completion of an accept. `caller` names the room for its peer's address.
    pub(crate) fn accepted(
        &mut self,
        index: u32,
        caller: u16,
        result: i32,
        flags: u32,
    ) -> Option<Completion> {
        let ring_index = self.completions.ring;
        let listener = &mut self.accepting.listeners[index as usize];
        let peer = listener.callers.take(caller);
        if !cqueue::more(flags) {
            if !listener.accept_mode.multishot {
                self.rings.all[ring_index].claims -= 1;
            }
            listener.note_end();
        }
        let completion = if result >= 0 {
            self.placed(index, result as u32, peer)
        } else if is_transient(-result) {
            None
        } else {
            self.accepting.accept_stopped(index as usize, -result)
        };
        self.accepting.arm_accepts(&mut self.rings, &mut self.completions.pending, index as usize);
        completion
    }

    /// The kernel has placed a connection of a listener in the ring whose completions are handed out, under
    /// this direct descriptor.
    pub(super) fn placed(
        &mut self,
        index: u32,
        descriptor: u32,
        peer: Option<SocketAddr>,
    ) -> Option<Completion> {
        let ring_index = self.completions.ring;
        let Some(slot) = self.rings.placement.slot_accepted(ring_index, descriptor) else {
            self.send_away(ring_index, descriptor);
            return None;
        };
        let overtakes = self.connections.slots.is_closing_by_link(slot);
        if overtakes {
            self.end_linked_close(slot);
        }
        self.rings.all[ring_index].accepted += 1;
        self.connections.slots.open(slot);
        self.accepting.peer = peer.map(|peer| (slot, peer));
        let accepted = Completion::Accepted { listener: index as u16, slot };
        if overtakes {
            self.completions.pending.push_back(accepted);
            return None;
        }
        Some(accepted)
    }

    /// Closes a connection that the kernel has placed among ours, which it does only if it counts differently
    /// than we do and finds no other place.
    #[cold]
    fn send_away(&mut self, ring: usize, descriptor: u32) {
        let close = opcode::Close::new(Fixed(descriptor)).build().flags(Flags::SKIP_SUCCESS);
        self.rings.all[ring].push(&close.user_data(pack(Operation::CancelSilently, 0, 0)));
    }
}

/// Whether an error of accept(2) says something of one connection only, or nothing at all.
pub(super) fn is_transient(errno: i32) -> bool {
    matches!(
        errno,
        libc::ECANCELED
            | libc::EINTR
            | libc::EAGAIN
            | libc::ECONNABORTED
            | libc::EPROTO
            | libc::ENOPROTOOPT
            | libc::ENETDOWN
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::EHOSTUNREACH
            | libc::ENONET
            | libc::EOPNOTSUPP
            | libc::EPERM
            | libc::ETIMEDOUT
    )
}

//! Connecting, and what the kernel tells of connections.
//!
//! A socket is made, set and bound by system calls, moves into a free place of a ring's table, and its normal
//! descriptor is closed once that is handed over: so the number of connections is not limited by that of
//! descriptors. Made in the table by the ring itself, by a chain of operations, it costs as much (measured:
//! no difference within a twentieth), needs a kernel of late 2024, and tells of no error at once.
//!
//! It must never touch a place that the kernel may choose for an accepted connection: see placement.rs.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::passages::Pointers;
use super::ring_set::RingSet;
use super::slots::{CLOSE_LINKED, CLOSING, CONNECTING, INSPECTING, OPEN};
use super::state::{ConnectionTable, Uring};
use super::token::Operation;
use crate::socket::inspect;
use crate::{Address, Completion, Slot, Target};

impl ConnectionTable {
    pub(super) fn make_socket(
        &mut self,
        rings: &mut RingSet,
        target: &Target,
        flags: SocketFlags,
    ) -> io::Result<OwnedFd> {
        if self.passages.is_full() {
            self.hand_over(rings);
        }
        if self.passages.is_full() {
            // The kernel is too short of memory to take operations.
            return Err(Errno::NOBUFS.into());
        }
        match target.socket(flags) {
            Err(error) if is_descriptors(&error) && !self.passages.is_empty() => {
                self.hand_over(rings);
                target.socket(flags)
            }
            outcome => outcome,
        }
    }

    /// Hands over in the middle of a turn.
    pub(super) fn hand_over(&mut self, rings: &mut RingSet) {
        for index in 0..rings.all.len() {
            if rings.all[index].has_submissions() {
                rings.all[index].hand_over();
                rings.note_work(index);
            }
        }
        self.end_passages(rings);
    }

    /// The normal descriptors of sockets that were handed over are closed.
    pub(crate) fn end_passages(&mut self, rings: &mut RingSet) {
        if !rings.all.iter().any(|ring| ring.has_submissions()) {
            self.passages.clear();
        }
    }

    pub(super) fn take_place(&mut self, rings: &mut RingSet) -> io::Result<Slot> {
        let slot = self.free.next(rings.placement.capacity.connected).ok_or(Errno::NFILE)?;
        let (ring, _) = rings.place_of(slot);
        if ring == rings.all.len() {
            rings.add()?;
        }
        self.free.take();
        self.slots.open(slot);
        Ok(slot)
    }

    pub(super) fn push_placing(
        &mut self,
        rings: &mut RingSet,
        slot: Slot,
        pointers: &Pointers,
        connect: Option<Entry>,
    ) {
        let (ring, descriptor) = rings.place_of(slot);
        let token = self.token(Operation::Place, slot);
        let place = opcode::FilesUpdate::new(pointers.descriptor, 1).offset(descriptor.0 as i32).build();
        let place = place.user_data(token);
        match connect {
            Some(connect) => {
                let place = place.flags(Flags::IO_LINK | Flags::SKIP_SUCCESS);
                rings.all[ring].push_chain(&[place, connect]);
            }
            None => rings.all[ring].push(&place.flags(Flags::SKIP_SUCCESS)),
        }
    }
}

impl Uring {
    /// See [`crate::Io::connect`].
    pub(crate) fn start_connecting(&mut self, target: &Target) -> io::Result<Slot> {
        if self.connections.free.next(self.rings.placement.capacity.connected).is_none() {
            return Err(Errno::NFILE.into());
        }
        let address = target.peer()?;
        if matches!(target.address, Address::Unix(_)) {
            // A Unix socket waits for room in its queue, not for a peer: a ring would have a thread do that.
            let socket = self.connections.make_socket(&mut self.rings, target, SocketFlags::NONBLOCK)?;
            let outcome = rustix::net::connect(&socket, &address);
            rustix::io::ioctl_fionbio(&socket, false)?;
            let slot = self.connections.take_place(&mut self.rings)?;
            let pointers = self.connections.passages.add(socket, address);
            self.connections.push_placing(&mut self.rings, slot, &pointers, None);
            let errno = outcome.err().map_or(0, Errno::raw_os_error);
            self.completions.pending.push_back(Completion::Connected { slot, errno });
            return Ok(slot);
        }
        let socket = self.connections.make_socket(&mut self.rings, target, SocketFlags::empty())?;
        let slot = self.connections.take_place(&mut self.rings)?;
        let (_, descriptor) = self.rings.place_of(slot);
        let token = self.connections.token(Operation::Connect, slot);
        let pointers = self.connections.passages.add(socket, address);
        let connect = opcode::Connect::new(descriptor, pointers.address, pointers.address_bytes).build();
        self.connections.slots.get(slot).set(CONNECTING);
        self.connections.push_placing(&mut self.rings, slot, &pointers, Some(connect.user_data(token)));
        Ok(slot)
    }

    /// Connecting is over, or could not begin.
    pub(crate) fn connected(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        state.clear(CONNECTING);
        if state.has(CLOSING) {
            self.go_on_closing(slot);
            return None;
        }
        Some(Completion::Connected { slot, errno: -result })
    }

    /// A socket could not be moved into the table. A chain that begins so is over.
    pub(crate) fn not_placed(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        if self.connections.slots.get(slot).has(CONNECTING) { self.connected(slot, result) } else { None }
    }

    /// See [`crate::Io::inspect`].
    pub(crate) fn start_inspecting(&mut self, slot: Slot) {
        let state = self.connections.slots.get(slot);
        let ends = state.has(CLOSE_LINKED | CLOSING) || !state.has(OPEN);
        if ends || !self.rings.features.fixed_fd_install {
            return self.completions.pending.push_back(Completion::Inspected {
                slot,
                retransmitted: 0,
                taken: None,
            });
        }
        let (ring, descriptor) = self.rings.place_of(slot);
        let token = self.connections.token(Operation::InstallToInspect, slot);
        self.connections.slots.get(slot).set(INSPECTING);
        self.rings.all[ring].push(&opcode::FixedFdInstall::new(descriptor, 0).build().user_data(token));
    }

    /// There is a normal descriptor of the connection to ask the kernel by, or there cannot be one.
    pub(crate) fn installed_to_inspect(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        let socket = (result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) });
        let (retransmitted, taken) = socket.map_or((0, None), |socket| inspect(socket.as_fd()));
        self.connections.slots.get(slot).clear(INSPECTING);
        self.go_on_closing(slot);
        Some(Completion::Inspected { slot, retransmitted, taken })
    }
}

fn is_descriptors(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

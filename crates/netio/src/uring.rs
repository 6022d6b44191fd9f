//! The io_uring backend: operations are put into rings shared with the kernel, which completes them by
//! itself.
//!
//! Owns nothing but its parts, each in a file of its own under `uring/`; this file only maps the interface
//! onto them. It must never parse a byte or decide what a connection deserves. Order of calls: [`probe()`]
//! once a process, [`Uring::new`] on each worker's thread, then those of [`Io`].
//!
//! A plain request costs one completion of a multishot receive, one send and its completion; entering the
//! kernel is shared by all connections of the turn.

mod accepting;
mod buffers;
mod bursts;
mod callers;
mod chains;
mod closing;
mod connecting;
mod features;
mod files;
mod handed;
mod in_flight;
mod listeners;
mod passages;
mod placement;
mod probe;
mod receiving;
mod ring;
mod ring_set;
mod sending;
mod slots;
mod state;
mod taking;
#[cfg(test)]
mod tests;
mod token;
mod tuning;
mod turn;
mod udp;
mod watched;
mod watching;

pub use features::Features;
pub use probe::{Refusal, probe};
pub use ring_set::Limits;
pub use state::Uring;
pub use udp::UdpRing;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;

use self::token::Operation;
use crate::datagram::{Readiness, Watch};
use crate::{Capacity, Completion, Input, Io, Outgoing, Queue, Slot, Target, Tuning};

impl Io for Uring {
    fn capacity(&self) -> Capacity {
        self.rings.placement.capacity
    }

    fn accept(&mut self, listener: u16) {
        self.accepting.start_accepting(&mut self.rings, &mut self.completions.pending, listener);
    }

    fn refuse(&mut self, listener: u16) {
        self.accepting.stop_accepting(&mut self.rings, listener);
    }

    fn add_listener(&mut self, socket: OwnedFd) -> io::Result<u16> {
        self.accepting.take_listener(socket)
    }

    fn drop_syn(&mut self, listener: u16) {
        self.accepting.listeners[usize::from(listener)].drop_syn();
    }

    fn drop_listener(&mut self, listener: u16) {
        self.accepting.give_up_listener(&mut self.rings, listener);
    }

    fn admit_syn(&mut self, listener: u16) {
        self.accepting.listeners[usize::from(listener)].admit_syn();
    }

    fn queue(&self, listener: u16) -> Option<Queue> {
        self.accepting.listeners[usize::from(listener)].queue()
    }

    fn learn_peers(&mut self) {
        self.accepting.start_learning_peers(&mut self.rings);
    }

    fn peer_address(&self, slot: Slot) -> Option<SocketAddr> {
        self.accepting.peer.filter(|peer| peer.0 == slot).map(|peer| peer.1)
    }

    fn connect(&mut self, target: &Target) -> io::Result<Slot> {
        self.start_connecting(target)
    }

    fn inspect(&mut self, slot: Slot) {
        self.start_inspecting(slot);
    }

    fn can_inspect(&self) -> bool {
        self.rings.features.fixed_fd_install
    }

    #[inline]
    fn receive(&mut self, slot: Slot) {
        self.connections.want_receiving(slot);
    }

    #[inline]
    fn pause(&mut self, slot: Slot) {
        self.connections.stop_receiving(slot);
    }

    #[inline]
    fn send(&mut self, slot: Slot, outgoing: Box<Outgoing>, last: bool) {
        self.start_send(slot, outgoing, last);
    }

    fn tune(&mut self, slot: Slot, tuning: Tuning) {
        self.start_tuning(slot, tuning);
    }

    fn can_tune(&self) -> bool {
        self.rings.features.socket_options
    }

    fn shutdown(&mut self, slot: Slot) {
        self.half_close(slot);
    }

    fn close(&mut self, slot: Slot) {
        self.start_closing(slot);
    }

    #[inline]
    fn input(&self, input: &Input) -> &[u8] {
        let (ring, buffer) = (input.buffer >> 16, input.buffer as u16);
        self.rings.all[ring as usize].buffers.bytes(buffer, input.length as usize)
    }

    #[inline]
    fn input_mut(&mut self, input: &Input) -> &mut [u8] {
        let (ring, buffer) = (input.buffer >> 16, input.buffer as u16);
        self.rings.all[ring as usize].buffers.bytes_mut(buffer, input.length as usize)
    }

    #[inline]
    fn release(&mut self, input: Input) {
        let (ring, buffer) = (input.buffer >> 16, input.buffer as u16);
        self.rings.all[ring as usize].buffers.give_back(buffer);
    }

    fn watch(&mut self, readiness: Readiness) -> io::Result<Watch> {
        match readiness {
            Readiness::Descriptor(descriptor) => self.watches.add(&mut self.rings.all[0], descriptor),
            Readiness::Flag(_) => Err(Errno::OPNOTSUPP.into()),
        }
    }

    fn watch_room(&mut self, watch: Watch) {
        self.watches.push_poll(&mut self.rings.all[0], watch, Operation::WatchRoom);
    }

    fn unwatch(&mut self, watch: Watch) {
        self.watches.remove(&mut self.rings.all[0], watch);
    }

    #[inline]
    fn give_back_memory(&mut self) {
        self.connections.in_flight.shrink();
    }

    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.begin_turn(timeout)
    }

    #[inline]
    fn next_completion(&mut self) -> Option<Completion> {
        self.take_completion()
    }
}

//! Connections that wait in the kernel's queues of a worker's listeners, and when accepting stops and goes
//! on.
//!
//! This module must never look at the queues for each connection that comes.

use staunch_netio::Io;

use super::Listening;
use crate::transport::Transport;

/// Errors of accept(2) that somebody can do something about.
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOBUFS: i32 = 105;

impl Listening {
    /// Keeps newcomers out, or lets them in again, if it is time to think of that.
    #[inline]
    pub(crate) fn turn_the_valve<I: Io>(&self, transport: &mut Transport<I>) {
        let overload = &transport.overload;
        if overload.valve.is_due(transport.time.now_ms, overload.pace.accepted()) {
            self.look_at_the_queues(transport);
        }
    }

    #[cold]
    fn look_at_the_queues<I: Io>(&self, transport: &mut Transport<I>) {
        let overload = &mut transport.overload;
        let accepted = overload.newcomers.count() + overload.pace.unheard();
        let waiting = self.open.waiting(&transport.io) + accepted;
        let worth = overload.pace.queue_worth();
        let is_old = overload.pace.is_old(overload.newcomers.oldest_ns());
        if let Some(keeps_out) = overload.valve.look(transport.time.now_ms, waiting, worth, is_old) {
            transport.stats.pressure.newcomers_stopped.add(u64::from(keeps_out));
            self.open.keep_out(&mut transport.io, keeps_out);
        }
    }

    /// Accepting on a listener of this worker has stopped, and will go on by time or by room.
    pub(crate) fn stop<I: Io>(
        &mut self,
        listener: u16,
        errno: i32,
        worker: u16,
        transport: &mut Transport<I>,
    ) {
        transport.stats.pressure.accept_stops.add(1);
        let (now_ms, overload) = (transport.time.now_ms, &mut transport.overload);
        let for_room = errno == ENFILE && overload.capacity.has_none_left();
        self.resting.stop(listener, for_room, now_ms);
        let (open, capacity) = (overload.capacity.open(), overload.capacity.capacity());
        overload.complaints.say(now_ms, || match errno {
            _ if for_room => format!(
                "worker {worker}: all its {capacity} connections are in use, others wait in the kernel; \
                 raise --max-connections (and ulimit -n if it allows no more)"
            ),
            EMFILE => format!(
                "worker {worker}: no file descriptor is left for a connection (EMFILE, {open} are open); \
                 raise ulimit -n or lower --max-connections"
            ),
            ENFILE => format!(
                "worker {worker}: no place is left for a connection (ENFILE, {open} are open); raise the \
                 host's fs.file-max or lower --max-connections"
            ),
            ENOMEM | ENOBUFS => format!(
                "worker {worker}: the kernel has no memory for a connection (errno {errno}, {open} are \
                 open); raise the memory limit or lower --max-connections"
            ),
            _ => format!(
                "worker {worker}: accepting fails (errno {errno}, {open} are open); it is tried again"
            ),
        });
    }

    /// Accepts again where it was stopped for want of room, if there is some.
    pub(crate) fn go_on_with_room<I: Io>(&mut self, transport: &mut Transport<I>) {
        if transport.overload.capacity.has_room() {
            while let Some(listener) = self.resting.take_waiting_for_room() {
                transport.io.accept(listener);
            }
        }
    }

    /// Accepts again where it was paused until the end of the turn, if no more waits than may.
    #[inline]
    pub(crate) fn go_on_paused<I: Io>(&mut self, transport: &mut Transport<I>) {
        let overload = &transport.overload;
        if overload.pace.may_accept(overload.newcomers.count()) {
            while let Some(listener) = self.resting.take_paused() {
                transport.io.accept(listener);
            }
        }
    }
}

//! A turn of the worker: hand over, wait, and hand out what has happened.
//!
//! It must never let one kind of work starve another: completions of a turn are bounded, files take one step
//! each. Order within a turn: what was decided without the kernel, the completions of the first ring, those
//! of rings it reports as ready, at last the files.

use std::io;
use std::time::Duration;

use io_uring::cqueue;

use super::ring_set::Burst;
use super::state::Uring;
use super::token::{Operation, is_divided, unpack};
use crate::{Completion, Slot, shortage};

/// How many completions are handed out before the kernel is entered again: deadlines are looked at once a
/// turn.
const COMPLETIONS_A_TURN_MAX: u32 = 4096;

/// How often rings are entered for nothing before the turn goes on. A ring was seen to stay marked as having
/// work and to give none; probably the mark was set after the work had been done. Of work that comes later
/// the first ring is told.
const FRUITLESS_MAX: u32 = 16;

impl Uring {
    /// Hands over, waits. See [`crate::Io::submit_and_wait`].
    pub(crate) fn begin_turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.connections.adjust_receiving(&mut self.rings);
        let mut timeout = timeout;
        for index in 1..self.rings.all.len() {
            if self.rings.all[index].is_behind() {
                self.rings.all[index].enter(Some(Duration::ZERO))?;
                self.rings.note_work(index);
                if self.rings.all[index].is_behind() {
                    timeout = Some(shortage::bounded(timeout));
                }
            }
        }
        let idle = self.completions.pending.is_empty()
            && self.completions.next == self.completions.batch.len()
            && self.files.ready.is_empty()
            && self.rings.ready.is_empty();
        if self.rings.burst != Burst::None {
            self.rings.follow_burst(self.completions.next == self.completions.batch.len());
        }
        self.rings.all[0].enter(if idle { timeout } else { Some(Duration::ZERO) })?;
        if !self.connections.passages.is_empty() {
            self.connections.end_passages(&mut self.rings);
        }
        self.completions.turn_left = COMPLETIONS_A_TURN_MAX;
        self.files.steps_left = self.files.ready.len();
        Ok(())
    }

    /// See [`crate::Io::next_completion`].
    #[inline]
    pub(crate) fn take_completion(&mut self) -> Option<Completion> {
        while self.completions.turn_left > 0 {
            if let Some(completion) = self.completions.pending.pop_front() {
                if let Completion::Closed { slot } = completion
                    && self.rings.placement.capacity.is_connected(slot)
                {
                    self.connections.free.give_back(slot);
                }
                return Some(completion);
            }
            if let Some(entry) = self.completions.batch.get(self.completions.next) {
                self.completions.next += 1;
                self.completions.turn_left -= 1;
                let (token, result, flags) = (entry.user_data(), entry.result(), entry.flags());
                if let Some(completion) = self.dispatch(token, result, flags) {
                    return Some(completion);
                }
            } else if !self.refill() && !self.step_next_file() {
                return None;
            }
        }
        None
    }

    /// Copies the next completions out of a ring.
    fn refill(&mut self) -> bool {
        self.completions.batch.clear();
        self.completions.next = 0;
        self.completions.ring = 0;
        self.rings.all[0].take_completions(&mut self.completions.batch);
        let mut attempts = 0;
        while self.completions.batch.is_empty() {
            let Some(index) = self.rings.ready.pop_front() else { return false };
            let ring = &mut self.rings.all[index];
            if let Err(error) = ring.enter(Some(Duration::ZERO)) {
                ring.fail(error);
                return false;
            }
            ring.take_completions(&mut self.completions.batch);
            self.completions.ring = index;
            attempts += 1;
            if !self.completions.batch.is_empty() || attempts < FRUITLESS_MAX {
                self.rings.note_work(index);
            }
        }
        true
    }

    #[inline]
    pub(super) fn dispatch(&mut self, token: u64, result: i32, flags: u32) -> Option<Completion> {
        let (operation, generation, index) = unpack(token);
        match operation {
            Operation::Receive | Operation::Send => {}
            Operation::Accept => return self.accepted(index, generation, result, flags),
            Operation::AcceptCancel => {
                return self.accepting.accepts_cancelled(
                    &mut self.rings,
                    &mut self.completions.pending,
                    index,
                );
            }
            Operation::Offer => {
                return self.accepting.offered(&mut self.rings, &mut self.completions.pending, index, result);
            }
            Operation::TakeIn => return self.taken_in(index, generation, result),
            Operation::Wake => return self.woken(flags),
            Operation::RingReady => return self.rings_ready(flags),
            Operation::DrainTimer => return self.drain_timer_over(),
            Operation::BurstTimer => return self.rings.burst_timer_over(),
            Operation::CloseSilently | Operation::CancelSilently | Operation::Tune => return None,
            Operation::Watch | Operation::WatchRoom => {
                return self.watches.watched(&mut self.rings.all[0], operation, index, flags);
            }
            // Cancels are the only operations whose completion may come after the slot's end.
            Operation::Cancel => return self.cancelled(index, generation, result),
            Operation::ReceiveCancel => return self.receive_not_cancelled(index, generation),
            Operation::Writable
            | Operation::Install
            | Operation::Read
            | Operation::Shutdown
            | Operation::InstallToShutdown
            | Operation::Place
            | Operation::Connect
            | Operation::InstallToInspect
            | Operation::Close => {}
        }
        if self.connections.slots.get(index).generation() != generation {
            return came_late(operation);
        }
        if is_divided(token) {
            return self.chain_divided(operation, index, result);
        }
        match operation {
            Operation::Receive => self.received(index, result, flags),
            Operation::Send => self.send_completed(index, result),
            Operation::Writable => self.writable(index, result),
            Operation::Install => self.installed(index, result),
            Operation::Read => self.file_read(index, result),
            Operation::Shutdown => self.shut_down(index),
            Operation::InstallToShutdown => self.installed_to_shutdown(index, result),
            Operation::Place => self.not_placed(index, result),
            Operation::Connect => self.connected(index, result),
            Operation::InstallToInspect => self.installed_to_inspect(index, result),
            Operation::Close => self.linked_close_completed(index, result),
            _ => None,
        }
    }

    /// What stands in the place of the second operation of a divided chain is done.
    #[cold]
    fn chain_divided(&mut self, operation: Operation, slot: Slot, result: i32) -> Option<Completion> {
        match operation {
            Operation::Connect => self.connected(slot, -libc::ECANCELED),
            _ => self.linked_close_divided(slot, result),
        }
    }

    fn woken(&mut self, flags: u32) -> Option<Completion> {
        self.waker.drain();
        if !cqueue::more(flags) {
            self.watch_waker();
        }
        self.resume_warmed();
        Some(Completion::Woken)
    }

    fn rings_ready(&mut self, flags: u32) -> Option<Completion> {
        if !cqueue::more(flags) {
            self.rings.watch_others();
        }
        for index in 1..self.rings.all.len() {
            self.rings.note_work(index);
        }
        None
    }
}

/// A completion of a former connection. Only those of a send and its close may come so late: the slot may be
/// accepted into before the close has been reported, and a divided chain ends in any order.
#[cold]
fn came_late(operation: Operation) -> Option<Completion> {
    let may = matches!(operation, Operation::Send | Operation::Close | Operation::Connect);
    assert!(may, "completion of a former connection: {operation:?}");
    None
}

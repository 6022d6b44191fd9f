//! The loop: one turn hands operations to the kernel, waits, and deals with each completion by one call.
//!
//! It must never block anywhere but in `submit_and_wait`, take a lock outside `deliver`, or read the clock
//! for a request. The clock is read as a turn begins; while there is a patience also after many completions,
//! and at the end of a turn that was full or began late (`pressure/pace`); and at the end of every turn while
//! latencies are measured.

use std::io;
use std::time::Duration;

use staunch_netio::{Completion, Input, Io, Outgoing, Slot};
use staunch_protocol::Deadline;

use super::{Reused, Worker};
use crate::connection::{Connection, Phase};
use crate::exchange::address::{Address, StreamRef};
use crate::exchange::context::Context;
use crate::exchange::open::Ended;
use crate::exchange::turn::Turn;
use crate::handler::Handler;
use crate::limits::{COLD_RETRY_MS, KEEP_ALIVE_EARLY_PART, LOOK_PART, WAKE_ROUNDS_MAX};
use crate::stats::Standing;

impl<I: Io, H: Handler> Worker<I, H> {
    /// Turns until it has drained.
    ///
    /// # Errors
    /// What the backend cannot go on after.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.is_over() {
            self.turn()?;
        }
        Ok(())
    }

    /// Whether it was told to drain and has nothing left.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.draining.is_some()
            && self.listening.open.are_gone()
            && self.stats.accepted.get() == self.stats.closed.get()
            && self.outbox.upstreams().are_gone()
    }

    /// Takes one turn: hands over operations, waits, and deals with completions.
    ///
    /// # Errors
    /// What the backend cannot go on after.
    pub fn turn(&mut self) -> io::Result<()> {
        let in_line_ns = self.attend_newcomers();
        self.io.submit_and_wait(self.timeout())?;
        self.time.read(&self.io);
        self.outbox.begin_turn(self.time.now_ms);
        self.overload.pace.begin_turn(self.time.now_ns, self.stats.requests.get());
        self.stats.turns.add(1);
        let begun_before = self.deadlines.sends_begun.len();
        let before = self.stats.standing();
        while let Some(completion) = self.io.next_completion() {
            if self.overload.pace.step() {
                self.look_at_the_clock();
            }
            match completion {
                Completion::Received { slot, input } => self.received(slot, input),
                Completion::Sent { slot, outgoing, errno } => self.sent(slot, outgoing, errno),
                Completion::Accepted { listener, slot } => self.admit(listener, slot),
                Completion::Ended { slot, errno } => self.ended(slot, errno),
                Completion::Progress { slot, bytes } => self.progressed(slot, bytes),
                Completion::Closed { slot } => self.retire(slot),
                Completion::AcceptStopped { listener, errno } => self.accept_stopped(listener, errno),
                Completion::Woken => {
                    self.overload.pace.hear_probe();
                    self.deliver();
                    self.go_on_warmed();
                }
                Completion::Connected { slot, errno } => self.upstream_connected(slot, errno),
                Completion::Inspected { slot, taken, .. } => self.looked(slot, taken),
                // Nothing is watched yet; a report without a cause is allowed.
                Completion::Ready { .. } => {}
            }
            if !self.outbox.is_empty() {
                self.look_into_outbox();
            }
            if self.reused.http2.memory.is_crowded() {
                self.make_room_for_fields();
            }
        }
        self.expire();
        if self.secured.has_cold() {
            self.retry_cold();
        }
        for _ in 0..WAKE_ROUNDS_MAX {
            if self.outbox.is_empty() {
                break;
            }
            self.look_into_outbox();
        }
        self.watch_sends(begun_before);
        self.listening.look(&mut self.io, self.time.now_ms);
        if self.draining.is_some() {
            self.go_on_draining();
        }
        self.stats.sending.set(self.deadlines.sends_begun.len() as u64);
        if self.stats.is_measuring() {
            self.measure_turn(before, in_line_ns);
        }
        self.end_turn();
        if self.secured.next_ms().is_some() {
            self.lay_to_sleep();
        }
        self.settle();
        Ok(())
    }

    /// What each request of this turn took, at most: what the whole turn took. And how long it waited, at
    /// most: the turn before, or so long in line.
    fn measure_turn(&mut self, before: Standing, in_line_ns: u64) {
        let turn_ns = self.io.now_ns().saturating_sub(self.time.now_ns);
        let now = self.stats.standing();
        if now.looked_at > before.looked_at {
            self.stats.latency.add(turn_ns, now.answered_at_once - before.answered_at_once);
            let age_ns = self.time.last_turn_ns.max(in_line_ns);
            self.stats.queue_age.add(age_ns, now.looked_at - before.looked_at);
        }
        self.time.last_turn_ns = turn_ns;
    }

    /// How long the worker may sleep.
    fn timeout(&self) -> Option<Duration> {
        if self.overload.newcomers.count() > 0 || !self.outbox.is_empty() {
            return Some(Duration::ZERO);
        }
        let sending = !self.deadlines.sends_begun.is_empty();
        let look_ms = u64::from(self.overload.timeouts.send_ms / LOOK_PART);
        let send_ms = sending.then(|| self.time.now_ms + look_ms);
        let draining_ms = self.draining.map(|draining| draining.next_ms());
        let leaving_ms = self.listening.open.next_ms(self.time.now_ms);
        let valve_ms = self.overload.valve.deadline_ms();
        let quiet_ms = self.overload.memory.quiet_ms();
        let cold_ms = self.secured.has_cold().then_some(self.time.now_ms + COLD_RETRY_MS);
        let times_ms = [
            self.deadlines.wheel.next_ms(),
            self.listening.resting.next_ms(),
            send_ms,
            draining_ms,
            leaving_ms,
            valve_ms,
            quiet_ms,
            cold_ms,
            self.secured.next_ms(),
        ];
        let next_ms = times_ms.into_iter().flatten().min()?;
        Some(Duration::from_millis(next_ms.saturating_sub(self.time.now_ms)))
    }

    fn admit(&mut self, listener: u16, slot: Slot) {
        let index = slot as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, Connection::free);
        }
        self.count_opened();
        self.connections[index].open(self.time.now_ms, self.overload.capacity.is_full());
        self.stats.accepted.add(1);
        let can_speak = !self.listening.is_secured(listener) || self.await_hello(slot);
        if can_speak && self.is_welcome(slot) {
            self.welcome(slot);
        } else {
            self.attend(slot);
            self.flush(slot);
        }
        self.place_deadline(slot, self.due(slot));
    }

    #[inline]
    fn received(&mut self, slot: Slot, input: Input) {
        if self.outbox.upstreams().own(slot) {
            return self.upstream_received(slot, input);
        }
        self.hear(slot);
        if self.has_no_memory_for(slot) {
            return self.io.release(input);
        }
        if self.secured.is_walled(slot) {
            return self.received_sealed(slot, input);
        }
        let (connection, mut turn, io) = self.lend(slot);
        connection.receive(io.input(&input), &mut turn);
        connection.late = false;
        self.io.release(input);
        self.flush(slot);
    }

    #[inline]
    fn sent(&mut self, slot: Slot, outgoing: Box<Outgoing>, errno: i32) {
        if self.outbox.upstreams().own(slot) {
            return self.upstream_sent(slot, outgoing, errno);
        }
        if self.secured.is_walled(slot) {
            return self.sent_sealed(slot, outgoing, errno);
        }
        self.reused.spare.put(outgoing);
        self.end_send(slot);
        if errno != 0 {
            self.stats.sends_failed.add(1);
            self.close(slot);
            return self.count(slot);
        }
        let (connection, mut turn, _) = self.lend(slot);
        connection.catch_up(&mut turn);
        self.flush(slot);
    }

    fn progressed(&mut self, slot: Slot, bytes: u32) {
        if self.outbox.upstreams().own(slot) {
            return self.upstream_progressed(slot);
        }
        self.progressed_sealed(slot, bytes);
        let rate_min = self.overload.capacity.pressure().send_rate_min;
        self.connections[slot as usize].progress(bytes, rate_min, self.time.now_ms, &self.overload.timeouts);
    }

    fn ended(&mut self, slot: Slot, errno: i32) {
        if self.outbox.upstreams().own(slot) {
            return self.upstream_ended(slot, errno);
        }
        if self.secured.is_walled(slot) && self.ended_sealed(slot, errno) {
            return;
        }
        let (connection, mut turn, _) = self.lend(slot);
        if errno != 0 || connection.phase == Phase::Lingering {
            return self.close(slot);
        }
        connection.end(&mut turn);
        self.flush(slot);
    }

    fn retire(&mut self, slot: Slot) {
        if self.outbox.upstreams().own(slot) {
            return self.upstream_closed(slot);
        }
        self.hear(slot);
        self.count_gone(slot);
        let Reused { spare, http2, .. } = &mut self.reused;
        self.connections[slot as usize].retire(spare, &mut http2.memory);
        if let Some(undrawn) = self.secured.tear_down(slot) {
            self.reused.spare.put(undrawn);
        }
        if let Some(clients) = &mut self.clients {
            clients.leave(slot);
        }
        self.deadlines.wheel.clear(slot);
        self.stats.closed.add(1);
        self.count_closed();
    }

    /// Pauses a peer that sends faster than it is answered, and lets it go on.
    #[inline]
    pub(super) fn regulate(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if connection.is_full() != connection.paused && connection.phase != Phase::Closing {
            connection.paused = !connection.paused;
            if connection.paused {
                self.io.pause(slot);
            } else if !connection.has_ended() {
                self.io.receive(slot);
            }
        }
    }

    /// Deadlines come again and again, so the wheel's node is left where it is while it comes up in time;
    /// only one that would come up much before a long idle time is over is moved, so that nobody wakes for
    /// it.
    #[inline]
    pub(super) fn set_deadline(&mut self, slot: Slot) {
        self.place_deadline(slot, self.connections[slot as usize].due(&self.overload.timeouts));
    }

    /// Sets the wheel's node for a deadline, if there is one.
    #[inline]
    pub(super) fn place_deadline(&mut self, slot: Slot, due: Option<(u64, Deadline)>) {
        let Some((deadline_ms, deadline)) = due else { return };
        let early_ms = match deadline {
            Deadline::KeepAlive => u64::from(self.overload.timeouts.keep_alive_ms / KEEP_ALIVE_EARLY_PART),
            _ => deadline_ms,
        };
        self.deadlines.wheel.set_between(slot, deadline_ms - early_ms, deadline_ms);
    }

    pub(super) fn close(&mut self, slot: Slot) {
        if self.connections[slot as usize].has_exchanges() {
            let (connection, mut turn, _) = self.lend(slot);
            connection.break_exchanges(Ended::Gone, &mut turn);
        }
        let connection = &mut self.connections[slot as usize];
        connection.phase = Phase::Closing;
        self.count_leaving(slot);
        self.io.close(slot);
    }

    /// Deals with every deadline that has passed. A deadline that was pushed back meanwhile is only set
    /// again.
    fn expire(&mut self) {
        let mut due = std::mem::take(&mut self.deadlines.due);
        self.deadlines.wheel.expire(self.time.now_ms, &mut due);
        for slot in due.drain(..) {
            if self.outbox.upstreams().own(slot) {
                self.upstream_due(slot);
                continue;
            }
            match self.due(slot) {
                Some((deadline_ms, _)) if deadline_ms > self.time.now_ms => {
                    self.deadlines.wheel.set(slot, deadline_ms);
                }
                Some((_, deadline)) => self.time_out(slot, deadline),
                None => {}
            }
        }
        self.deadlines.due = due;
        while let Some(listener) = self.listening.resting.take_due(self.time.now_ms) {
            self.io.accept(listener);
        }
    }

    fn time_out(&mut self, slot: Slot, deadline: Deadline) {
        if self.time_out_handshake(slot) || self.look_first(slot, deadline) {
            return;
        }
        self.give_up_on(slot, deadline);
    }

    /// What had to happen until now has not.
    pub(super) fn give_up_on(&mut self, slot: Slot, deadline: Deadline) {
        self.stats.count_timeout(deadline);
        if self.connections[slot as usize].is_stuck(deadline, self.time.now_ms) {
            return self.close(slot);
        }
        let timeouts = self.overload.timeouts;
        let (connection, mut turn, _) = self.lend(slot);
        connection.time_out(&timeouts, &mut turn);
        self.flush(slot);
    }

    /// Lends a connection with what it needs to handle something for one of its exchanges.
    pub(super) fn lend_to(&mut self, address: Address) -> (&mut Connection, Turn<'_, H>, &I) {
        let (connection, mut turn, io) = self.lend(address.slot);
        turn.context.address.stream = address.stream;
        (connection, turn, io)
    }

    /// A connection with what it needs to handle something.
    #[inline]
    pub(super) fn lend(&mut self, slot: Slot) -> (&mut Connection, Turn<'_, H>, &I) {
        let mut strain = self.overload.strain();
        let written_bytes_max = self.written_bytes_max();
        let connection = &mut self.connections[slot as usize];
        strain.late |= connection.late;
        let address =
            Address { worker: self.index, slot, generation: connection.generation, stream: StreamRef::ONLY };
        let context = Context {
            stats: &self.stats,
            date: &self.time.date,
            address,
            unix_ms: self.time.now_ms.wrapping_sub(self.time.epoch_ms),
            second: self.time.date_until_ms,
            clients: self.clients.as_deref_mut(),
            guarded: Default::default(),
            outbox: &self.outbox,
            secured: Some(&self.secured),
        };
        let turn = Turn {
            handler: &mut self.handler,
            spare: &mut self.reused.spare,
            context,
            now_ms: self.time.now_ms,
            heads: &mut self.reused.heads,
            rendered: &mut self.reused.rendered,
            http2: Some(&mut self.reused.http2),
            draining: self.draining.is_some(),
            strain,
            written_bytes_max,
            came_ms: self.overload.pace.came_ms(self.time.now_ms),
        };
        (connection, turn, &self.io)
    }
}

//! The loop: one turn hands operations to the kernel, waits, and deals with each completion by one call.
//!
//! It must never block anywhere but in `submit_and_wait`, take a lock outside `deliver`, or read the clock
//! for a request. The clock is read as a turn begins; while there is a patience also after many completions,
//! and at the end of a turn that was full or began late (`pressure/pace`); and at the end of every turn while
//! latencies are measured.

use std::io;
use std::time::Duration;

use staunch_netio::{Completion, Input, Io, Outgoing, Slot, Taken};
use staunch_protocol::Deadline;

use super::Worker;
use crate::handler::Handler;
use crate::limits::WAKE_ROUNDS_MAX;
use crate::pressure::Waited;
use crate::transport::{Handed, PassedDeadline, PeerEnd, Sent, Wire};
use crate::upstream::UpstreamLoss;

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
            && self.transport.stats.connections.accepted.get()
                == self.transport.stats.connections.closed.get()
            && self.transport.outbox.upstreams().are_gone()
    }

    /// Takes one turn: hands over operations, waits, and deals with completions.
    ///
    /// # Errors
    /// What the backend cannot go on after.
    pub fn turn(&mut self) -> io::Result<()> {
        let in_line_ns = self.transport.attend_newcomers();
        self.transport.io.submit_and_wait(self.timeout())?;
        self.transport.begin_turn();
        let begun_before = self.transport.deadlines.sends_begun.len();
        let before = self.transport.stats.requests.standing();
        while let Some(completion) = self.transport.io.next_completion() {
            if self.transport.overload.pace.step() {
                self.transport.look_at_the_clock();
                self.look_at_the_valve();
            }
            match completion {
                Completion::Received { slot, input } => self.received(slot, input),
                Completion::Sent { slot, outgoing, errno } => self.sent(slot, outgoing, errno),
                Completion::Accepted { listener, slot } => self.admit(listener, slot),
                Completion::Ended { slot, errno } => self.ended(slot, errno),
                Completion::Progress { slot, bytes } => {
                    let upstream = self.transport.progressed(slot, bytes);
                    self.go_on_with(upstream);
                }
                Completion::Closed { slot } => self.retire(slot),
                Completion::AcceptStopped { listener, errno } => {
                    self.listening.stop(listener, errno, self.index, &mut self.transport);
                }
                Completion::Woken => {
                    self.transport.overload.pace.hear_probe();
                    self.deliver();
                    let warmed = self.transport.take_warmed();
                    self.go_on_reading(warmed);
                }
                Completion::Connected { slot, errno } => {
                    let upstream = self.transport.connected(slot, errno);
                    self.go_on_with(upstream);
                }
                Completion::Inspected { slot, taken, .. } => self.looked(slot, taken),
                // Nothing is watched yet; a report without a cause is allowed.
                Completion::Ready { .. } => {}
            }
            if !self.transport.outbox.is_empty() {
                self.look_into_outbox();
            }
            if self.reused.http2.memory.is_crowded() {
                self.make_room_for_fields();
            }
        }
        self.expire();
        let cold = self.transport.secured.take_cold();
        self.go_on_reading(cold);
        for _ in 0..WAKE_ROUNDS_MAX {
            if self.transport.outbox.is_empty() {
                break;
            }
            self.look_into_outbox();
        }
        self.transport.watch_sends(begun_before);
        self.listening.look(&mut self.transport.io, self.transport.time.now_ms);
        if self.draining.is_some() {
            self.go_on_draining();
        }
        if self.transport.stats.turns.is_measuring() {
            self.transport.measure_turn(before, in_line_ns);
        }
        self.end_turn();
        if self.transport.secured.next_ms().is_some() {
            self.transport.lay_to_sleep();
        }
        self.transport.settle();
        Ok(())
    }

    /// How long the worker may sleep.
    fn timeout(&self) -> Option<Duration> {
        if self.transport.overload.newcomers.count() > 0 || !self.transport.outbox.is_empty() {
            return Some(Duration::ZERO);
        }
        let now_ms = self.transport.time.now_ms;
        let times_ms = [
            self.transport.next_ms(),
            self.listening.resting.next_ms(),
            self.listening.open.next_ms(now_ms),
            self.draining.map(|draining| draining.next_ms()),
        ];
        let next_ms = times_ms.into_iter().flatten().min()?;
        Some(Duration::from_millis(next_ms.saturating_sub(now_ms)))
    }

    fn admit(&mut self, listener: u16, slot: Slot) {
        if self.transport.overload.count_opened() {
            self.evict();
        }
        self.transport.open(slot);
        let can_speak = !self.listening.is_secured(listener) || self.transport.await_hello(slot);
        if can_speak && self.is_welcome(slot) {
            if self.transport.welcome(slot) {
                self.listening.pause(&mut self.transport.io, &self.transport.stats);
            }
        } else {
            self.transport.attend(slot);
            self.flush(slot);
        }
        self.transport.set_deadline(slot);
    }

    #[inline]
    fn received(&mut self, slot: Slot, input: Input) {
        let wire = self.transport.wire(slot);
        if wire == Wire::Upstream {
            return self.hear_upstream(slot, input);
        }
        self.transport.hear(slot);
        if self.has_no_memory_for(slot) {
            return self.transport.io.release(input);
        }
        if wire == Wire::Secured {
            return self.received_sealed(slot, input);
        }
        let (connection, mut turn, io) = self.lend(slot);
        connection.receive(io.input(&input), &mut turn);
        connection.waited = Waited::SHORT;
        self.transport.io.release(input);
        self.flush(slot);
    }

    #[inline]
    fn sent(&mut self, slot: Slot, outgoing: Box<Outgoing>, errno: i32) {
        match self.transport.sent(slot, outgoing, errno) {
            Sent::All => {
                let (connection, mut turn, _) = self.lend(slot);
                connection.catch_up(&mut turn);
                self.flush(slot);
            }
            Sent::Part => self.count(slot),
            Sent::Failed => {
                self.close(slot);
                self.count(slot);
            }
            Sent::Upstream(upstream) => self.go_on_with(upstream),
        }
    }

    fn ended(&mut self, slot: Slot, errno: i32) {
        match self.transport.ended(slot, errno) {
            PeerEnd::Heard => {
                let (connection, mut turn, _) = self.lend(slot);
                connection.end(&mut turn);
                self.flush(slot);
            }
            PeerEnd::Known => {}
            PeerEnd::Close => self.close(slot),
            PeerEnd::Upstream(upstream) => self.go_on_with(upstream),
        }
    }

    fn retire(&mut self, slot: Slot) {
        if self.transport.retire(slot, &mut self.reused.http2.memory) == Wire::Upstream {
            return;
        }
        if let Some(clients) = &mut self.clients {
            clients.leave(slot);
        }
        self.transport.overload.count_closed();
        self.listening.go_on_with_room(&mut self.transport);
    }

    /// The kernel has told what a peer has acknowledged.
    #[cold]
    fn looked(&mut self, slot: Slot, taken: Option<Taken>) {
        let Some(is_given_up) = self.transport.looked(slot, taken) else { return };
        if is_given_up {
            self.transport.stats.connections.count_timeout(Deadline::Send);
            return self.close(slot);
        }
        self.relieve_if_over();
        match self.transport.due(slot) {
            Some((due_ms, deadline)) if due_ms <= self.transport.time.now_ms => {
                self.give_up_on(slot, deadline);
            }
            due => self.transport.place_deadline(slot, due),
        }
    }

    /// Connections that waited for bytes of files try again.
    fn go_on_reading(&mut self, slots: Vec<Slot>) {
        for slot in slots {
            let Some(handed) = self.transport.go_on_waiting(slot) else { continue };
            if handed == Handed::Broken {
                self.close(slot);
            }
            self.count(slot);
        }
    }

    /// Deals with every deadline that has passed.
    fn expire(&mut self) {
        let mut due = std::mem::take(&mut self.transport.deadlines.due);
        self.transport.deadlines.wheel.expire(self.transport.time.now_ms, &mut due);
        for slot in due.drain(..) {
            match self.transport.passed(slot) {
                Some(PassedDeadline::Connection(deadline)) => {
                    if self.transport.time_out_handshake(slot) {
                        self.close(slot);
                    } else if !self.transport.look_first(slot, deadline) {
                        self.give_up_on(slot, deadline);
                    }
                }
                Some(PassedDeadline::Upstream(index, deadline)) => {
                    self.transport.outbox.upstreams().lose(index, UpstreamLoss::TimedOut(deadline));
                    self.go_on_with(Some(index));
                }
                None => {}
            }
        }
        self.transport.deadlines.due = due;
        while let Some(listener) = self.listening.resting.take_due(self.transport.time.now_ms) {
            self.transport.io.accept(listener);
        }
    }
}

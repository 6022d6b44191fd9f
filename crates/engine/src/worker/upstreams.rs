//! What becomes of the connections that the handler has the worker make: reports of the network go to their
//! rows, and the steps that follow are carried out here.
//!
//! It must never hold a row while the handler is asked: the handler asks for steps itself.

use staunch_netio::{Input, Io, Outgoing, Slot, Target};

use super::Worker;
use crate::exchange::address::Address;
use crate::handler::Handler;
use crate::upstream::{UpstreamEvent, UpstreamLoss, UpstreamNews, UpstreamRow, UpstreamStep};

impl<I: Io, H: Handler> Worker<I, H> {
    /// Takes the steps that upstreams wait for.
    pub(super) fn attend_upstreams(&mut self) {
        for index in self.outbox.upstreams().take_asked() {
            // The slot may have come back since the row was asked for.
            if !self.outbox.upstreams().note(index, |row| row.is_free()) {
                self.go_on_with(index);
            }
        }
    }

    /// Takes steps until there is none, sets the deadline, and counts what is held.
    fn go_on_with(&mut self, index: u32) {
        loop {
            match self.outbox.upstreams().step(index, self.time.now_ms) {
                UpstreamStep::Connect(target) => self.connect(index, &target),
                UpstreamStep::Tell(told) => {
                    self.stats.upstreams_lost.add(u64::from(matches!(told, UpstreamNews::Lost(_))));
                    self.tell(index, &Heard::News(&told));
                }
                UpstreamStep::Send(slot, outgoing) => {
                    self.stats.sent_bytes.add(outgoing.length_bytes());
                    self.io.send(slot, outgoing, false);
                }
                UpstreamStep::Shutdown(slot) => self.io.shutdown(slot),
                UpstreamStep::Receive(slot) => self.io.receive(slot),
                UpstreamStep::Pause(slot) => self.io.pause(slot),
                UpstreamStep::Close(slot) => {
                    self.deadlines.wheel.clear(slot);
                    self.io.close(slot);
                }
                UpstreamStep::Forget => return self.forget(index),
                UpstreamStep::Rest => break,
            }
        }
        self.count_upstream(index);
    }

    /// Begins to connect, unless the exchange that it is for is over already, or never began.
    fn connect(&mut self, index: u32, target: &Target) {
        let (upstream, exchange) = self.outbox.upstreams().tie(index);
        if exchange.is_some_and(|address| !self.is_under_way(address)) {
            return self.outbox.upstreams().close(upstream);
        }
        match self.io.connect(target) {
            Ok(slot) => {
                self.stats.upstreams_opened.add(1);
                self.outbox.upstreams().place(index, slot);
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                self.outbox.upstreams().lose(index, UpstreamLoss::Failed(errno));
            }
        }
    }

    /// Whether an exchange is not over yet.
    pub(super) fn is_under_way(&self, address: Address) -> bool {
        let connection = self.connections.get(address.slot as usize);
        connection.is_some_and(|connection| connection.is_under_way(address))
    }

    /// Tells the handler, and lends it the answer that goes on of the exchange that it serves.
    fn tell(&mut self, index: u32, heard: &Heard<'_>) {
        let (upstream, exchange) = self.outbox.upstreams().tie(index);
        let open = exchange.filter(|address| {
            let connection = self.connections.get(address.slot as usize);
            connection.is_some_and(|it| it.is_under_way(*address) && it.is_open(address.stream))
        });
        match open {
            Some(address) => {
                let (connection, mut turn, io) = self.lend_to(address);
                connection.hear(upstream, heard.event(io), &mut turn);
                self.flush(address.slot);
            }
            None => self.handler.upstream(upstream, heard.event(&self.io), None, &self.outbox),
        }
    }

    /// Connecting is over.
    pub(super) fn upstream_connected(&mut self, slot: Slot, errno: i32) {
        let now_ms = self.time.now_ms;
        self.note_upstream(slot, |row| row.note_connected(errno, now_ms));
    }

    /// Bytes came.
    #[cold]
    pub(super) fn upstream_received(&mut self, slot: Slot, input: Input) {
        let now_ms = self.time.now_ms;
        if let Some(index) = self.outbox.upstreams().index_of(slot) {
            if self.overload.memory.is_full() {
                self.stats.closed_for_memory.add(1);
                self.outbox.upstreams().lose(index, UpstreamLoss::NoMemory);
            } else if self.outbox.upstreams().note(index, |row| row.note_received(now_ms)) {
                self.tell(index, &Heard::Input(&input));
            } else {
                self.outbox.upstreams().note(index, |row| row.keep(self.io.input(&input)));
            }
            self.go_on_with(index);
        }
        self.io.release(input);
    }

    /// A send is over.
    #[cold]
    pub(super) fn upstream_sent(&mut self, slot: Slot, outgoing: Box<Outgoing>, errno: i32) {
        self.reused.spare.put(outgoing);
        self.stats.sends_failed.add(u64::from(errno != 0));
        let now_ms = self.time.now_ms;
        self.note_upstream(slot, |row| row.note_sent(errno, now_ms));
    }

    /// Some of what is sent was taken.
    #[cold]
    pub(super) fn upstream_progressed(&mut self, slot: Slot) {
        let now_ms = self.time.now_ms;
        self.note_upstream(slot, |row| row.note_progress(now_ms));
    }

    /// Its peer sends no more, or it has failed.
    #[cold]
    pub(super) fn upstream_ended(&mut self, slot: Slot, errno: i32) {
        self.note_upstream(slot, |row| row.note_ended(errno));
    }

    fn note_upstream(&mut self, slot: Slot, note: impl FnOnce(&mut UpstreamRow)) {
        if let Some(index) = self.outbox.upstreams().index_of(slot) {
            self.outbox.upstreams().note(index, note);
            self.go_on_with(index);
        }
    }

    /// Its slot came back.
    #[cold]
    pub(super) fn upstream_closed(&mut self, slot: Slot) {
        self.stats.upstreams_closed.add(1);
        self.deadlines.wheel.clear(slot);
        if let Some(index) = self.outbox.upstreams().index_of(slot) {
            self.forget(index);
        }
    }

    fn forget(&mut self, index: u32) {
        let row = self.outbox.upstreams().retire(index);
        self.overload.memory.change(row.counted_bytes, 0);
        if row.is_counted_leaving {
            self.overload.memory.change_leaving(row.counted_bytes, 0);
        }
    }

    /// A deadline has come up, perhaps one that was pushed back meanwhile.
    #[cold]
    pub(super) fn upstream_due(&mut self, slot: Slot) {
        let Some(index) = self.outbox.upstreams().index_of(slot) else { return };
        match self.outbox.upstreams().note(index, |row| row.due()) {
            Some((due_ms, _)) if due_ms > self.time.now_ms => self.deadlines.wheel.set(slot, due_ms),
            Some((_, deadline)) => {
                self.outbox.upstreams().lose(index, UpstreamLoss::TimedOut(deadline));
                self.go_on_with(index);
            }
            None => {}
        }
    }

    /// Sets its deadline, and counts what it holds.
    fn count_upstream(&mut self, index: u32) {
        let (slot, due, before_bytes, held_bytes, was_leaving, is_leaving) =
            self.outbox.upstreams().note(index, |row| {
                let held_bytes = row.held_bytes();
                let before_bytes = std::mem::replace(&mut row.counted_bytes, held_bytes);
                let is_leaving = row.is_leaving();
                let was_leaving = std::mem::replace(&mut row.is_counted_leaving, is_leaving);
                (row.slot(), row.due(), before_bytes, held_bytes, was_leaving, is_leaving)
            });
        self.overload.memory.change(before_bytes, held_bytes);
        let leaving_bytes = |is_leaving, bytes| if is_leaving { bytes } else { 0 };
        self.overload
            .memory
            .change_leaving(leaving_bytes(was_leaving, before_bytes), leaving_bytes(is_leaving, held_bytes));
        if let (Some(slot), Some((due_ms, _))) = (slot, due) {
            self.deadlines.wheel.set_between(slot, 0, due_ms);
        }
        if self.overload.memory.is_over() {
            self.relieve();
        }
    }

    /// The upstream in this slot holds most: it gives way.
    pub(super) fn give_up_upstream(&mut self, slot: Slot) {
        let Some(index) = self.outbox.upstreams().index_of(slot) else { return };
        self.outbox.upstreams().lose(index, UpstreamLoss::NoMemory);
        let held_bytes = self.outbox.upstreams().note(index, |row| {
            row.is_counted_leaving = true;
            row.counted_bytes
        });
        self.overload.memory.change_leaving(0, held_bytes);
    }
}

/// What the handler is told: kept in its row until now, or still in a buffer of the backend.
enum Heard<'a> {
    News(&'a UpstreamNews),
    Input(&'a Input),
}

impl<'a> Heard<'a> {
    fn event<I: Io>(&self, io: &'a I) -> UpstreamEvent<'a> {
        match self {
            Self::News(told) => told.event(),
            Self::Input(input) => UpstreamEvent::Received(io.input(input)),
        }
    }
}

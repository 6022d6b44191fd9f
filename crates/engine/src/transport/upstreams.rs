//! The connections that the handler has the worker make: reports of the network go to their rows, and the
//! steps that need nobody but the network are carried out here.
//!
//! This module must never hold a row while anybody else is asked.

use staunch_netio::{Input, Io, Slot, Target};

use super::Transport;
use crate::exchange::address::Address;
use crate::upstream::{UpstreamLoss, UpstreamNews, UpstreamRow, UpstreamStep};

impl<I: Io> Transport<I> {
    /// Takes steps of an upstream until there is none, or the handler has to hear something first. Then its
    /// deadline is set, and what it holds is counted.
    pub(crate) fn step_upstream(&mut self, index: u32) -> Option<UpstreamNews> {
        loop {
            match self.outbox.upstreams().step(index, self.time.now_ms) {
                UpstreamStep::Connect(target) => self.connect(index, &target),
                UpstreamStep::Tell(news) => {
                    self.stats.upstreams.lost.add(u64::from(matches!(news, UpstreamNews::Lost(_))));
                    return Some(news);
                }
                UpstreamStep::Send(slot, outgoing) => self.launch(slot, outgoing, false),
                UpstreamStep::Shutdown(slot) => self.io.shutdown(slot),
                UpstreamStep::Receive(slot) => self.io.receive(slot),
                UpstreamStep::Pause(slot) => self.io.pause(slot),
                UpstreamStep::Close(slot) => {
                    self.deadlines.wheel.clear(slot);
                    self.io.close(slot);
                }
                UpstreamStep::Forget => {
                    self.forget_upstream(index);
                    return None;
                }
                UpstreamStep::Rest => {
                    self.count_upstream(index);
                    return None;
                }
            }
        }
    }

    /// Begins to connect, unless the exchange that it is for is over already, or never began.
    fn connect(&mut self, index: u32, target: &Target) {
        let (upstream, exchange) = self.outbox.upstreams().tie(index);
        if exchange.is_some_and(|address| !self.is_under_way(address)) {
            return self.outbox.upstreams().close(upstream);
        }
        match self.io.connect(target) {
            Ok(slot) => {
                self.stats.upstreams.opened.add(1);
                self.outbox.upstreams().place(index, slot);
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                self.outbox.upstreams().lose(index, UpstreamLoss::Failed(errno));
            }
        }
    }

    /// Whether an exchange is not over yet.
    pub(crate) fn is_under_way(&self, address: Address) -> bool {
        let connection = self.connections.get(address.slot as usize);
        connection.is_some_and(|connection| connection.is_under_way(address))
    }

    /// Notes something in the row of a slot, and gives its number.
    pub(super) fn note_upstream(&self, slot: Slot, note: impl FnOnce(&mut UpstreamRow)) -> Option<u32> {
        let index = self.outbox.upstreams().index_of(slot)?;
        self.outbox.upstreams().note(index, note);
        Some(index)
    }

    /// Connecting is over. Gives the row of the upstream.
    pub(crate) fn connected(&self, slot: Slot, errno: i32) -> Option<u32> {
        let now_ms = self.time.now_ms;
        self.note_upstream(slot, |row| row.note_connected(errno, now_ms))
    }

    /// Bytes came. Whether they may be told at once; else they were kept, if there is room and anybody wants
    /// them.
    pub(crate) fn takes_upstream(&mut self, index: u32, input: &Input) -> bool {
        let now_ms = self.time.now_ms;
        let upstreams = self.outbox.upstreams();
        if self.overload.memory.is_full() {
            self.stats.pressure.closed_for_memory.add(1);
            upstreams.lose(index, UpstreamLoss::NoMemory);
            return false;
        }
        let takes = upstreams.note(index, |row| row.note_received(now_ms));
        if !takes {
            upstreams.note(index, |row| row.keep(self.io.input(input)));
        }
        takes
    }

    /// The slot of an upstream came back.
    #[cold]
    pub(super) fn retire_upstream(&mut self, slot: Slot) {
        self.stats.upstreams.closed.add(1);
        if let Some(index) = self.outbox.upstreams().index_of(slot) {
            self.forget_upstream(index);
        }
    }

    fn forget_upstream(&mut self, index: u32) {
        let mut row = self.outbox.upstreams().retire(index);
        let (counted, leaving) = (&mut row.counted_bytes, &mut row.is_counted_leaving);
        self.overload.memory.recount(counted, leaving, 0, false);
    }

    /// Sets the deadline of an upstream, and counts what it holds.
    fn count_upstream(&mut self, index: u32) {
        let memory = &mut self.overload.memory;
        let (slot, due) = self.outbox.upstreams().note(index, |row| {
            let (held_bytes, is_leaving) = (row.held_bytes(), row.is_leaving());
            memory.recount(&mut row.counted_bytes, &mut row.is_counted_leaving, held_bytes, is_leaving);
            (row.slot(), row.due())
        });
        if let (Some(slot), Some((due_ms, _))) = (slot, due) {
            self.deadlines.wheel.set_between(slot, 0, due_ms);
        }
    }

    /// The upstream in this slot holds most: it gives way.
    pub(crate) fn give_up_upstream(&mut self, slot: Slot) {
        let Some(index) = self.outbox.upstreams().index_of(slot) else { return };
        self.outbox.upstreams().lose(index, UpstreamLoss::NoMemory);
        let memory = &mut self.overload.memory;
        self.outbox.upstreams().note(index, |row| {
            let held_bytes = row.counted_bytes;
            memory.recount(&mut row.counted_bytes, &mut row.is_counted_leaving, held_bytes, true);
        });
    }
}

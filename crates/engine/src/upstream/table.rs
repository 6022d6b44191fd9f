//! The rows of all connections that a worker makes, by number, and the exchanges that they serve.
//!
//! It must never give a row to another connection before the backend has given its slot back.

use std::collections::BTreeSet;

use staunch_netio::{Slot, Target};

use super::row::{UpstreamRow, UpstreamStage, UpstreamStep};
use super::words::{Upstream, UpstreamLoss, UpstreamTimeouts};
use crate::exchange::address::Address;
use crate::exchange::piece::Piece;
use crate::limits::OPEN_BYTES_MAX;

/// The rows.
#[derive(Debug, Default)]
pub(super) struct UpstreamTable {
    pub(super) rows: Vec<UpstreamRow>,
    /// Rows in which nobody is.
    free: Vec<u32>,
    /// The row of each slot of the backend; good only while that is in use.
    by_slot: Vec<u32>,
    /// Pairs of an exchange and the row of an upstream that serves it.
    ties: BTreeSet<(Address, u32)>,
    /// Rows that wait for the worker to take steps.
    asked: Vec<u32>,
}

impl UpstreamTable {
    /// A row for another connection, if there are fewer than `count_max`.
    pub(super) fn add(
        &mut self,
        target: Target,
        timeouts: UpstreamTimeouts,
        exchange: Option<Address>,
        count_max: u32,
    ) -> Option<Upstream> {
        let fresh = self.rows.len() as u32;
        let index = self.free.pop().or_else(|| (fresh < count_max).then_some(fresh))?;
        if index == fresh {
            self.rows.push(UpstreamRow::default());
        }
        let row = &mut self.rows[index as usize];
        (row.stage, row.timeouts) = (UpstreamStage::Wanted(Box::new(target)), timeouts);
        let generation = row.generation;
        let upstream = Upstream { index, generation };
        self.serve(upstream, exchange);
        self.ask(index);
        Some(upstream)
    }

    /// The row of a name that is good.
    pub(super) fn row(&mut self, upstream: Upstream) -> Option<&mut UpstreamRow> {
        let row = self.rows.get_mut(upstream.index as usize)?;
        (row.is_named() && row.generation == upstream.generation).then_some(row)
    }

    pub(super) fn serve(&mut self, upstream: Upstream, exchange: Option<Address>) {
        let Some(row) = self.row(upstream) else { return };
        let before = std::mem::replace(&mut row.exchange, exchange);
        if let Some(before) = before {
            self.ties.remove(&(before, upstream.index));
        }
        if let Some(exchange) = exchange {
            self.ties.insert((exchange, upstream.index));
        }
    }

    /// Adds a piece to what is to be sent. Whether there is room for more.
    pub(super) fn send(&mut self, upstream: Upstream, piece: Piece) -> bool {
        let Some(row) = self.row(upstream) else { return false };
        if row.send_errno.is_some() || row.is_finishing {
            return true;
        }
        let bytes = piece.length_bytes();
        if bytes > 0 {
            piece.put(row.outgoing.get_or_insert_default());
        }
        if row.standing_bytes() > OPEN_BYTES_MAX.saturating_add(bytes) {
            row.lose(UpstreamLoss::Overrun);
        }
        let has_room = row.has_room();
        self.ask(upstream.index);
        has_room
    }

    /// A row waits for the worker.
    pub(super) fn ask(&mut self, index: u32) {
        if !std::mem::replace(&mut self.rows[index as usize].is_asked, true) {
            self.asked.push(index);
        }
    }

    pub(super) fn take_asked(&mut self) -> Vec<u32> {
        let asked = std::mem::take(&mut self.asked);
        asked.iter().for_each(|&index| self.rows[index as usize].is_asked = false);
        asked
    }

    /// Closes it, with `sends_first` behind what stands to be sent: its name is good no more.
    pub(super) fn leave(&mut self, upstream: Upstream, sends_first: bool) {
        self.serve(upstream, None);
        if let Some(row) = self.row(upstream) {
            row.leave(sends_first);
            self.ask(upstream.index);
        }
    }

    /// Closes all that serve an exchange. Whether there are any.
    pub(super) fn release(&mut self, exchange: Address) -> bool {
        let range = (exchange, 0)..=(exchange, u32::MAX);
        let tied: Vec<u32> = self.ties.range(range).map(|(_, index)| *index).collect();
        for &index in &tied {
            self.leave(self.name(index), false);
        }
        !tied.is_empty()
    }

    /// Whether it is lost by this.
    pub(super) fn lose(&mut self, index: u32, loss: UpstreamLoss) -> bool {
        let row = &mut self.rows[index as usize];
        if row.is_leaving() {
            return false;
        }
        if row.is_parting() {
            row.leave(false);
        } else {
            row.lose(loss);
        }
        self.ask(index);
        true
    }

    pub(super) fn step(&mut self, index: u32, now_ms: u64) -> UpstreamStep {
        if self.rows[index as usize].is_lost {
            self.leave(self.name(index), false);
        }
        self.rows[index as usize].step(now_ms)
    }

    pub(super) fn place(&mut self, index: u32, slot: Slot) {
        self.rows[index as usize].slot = Some(slot);
        if self.by_slot.len() <= slot as usize {
            self.by_slot.resize(slot as usize + 1, u32::MAX);
        }
        self.by_slot[slot as usize] = index;
    }

    pub(super) fn index_of(&self, slot: Slot) -> Option<u32> {
        let index = *self.by_slot.get(slot as usize)?;
        (self.rows.get(index as usize)?.slot == Some(slot)).then_some(index)
    }

    pub(super) fn tie(&self, index: u32) -> (Upstream, Option<Address>) {
        (self.name(index), self.rows[index as usize].exchange)
    }

    fn name(&self, index: u32) -> Upstream {
        Upstream { index, generation: self.rows[index as usize].generation }
    }

    /// Frees a row and returns what it was.
    pub(super) fn retire(&mut self, index: u32) -> UpstreamRow {
        let row = self.rows[index as usize].retire();
        self.free.push(index);
        row
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.rows.len()
    }

    pub(super) fn holders(&self) -> Vec<(Slot, u32, Option<u64>)> {
        let staying = self.rows.iter().filter(|row| !row.is_leaving() && row.counted_bytes > 0);
        let in_slots = staying.filter_map(|row| row.slot.map(|slot| (slot, row)));
        in_slots.map(|(slot, row)| (slot, row.counted_bytes, row.due().map(|(ms, _)| ms))).collect()
    }
}

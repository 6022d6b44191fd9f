//! Connections that a worker makes for its handler: to a server behind this one, for one exchange or for
//! many.
//!
//! It owns what stands to be sent on them, what came while nobody wanted it, and their deadlines. It must
//! never call the network nor a handler: `transport/upstreams.rs` and the worker do, step by step. Order of
//! calls: the handler asks ([`Upstreams`]); then, and after every completion, the worker takes steps until
//! there is [`UpstreamStep::Rest`].
//!
//! Rules. (1) A name ([`Upstream`]) is good until its connection is lost or closed; later it names nobody.
//! (2) An upstream that serves an exchange is closed when that exchange is over. (3) What comes on an
//! upstream that is held is kept, and its peer is paused. (4) A worker has at most so many as its handler
//! asked room for ([`crate::Handler::upstreams_max`]); what they hold stands in the worker's account of
//! memory.

mod law;
mod line;
mod places;
mod row;
mod standing;
mod table;
mod words;

use std::cell::{Cell, RefCell};

use staunch_netio::{Slot, Target};

pub use self::law::{LawReason, LimitLaw, Observation};
pub use self::line::{Served, WaitingLine};
pub use self::places::{GivenBack, PlaceAnswer, PlaceNews, Places, PlacesFigures, PlacesLimit, PlacesStep};
pub(crate) use self::row::{UpstreamNews, UpstreamRow, UpstreamStep};
pub use self::standing::{PlaceClass, Standing, StandingFigures};
use self::table::UpstreamTable;
pub use self::words::{Upstream, UpstreamDeadline, UpstreamEvent, UpstreamLoss, UpstreamTimeouts};
use crate::exchange::address::Address;
use crate::exchange::piece::Piece;

/// The connections that a worker has made, as its handler asks for them. See the module's text for their
/// rules.
#[derive(Debug, Default)]
pub struct Upstreams {
    /// Slots of the backend below this number are theirs.
    slots: u32,
    table: RefCell<UpstreamTable>,
    /// Some of them wait for the worker to take steps.
    are_asked: Cell<bool>,
}

impl Upstreams {
    /// Room for so many.
    pub(crate) fn new(slots: u32) -> Self {
        Self { slots, ..Self::default() }
    }

    /// Begins to connect. With an `exchange`, the connection serves it: its answer is lent together with what
    /// comes, and when it is over, the connection is closed. Everything else is told by
    /// [`crate::Handler::upstream`], that it could not be made too. `None`: there are as many as there may
    /// be.
    pub fn connect(
        &self,
        target: Target,
        timeouts: UpstreamTimeouts,
        exchange: Option<Address>,
    ) -> Option<Upstream> {
        let upstream = self.table.borrow_mut().add(target, timeouts, exchange, self.slots);
        self.are_asked.set(true);
        upstream
    }

    /// Which exchange it serves, if any.
    pub fn exchange(&self, upstream: Upstream) -> Option<Address> {
        self.table.borrow_mut().row(upstream)?.exchange
    }

    /// Ties an upstream to another exchange, or to none: then it stays open for the next exchange. Deadlines
    /// are these from now on, and begin anew.
    pub fn serve(&self, upstream: Upstream, exchange: Option<Address>, timeouts: UpstreamTimeouts) {
        let mut table = self.table.borrow_mut();
        table.serve(upstream, exchange);
        if let Some(row) = table.row(upstream) {
            row.begin_anew(timeouts);
            table.ask(upstream.index);
        }
        self.are_asked.set(true);
    }

    /// Whether more is worth sending now. If not, [`UpstreamEvent::Room`] is told when it is.
    pub fn has_room(&self, upstream: Upstream) -> bool {
        self.table.borrow_mut().row(upstream).is_some_and(|row| row.has_room())
    }

    /// Sends something, as soon as it is connected. Whether there is room for more, see
    /// [`Upstreams::has_room`]. One that holds far more than its room is given up: a peer that reads nothing
    /// must not cost without bound.
    pub fn send(&self, upstream: Upstream, piece: Piece) -> bool {
        let mut table = self.table.borrow_mut();
        let has_room = table.send(upstream, piece);
        self.are_asked.set(true);
        has_room
    }

    /// Nothing more will be sent: the peer sees the end of the stream after all that was.
    pub fn end(&self, upstream: Upstream) {
        self.change(upstream, |row| row.is_finishing = true);
    }

    /// Nothing is to come for now: the peer feels it through its window.
    pub fn hold(&self, upstream: Upstream) {
        self.change(upstream, |row| row.is_held = true);
    }

    /// What comes is wanted again.
    pub fn go_on(&self, upstream: Upstream) {
        self.change(upstream, |row| row.is_held = false);
    }

    /// Closes it. Nothing more is told of it, and what was not sent yet is dropped.
    pub fn close(&self, upstream: Upstream) {
        self.table.borrow_mut().leave(upstream, false);
        self.are_asked.set(true);
    }

    /// Closes it behind all that was sent, as the last words of TLS need it: within one deadline of a send,
    /// and without waiting for anything of its peer. Nothing more is told of it. One that is not connected
    /// yet is closed at once.
    pub fn close_after_sending(&self, upstream: Upstream) {
        self.table.borrow_mut().leave(upstream, true);
        self.are_asked.set(true);
    }

    fn change(&self, upstream: Upstream, change: impl FnOnce(&mut UpstreamRow)) {
        let mut table = self.table.borrow_mut();
        if let Some(row) = table.row(upstream) {
            change(row);
            table.ask(upstream.index);
            self.are_asked.set(true);
        }
    }
}

/// What the worker does with them.
impl Upstreams {
    /// Whether a slot of the backend is that of an upstream.
    #[inline]
    pub(crate) fn own(&self, slot: Slot) -> bool {
        slot < self.slots
    }

    /// How many slots of the backend are theirs.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Whether none waits for a step.
    #[inline]
    pub(crate) fn are_quiet(&self) -> bool {
        !self.are_asked.get()
    }

    /// Whether there is none, not even one that is being closed.
    pub(crate) fn are_gone(&self) -> bool {
        self.table.borrow().is_empty()
    }

    /// Takes the numbers of those that wait for a step.
    pub(crate) fn take_asked(&self) -> Vec<u32> {
        self.are_asked.set(false);
        self.table.borrow_mut().take_asked()
    }

    /// An exchange is over: those that serve it are closed.
    pub(crate) fn release(&self, exchange: Address) {
        let are_asked = self.table.borrow_mut().release(exchange);
        self.are_asked.set(self.are_asked.get() || are_asked);
    }

    /// All of them are lost.
    pub(crate) fn lose_all(&self, loss: UpstreamLoss) {
        let count = self.table.borrow().rows.len();
        (0..count as u32).for_each(|index| self.lose(index, loss));
    }

    /// Marks the upstream in a row as lost.
    pub(crate) fn lose(&self, index: u32, loss: UpstreamLoss) {
        let is_asked = self.table.borrow_mut().lose(index, loss);
        self.are_asked.set(self.are_asked.get() || is_asked);
    }

    /// The number of the one in a slot of the backend.
    pub(crate) fn index_of(&self, slot: Slot) -> Option<u32> {
        self.table.borrow().index_of(slot)
    }

    /// What the worker has to do for one of them next.
    pub(crate) fn step(&self, index: u32, now_ms: u64) -> UpstreamStep {
        self.table.borrow_mut().step(index, now_ms)
    }

    /// The backend began to connect it in this slot.
    pub(crate) fn place(&self, index: u32, slot: Slot) {
        self.table.borrow_mut().place(index, slot);
    }

    /// Its name, and the exchange that it serves.
    pub(crate) fn tie(&self, index: u32) -> (Upstream, Option<Address>) {
        self.table.borrow().tie(index)
    }

    /// Something of it was reported.
    pub(crate) fn note<T>(&self, index: u32, note: impl FnOnce(&mut UpstreamRow) -> T) -> T {
        note(&mut self.table.borrow_mut().rows[index as usize])
    }

    /// The backend has given its slot back. What it held until now is returned.
    pub(crate) fn retire(&self, index: u32) -> UpstreamRow {
        self.table.borrow_mut().retire(index)
    }

    /// Each that holds memory and is not about to give it back: its slot, what it holds, and its deadline.
    pub(crate) fn holders(&self) -> Vec<(Slot, u32, Option<u64>)> {
        self.table.borrow().holders()
    }
}

#[cfg(test)]
mod tests;

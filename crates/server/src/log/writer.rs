//! The thread of the access log: takes records, writes lines in large chunks, and sleeps.
//!
//! This module owns the places that lines go to. No worker may ever wait for it, and it must never wake up
//! while nobody asks for anything.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use super::Notice;
use super::counts::Counts;
use super::feeder::{Outlet, RING_BYTES};
use super::output::Output;
use super::record::Record;
use super::signal::Signal;

/// The longest doze: a line is in the file about so long after its answer.
const DOZE_MAX: Duration = Duration::from_millis(100);
/// The shortest: shorter ones cost more than they save.
const DOZE_MIN: Duration = Duration::from_millis(1);

/// What the thread is told.
pub(super) enum Order {
    /// A worker begins.
    Outlet(Outlet),
    /// Lines go elsewhere from now on, in another form, or nowhere.
    Output(Option<Box<Output>>),
    /// Open the file that now has the name.
    Reopen,
    /// Write what there is, then say so.
    Flush(SyncSender<()>),
}

/// The thread of the access log.
pub(super) struct Writer {
    orders: Receiver<Order>,
    signal: Arc<Signal>,
    counts: Arc<Counts>,
    notice: Notice,
    outlets: Vec<Outlet>,
    output: Option<Box<Output>>,
    taken: Vec<u8>,
    /// The time of the last record.
    now_s: u64,
    /// When dropped records were last spoken of, and how many that were.
    said_s: u64,
    dropped_said: u64,
}

impl Writer {
    pub(super) fn new(
        orders: Receiver<Order>,
        signal: Arc<Signal>,
        counts: Arc<Counts>,
        notice: Notice,
    ) -> Self {
        Self {
            orders,
            signal,
            counts,
            notice,
            outlets: Vec::new(),
            output: None,
            taken: Vec::new(),
            now_s: 0,
            said_s: 0,
            dropped_said: 0,
        }
    }

    /// Works until the process ends.
    pub(super) fn run(mut self) {
        self.signal.belongs_here();
        let (mut doze, mut quiet_rounds) = (DOZE_MAX, 0);
        loop {
            let fullest_bytes = self.round();
            quiet_rounds = if fullest_bytes > 0 { 0 } else { quiet_rounds + 1 };
            doze = match fullest_bytes {
                full if full > RING_BYTES / 4 => (doze / 2).max(DOZE_MIN),
                little if little < RING_BYTES / 16 => (doze * 2).min(DOZE_MAX),
                _ => doze,
            };
            match quiet_rounds {
                0 => self.signal.doze(doze),
                1 => self.signal.close_eyes(DOZE_MAX),
                // An order wakes the thread without leaving a record behind.
                _ if self.signal.sleep() => {}
                _ => quiet_rounds = 0,
            }
        }
    }

    /// Writes what there is and obeys. Gives how much the fullest ring held.
    fn round(&mut self) -> usize {
        let fullest_bytes = self.write_all();
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order);
        }
        fullest_bytes
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Outlet(outlet) => self.outlets.push(outlet),
            Order::Output(mut output) => {
                self.write_all();
                if let (Some(former), Some(output)) = (&self.output, &mut output) {
                    output.take_losses(former);
                }
                self.output = output;
                // Faults of former places may have been noted since, while they were written to.
                self.counts.begin(self.output.as_deref().map(Output::absent).unwrap_or_default());
            }
            Order::Reopen => {
                let places = self.output.iter_mut().flat_map(|output| &mut output.places);
                places.for_each(|place| place.reopen(&self.notice, &self.counts));
            }
            Order::Flush(done) => {
                self.write_all();
                // An order whose giver has stopped waiting is no reason to stop.
                let _ = done.try_send(());
            }
        }
    }

    fn write_all(&mut self) -> usize {
        let mut taken = std::mem::take(&mut self.taken);
        let mut fullest_bytes = 0;
        for index in 0..self.outlets.len() {
            taken.clear();
            self.outlets[index].take(&mut taken);
            fullest_bytes = fullest_bytes.max(taken.len());
            self.format(&taken, self.outlets[index].worker);
        }
        let places = self.output.iter_mut().flat_map(|output| &mut output.places);
        places.for_each(|place| place.write(self.now_s, &self.notice, &self.counts));
        self.speak_of_dropped();
        self.outlets.retain(|outlet| !outlet.is_over());
        self.taken = taken;
        fullest_bytes
    }

    fn format(&mut self, mut records: &[u8], worker: u16) {
        while let Some((record, rest)) = Record::decode(records) {
            records = rest;
            self.now_s = record.unix_ms / 1000;
            let Some(output) = &mut self.output else { continue };
            if let Some(place) = output.add(&record, worker) {
                place.write(self.now_s, &self.notice, &self.counts);
            }
        }
    }

    fn speak_of_dropped(&mut self) {
        let dropped: u64 = self.outlets.iter().map(Outlet::dropped).sum();
        let further = dropped.saturating_sub(self.dropped_said);
        if further > 0 && self.now_s > self.said_s {
            (self.said_s, self.dropped_said) = (self.now_s, dropped);
            (self.notice)(&format!(
                "the access log is written too slowly: {further} further lines were dropped"
            ));
        }
    }
}

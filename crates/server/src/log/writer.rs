//! The thread of the access log: takes records, writes lines in large chunks, and sleeps.
//!
//! It owns the sink. It must never be waited for by a worker, and never wake up while nobody asks for
//! anything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Notice;
use super::feeder::{Outlet, RING_BYTES};
use super::lines::Lines;
use super::record::Record;
use super::settings::Format;
use super::signal::Signal;
use super::sink::{Lost, Sink};

/// A write of this size costs hardly more than one of a line.
const CHUNK_BYTES: usize = 64 * 1024;
/// The longest doze: a line is in the file about so long after its answer.
const DOZE_MAX: Duration = Duration::from_millis(100);
/// The shortest: shorter ones cost more than they save.
const DOZE_MIN: Duration = Duration::from_millis(1);

/// What the thread is told.
pub(super) enum Order {
    /// A worker begins.
    Outlet(Outlet),
    /// Lines go elsewhere from now on, in another form, or nowhere.
    Output(Option<(Sink, Format)>),
    /// Open the file that now has the name.
    Reopen,
    /// Write what there is, then say so.
    Flush(SyncSender<()>),
}

/// Lines written and lines that could not be.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) failed: AtomicU64,
    /// Why lines are lost at present.
    trouble: Mutex<Option<String>>,
}

impl Counts {
    /// Why lines are lost at present.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// The thread of the access log.
pub(super) struct Writer {
    orders: Receiver<Order>,
    signal: Arc<Signal>,
    counts: Arc<Counts>,
    notice: Notice,
    outlets: Vec<Outlet>,
    output: Option<(Sink, Lines)>,
    taken: Vec<u8>,
    out: Vec<u8>,
    out_lines: u64,
    trouble: Trouble,
}

/// What is wrong, and when it was last said. Time is that of the records.
#[derive(Default)]
struct Trouble {
    now_s: u64,
    said_s: u64,
    /// Lines that could not be written since writing last went well.
    lost: u64,
    /// Records dropped that were spoken of.
    dropped_said: u64,
    /// When a log that is not open was last tried.
    tried_s: u64,
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
            out: Vec::new(),
            out_lines: 0,
            trouble: Trouble::default(),
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
            Order::Output(output) => {
                self.write_all();
                self.output = output.map(|(sink, format)| (sink, Lines::new(format)));
                // Faults of the former place, noted while it was written to, are no trouble of this one.
                let absence = self.output.as_ref().and_then(|(sink, _)| sink.absence());
                self.counts.note(absence.map(str::to_owned));
            }
            Order::Reopen => {
                if let Some((sink, _)) = &mut self.output {
                    reopen(sink, &self.notice, &self.counts);
                }
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
        self.write_chunk();
        self.speak_of_dropped();
        self.outlets.retain(|outlet| !outlet.is_over());
        self.taken = taken;
        fullest_bytes
    }

    fn format(&mut self, mut records: &[u8], worker: u16) {
        while let Some((record, rest)) = Record::decode(records) {
            records = rest;
            self.trouble.now_s = record.unix_ms / 1000;
            let Some((_, lines)) = &mut self.output else { continue };
            lines.write(&record, worker, &mut self.out);
            self.out_lines += 1;
            if self.out.len() >= CHUNK_BYTES {
                self.write_chunk();
            }
        }
    }

    fn write_chunk(&mut self) {
        let Some((sink, _)) = self.output.as_mut().filter(|_| !self.out.is_empty()) else { return };
        if sink.would_overflow(self.out.len())
            && let Err(error) = sink.rotate()
        {
            self.trouble.say(&self.notice, || format!("{}: cannot be rotated: {error}", sink.target()));
        }
        if sink.absence().is_some() {
            self.trouble.try_again(&self.counts, sink);
        }
        let lost = match sink.write(&self.out) {
            Ok(()) => {
                self.trouble.recovered(&self.notice, &self.counts, sink);
                0
            }
            Err(lost) => {
                self.trouble.failed(&self.notice, &self.counts, sink, &lost);
                lost.lines
            }
        };
        self.counts.written.fetch_add(self.out_lines - lost, Relaxed);
        self.counts.failed.fetch_add(lost, Relaxed);
        self.out.clear();
        self.out_lines = 0;
    }

    fn speak_of_dropped(&mut self) {
        let dropped: u64 = self.outlets.iter().map(Outlet::dropped).sum();
        let further = dropped.saturating_sub(self.trouble.dropped_said);
        if further > 0
            && self.trouble.say(&self.notice, || {
                format!("the access log is written too slowly: {further} further lines were dropped")
            })
        {
            self.trouble.dropped_said = dropped;
        }
    }
}

impl Trouble {
    /// Says something, but not more than once a second. Whether it was said.
    fn say(&mut self, notice: &Notice, text: impl FnOnce() -> String) -> bool {
        let is_time = self.now_s > self.said_s;
        if is_time {
            self.said_s = self.now_s;
            notice(&text());
        }
        is_time
    }

    fn failed(&mut self, notice: &Notice, counts: &Counts, sink: &Sink, lost: &Lost) {
        self.lost += lost.lines;
        let lines = self.lost;
        // A place that is not open names itself.
        let what = match sink.absence() {
            Some(why) => why.to_owned(),
            None => format!("{}: {}", sink.target(), lost.error),
        };
        let text = || format!("{what}; {lines} lines of the access log are lost");
        if self.say(notice, text) {
            counts.note(Some(text()));
        }
    }

    fn recovered(&mut self, notice: &Notice, counts: &Counts, sink: &Sink) {
        if self.lost > 0 {
            notice(&format!("{}: written again; {} lines were lost", sink.target(), self.lost));
            self.lost = 0;
            counts.note(None);
        }
    }

    /// Tries to open a log that is not open, once a second at most.
    fn try_again(&mut self, counts: &Counts, sink: &mut Sink) {
        if self.now_s > self.tried_s {
            self.tried_s = self.now_s;
            // A fault is told of with the lines that are lost for it.
            if sink.reopen().is_ok() {
                counts.note(None);
            }
        }
    }
}

/// Opens the file that now has the name. If that fails, the old one is kept, if there is one.
fn reopen(sink: &mut Sink, notice: &Notice, counts: &Counts) {
    let was_absent = sink.absence().is_some();
    let name = sink.target().clone();
    match sink.reopen() {
        Ok(()) if was_absent => {
            counts.note(None);
            notice(&format!("access_log: {name}: open now"));
        }
        Ok(()) => {}
        Err(error) if was_absent => notice(&format!("access_log: {name}: still cannot be opened: {error}")),
        Err(error) => notice(&format!("{name}: cannot be opened again, so the old one is kept: {error}")),
    }
}

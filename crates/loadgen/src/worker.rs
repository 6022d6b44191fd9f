//! A thread of the generator: the loop between its lanes and the network.
//!
//! It must never block but in the one wait of a turn, and shares nothing but a flag, a number and the channel
//! of its reports.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use staunch_netio::{Completion, Io, clock};

use crate::lane::Lane;
use crate::network_side::NetworkSide;
use crate::outcome::MOMENT_MS;
use crate::tally::{Report, Tally};

/// Length of a step in nanoseconds.
const STEP_NS: u64 = MOMENT_MS * 1_000_000;

/// Tallies a lane has beside the one that is filled: one is added up, one is there if that takes longer.
const SPARE_TALLIES: usize = 2;

/// How long an open loop without patience waits for its last answers.
pub(crate) const GRACE_NS: u64 = 2_000_000_000;

/// What people may change while it runs.
#[derive(Debug)]
pub struct RunControl {
    stop: Arc<AtomicBool>,
    /// The bits of an `f64`.
    factor: AtomicU64,
}

impl Default for RunControl {
    fn default() -> Self {
        Self { stop: Arc::default(), factor: AtomicU64::new(1f64.to_bits()) }
    }
}

impl RunControl {
    /// Ends the run soon, as if its time were over.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The flag that ends the run when it is set, for a signal's handler.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether it was ended.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// From now on open loops offer so many times what their plan says. What is no such number changes
    /// nothing.
    pub fn set_factor(&self, factor: f64) {
        if (0.0..=f64::MAX).contains(&factor) {
            self.factor.store(factor.to_bits(), Ordering::Relaxed);
        }
    }

    /// The factor last set; 1 at first.
    pub fn factor(&self) -> f64 {
        f64::from_bits(self.factor.load(Ordering::Relaxed))
    }
}

/// When things are to happen, in nanoseconds on the clock of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) began_ns: u64,
    /// Nothing is offered from here on.
    pub(crate) until_ns: u64,
    /// Patience of the most patient lane: how long answers are waited for after the end.
    pub(crate) grace_ns: u64,
    /// The last part of a wait, spent asking for answers. To set a timer and be woken by it takes 20 to
    /// 50 us, on a virtual machine more, and would be measured as the server's.
    pub(crate) spin_ns: u64,
}

/// A thread's part of the run.
pub(crate) struct Worker<I> {
    pub(crate) net: NetworkSide<I>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) times: Times,
    next_report_ns: u64,
    factor: f64,
    stopped: bool,
    /// Processor time the thread had used before.
    busy_before_ns: u64,
    /// Processor time spent asking while nothing was due and nothing came.
    spun_ns: u64,
    /// Where tallies come back to, empty.
    back: Sender<Vec<Tally>>,
    empty: Receiver<Vec<Tally>>,
}

impl<I: Io> Worker<I> {
    pub(crate) fn new(net: NetworkSide<I>, lanes: Vec<Lane>, times: Times) -> Self {
        let next_report_ns = times.began_ns + STEP_NS;
        let busy_before_ns = clock::thread_busy_ns();
        let (back, empty) = channel();
        for _ in 0..SPARE_TALLIES {
            let _ = back.send(lanes.iter().map(|_| Tally::touched()).collect());
        }
        Self {
            net,
            lanes,
            times,
            next_report_ns,
            factor: 1.0,
            stopped: false,
            busy_before_ns,
            spun_ns: 0,
            back,
            empty,
        }
    }

    /// Offers until the time is over or it is told to stop, and reports every step.
    ///
    /// # Errors
    /// What the backend cannot go on after.
    pub(crate) fn run(mut self, control: &RunControl, reports: &Sender<Report>) -> io::Result<()> {
        while self.turn(control, reports)? {}
        Ok(())
    }

    /// Begins what is due, waits, and deals with what has come. Returns whether there is anything left to do.
    ///
    /// # Errors
    /// As `run`.
    pub(crate) fn turn(&mut self, control: &RunControl, reports: &Sender<Report>) -> io::Result<bool> {
        self.net.now_ns = self.net.io.now_ns();
        self.follow(control);
        let due_ns = self.due();
        let over = self.is_over();
        if over {
            let now_ns = self.net.now_ns;
            self.lanes.iter_mut().for_each(|lane| lane.finish(now_ns));
        }
        if over || self.net.now_ns >= self.next_report_ns {
            // A receiver that is gone wants no more reports; the run is over then as well.
            if reports.send(self.report(over)).is_err() || over {
                return Ok(false);
            }
        }
        let wait_ns = due_ns.min(self.next_report_ns).saturating_sub(self.net.now_ns);
        let nap_ns = wait_ns.saturating_sub(self.times.spin_ns);
        self.net.io.submit_and_wait(Some(Duration::from_nanos(nap_ns)))?;
        let asked_ns = self.net.now_ns;
        let mut idle = nap_ns == 0 && wait_ns > 0;
        while let Some(completion) = self.net.io.next_completion() {
            idle = false;
            self.net.now_ns = self.net.io.now_ns();
            self.handle(completion);
        }
        if idle {
            self.spun_ns += self.net.io.now_ns() - asked_ns;
        }
        Ok(true)
    }

    /// Does what people want changed.
    fn follow(&mut self, control: &RunControl) {
        let now_ns = self.net.now_ns;
        let factor = control.factor();
        if factor != self.factor {
            self.factor = factor;
            self.lanes.iter_mut().for_each(|lane| lane.set_factor(now_ns, factor));
        }
        if !self.stopped && (control.is_stopped() || now_ns >= self.times.until_ns) {
            self.stopped = true;
            self.times.until_ns = self.times.until_ns.min(now_ns);
            let until_ns = self.times.until_ns;
            self.lanes.iter_mut().for_each(|lane| lane.stop(until_ns));
        }
    }

    #[inline]
    fn due(&mut self) -> u64 {
        let net = &mut self.net;
        if net.now_ns < self.times.began_ns {
            self.lanes.iter_mut().for_each(|lane| lane.prepare(net));
            return self.times.began_ns;
        }
        let end_ns = if self.stopped { u64::MAX } else { self.times.until_ns };
        self.lanes.iter_mut().map(|lane| lane.due(net)).fold(end_ns, u64::min)
    }

    fn is_over(&self) -> bool {
        let grace_ns = self.times.until_ns.saturating_add(self.times.grace_ns);
        self.lanes.iter().all(|lane| lane.is_over(self.stopped))
            || (self.stopped && self.net.now_ns >= grace_ns)
    }

    #[inline]
    fn handle(&mut self, completion: Completion) {
        let slot = match &completion {
            Completion::Received { slot, .. }
            | Completion::Sent { slot, .. }
            | Completion::Connected { slot, .. }
            | Completion::Inspected { slot, .. }
            | Completion::Ended { slot, .. }
            | Completion::Progress { slot, .. }
            | Completion::Closed { slot } => *slot,
            Completion::Woken
            | Completion::Ready { .. }
            | Completion::Accepted { .. }
            | Completion::AcceptStopped { .. } => return,
        };
        let lane = self.net.connections[slot as usize].lane;
        self.lanes[usize::from(lane)].handle(&mut self.net, slot, completion);
    }

    fn report(&mut self, over: bool) -> Report {
        self.next_report_ns += STEP_NS;
        let in_flight = self.lanes.first_mut().map_or(0, |lane| lane.client().in_flight);
        let mut tallies = self.empty.try_recv().unwrap_or_default();
        tallies.resize_with(self.lanes.len(), Tally::touched);
        for (lane, tally) in self.lanes.iter_mut().zip(&mut tallies) {
            std::mem::swap(&mut lane.client().tally, tally);
            tally.held = lane.held();
        }
        Report {
            thread: self.net.thread as usize,
            tallies,
            connections: self.net.live,
            in_flight,
            at_ns: self.net.now_ns,
            until_ns: self.times.until_ns,
            main_over: self.lanes.first().is_none_or(|lane| lane.is_over(false)),
            busy_ns: (clock::thread_busy_ns() - self.busy_before_ns).saturating_sub(self.spun_ns),
            over,
            back: self.back.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_a_number_that_can_be_multiplied_by() {
        let control = RunControl::default();
        control.set_factor(0.0);
        assert_eq!(control.factor(), 0.0);
        control.set_factor(2.5);
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            control.set_factor(wrong);
            assert_eq!(control.factor(), 2.5, "after {wrong}");
        }
    }
}

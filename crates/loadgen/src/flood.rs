//! The flood lane: SYN segments with forged sources, paced, faster than any client can connect.
//!
//! It owns a thread that sends them, and must never send where the guard has not allowed it: by `lo`, or
//! inside a network namespace. Order: [`check`] (which [`start`] does too), [`start`], [`Flood::sent`] at any
//! time, [`Flood::wait`] or [`Flood::stop`].
//!
//! Two ways lead to the network. **Live frames**: a BPF program makes each frame inside the kernel and sends
//! it by the interface (`BPF_PROG_TEST_RUN`), about a million a second from one processor. The thread never
//! sleeps, also at low rates: it looks at the clock all the time. **Sockets**, where that cannot be had, and
//! by `lo`.
//!
//! The answers to forged sources go where the routes of the server's namespace lead. Give them an end there,
//! for instance a bridge without ports: `ip link add sink type bridge; ip link set sink arp off up; ip route
//! add 10.9.0.0/16 dev sink`. For live frames the server's end of the cable has to be ready: `ethtool -K NAME
//! gro on`.

mod frame;
mod guard;
mod live;
mod plan;
mod privilege;
mod road;
mod sockets;
mod source;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use staunch_netio::host::route::HardwareAddress;
use staunch_netio::host::{cpu, interrupt::Interrupter, route};

use crate::Fault;
pub use plan::{FloodOutcome, FloodPlan, Method};
use road::{Gauge, Road};
pub use source::Prefix;

/// Whether this plan may be carried out here, by this process. Sends nothing.
///
/// # Errors
/// The rule of the guard or the privilege that stands against it, and the way out.
pub fn check(plan: &FloodPlan) -> Result<(), Fault> {
    allowed(plan).map(|_| ())
}

fn allowed(plan: &FloodPlan) -> Result<route::Link, Fault> {
    plan.check_numbers()?;
    let link = guard::link(plan)?;
    privilege::check(road::methods(plan, &link)?)?;
    Ok(link)
}

/// A flood under way. Dropping it stops it.
pub struct Flood {
    gauge: Gauge,
    stop: mpsc::Sender<()>,
    watch: Option<JoinHandle<FloodOutcome>>,
}

/// Begins to send, from a thread of its own.
///
/// # Errors
/// As [`check`]; when the destination's hardware address is not found; when no way that is allowed works.
pub fn start(plan: FloodPlan) -> Result<Flood, Fault> {
    // The calling thread has been looked at; threads it starts are in the same network namespace.
    let link = allowed(&plan)?;
    let (road, gauge, notes) = road::choose(&plan, &link)?;
    let before = route::link(&plan.interface)
        .map_err(|error| Fault::new(format!("interface `{}`: {error}", plan.interface)))?;
    let (stop, stopped) = mpsc::channel();
    let watch = Watch { plan, method: road.method(), gauge: gauge.clone(), before, notes };
    let watch = thread::Builder::new()
        .name("flood-watch".to_owned())
        .spawn(move || watch.run(road, &stopped))
        .map_err(|error| Fault::new(format!("no thread for the flood: {error}")))?;
    Ok(Flood { gauge, stop, watch: Some(watch) })
}

impl Flood {
    /// Segments sent until now.
    pub fn sent(&self) -> u64 {
        self.gauge.read().sent
    }

    /// Whether it has ended: its time is over, or something stood against it.
    pub fn is_over(&self) -> bool {
        self.watch.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it now.
    pub fn stop(self) -> FloodOutcome {
        let _ = self.stop.send(());
        self.wait()
    }

    /// Waits until its time is over. For ever, if it has none.
    pub fn wait(mut self) -> FloodOutcome {
        let watch = self.watch.take().expect("taken once, by the one who consumes it");
        watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
    }
}

/// Waits beside the thread that sends, ends it, and sums up.
struct Watch {
    plan: FloodPlan,
    method: Method,
    gauge: Gauge,
    before: route::Link,
    notes: Vec<String>,
}

/// How soon a thread that has not noticed is interrupted again.
const INTERRUPT_EVERY: Duration = Duration::from_millis(1);

impl Watch {
    fn run(mut self, road: Road, stopped: &mpsc::Receiver<()>) -> FloodOutcome {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, began) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let (cpu, told) = (self.plan.cpu, Arc::clone(&stop));
        let sender = thread::Builder::new().name("flood".to_owned()).spawn(move || {
            let outcome = send(road, cpu, &ready, &told);
            let _ = end.send(());
            outcome
        });
        match sender {
            Ok(sender) => {
                self.supervise(&began, stopped, &ended, &stop);
                let outcome = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                self.notes.extend(outcome.err().map(|why| format!("the flood ended early: {why}")));
            }
            Err(error) => self.notes.push(format!("no thread for the flood: {error}")),
        }
        self.sum_up()
    }

    /// Until the time is over, or the flood was stopped, or it has ended by itself.
    fn supervise(
        &self,
        began: &mpsc::Receiver<Interrupter>,
        stopped: &mpsc::Receiver<()>,
        ended: &mpsc::Receiver<()>,
        stop: &AtomicBool,
    ) {
        // Without one the thread has ended already, or will.
        let interrupter = began.recv().ok();
        let goes_on = || ended.recv_timeout(Duration::ZERO) == Err(RecvTimeoutError::Timeout);
        let duration_ns = self.plan.duration.map_or(u64::MAX, |duration| duration.as_nanos() as u64);
        while goes_on() {
            let left = Duration::from_nanos(duration_ns.saturating_sub(self.gauge.read().ran_ns));
            let step = left.clamp(INTERRUPT_EVERY, LOOK_EVERY);
            if left.is_zero() || stopped.recv_timeout(step) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        while ended.recv_timeout(INTERRUPT_EVERY) == Err(RecvTimeoutError::Timeout) {
            if let Some(interrupter) = interrupter {
                interrupter.interrupt();
            }
        }
    }

    fn sum_up(mut self) -> FloodOutcome {
        let reading = self.gauge.read();
        let (mut reached, mut dropped_by_ring) = (reading.sent, reading.dropped);
        match route::link(&self.plan.interface) {
            Ok(after) => {
                let dropped = after.dropped.saturating_sub(self.before.dropped);
                reached = after.sent.saturating_sub(self.before.sent) + dropped;
                dropped_by_ring += dropped;
            }
            Err(error) => self.notes.push(format!("interface `{}` is gone: {error}", self.plan.interface)),
        }
        if self.method == Method::LiveFrames && reached < reading.sent / 2 {
            self.notes.push(format!(
                "the interface counts only {reached} of {} segments: its other end took no live frames",
                reading.sent
            ));
        }
        let ran = Duration::from_nanos(reading.ran_ns);
        let seconds = self.plan.duration.map_or(ran, |duration| ran.min(duration)).as_secs_f64();
        FloodOutcome {
            sent: reading.sent,
            dropped_by_ring,
            given_up: reading.given_up,
            seconds,
            rate_per_s: if seconds > 0.0 { reading.sent as f64 / seconds } else { 0.0 },
            method: self.method,
            notes: self.notes,
        }
    }
}

/// How often it is looked whether the time is over, at least: a stop is noticed at once all the same.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The sending thread.
fn send(
    mut road: Road,
    cpu: Option<usize>,
    ready: &mpsc::Sender<Interrupter>,
    stop: &AtomicBool,
) -> Result<(), String> {
    if let Some(cpu) = cpu {
        cpu::pin_current_thread(cpu).map_err(|error| format!("processor {cpu}: {error}"))?;
    }
    let interrupter = Interrupter::for_current_thread().map_err(|error| error.to_string())?;
    let _ = ready.send(interrupter);
    road.run(stop)
}

#[cfg(test)]
mod tests;

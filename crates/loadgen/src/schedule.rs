//! When requests are to start: the intended times, which depend on nothing that happens later.
//!
//! It owns the order: [`Arrivals`] says how starts are spread, [`Profile`] how many a second; a [`Schedule`]
//! gives one thread its [`Share`] of them. It must never read a clock, and never wait for anything: a
//! schedule that listens to the server would go easy on it.
//!
//! A schedule is made in two steps. Arrivals are points of operational time, in which one is due a unit on
//! average; there they know nothing of rates. The pace turns operational time into nanoseconds: it is the
//! integral of the rate, inverted in closed form. So a ramp of Poisson arrivals is exact (time rescaling),
//! and a live change of rate moves what is still to come without drawing it anew.

mod arrivals;
mod pace;
mod points;
mod profile;
mod self_similar;
mod share;
mod trace;

pub use arrivals::{Arrivals, SOURCES_DEFAULT, parse_arrivals};
pub use profile::{Profile, parse_profile};
pub use share::Share;
pub use trace::parse_trace;

use crate::Fault;
use pace::Pace;
use points::Points;

/// Intended start times of requests, nanoseconds since the lane's beginning, never decreasing. The same
/// arguments give the same times.
#[derive(Debug)]
pub struct Schedule {
    points: Points,
    pace: Pace,
    /// The next arrival in operational time, once it was drawn.
    upcoming: Option<f64>,
    taken_last_ns: u64,
}

impl Schedule {
    /// The schedule of one thread. The shares of constant, self-similar and traced arrivals are every n-th of
    /// the whole, so all threads together offer exactly the times of one; Poisson arrivals are drawn for each
    /// share. A trace has its own times, so `profile` is not looked at with one.
    ///
    /// # Errors
    /// A profile, a share or arrivals that make no sense: a negative rate, a part that is not there, a Hurst
    /// parameter out of range.
    pub fn new(arrivals: &Arrivals, profile: &Profile, seed: u64, share: Share) -> Result<Self, Fault> {
        share.check()?;
        arrivals.check()?;
        let pace = match arrivals {
            Arrivals::Trace(_) => Pace::of_trace(),
            _ => Pace::of_profile(profile)?,
        };
        Ok(Self { points: Points::new(arrivals, seed, share), pace, upcoming: None, taken_last_ns: 0 })
    }

    /// Takes the next start time. `None`: nothing more is due, because a trace is over or the rate stays at
    /// zero. A later change of the factor may bring more in the second case.
    pub fn next_ns(&mut self) -> Option<u64> {
        let next_ns = self.peek_ns()?;
        self.upcoming = None;
        self.taken_last_ns = next_ns;
        Some(next_ns)
    }

    /// The next start time, without taking it: what a thread that waits for it should use, because then a
    /// change of rate moves it too.
    pub fn peek_ns(&mut self) -> Option<u64> {
        let point = *self.upcoming.get_or_insert_with(|| self.points.next());
        let time_ns = self.pace.time_ns(point)?;
        // The closed form of a ramp may be a rounding error out of order.
        Some(time_ns.max(self.taken_last_ns))
    }

    /// Whether nothing will ever come, whatever the rate: a trace is over, and was asked for what comes next.
    pub fn is_over(&self) -> bool {
        self.upcoming.is_some_and(f64::is_infinite)
    }

    /// Multiplies the rate of the profile by `factor` from `now_ns` on, in place of any factor before; 0
    /// pauses. What was due before `now_ns` and was not taken yet stays due then. If a time later than
    /// `now_ns` was taken already, the change begins there, so that nothing comes twice or in a bunch.
    /// Threads that are given the same `now_ns`, and have taken nothing beyond, stay exact shares of one
    /// schedule.
    ///
    /// # Panics
    /// If `factor` is negative or not finite.
    pub fn set_factor(&mut self, now_ns: u64, factor: f64) {
        self.pace.set_factor(now_ns.max(self.taken_last_ns), factor);
    }
}

#[cfg(test)]
mod tests;

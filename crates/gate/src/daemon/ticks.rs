//! How soon the daemon looks again: seldom while nothing happens, often when a crowd may be there.
//!
//! It must never decide anything else. Order: [`Ticks::see`] each observation, then [`Ticks::every_ns`].

use crate::observation::{Observation, State};

const MILLISECOND_NS: u64 = 1_000_000;
/// While nobody comes and nobody waits: to wake up costs more than to look. An overload needs longer to grow
/// than it takes to see that somebody comes.
const IDLE_NS: u64 = 30 * MILLISECOND_NS;
/// While all come in: who jumps from half the capacity to ten times of it is seen to grow in the next tick.
const OPEN_NS: u64 = 10 * MILLISECOND_NS;
/// While so many stand in line that shedding may begin.
const CLOSE_NS: u64 = 5 * MILLISECOND_NS;
/// While connections are shed, which are granted in pieces of so much: a tick costs a tenth of a millisecond
/// beside a server that has pushed the daemon out of every cache.
const SHED_NS: u64 = 10 * MILLISECOND_NS;
/// Unless the accept queue holds less than this of what is served: then the pieces are smaller.
const QUEUE_S_LEAST: f64 = 0.05;
/// While the line grows: at ten times the capacity each millisecond until something is done is nine of wait.
const GROWING_NS: u64 = 2 * MILLISECOND_NS;
/// A line of so many is rare below capacity: 0.8^16 is 3 in 100 moments. So is one that grew by as many since
/// the last tick.
const LINE_COUNT: u64 = 16;

/// What was seen last.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    /// No client comes and none waits.
    pub(super) is_idle: bool,
    grows: bool,
    waiting: u64,
    is_short: bool,
}

impl Ticks {
    /// Takes a tick in; so many are served a second.
    pub(super) fn see(&mut self, o: &Observation, served_per_s: f64) {
        let waiting = o.connections.map(|connections| connections.waiting);
        self.is_idle = o.syn == [0; 3] && waiting == Some(0);
        let waiting = waiting.unwrap_or(0);
        self.grows = waiting >= self.waiting + LINE_COUNT;
        self.waiting = waiting;
        self.is_short = o.queue.is_none_or(|queue| (queue.limit as f64) < served_per_s * QUEUE_S_LEAST);
    }

    /// Until the next.
    pub(super) fn every_ns(&self, state: State) -> u64 {
        match state {
            State::Open if self.is_idle => IDLE_NS,
            State::Open if self.grows => GROWING_NS,
            State::Open if self.waiting < LINE_COUNT => OPEN_NS,
            State::Shedding if !self.is_short => SHED_NS,
            State::Open | State::Shedding => CLOSE_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Connections, Queue};

    #[test]
    fn who_jumps_is_looked_at_soon() {
        let seen = |waiting, syn| {
            let connections = Connections { waiting, ..Connections::default() };
            Observation { syn: [syn, 0, 0], connections: Some(connections), ..Observation::default() }
        };
        let mut ticks = Ticks::default();
        let mut after = |waiting, syn| {
            ticks.see(&seen(waiting, syn), 0.0);
            ticks.every_ns(State::Open) / MILLISECOND_NS
        };
        assert_eq!([after(0, 0), after(3, 9), after(18, 9), after(34, 9), after(40, 9)], [30, 10, 5, 2, 5]);
        assert_eq!([after(100, 9), after(60, 0), after(8, 0), after(0, 0)], [2, 5, 10, 30]);
        let mut while_shedding = |limit, served_per_s| {
            let queue = Some(Queue { limit, ..Queue::default() });
            ticks.see(&Observation { queue, ..seen(200, 9) }, served_per_s);
            ticks.every_ns(State::Shedding) / MILLISECOND_NS
        };
        assert_eq!(
            [while_shedding(511, 3e3), while_shedding(128, 3e3), while_shedding(4096, 1e5)],
            [10, 5, 5]
        );
    }

    #[test]
    fn without_a_tracker_nothing_is_idle() {
        let mut ticks = Ticks::default();
        ticks.see(&Observation::default(), 0.0);
        assert_eq!(ticks.every_ns(State::Open), OPEN_NS);
        assert_eq!(ticks.every_ns(State::Shedding), CLOSE_NS);
    }
}

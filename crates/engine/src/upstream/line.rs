//! How many requests may wait for a server of an application: as many as a burst needs, until more come than
//! are served.
//!
//! The line owns when requests are refused. It must never hold one, nor read a clock: it says how many may
//! wait, and the caller counts them. Order of calls: [`WaitingLine::came`] for each request, in order of
//! time, and then [`WaitingLine::room`].
//!
//! Open, as many may wait as are served within half the patience. Once 1.25 times as many came in a second as
//! are served, by three deviations of a Poisson count, or the first in line has waited for half the patience,
//! as many may wait as are served in 25 ms, until no more than 1.05 times as many come. A request that could
//! not be answered within its client's patience is refused at once, however few wait. For requests of low
//! class the open line is half as long: a quarter of the patience.

/// Arrivals as a multiple of what is served above which the line closes.
const CLOSING_RATIO: f64 = 1.25;
/// Deviations of a Poisson count that chance explains.
const CLOSING_DEVIATIONS: f64 = 3.0;
/// Arrivals as a multiple of what is served below which the line opens again.
const OPENING_RATIO: f64 = 1.05;
/// Seconds of work that may wait while the line is closed, and the fewest requests.
const CLOSED_S: f64 = 0.025;
const ROOM_MIN: f64 = 2.0;
/// Requests that may wait while no rate is known.
pub(super) const ROOM_UNKNOWN: u32 = 8;
/// Parts of the patience whose work may wait while the line is open.
const OPEN_PART: f64 = 0.5;
const OPEN_PART_OF_LOW: f64 = 0.25;
/// Part of the patience within which an answer is to be expected: services vary.
const IN_TIME_PART: f64 = 0.95;
/// Parts of a second in which arrivals are counted.
const PARTS: usize = 32;

/// Arrivals of the last second, and whether more come than are served.
#[derive(Debug, Clone)]
pub struct WaitingLine {
    patience_s: f64,
    /// Seconds of work that may wait while the line is open.
    open_s: f64,
    arrivals: [u32; PARTS],
    /// The part of a second that is counted now, since the beginning of time.
    part: u64,
    is_closed: bool,
}

/// The rate of the server that requests wait for, and its time for each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Served {
    /// Answers a second; 0 while it is not known.
    pub rate: f64,
    /// Seconds that a request is in work.
    pub in_work_s: f64,
}

impl WaitingLine {
    /// A line of clients that wait so long.
    pub fn new(patience_s: f64) -> Self {
        let open_s = OPEN_PART * patience_s;
        Self { patience_s, open_s, arrivals: [0; PARTS], part: 0, is_closed: false }
    }

    /// A line of such clients for requests that give way first.
    pub fn of_low_class(patience_s: f64) -> Self {
        Self { open_s: OPEN_PART_OF_LOW * patience_s, ..Self::new(patience_s) }
    }

    /// So many requests came, or none.
    pub fn came(&mut self, now_s: f64, count: u32) {
        let part = (now_s.max(0.0) * PARTS as f64) as u64;
        let passed = part.saturating_sub(self.part).min(PARTS as u64);
        for ago in 0..passed {
            self.arrivals[(part - ago) as usize % PARTS] = 0;
        }
        self.part = self.part.max(part);
        self.arrivals[self.part as usize % PARTS] += count;
    }

    /// Requests that came in the last second.
    pub fn offered(&self) -> u32 {
        self.arrivals.iter().sum()
    }

    /// How many may wait now, where the first in line has waited so long.
    pub fn room(&mut self, served: Served, waited_s: f64) -> u32 {
        let Served { rate, in_work_s } = served;
        if rate <= 0.0 {
            return ROOM_UNKNOWN;
        }
        let offered = f64::from(self.offered());
        if self.is_closed && offered < OPENING_RATIO * rate {
            self.is_closed = false;
        }
        let are_more = offered > CLOSING_RATIO * rate + CLOSING_DEVIATIONS * rate.sqrt();
        if are_more || waited_s > self.patience_s / 2.0 {
            self.is_closed = true;
        }
        let room_s = if self.is_closed { CLOSED_S } else { self.open_s };
        let in_time = rate * (IN_TIME_PART * self.patience_s - in_work_s);
        (rate * room_s).max(ROOM_MIN).min(in_time.max(0.0)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: Served = Served { rate: 100.0, in_work_s: 0.05 };

    /// A line to which so many came in each of some seconds.
    fn after(seconds: &[u32]) -> WaitingLine {
        let mut line = WaitingLine::new(1.0);
        for (second, count) in (0u32..).zip(seconds) {
            (0..*count)
                .for_each(|number| line.came(f64::from(second) + f64::from(number) / f64::from(*count), 1));
        }
        line
    }

    #[test]
    fn a_burst_may_wait_and_a_crowd_may_not() {
        assert_eq!(after(&[]).room(Served::default(), 0.0), ROOM_UNKNOWN);
        assert_eq!(after(&[150]).room(SERVED, 0.0), 50);
        let mut line = after(&[160]);
        assert_eq!(line.room(SERVED, 0.0), 2, "25 ms of work");
        assert_eq!(after(&[400]).room(Served { rate: 200.0, ..SERVED }, 0.0), 5);
        // As long as more come, the line stays closed.
        (0..110).for_each(|number| line.came(1.0 + f64::from(number) / 110.0, 1));
        assert_eq!(line.room(SERVED, 0.0), 2);
        (0..90).for_each(|number| line.came(2.0 + f64::from(number) / 90.0, 1));
        assert_eq!(line.room(SERVED, 0.0), 50);
    }

    #[test]
    fn the_line_of_low_class_is_half_as_long_while_it_is_open() {
        let mut line = WaitingLine::of_low_class(1.0);
        line.came(0.0, 100);
        assert_eq!(line.room(SERVED, 0.0), 25);
        line.came(0.5, 100);
        assert_eq!(line.room(SERVED, 0.0), 2);
    }

    #[test]
    fn a_line_whose_first_has_waited_long_closes() {
        let mut line = after(&[110]);
        assert_eq!(line.room(SERVED, 0.5), 50);
        assert_eq!(line.room(SERVED, 0.51), 2);
    }

    #[test]
    fn who_would_be_late_does_not_wait() {
        let slow = |in_work_s| after(&[10]).room(Served { rate: 10.0, in_work_s }, 0.0);
        assert_eq!([slow(0.2), slow(0.8), slow(0.94), slow(2.0)], [5, 1, 0, 0]);
    }

    #[test]
    fn arrivals_are_counted_for_a_second_whatever_the_clock_does() {
        let mut line = after(&[1000]);
        line.came(1e9, 1);
        assert_eq!(line.offered(), 1);
        line.came(0.0, 1);
        assert_eq!(line.offered(), 2, "an earlier time counts as now");
    }
}

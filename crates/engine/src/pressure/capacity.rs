//! When to give way, and to what extent: the steps between a calm worker and a full one.
//!
//! It owns the numbers: how many connections are open, from where on idle ones are closed, and from where on
//! everyone is turned away. It must never touch a connection or the network: the worker does, as it is told
//! here. Time that requests wait is the matter of `pressure/pace`.

use staunch_protocol::Timeouts;

use crate::limits::{
    KEEP_ALIVE_CROWDED_MS, RESERVED_CONNECTIONS_MAX, RESERVED_CONNECTIONS_MIN, RESERVED_PART_MIN,
    ROOM_CONNECTIONS_MAX,
};

/// When a server gives way, and what it asks of slow peers. See `docs/giving-way.md` for the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// A request that has waited longer than this is answered 503 instead of being worked on; `None` never.
    pub patience_ms: Option<u32>,
    /// Above so many connections the oldest idle ones are closed; `None` is 80 % of the most there may be.
    pub soft_connections: Option<u64>,
    /// The last so many connections are answered 503; `None` is 1 % of the most there may be, 8 to 256.
    pub reserved_connections: Option<u32>,
    /// Bytes a second a peer has to take of an answer on the mean, after the first `send_ms`; 0 asks for
    /// none.
    pub send_rate_min: u64,
    /// Bytes a second a peer has to send of a body on the mean, after the first `body_ms`; 0 asks for none.
    pub body_rate_min: u64,
}

impl Pressure {
    /// Gives way to nothing before the table is full.
    pub const NONE: Self = Self {
        patience_ms: None,
        soft_connections: Some(u64::MAX),
        reserved_connections: Some(0),
        send_rate_min: 0,
        body_rate_min: 0,
    };

    /// From how many connections on everyone is turned away, and from how many on idle ones are closed, if
    /// there may be `connections_max`.
    pub(crate) fn bounds(&self, connections_max: u64) -> (u64, u64) {
        let automatic = (connections_max / 100).clamp(RESERVED_CONNECTIONS_MIN, RESERVED_CONNECTIONS_MAX);
        let wanted = self.reserved_connections.map_or(automatic, u64::from);
        let full = connections_max - wanted.min(connections_max / RESERVED_PART_MIN);
        let soft = self.soft_connections.unwrap_or(connections_max / 5 * 4 + connections_max % 5);
        (full, soft.min(full))
    }
}

impl Default for Pressure {
    fn default() -> Self {
        Self {
            patience_ms: Some(1_000),
            soft_connections: None,
            reserved_connections: None,
            send_rate_min: 100,
            body_rate_min: 100,
        }
    }
}

/// How many connections a worker has, and what follows from it.
pub(crate) struct Capacity {
    /// Connections that are open, those being closed included.
    open: u32,
    /// Above so many the oldest idle ones are closed.
    soft: u32,
    /// Above so many everyone is turned away.
    full: u32,
    capacity: u32,
    workers: u32,
    pressure: Pressure,
    /// As they are without pressure.
    timeouts: Timeouts,
}

impl Capacity {
    /// For one worker with room for `capacity` connections; nothing is given way to yet.
    pub(crate) fn new(capacity: u32, timeouts: Timeouts) -> Self {
        let (pressure, workers) = (Pressure::NONE, 1);
        Self { open: 0, soft: capacity, full: capacity, capacity, workers, pressure, timeouts }
    }

    /// How many workers share the numbers of a [`Pressure`].
    pub(crate) fn set_workers(&mut self, workers: u16) {
        self.workers = u32::from(workers.max(1));
    }

    pub(crate) fn set_pressure(&mut self, pressure: Pressure) {
        self.pressure = pressure;
        let share = |connections: u64| {
            u32::try_from(connections.div_ceil(u64::from(self.workers)))
                .unwrap_or(u32::MAX)
                .min(self.capacity)
        };
        let (full, soft) = pressure.bounds(u64::from(self.capacity) * u64::from(self.workers));
        (self.full, self.soft) = (share(full), share(soft));
    }

    pub(crate) fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.timeouts = timeouts;
    }

    pub(crate) fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(crate) fn count_opened(&mut self) {
        self.open += 1;
    }

    pub(crate) fn count_closed(&mut self) {
        self.open -= 1;
    }

    /// Idle connections are to be closed, and idle times to be shortened.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.open > self.soft
    }

    /// Only reserved slots are left: everyone who comes is turned away.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.open > self.full
    }

    /// Not even a reserved slot is left.
    pub(crate) fn has_none_left(&self) -> bool {
        self.open >= self.capacity
    }

    /// There are so many free slots again that accepting is worth beginning anew.
    pub(crate) fn has_room(&self) -> bool {
        self.capacity.saturating_sub(self.open) >= (self.capacity / 10).clamp(1, ROOM_CONNECTIONS_MAX)
    }

    /// The deadlines for so many open connections: the time to be idle falls in a straight line from the soft
    /// limit to the last slot.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let longest_ms = self.timeouts.keep_alive_ms;
        let shortest_ms = longest_ms.min(KEEP_ALIVE_CROWDED_MS);
        let (above, width) = (self.open.saturating_sub(self.soft), (self.capacity - self.soft).max(1));
        let cut_ms = u64::from(longest_ms - shortest_ms) * u64::from(above.min(width)) / u64::from(width);
        Timeouts {
            keep_alive_ms: longest_ms - cut_ms as u32,
            body_rate_min: u32::try_from(self.pressure.body_rate_min).unwrap_or(u32::MAX),
            ..self.timeouts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_any_number_of_connections() {
        let wanted =
            Pressure { soft_connections: Some(50), reserved_connections: Some(30), ..Pressure::NONE };
        let cases = [
            (Pressure::default(), 1, (1, 1)),
            (Pressure::default(), 8, (7, 7)),
            (Pressure::default(), 100, (92, 80)),
            (Pressure::default(), 10_000, (9_900, 8_000)),
            (Pressure::default(), 1 << 20, ((1 << 20) - 256, 838_861)),
            (wanted, 1000, (970, 50)),
            (wanted, 40, (35, 35)),
            (Pressure::NONE, 77, (77, 77)),
        ];
        for (pressure, connections_max, bounds) in cases {
            assert_eq!(pressure.bounds(connections_max), bounds, "{connections_max}: {pressure:?}");
        }
    }

    fn admission(open: u32) -> Capacity {
        let timeouts = Timeouts { keep_alive_ms: 15_000, ..Timeouts::default() };
        let mut admission = Capacity::new(100, timeouts);
        admission.set_workers(4);
        admission.set_pressure(Pressure { soft_connections: Some(200), ..Pressure::default() });
        (0..open).for_each(|_| admission.count_opened());
        admission
    }

    #[test]
    fn idle_times_fall_in_a_straight_line() {
        let keep_alive_ms = |open| admission(open).timeouts().keep_alive_ms;
        assert_eq!([0, 50, 75, 100].map(keep_alive_ms), [15_000, 15_000, 8_000, 1_000]);
    }

    #[test]
    fn one_step_comes_after_the_other() {
        let steps = |open| {
            let admission = admission(open);
            (admission.is_crowded(), admission.is_full(), admission.has_none_left(), admission.has_room())
        };
        assert_eq!(steps(50), (false, false, false, true));
        assert_eq!(steps(51), (true, false, false, true));
        assert_eq!(steps(98), (true, false, false, false));
        assert_eq!(steps(99), (true, true, false, false));
        assert_eq!(steps(100), (true, true, true, false));
    }
}

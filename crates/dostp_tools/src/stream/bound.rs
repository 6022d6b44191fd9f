//! A bound on what strangers can make a receiver do in a second.
//!
//! A bound counts what it refused. A bound must never read a clock.

/// A bound for events a second.
#[derive(Debug)]
pub(super) struct PerSecond {
    most: u32,
    began_ms: u64,
    admitted: u32,
    refused: u64,
}

impl PerSecond {
    /// A bound of so many a second.
    pub(super) fn new(most: u32) -> Self {
        Self { most, began_ms: 0, admitted: 0, refused: 0 }
    }

    /// Begins another second if the present one is over, and gives how many events were refused in that.
    pub(super) fn turn(&mut self, now_ms: u64) -> u64 {
        if now_ms.saturating_sub(self.began_ms) < 1_000 {
            return 0;
        }
        let refused = self.refused;
        *self = Self { began_ms: now_ms, ..Self::new(self.most) };
        refused
    }

    /// Whether something was refused in this second.
    pub(super) fn has_refused(&self) -> bool {
        self.refused > 0
    }

    /// Whether there is room for one more in this second.
    pub(super) fn admits(&mut self) -> bool {
        let is_room = self.admitted < self.most;
        self.admitted += u32::from(is_room);
        self.refused += u64::from(!is_room);
        is_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_admits_so_many_and_tells_how_many_it_refused() {
        let mut bound = PerSecond::new(2);
        let admitted = (0..5).filter(|_| bound.admits()).count();
        assert_eq!((admitted, bound.turn(999), bound.turn(1_000), bound.turn(2_000)), (2, 0, 3, 0));
        assert!(bound.admits());
    }
}

//! Whether newcomers are let into the kernel's queue: not while more waits than can be worked on in time.
//!
//! A filter of the kernel drops whoever begins to connect, for a microsecond each; to accept everybody only
//! to refuse most would cost fifteen. Those who are let in find room, so nobody is left between the two: one
//! who is dropped at the end of a handshake believes to be connected, and comes back when it is too late.
//! It must never stay shut once the pressure is over.

use crate::limits::{VALVE_CALM_MS, VALVE_CROWD, VALVE_LOOK_MS, VALVE_WAITING_MIN};

/// The valve of one worker's listeners.
#[derive(Default)]
pub(crate) struct Valve {
    shut: bool,
    /// Until then the queues are looked at after every turn.
    pressed_until_ms: Option<u64>,
    /// When they are looked at again at the latest.
    next_ms: u64,
}

impl Valve {
    /// Whether the queues are worth a look, after so many connections were accepted: under pressure always,
    /// else after a crowd, or a tenth of a second.
    #[inline]
    pub(crate) fn is_due(&self, now_ms: u64, accepted: u32) -> bool {
        let is_pressed = self.shut || self.pressed_until_ms.is_some();
        is_pressed || accepted >= VALVE_CROWD || accepted > 0 && now_ms >= self.next_ms
    }

    /// When a look is needed at the latest.
    #[inline]
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.shut.then_some(self.next_ms)
    }

    /// So many connections wait, of `worth` that may; `is_old`: what is being worked on has waited long.
    /// Returns whether it is to be shut, if that changes.
    pub(crate) fn look(
        &mut self,
        now_ms: u64,
        waiting: u32,
        worth: Option<u64>,
        is_old: bool,
    ) -> Option<bool> {
        self.next_ms = now_ms + VALVE_LOOK_MS;
        let waiting = u64::from(waiting);
        let worth = worth.map_or(u64::MAX, |worth| worth.max(VALVE_WAITING_MIN));
        if waiting > worth || is_old {
            self.pressed_until_ms = Some(now_ms + VALVE_CALM_MS);
            return (!std::mem::replace(&mut self.shut, true)).then_some(true);
        }
        if self.pressed_until_ms.is_some_and(|until_ms| now_ms >= until_ms) {
            self.pressed_until_ms = None;
        }
        let opens = self.shut && waiting <= worth / 2;
        self.shut &= !opens;
        opens.then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shut_while_too_much_waits_and_open_when_half_of_it_is_gone() {
        let mut valve = Valve::default();
        assert_eq!(valve.look(0, 4_000, None, false), None, "nothing is known of the work yet");
        assert_eq!(valve.look(1, 100, Some(100), false), None);
        assert!(!valve.is_due(2, 0) && !valve.is_due(2, 1) && valve.is_due(2, VALVE_CROWD));
        assert!(valve.is_due(1 + VALVE_LOOK_MS, 1) && valve.deadline_ms().is_none());
        assert_eq!(valve.look(2, 101, Some(100), false), Some(true));
        assert_eq!(valve.look(3, 101, Some(100), false), None);
        assert!(valve.is_due(3, 0) && valve.deadline_ms() == Some(3 + VALVE_LOOK_MS));
        assert_eq!(valve.look(4, 51, Some(100), false), None);
        assert_eq!(valve.look(5, 50, Some(100), false), Some(false));
        assert!(valve.is_due(6, 0) && valve.deadline_ms().is_none(), "it may well be shut again");
        assert_eq!(valve.look(3 + VALVE_CALM_MS, 50, Some(100), false), None);
        assert!(!valve.is_due(4 + VALVE_CALM_MS, 0));
        let later = 3 + 2 * VALVE_CALM_MS;
        assert_eq!(valve.look(later, 101, Some(100), false), Some(true));
        assert_eq!(valve.look(later + 2 * VALVE_CALM_MS, 60, Some(100), false), None);
        assert!(valve.is_due(later + 2 * VALVE_CALM_MS, 0), "shut, it is never forgotten");
    }

    #[test]
    fn old_work_shuts_it_however_short_the_queue() {
        let mut valve = Valve::default();
        assert_eq!(valve.look(0, 0, Some(100), true), Some(true));
        assert_eq!(valve.look(1, 0, Some(100), false), Some(false));
        assert_eq!(valve.look(2, 17, Some(1), false), Some(true), "a few may always wait");
    }
}

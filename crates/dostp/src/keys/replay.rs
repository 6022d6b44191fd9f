//! Windows against replay, one for each peer, source port and slot.
//!
//! It must never forget a window without raising the peer's floor.

use std::collections::HashMap;

use crate::fault::Fault;
use crate::limits::{REPLAY_IDLE_MS, REPLAY_WINDOWS_MAX};
use crate::window::ReplayWindow;

/// Peer, source port, slot.
type Flow = (u16, u16, u8);

/// All windows of a node.
#[derive(Debug, Default)]
pub(super) struct Windows {
    windows: HashMap<Flow, (ReplayWindow, u64)>,
    /// No counter up to this is taken from a port of the peer that has no window.
    floors: HashMap<(u16, u8), u64>,
}

impl Windows {
    /// Notes the counter of a frame whose tag is right, if it did not come before.
    pub(super) fn note(&mut self, flow: Flow, counter: u64, now_ms: u64) -> Result<(), Fault> {
        if let Some((window, used_ms)) = self.windows.get_mut(&flow) {
            if !window.allows(counter) {
                return Err(Fault::Replay);
            }
            window.note(counter);
            *used_ms = now_ms;
            return Ok(());
        }
        if self.floors.get(&(flow.0, flow.2)).is_some_and(|floor| counter <= *floor) {
            return Err(Fault::Replay);
        }
        if self.windows.len() >= REPLAY_WINDOWS_MAX {
            self.sweep(now_ms);
            if self.windows.len() >= REPLAY_WINDOWS_MAX {
                return Err(Fault::Replay);
            }
        }
        self.windows.insert(flow, (ReplayWindow::new(counter), now_ms));
        Ok(())
    }

    /// Forgets the windows of a peer that begins anew with other keys.
    pub(super) fn forget(&mut self, source: u16) {
        self.windows.retain(|flow, _| flow.0 != source);
        self.floors.retain(|(peer, _), _| *peer != source);
    }

    /// Forgets the windows of a slot that has another secret.
    pub(super) fn forget_slot(&mut self, slot: u8) {
        self.windows.retain(|flow, _| flow.2 != slot);
        self.floors.retain(|(_, used), _| *used != slot);
    }

    /// Lets go of windows that were not used for long.
    fn sweep(&mut self, now_ms: u64) {
        let floors = &mut self.floors;
        self.windows.retain(|flow, (window, used_ms)| {
            let is_kept = now_ms < *used_ms + REPLAY_IDLE_MS;
            if !is_kept {
                let floor = floors.entry((flow.0, flow.2)).or_default();
                *floor = (*floor).max(window.newest());
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_forgotten_leaves_a_floor() {
        let mut windows = Windows::default();
        for port in 0..REPLAY_WINDOWS_MAX as u32 {
            let flow = ((port >> 16) as u16 + 1, port as u16, 0);
            assert_eq!(windows.note(flow, 1_000 + u64::from(port), 0), Ok(()));
        }
        assert_eq!(windows.note((9, 1, 0), 5, 10), Err(Fault::Replay), "no room");
        assert_eq!(windows.note((9, 1, 0), 5, REPLAY_IDLE_MS), Ok(()));
        assert_eq!(windows.windows.len(), 1);
        assert_eq!(windows.note((1, 0, 0), 1_000, REPLAY_IDLE_MS), Err(Fault::Replay));
        let floor = 1_000 + REPLAY_WINDOWS_MAX as u64 - 1;
        assert_eq!(windows.note((1, 0, 0), floor, REPLAY_IDLE_MS), Err(Fault::Replay));
        assert_eq!(windows.note((1, 0, 0), floor + 1, REPLAY_IDLE_MS), Ok(()));
        windows.forget(1);
        assert_eq!(windows.note((1, 0, 0), 1, REPLAY_IDLE_MS), Ok(()));
    }
}

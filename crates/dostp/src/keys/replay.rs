//! Windows against replay, one for each peer, source port and slot.
//!
//! It must never forget a window without raising the peer's floor.

use std::collections::HashMap;

use crate::fault::Fault;
use crate::limits::{REPLAY_IDLE_MS, REPLAY_WINDOWS_MAX, REPLAY_WINDOWS_PEER_MAX};
use crate::window::ReplayWindow;

/// Peer, source port, slot.
type Flow = (u16, u16, u8);

/// All windows of a node.
#[derive(Debug, Default)]
pub(super) struct Windows {
    windows: HashMap<Flow, (ReplayWindow, u64)>,
    /// How many each peer has.
    counts: HashMap<u16, u32>,
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
        if !self.has_room(flow.0) {
            self.sweep(now_ms);
            if !self.has_room(flow.0) {
                return Err(Fault::Replay);
            }
        }
        self.windows.insert(flow, (ReplayWindow::new(counter), now_ms));
        *self.counts.entry(flow.0).or_default() += 1;
        Ok(())
    }

    /// Whether a peer may have one more window.
    fn has_room(&self, source: u16) -> bool {
        let of_peer = self.counts.get(&source).copied().unwrap_or_default();
        self.windows.len() < REPLAY_WINDOWS_MAX && of_peer < REPLAY_WINDOWS_PEER_MAX
    }

    /// Forgets the windows of a peer that begins anew with other keys.
    pub(super) fn forget(&mut self, source: u16) {
        self.windows.retain(|flow, _| flow.0 != source);
        self.counts.remove(&source);
        self.floors.retain(|(peer, _), _| *peer != source);
    }

    /// Forgets the windows of a slot that has another secret.
    pub(super) fn forget_slot(&mut self, slot: u8) {
        self.windows.retain(|flow, _| flow.2 != slot);
        self.count();
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
        self.count();
    }

    fn count(&mut self) {
        self.counts.clear();
        for flow in self.windows.keys() {
            *self.counts.entry(flow.0).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_forgotten_leaves_a_floor() {
        let mut windows = Windows::default();
        for place in 0..REPLAY_WINDOWS_MAX as u32 {
            let flow = ((place / REPLAY_WINDOWS_PEER_MAX) as u16 + 1, place as u16, 0);
            assert_eq!(windows.note(flow, 1_000 + u64::from(place), 0), Ok(()));
        }
        assert_eq!(windows.note((9, 1, 0), 5, 10), Err(Fault::Replay), "no room");
        assert_eq!(windows.note((9, 1, 0), 5, REPLAY_IDLE_MS), Ok(()));
        assert_eq!(windows.windows.len(), 1);
        assert_eq!(windows.note((1, 0, 0), 1_000, REPLAY_IDLE_MS), Err(Fault::Replay));
        let floor = 1_000 + u64::from(REPLAY_WINDOWS_PEER_MAX) - 1;
        assert_eq!(windows.note((1, 0, 0), floor, REPLAY_IDLE_MS), Err(Fault::Replay));
        assert_eq!(windows.note((1, 0, 0), floor + 1, REPLAY_IDLE_MS), Ok(()));
        windows.forget(1);
        assert_eq!(windows.note((1, 0, 0), 1, REPLAY_IDLE_MS), Ok(()));
    }

    #[test]
    fn a_peer_that_uses_many_ports_leaves_room_for_the_others() {
        let mut windows = Windows::default();
        let used = (0..5_000).filter(|port| windows.note((1, *port, 0), 1, 0).is_ok()).count();
        assert_eq!(used, REPLAY_WINDOWS_PEER_MAX as usize);
        assert_eq!(
            (windows.note((1, 9_999, 0), 9, 0), windows.note((2, 1, 0), 1, 0)),
            (Err(Fault::Replay), Ok(()))
        );
        assert_eq!(windows.note((1, 5, 0), 2, 0), Ok(()), "a port that has one is heard");
        windows.forget_slot(0);
        assert_eq!(windows.note((1, 9_999, 0), 9, 0), Ok(()));
    }
}

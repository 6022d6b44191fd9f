//! The sign of life that systemd may ask for (WatchdogSec=).
//!
//! It must never be given when a worker has not answered since the last one, nor be worked on when nobody
//! wants it.

use std::collections::BTreeSet;
use std::env;
use std::sync::mpsc::{self, Receiver, Sender};

use staunch_engine::Control;

/// A watchdog that waits.
pub(super) struct Watchdog {
    interval_ms: u64,
    next_ms: u64,
    answers: Receiver<u16>,
    sender: Sender<u16>,
}

impl Watchdog {
    /// What the environment asks for (WATCHDOG_USEC, and WATCHDOG_PID if it is meant for one process).
    pub(super) fn from_environment(now_ms: u64) -> Option<Self> {
        let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let meant = env::var_os("WATCHDOG_PID").is_none()
            || number("WATCHDOG_PID") == Some(std::process::id().into());
        let limit_us = number("WATCHDOG_USEC").filter(|limit_us| meant && *limit_us > 0)?;
        let (sender, answers) = mpsc::channel();
        // Half of the time, so that one that comes late is early enough.
        let interval_ms = (limit_us / 2000).max(1);
        Some(Self { interval_ms, next_ms: now_ms, answers, sender })
    }

    /// When to look again.
    pub(super) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// Whether a sign of life is to be given now. Asks the workers for their next one.
    pub(super) fn is_alive(&mut self, control: &Control, now_ms: u64) -> bool {
        if now_ms < self.next_ms {
            return false;
        }
        self.next_ms = now_ms + self.interval_ms;
        // A worker that was busy for long may answer several times at once.
        let answered: BTreeSet<u16> = self.answers.try_iter().collect();
        control.ping(&self.sender);
        answered.len() == control.workers()
    }
}

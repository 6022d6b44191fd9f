//! A running process, held so that its PID cannot become another's.
//!
//! It must never be sent a signal before it was seen to be `staunch serve`.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process that serves.
#[derive(Debug)]
pub(super) struct Server {
    pid: u32,
    held: OwnedFd,
}

impl Server {
    /// The process with this PID; `source` names where the PID was found.
    ///
    /// # Errors
    /// A sentence: it does not run, or is no server.
    pub(super) fn open(pid: u32, source: &str) -> Result<Self, String> {
        let not_running = || format!("no server runs: {source} names process {pid}, which has ended");
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(not_running)?;
        let held = pidfd_open(number, PidfdFlags::empty()).map_err(|error| match error {
            Errno::SRCH => not_running(),
            other => format!("process {pid} cannot be looked at: {other}"),
        })?;
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if words.split(|&byte| byte == 0).nth(1) != Some(b"serve") {
            return Err(format!("no server runs: {source} names process {pid}, which is no `staunch serve`"));
        }
        Ok(Self { pid, held })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// A sentence with the way out.
    pub(super) fn send(&self, signal: Signal) -> Result<(), String> {
        pidfd_send_signal(&self.held, signal).map_err(|error| match error {
            Errno::PERM => {
                format!("process {} belongs to another user: run this as that user or as root", self.pid)
            }
            Errno::SRCH => format!("process {} has ended meanwhile", self.pid),
            other => format!("process {} cannot be told: {other}", self.pid),
        })
    }

    /// Waits until the process has ended, but not for longer than this.
    pub(super) fn has_ended_within(&self, most: Duration) -> bool {
        let timeout = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        poll(&mut [PollFd::new(&self.held, PollFlags::IN)], Some(&timeout)).is_ok_and(|count| count > 0)
    }
}

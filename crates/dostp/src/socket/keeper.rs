//! The thread that answers for a node while its program does something else.
//!
//! The thread sleeps until a control frame comes or something is due, also what a call of the program made
//! due. Messages go by another ring, so the thread costs them nothing, and must never take one.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_netio::clock;

use super::alarm::Alarm;
use super::endpoint::Endpoint;
use super::keeper_wait::{KeeperWait, silence};

/// Bytes of the thread's stack: it calls little, and a program may have many sockets.
const STACK_BYTES: usize = 128 << 10;

/// The thread, as long as this value lives.
#[derive(Debug)]
pub(super) struct Keeper {
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts it. `descriptor` tells that a control frame has come; the alarm is raised when the interface
    /// goes down.
    pub(super) fn start(
        endpoint: Arc<Mutex<Endpoint>>,
        descriptor: Arc<OwnedFd>,
        alarm: Option<Arc<Alarm>>,
    ) -> io::Result<Self> {
        let (end, ended) = UnixStream::pair()?;
        let (wait, bell) = KeeperWait::new()?;
        endpoint.lock().unwrap_or_else(PoisonError::into_inner).keeper_wait = Some(wait);
        let work = move || keep(&endpoint, &descriptor, alarm.as_deref(), (&ended, &bell));
        let thread = Builder::new().name("dostp".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            // A child that was forked keeps a copy, so closing it would not end the thread's wait.
            end.shutdown(Shutdown::Both).ok();
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed; there is nobody to hand it to.
            thread.join().ok();
        }
    }
}

fn keep(
    endpoint: &Mutex<Endpoint>,
    descriptor: &OwnedFd,
    alarm: Option<&Alarm>,
    (ended, bell): (&UnixStream, &OwnedFd),
) {
    loop {
        let due_ms = {
            let mut endpoint = endpoint.lock().unwrap_or_else(PoisonError::into_inner);
            // An interface that is down is the program's matter, which hears of it by its own calls.
            endpoint.keep(clock::now_ms()).ok();
            endpoint.keeper_waits()
        };
        let left = due_ms.map(|due_ms| {
            let left_ms = due_ms.saturating_sub(clock::now_ms());
            Timespec { tv_sec: (left_ms / 1_000) as i64, tv_nsec: (left_ms % 1_000 * 1_000_000) as _ }
        });
        let mut awaited = [
            PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN),
        ];
        if !matches!(poll(&mut awaited, left.as_ref()), Ok(_) | Err(rustix::io::Errno::INTR)) {
            return;
        }
        if !awaited[0].revents().is_empty() {
            return;
        }
        if !awaited[2].revents().is_empty() {
            silence(bell);
        }
        if awaited[1].revents().contains(PollFlags::ERR) {
            rustix::net::sockopt::socket_error(descriptor).ok();
            if let Some(alarm) = alarm {
                alarm.raise();
            }
        }
    }
}

//! The bell of the tracker: it rings when far more connections come at once than are served, so that the
//! daemon looks before its next turn.
//!
//! It owns the ring buffer the tracker writes to. It must never say what came: who is rung for has to look.

use std::io;
use std::time::Duration;

use aya::maps::{MapData, RingBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_netio::clock;

/// The bell; none where connections are not watched.
pub(super) struct Alarm(Option<RingBuf<MapData>>);

impl Alarm {
    pub(super) fn new(ring: Option<RingBuf<MapData>>) -> Self {
        Self(ring)
    }

    /// Waits for so long, or until it rings. Says whether it did.
    ///
    /// # Errors
    /// Those of poll(2).
    pub(super) fn wait(&mut self, length: Duration) -> io::Result<bool> {
        let Some(ring) = &mut self.0 else {
            clock::pause(length);
            return Ok(false);
        };
        let limit = Timespec { tv_sec: length.as_secs() as i64, tv_nsec: length.subsec_nanos().into() };
        match poll(&mut [PollFd::new(ring, PollFlags::IN)], Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut rang = false;
        while ring.next().is_some() {
            rang = true;
        }
        Ok(rang)
    }
}

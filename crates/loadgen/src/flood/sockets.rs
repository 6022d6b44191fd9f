//! Frames of a flood through a socket, where live frames cannot be had: dearer, but possible everywhere.
//!
//! It owns the socket and the pacing. It must never wait for room in the kernel: what is due while there is
//! none is tried again, and given up in the end, as the program of `bpf/flood.bpf.c` does.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use staunch_netio::clock::{now_ns, pause};
use staunch_netio::host::packet::{BATCH_COUNT, PacketSender};

use super::frame::{ETHERNET_BYTES, Template};

/// What may be made up for after the thread was not running: longer than a busy scheduler lets it wait.
const BEHIND_S_MAX: f64 = 0.100;
/// Waiting is in steps, so that a stop is noticed soon.
const PAUSE_NS_MAX: u64 = 10_000_000;
/// What is shorter is waited for awake: the kernel may end a pause some 50 us late.
const PAUSE_NS_MIN: u64 = 200_000;

/// What has been done until now; read by any thread.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: AtomicU64,
    /// Of these, thrown away by the interface with a word.
    pub(super) dropped: AtomicU64,
    pub(super) given_up: AtomicU64,
    pub(super) ran_ns: AtomicU64,
}

/// A socket, and what is sent by it.
pub(super) struct Sockets {
    sender: PacketSender,
    template: Template,
    /// Bytes of the frame that the kernel writes itself.
    skipped_bytes: usize,
}

impl Sockets {
    /// Sends frames by an interface.
    ///
    /// # Errors
    /// As [`PacketSender::by_link`].
    pub(super) fn by_link(template: Template, index: u32) -> io::Result<Self> {
        Ok(Self { sender: PacketSender::by_link(index)?, template, skipped_bytes: 0 })
    }

    /// Sends datagrams to an address.
    ///
    /// # Errors
    /// As [`PacketSender::to_host`].
    pub(super) fn to_host(template: Template, address: IpAddr) -> io::Result<Self> {
        Ok(Self { sender: PacketSender::to_host(address)?, template, skipped_bytes: ETHERNET_BYTES })
    }

    /// Sends until the time is over or it is told to stop.
    ///
    /// # Errors
    /// What the kernel says, if it takes nothing any more.
    pub(super) fn run(
        &self,
        rate_per_s: Option<f64>,
        duration: Option<Duration>,
        counts: &Counts,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let duration_ns = duration.map_or(u64::MAX, |duration| duration.as_nanos() as u64);
        let mut pace = Pace { rate_per_s, done: 0 };
        let mut buffer = Vec::new();
        let started_ns = now_ns();
        while !stop.load(Ordering::Relaxed) {
            let now = now_ns() - started_ns;
            counts.ran_ns.store(now.min(duration_ns), Ordering::Relaxed);
            if now >= duration_ns {
                break;
            }
            match pace.due(now) {
                Due::Later(ns) => wait(ns),
                Due::Now { count, given_up } => {
                    counts.given_up.fetch_add(given_up, Ordering::Relaxed);
                    pace.done += self.send(count, counts, &mut buffer)?;
                }
            }
        }
        Ok(())
    }

    /// Sends so many frames, and says how many the kernel took.
    fn send(&self, count: usize, counts: &Counts, buffer: &mut Vec<u8>) -> io::Result<u64> {
        let length = self.template.bytes.len();
        let number = counts.sent.load(Ordering::Relaxed);
        buffer.clear();
        let mut frame = vec![0; length];
        for index in 0..count as u64 {
            self.template.write(number + index, &mut frame);
            buffer.extend(&frame[self.skipped_bytes..]);
        }
        match self.sender.send(buffer, length - self.skipped_bytes) {
            Ok(taken) => {
                counts.sent.fetch_add(taken as u64, Ordering::Relaxed);
                Ok(taken as u64)
            }
            Err(error) if has_no_room(&error) => {
                // The first frame is lost, the others have not been tried.
                counts.sent.fetch_add(1, Ordering::Relaxed);
                counts.dropped.fetch_add(1, Ordering::Relaxed);
                Ok(1)
            }
            Err(error) if is_passing(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

fn has_no_room(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn wait(ns: u64) {
    if ns >= PAUSE_NS_MIN {
        pause(Duration::from_nanos(ns.min(PAUSE_NS_MAX)));
    } else {
        std::hint::spin_loop();
    }
}

/// Frames at even distances. Frame k is due k/rate after the start.
struct Pace {
    rate_per_s: Option<f64>,
    /// Sent, or given up.
    done: u64,
}

#[derive(Debug, PartialEq)]
enum Due {
    Later(u64),
    Now { count: usize, given_up: u64 },
}

impl Pace {
    /// What is to be done at this time. What is given up is done.
    fn due(&mut self, now_ns: u64) -> Due {
        let Some(rate) = self.rate_per_s else { return Due::Now { count: BATCH_COUNT, given_up: 0 } };
        let due = (now_ns as f64 * 1e-9 * rate) as u64 + 1;
        if due <= self.done {
            let next_ns = self.done as f64 / rate * 1e9;
            return Due::Later((next_ns as u64).saturating_sub(now_ns));
        }
        let behind_max = (rate * BEHIND_S_MAX) as u64 + BATCH_COUNT as u64;
        let given_up = (due - self.done).saturating_sub(behind_max);
        self.done += given_up;
        Due::Now { count: (due - self.done).min(BATCH_COUNT as u64) as usize, given_up }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn frames_are_due_at_even_distances() {
        let mut pace = Pace { rate_per_s: Some(10.0), done: 0 };
        assert_eq!(pace.due(0), Due::Now { count: 1, given_up: 0 });
        pace.done = 1;
        assert_eq!(pace.due(0), Due::Later(SECOND / 10));
        assert_eq!(pace.due(SECOND / 10 - 1), Due::Later(1));
        assert_eq!(pace.due(SECOND / 10), Due::Now { count: 1, given_up: 0 });
        pace.done = 2;
        assert_eq!(pace.due(SECOND / 2), Due::Now { count: 4, given_up: 0 });
    }

    #[test]
    fn what_is_too_late_is_given_up() {
        let mut pace = Pace { rate_per_s: Some(100_000.0), done: 1 };
        // 100 ms of frames and one batch are made up for.
        assert_eq!(pace.due(SECOND), Due::Now { count: BATCH_COUNT, given_up: 100_001 - 1 - 10_064 });
        assert_eq!(pace.done, 100_001 - 10_064);
        assert_eq!(pace.due(SECOND), Due::Now { count: BATCH_COUNT, given_up: 0 });
    }

    #[test]
    fn without_a_rate_a_batch_is_always_due() {
        let mut pace = Pace { rate_per_s: None, done: u64::MAX };
        assert_eq!(pace.due(0), Due::Now { count: BATCH_COUNT, given_up: 0 });
    }
}

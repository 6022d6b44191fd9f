//! Send deadlines are of what the peer takes, not of what the kernel takes for it: a peer behind a queue of
//! the kernel's that takes a little all the time gets everything, one that takes less than is asked for, or
//! nothing, is cut off.

use std::sync::Arc;

use staunch_engine::{Mailbox, Pressure, Stats, Worker, WorkerParts};
use staunch_netio::Io;
use staunch_netio::simulated::{Faults, Simulated, Step};
use staunch_protocol::Deadline;

use crate::fixture::{Fixture, Waiting};
use crate::{TIMEOUTS, TURNS_MAX};

const QUEUE_BYTES: usize = 256 * 1024;
const BODY_BYTES: usize = 600_000;

/// What a peer got that takes so many bytes every so many milliseconds, so often, and then all that comes;
/// and after how many milliseconds its connection ended.
fn taken(bytes: usize, every_ms: u64, times: usize, rate_min: u64) -> (usize, u64, u64) {
    let mut world = Simulated::new(1, Faults::NONE, 1);
    let head = format!("GET /shared/{BODY_BYTES} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let mut script = vec![Step::Queue(QUEUE_BYTES), Step::Stall, Step::Send(head.into_bytes())];
    script.extend((1..=times).flat_map(|time| [Step::Wait(every_ms), Step::TakeUpTo(time * bytes)]));
    script.extend([Step::Read, Step::UntilReceived(usize::MAX)]);
    let peer = world.peer(script);
    let started_ms = world.now_ms();
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let stats = Arc::new(Stats::default());
    let handler = Fixture::new(&Waiting::default(), usize::MAX);
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
    );
    worker.set_pressure(Pressure { send_rate_min: rate_min, ..Pressure::NONE });
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "the worker spins");
        if worker.io().finished() {
            break;
        }
        worker.turn().expect("the simulator does not fail");
    }
    let transcript = worker.io().transcript(peer);
    let place = transcript.received.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let body_bytes = transcript.received.len() - place.map_or(0, |place| place + 4);
    (body_bytes, transcript.ended_ms - started_ms, stats.connections.timeouts(Deadline::Send))
}

#[test]
fn who_takes_a_little_all_the_time_gets_everything() {
    // Each takes for ten times the deadline, and less than makes the kernel take more.
    for (bytes, every_ms) in [(400, 1_000), (1_000, 3_000), (16, 3_400)] {
        let times = 10 * TIMEOUTS.send_ms as usize / every_ms as usize;
        for rate_min in [0, 100] {
            let is_enough = bytes as u64 * 1_000 / every_ms >= rate_min;
            let (body_bytes, ended_ms, timeouts) = taken(bytes, every_ms, times, rate_min);
            let said = format!("{bytes} bytes every {every_ms} ms, at least {rate_min}/s: {ended_ms} ms");
            assert_eq!(body_bytes == BODY_BYTES, is_enough, "{said}, {body_bytes} bytes");
            assert_eq!(timeouts, u64::from(!is_enough), "{said}");
        }
    }
}

#[test]
fn who_takes_nothing_is_cut_off_as_ever() {
    for rate_min in [0, 100] {
        let (body_bytes, ended_ms, timeouts) = taken(0, 1_000, 60, rate_min);
        assert!(body_bytes < BODY_BYTES && timeouts == 1, "{body_bytes} bytes");
        let send_ms = u64::from(TIMEOUTS.send_ms);
        assert!((send_ms..send_ms + 1_000).contains(&ended_ms), "{ended_ms} ms");
    }
}

//! Tables of HTTP/2 that hold as many fields as they may: those that rest give way, and not the one that
//! comes.

use std::sync::Arc;

use staunch_engine::{Mailbox, Stats, Worker, WorkerParts};
use staunch_netio::simulated::{Faults, Simulated, Step, Transcript};
use staunch_protocol::Timeouts;
use staunch_protocol::http2::PREFACE;

use crate::fixture::{Fixture, Waiting};
use crate::{TIMEOUTS, TURNS_MAX};

/// Each holds some 12 KB, so these are more than have room.
const HOLDERS: u32 = 5_000;
const FIELDS: u32 = 100;
const FOREVER_MS: u64 = 1_000_000_000;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field that is spelled out, to be kept in the table or not.
fn field(is_kept: bool, name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    [vec![if is_kept { 0x40 } else { 0 }], text(name), text(value)].concat()
}

/// What a client says that asks once: its fields are like nobody else's.
fn client(number: u32, count: u32) -> Vec<Step> {
    let mut block = Vec::new();
    for (name, value) in [(":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/own/3")] {
        block.extend(field(false, name, value));
    }
    for place in 0..count {
        block.extend(field(true, "x", &format!("{:05x}", number * FIELDS + place)));
    }
    let bytes = [&PREFACE[..], &frame(4, 0, 0, b""), &frame(1, 5, 1, &block)].concat();
    vec![Step::Send(bytes), Step::Wait(FOREVER_MS)]
}

/// The kinds of the frames that a peer has heard.
fn kinds(heard: &Transcript) -> Vec<u8> {
    let (mut bytes, mut kinds) = (&heard.received[..], Vec::new());
    while let Some(head) = bytes.first_chunk::<9>() {
        kinds.push(head[3]);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    kinds
}

#[test]
fn who_rests_gives_way_to_who_comes() {
    let mut world = Simulated::new(1, Faults::NONE, 2 * HOLDERS);
    // A request has 100 fields at most, four of which say what is asked for.
    let holders: Vec<_> = (0..HOLDERS).map(|number| world.peer(client(number, FIELDS - 4))).collect();
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let stats = Arc::new(Stats::default());
    let timeouts = Timeouts { keep_alive_ms: u32::MAX, header_ms: u32::MAX, ..TIMEOUTS };
    let handler = Fixture::new(&Waiting::default(), usize::MAX);
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts, index: 0 },
    );
    let turn_until = |asked: u64, worker: &mut Worker<Simulated, Fixture>| {
        for _ in 0..TURNS_MAX {
            if stats.http2.requests.get() == asked {
                return;
            }
            worker.turn().expect("the simulator does not fail");
        }
        panic!("{} of {asked} requests came", stats.http2.requests.get());
    };
    turn_until(u64::from(HOLDERS), &mut worker);
    assert!(stats.pressure.closed_for_memory.get() > 0, "there was room for all of them");
    let newcomer = worker.io().peer(client(HOLDERS, 3));
    turn_until(u64::from(HOLDERS) + 1, &mut worker);
    for _ in 0..TURNS_MAX {
        if kinds(worker.io().transcript(newcomer)).contains(&0) {
            break;
        }
        worker.turn().expect("the simulator does not fail");
    }
    assert_eq!((stats.http2.calmed.get(), stats.connections.rejected.get()), (0, 0), "nobody was at fault");
    let heard = kinds(worker.io().transcript(newcomer));
    assert!(heard.contains(&0) && !heard.contains(&7), "the newcomer is answered and stays: {heard:?}");
    let told = holders.iter().filter(|holder| kinds(worker.io().transcript(**holder)).contains(&7)).count();
    assert!(
        told > 0 && told as u64 <= stats.pressure.closed_for_memory.get(),
        "those that go are told so: {told}"
    );
}

//! Random peers of HTTP/2 with many exchanges at a time, that stall, take back, break off.
//!
//! What they send is written beforehand, so no body is longer than the windows that a connection begins with.

use std::collections::BTreeMap;

use staunch_engine::Ended;
use staunch_netio::simulated::{Faults, Random, Step};
use staunch_protocol::http2::PREFACE;

use crate::client::{
    DATA, END_STREAM, INITIAL_WINDOW_SIZE, Inbox, RST_STREAM, SETTINGS, frame, request, websocket, window,
};
use crate::world::{play, play_seeds};

/// What a connection may send before it hears of windows.
const WINDOW_BYTES: usize = 65_535;

/// What is asked on a stream.
struct Asked {
    /// Frames that are left to be sent.
    frames: Vec<Vec<u8>>,
    expected: Vec<u8>,
    /// The request is taken back, perhaps after its answer is whole.
    is_taken_back: bool,
    is_tied: bool,
}

fn body(random: &mut Random, bytes: usize) -> Vec<u8> {
    let start = random.below(251) as u32;
    (0..bytes as u32).map(|at| (start + at + (at >> 8) * 31) as u8).collect()
}

/// A request, with as much of a body as the connection still has room for.
fn ask(random: &mut Random, stream: u32, room: &mut usize) -> Asked {
    let size = [0, 1, 70, 5_000, 60_000, 300_000][random.below(6)] + random.below(30);
    let urgency = format!("u={}{}", random.below(8), if random.below(2) == 0 { ", i" } else { "" });
    let priority = [("priority", &urgency[..])];
    let whole = |path: String, expected: Vec<u8>| Asked {
        frames: vec![request(stream, true, "GET", &path, &priority)],
        expected,
        is_taken_back: false,
        is_tied: false,
    };
    let mut asked = match random.below(9) {
        0 => whole(format!("/flood?bytes={size}"), vec![b'f'; size]),
        1 => {
            let count = random.below(5);
            let lines: String = (1..=count).map(|number| format!("drop {number}\n")).collect();
            whole(format!("/drip?every=30ms&count={count}"), lines.into_bytes())
        }
        way => {
            let size = size.min(*room);
            *room -= size;
            let body = body(random, size);
            let (path, expected) = match way {
                2 => (format!("/echo?length={size}"), body.clone()),
                3 => ("/upstream".to_owned(), body.clone()),
                4 => ("/collect".to_owned(), [format!("{size} ").as_bytes(), &body].concat()),
                // The answer begins before, amid or after the body.
                5 | 6 => {
                    let (at, step) = (random.below(size + 50), 500 + random.below(9_000));
                    let then = ["echo", "stop", "wait"][random.below(3)];
                    let whole = if then == "echo" { size } else { at.min(size) };
                    let hold = ["", "&hold=300ms"][random.below(4) / 3];
                    (format!("/read?at={at}&step={step}&then={then}{hold}"), body[..whole].to_vec())
                }
                _ => ("/echo".to_owned(), body.clone()),
            };
            let is_tunnel = way == 8;
            let head = match is_tunnel {
                true => websocket(stream, "/raw", &priority),
                false => request(stream, false, "POST", &path, &priority),
            };
            let mut frames = vec![head];
            // Pieces of some size: many tiny ones are odd, in tunnels those that are no message.
            let least = if is_tunnel { 6 } else { 100 };
            let pieces =
                body.chunks(least + random.below([16_000, 40][usize::from(is_tunnel && body.len() < 5_000)]));
            frames.extend(pieces.map(|piece| frame(DATA, 0, stream, piece)));
            frames.push(frame(DATA, END_STREAM, stream, b""));
            Asked { frames, expected, is_taken_back: false, is_tied: way == 3 }
        }
    };
    if random.below(8) == 0 {
        let kept = 1 + random.below(asked.frames.len());
        asked.frames.truncate(kept);
        asked.frames.push(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
        asked.is_taken_back = true;
    }
    asked
}

struct Plan {
    steps: Vec<Step>,
    asked: BTreeMap<u32, Asked>,
    /// Everything must come.
    whole: bool,
}

fn plan(random: &mut Random) -> Plan {
    let (mut room, mut streams) = (WINDOW_BYTES, Vec::new());
    for number in 0..1 + random.below(8) as u32 {
        streams.push((2 * number + 1, ask(random, 2 * number + 1, &mut room)));
    }
    let settings = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &0x7fff_ffff_u32.to_be_bytes()].concat();
    let mut sent = [&PREFACE[..], &frame(SETTINGS, 0, 0, &settings), &window(0, 0x7000_0000)].concat();
    let mut steps = Vec::new();
    let mut asked: BTreeMap<u32, Asked> = BTreeMap::new();
    // Streams begin in the order of their numbers; their frames go side by side.
    let mut waiting = streams.into_iter().peekable();
    let mut under_way: Vec<(u32, std::vec::IntoIter<Vec<u8>>)> = Vec::new();
    while waiting.peek().is_some() || !under_way.is_empty() {
        if under_way.is_empty() || waiting.peek().is_some() && random.below(3) == 0 {
            let Some((number, mut one)) = waiting.next() else { continue };
            let mut frames = std::mem::take(&mut one.frames).into_iter();
            sent.extend(frames.next().expect("a head"));
            asked.insert(number, one);
            under_way.push((number, frames));
        } else {
            let index = random.below(under_way.len());
            match under_way[index].1.next() {
                Some(frame) => sent.extend(frame),
                None => _ = under_way.remove(index),
            }
        }
        match random.below(20) {
            0 => steps.push(Step::Send(std::mem::take(&mut sent))),
            1 => {
                steps.extend([Step::Stall, Step::Send(std::mem::take(&mut sent))]);
                steps.extend([Step::Wait(50), Step::Read]);
            }
            2 if sent.len() > 200 => {
                let rest = sent.split_off(150);
                steps.extend([Step::Send(std::mem::take(&mut sent)), Step::Wait(50)]);
                sent = rest;
            }
            _ => {}
        }
    }
    let mut whole = true;
    match random.below(8) {
        0 => {
            whole = false;
            sent.truncate(random.below(sent.len() + 1));
            steps.extend([Step::Send(sent), Step::Wait(5), Step::Reset]);
        }
        1 => {
            whole = false;
            sent.truncate(random.below(sent.len() + 1));
            steps.extend([Step::Send(sent), Step::HalfClose, Step::UntilReceived(usize::MAX)]);
        }
        2 => {
            whole = false;
            steps.extend([Step::Stall, Step::Send(sent), Step::Wait(10_000_000)]);
        }
        3 => steps.extend([Step::Send(sent), Step::HalfClose, Step::UntilReceived(usize::MAX)]),
        _ => steps.extend([Step::Send(sent), Step::UntilReceived(usize::MAX)]),
    }
    Plan { steps, asked, whole }
}

fn run(seed: u64) -> Vec<Ended> {
    let mut random = Random::new(seed ^ 0x4832);
    let faults = [Faults::NONE, Faults::GENTLE, Faults::HOSTILE][seed as usize % 3];
    let mut plans: Vec<Plan> = (0..1 + random.below(4)).map(|_| plan(&mut random)).collect();
    let scripts = plans.iter_mut().map(|plan| std::mem::take(&mut plan.steps)).collect();
    let past = play(seed, faults, scripts);
    for (transcript, plan) in past.transcripts.iter().zip(&plans) {
        // A client that ends within the preface has not spoken HTTP/2.
        if transcript.received.starts_with(b"HTTP/1.1 505 ") && !plan.whole {
            continue;
        }
        let mut inbox = Inbox::default();
        inbox.push(&transcript.received);
        while inbox.next().is_some() {}
        for (stream, asked) in &plan.asked {
            let reply = inbox.reply(*stream);
            let told =
                || format!("seed {seed}, stream {stream}: {} and {} bytes", reply.status, reply.body.len());
            // There may be too many upstreams at a time, and one may fail before it is connected.
            if asked.is_tied && reply.status >= 500 {
                continue;
            }
            assert!(asked.expected.starts_with(&reply.body), "{}: other bytes", told());
            assert!(!reply.is_whole || reply.body.len() == asked.expected.len(), "{}: too short", told());
            let must_come = plan.whole && faults != Faults::HOSTILE && !asked.is_taken_back;
            assert!(!must_come || reply.status == 200 && reply.is_whole, "{}: not whole", told());
        }
    }
    past.ended
}

#[test]
fn every_seed_gives_every_body_to_the_byte() {
    play_seeds(run, &[Ended::Complete, Ended::Gone]);
}

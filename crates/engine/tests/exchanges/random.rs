//! Random peers that echo, drip, flood and collect, stall, break off and come back.

use staunch_engine::Ended;
use staunch_netio::simulated::{Faults, Random, Step};

use crate::reading::{answers, sum};
use crate::world::{play, play_seeds};

/// Bytes that no two places of share.
fn body(random: &mut Random, bytes: usize) -> Vec<u8> {
    let start = random.below(251) as u32;
    (0..bytes as u32).map(|at| (start + at + (at >> 8) * 31) as u8).collect()
}

fn told(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) if body.len() <= 100 => text.to_owned(),
        _ => format!("{} bytes, sum {}", body.len(), sum(body)),
    }
}

/// Adds a random request to `sent`, and gives what is to be answered.
fn request(random: &mut Random, sent: &mut Vec<u8>) -> String {
    let size = [0, 1, 70, 5_000, 60_000, 300_000][random.below(6)] + random.below(30);
    match random.below(8) {
        0 => {
            sent.extend_from_slice(format!("GET /flood?bytes={size} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            format!("200 chunked {}", told(&vec![b'f'; size]))
        }
        1 => {
            let count = random.below(5);
            let head = format!("GET /drip?every=30ms&count={count} HTTP/1.1\r\nHost: a\r\n\r\n");
            sent.extend_from_slice(head.as_bytes());
            let lines: String = (1..=count).map(|number| format!("drop {number}\n")).collect();
            format!("200 chunked {lines}")
        }
        2 => {
            let body = body(random, size);
            let head =
                format!("POST /echo?length={size} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
            sent.extend_from_slice(&[head.as_bytes(), &body].concat());
            format!("200 length {}", told(&body))
        }
        4 => {
            let body = body(random, size);
            let head = format!("POST /upstream HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
            sent.extend_from_slice(&[head.as_bytes(), &body].concat());
            format!("200 chunked {}", told(&body))
        }
        3 => {
            let body = body(random, size);
            sent.extend_from_slice(b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
            for chunk in body.chunks(1 + random.below(9_000)) {
                let line = format!("{:x};n\r\n", chunk.len());
                sent.extend_from_slice(&[line.as_bytes(), chunk, b"\r\n"].concat());
            }
            sent.extend_from_slice(b"0\r\n\r\n");
            format!("200 chunked {}", told(&body))
        }
        // The answer begins before, amid or after the body.
        5 | 6 => {
            let (body, at, step) = (body(random, size), random.below(size + 50), 500 + random.below(9_000));
            let (then, framing) = match random.below(3) {
                0 => ("echo", "chunked"),
                1 => ("stop", "length"),
                _ => ("wait", "length"),
            };
            let hold = ["", "&hold=300ms"][random.below(4) / 3];
            let target = format!("/read?at={at}&step={step}&then={then}{hold}");
            let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
            sent.extend_from_slice(&[head.as_bytes(), &body].concat());
            let expected = if then == "echo" { &body[..] } else { &body[..at.min(size)] };
            format!("200 {framing} {}", told(expected))
        }
        _ => {
            let body = body(random, size % 5_000);
            let head = format!("POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
            sent.extend_from_slice(&[head.as_bytes(), &body].concat());
            format!("200 length {}", told(&[format!("{} ", body.len()).as_bytes(), &body].concat()))
        }
    }
}

struct Plan {
    steps: Vec<Step>,
    expected: Vec<String>,
    /// Everything must come.
    whole: bool,
}

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan { steps: Vec::new(), expected: Vec::new(), whole: true };
    let mut sent = Vec::new();
    for _ in 0..1 + random.below(4) {
        plan.expected.push(request(random, &mut sent));
        match random.below(6) {
            0 => plan.steps.push(Step::Send(std::mem::take(&mut sent))),
            // Reads nothing for a while, within the deadline of a send.
            1 => {
                plan.steps.extend([Step::Stall, Step::Send(std::mem::take(&mut sent))]);
                plan.steps.extend([Step::Wait(1_000), Step::Read]);
            }
            // Stops within what it sends, within the deadline of a body.
            2 if sent.len() > 200 => {
                let rest = sent.split_off(150);
                plan.steps.extend([Step::Send(std::mem::take(&mut sent)), Step::Wait(1_000)]);
                sent = rest;
            }
            _ => {}
        }
    }
    match random.below(8) {
        0 => {
            plan.whole = false;
            sent.truncate(random.below(sent.len() + 1));
            plan.steps.extend([Step::Send(sent), Step::Wait(5), Step::Reset]);
        }
        1 => {
            plan.whole = false;
            sent.truncate(random.below(sent.len() + 1));
            plan.steps.extend([Step::Send(sent), Step::HalfClose, Step::UntilReceived(usize::MAX)]);
        }
        2 => {
            plan.whole = false;
            plan.steps.extend([Step::Stall, Step::Send(sent), Step::Wait(10_000_000)]);
        }
        3 => plan.steps.extend([Step::Send(sent), Step::HalfClose, Step::UntilReceived(usize::MAX)]),
        _ => plan.steps.extend([Step::Send(sent), Step::UntilReceived(usize::MAX)]),
    }
    plan
}

fn run(seed: u64) -> Vec<Ended> {
    let mut random = Random::new(seed ^ 0xec40);
    let faults = [Faults::NONE, Faults::GENTLE, Faults::HOSTILE][seed as usize % 3];
    let mut plans: Vec<Plan> = (0..1 + random.below(5)).map(|_| plan(&mut random)).collect();
    let scripts = plans.iter_mut().map(|plan| std::mem::take(&mut plan.steps)).collect();
    let past = play(seed, faults, scripts);
    for (transcript, plan) in past.transcripts.iter().zip(&plans) {
        let (heard, rest) = answers(&transcript.received, false);
        let refused = heard.last().is_some_and(|last| last.starts_with("408 ") || last.starts_with("400 "));
        let good = &heard[..heard.len() - usize::from(refused)];
        // An upstream may fail before it is connected.
        let is_right = |(heard, expected): (&String, &String)| {
            heard == expected || faults == Faults::HOSTILE && heard.ends_with(" length ")
        };
        assert!(
            good.len() <= plan.expected.len() && good.iter().zip(&plan.expected).all(is_right),
            "seed {seed}: {heard:?} instead of {:?}",
            plan.expected
        );
        let whole = plan.whole && faults != Faults::HOSTILE;
        assert!(!whole || heard == plan.expected && rest.is_empty(), "seed {seed}: {heard:?}, {rest:?}");
    }
    past.ended
}

#[test]
fn every_seed_gives_every_body_to_the_byte() {
    play_seeds(run, &[Ended::Complete, Ended::Gone, Ended::BadBody]);
}

//! What the simulated servers do.
//!
//! It must never know what a client makes of it.

use staunch_netio::simulated::{Random, Step};

/// The body of a right answer.
pub(super) const BODY: &[u8] = b"eleven here";

/// Length of the shortest request there is, roughly: servers need not wait for all of one.
const REQUEST_BYTES: usize = 40;

/// Length of `GET /kind` as it is sent.
const KIND_BYTES: usize = "GET /kind HTTP/1.1\r\nHost: simulated\r\n\r\n".len();

/// Answers each of so many requests rightly, as soon as it is there.
pub(super) fn kind(requests: usize, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for number in 1..=requests {
        steps.push(Step::UntilReceived(number * KIND_BYTES));
        if random.chance(200) {
            steps.push(Step::Wait(random.below(40) as u64));
        }
        send_in_pieces(&right(random), random, &mut steps);
    }
    steps
}

/// Anything a server may do, and much it may not.
pub(super) fn draw(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    if random.chance(50) {
        steps.push(Step::Stall);
        steps.push(Step::Wait(random.below(1_000) as u64));
        steps.push(Step::Read);
    }
    for number in 1..=random.below(8) {
        if !random.chance(30) {
            steps.push(Step::UntilReceived(number * REQUEST_BYTES));
        }
        if random.chance(250) {
            steps.push(Step::Wait(random.below(700) as u64));
        }
        let answer = if random.chance(700) { right(random) } else { wrong(random) };
        send_in_pieces(&answer, random, &mut steps);
    }
    match random.below(6) {
        0 => steps.push(Step::Close),
        1 => steps.push(Step::HalfClose),
        2 => steps.push(Step::Reset),
        3 => steps.extend([Step::Wait(random.below(900) as u64), Step::Close]),
        _ => {}
    }
    steps
}

fn send_in_pieces(bytes: &[u8], random: &mut Random, steps: &mut Vec<Step>) {
    let mut rest = bytes;
    while random.chance(200) && rest.len() > 1 {
        let (piece, after) = rest.split_at(1 + random.below(rest.len() - 1));
        steps.push(Step::Send(piece.to_vec()));
        steps.push(Step::Wait(random.below(60) as u64));
        rest = after;
    }
    steps.push(Step::Send(rest.to_vec()));
}

/// A whole answer with [`BODY`] that leaves the connection open.
fn right(random: &mut Random) -> Vec<u8> {
    let body = String::from_utf8_lossy(BODY);
    match random.below(4) {
        0 => format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{body}\r\n0\r\n\r\n"),
        1 => format!("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200\r\nContent-Length: 11\r\n\r\n{body}"),
        2 => format!("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 11\r\n\r\n{body}"),
        _ => format!("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{body}"),
    }
    .into_bytes()
}

/// An answer that is not whole, not expected, not one, or the last.
fn wrong(random: &mut Random) -> Vec<u8> {
    let text = match random.below(12) {
        0 => "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        1 => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour",
        2 => "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\neleven here",
        3 => "HTTP/1.1 200 OK\r\n\r\neleven here",
        4 => "HTTP/1.0 200 OK\r\nContent-Length: 11\r\n\r\neleven here",
        5 => "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\neleven here and more",
        6 => "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nnot so many",
        7 => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        8 => "HTTP/1.1 204 No Content\r\n\r\n",
        9 => "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        10 => "\r\n\r\n",
        _ => return (0..random.below(60) + 1).map(|_| random.bits() as u8).collect(),
    };
    text.as_bytes().to_vec()
}

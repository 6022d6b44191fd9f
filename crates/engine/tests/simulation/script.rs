//! Random peers, and what each must receive.

use staunch_netio::simulated::{PeerId, Random, Simulated, Step};

use crate::fixture::body;

/// A response that a peer expects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The response announces its body but does not carry it.
    pub(crate) is_head: bool,
}

/// A peer's script and its expectations.
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) expected: Vec<Expected>,
    /// The server may add a 408 of its own at the end.
    pub(crate) may_time_out: bool,
    /// The peer itself stops before it has everything.
    pub(crate) gives_up: bool,
}

const FOREVER_MS: u64 = 10_000_000;

/// So many peers of a world, with what each must receive.
pub(crate) fn peers(count: usize, world: &mut Simulated, random: &mut Random) -> Vec<(PeerId, Plan)> {
    (0..count)
        .map(|_| {
            let mut plan = draw(random);
            (world.peer(std::mem::take(&mut plan.steps)), plan)
        })
        .collect()
}

/// A peer drawn from the generator.
fn draw(random: &mut Random) -> Plan {
    let mut plan = Plan { steps: Vec::new(), expected: Vec::new(), may_time_out: false, gives_up: false };
    let mut bytes = Vec::new();
    for _ in 0..random.below(7) {
        request(random, &mut bytes, &mut plan);
        if random.chance(300) {
            plan.steps.push(Step::Send(std::mem::take(&mut bytes)));
            plan.steps.push(Step::Wait(random.below(400) as u64));
        }
    }
    finish(random, bytes, &mut plan);
    plan
}

fn request(random: &mut Random, bytes: &mut Vec<u8>, plan: &mut Plan) {
    let kind = ["own", "shared", "later", "block"][random.below(4)];
    let size =
        [0, 1, 5_000, 20_000, 200_000][random.below(5)] + random.below(if kind == "block" { 1 } else { 50 });
    let path = format!("/{kind}/{size}");
    let body = body(path.as_bytes(), size);
    match random.below(6) {
        0 => {
            let chunks = "5\r\nabcde\r\n3;x=y\r\nfgh\r\n0\r\nTrailer: t\r\n\r\n";
            let head = "POST /own/1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
            bytes.extend_from_slice(format!("{head}{chunks}").as_bytes());
            plan.expected.push(Expected { status: 405, body: b"no\n".to_vec(), is_head: false });
        }
        1 => {
            bytes.extend_from_slice(format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
            plan.expected.push(Expected { status: 200, body, is_head: true });
        }
        _ => {
            let cookie = "c".repeat(random.below(2_000));
            let head = format!("GET {path} HTTP/1.1\r\nHost: h\r\nCookie: {cookie}\r\n\r\n");
            bytes.extend_from_slice(head.as_bytes());
            plan.expected.push(Expected { status: 200, body, is_head: false });
        }
    }
}

/// How the peer leaves: each way runs into another end of the server's.
fn finish(random: &mut Random, mut bytes: Vec<u8>, plan: &mut Plan) {
    let everything = usize::MAX;
    match random.below(9) {
        // In order, by the peer's own half-close.
        0 => {
            plan.steps.extend([Step::Send(bytes), Step::HalfClose, Step::UntilReceived(everything)]);
        }
        // In order, asked of the server.
        1 | 2 => {
            bytes.extend_from_slice(b"GET /own/9 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            plan.expected.push(Expected { status: 200, body: body(b"/own/9", 9), is_head: false });
            plan.steps.extend([Step::Send(bytes), Step::UntilReceived(everything)]);
        }
        // Idle until the keep-alive deadline (or the header deadline, if nothing was ever sent).
        3 => plan.steps.extend([Step::Send(bytes), Step::Wait(FOREVER_MS)]),
        // Half a head.
        4 => {
            bytes.extend_from_slice(b"GET / HT");
            plan.may_time_out = true;
            plan.steps.extend([Step::Send(bytes), Step::Wait(FOREVER_MS)]);
        }
        // Half a body.
        5 => {
            bytes.extend_from_slice(b"PUT /own/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
            plan.expected.push(Expected { status: 405, body: b"no\n".to_vec(), is_head: false });
            plan.may_time_out = true;
            plan.steps.extend([Step::Send(bytes), Step::Wait(FOREVER_MS)]);
        }
        // Nonsense, and then neither more bytes nor a close.
        6 => {
            bytes.extend_from_slice(b"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\ntrailing rubbish");
            plan.expected.push(Expected { status: 400, body: Vec::new(), is_head: false });
            plan.steps.extend([Step::Send(bytes), Step::Wait(FOREVER_MS)]);
        }
        // Never reads.
        7 => {
            plan.gives_up = true;
            plan.steps.extend([Step::Stall, Step::Send(bytes), Step::Wait(FOREVER_MS)]);
        }
        // Breaks off at any moment.
        _ => {
            plan.gives_up = true;
            plan.steps.extend([Step::Send(bytes), Step::Wait(random.below(50) as u64), Step::Reset]);
        }
    }
}

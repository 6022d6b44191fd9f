//! Requests for another protocol on a stream (RFC 8441), and what follows.

use staunch_protocol::http2::{Event, HeadFields, Opening, ResponseHead, Session, WorkerMemory};
use staunch_protocol::{BodyRule, Fields, Method, Status, Timeouts, Version};

use super::driver::{Out, block, frame, frames, hello};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// A session that has begun, and what it says.
struct Side {
    session: Session,
    memory: WorkerMemory,
    opening: Opening,
    out: Vec<u8>,
    now_ms: u64,
}

impl Side {
    fn new() -> Self {
        let mut out = Vec::new();
        let session = Session::new(0, &mut out);
        let mut side =
            Self { session, memory: WorkerMemory::new([1, 2]), opening: Opening::new(DATE), out, now_ms: 0 };
        assert_eq!(side.deliver(&hello()), [""; 0]);
        side.new_frames();
        side
    }

    /// Delivers bytes. Gives what happened.
    fn deliver(&mut self, bytes: &[u8]) -> Vec<String> {
        let joined = self.session.take_kept(bytes).into_owned();
        let (mut input, mut told) = (&joined[..], Vec::new());
        loop {
            let Self { session, memory, opening, out, now_ms } = self;
            told.push(match session.poll_event(memory, &mut input, *now_ms, opening, out) {
                Event::Request { stream, request } => {
                    assert!(request.asks_websocket() == (request.method == Method::Connect));
                    assert_eq!(request.version, Version::Http2);
                    format!("{stream} {:?} {:?}", request.method, request.content)
                }
                Event::Body { stream, piece } => format!("{stream} {}", piece.escape_ascii()),
                Event::BodyEnd { stream } => format!("{stream} end"),
                Event::Reset { stream, code } => format!("{stream} reset {}", code.name()),
                Event::Refused { stream, answered } => {
                    format!("{stream} refused {:?}", answered.map(|answered| answered.status.code()))
                }
                Event::NeedInput => break,
                Event::Close { .. } => {
                    told.push("closed".to_owned());
                    break;
                }
            });
        }
        self.session.keep(input, self.now_ms);
        told
    }

    fn begin(&mut self, stream: u32) {
        self.session.begin_tunnel(stream, Fields::NONE, &self.opening, &mut self.out);
    }

    /// Sends as much of so many bytes as is granted.
    fn send(&mut self, stream: u32, bytes: u64, is_last: bool) -> u64 {
        let granted = self.session.begin_data(stream, bytes, is_last, self.now_ms, &mut self.out);
        self.out.resize(self.out.len() + granted as usize, b'x');
        granted
    }

    fn new_frames(&mut self) -> Vec<Out> {
        frames(&std::mem::take(&mut self.out))
    }
}

fn ask(stream: u32) -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "a.example"),
        (":path", "/chat"),
    ];
    frame(1, 4, stream, &block(&fields))
}

#[test]
fn a_tunnel_begins_and_ends() {
    let mut side = Side::new();
    assert_eq!(side.deliver(&ask(1)), ["1 Connect None"]);
    side.begin(1);
    let head = side.new_frames();
    assert_eq!((head.len(), head[0].kind, head[0].flags, head[0].payload[0]), (1, 1, 4, 0x88));
    assert_eq!(side.deliver(&frame(0, 0, 1, b"a")), ["1 a"]);
    assert_eq!(side.send(1, 3, false), 3);
    assert_eq!(side.deliver(&frame(0, 1, 1, b"b")), ["1 b", "1 end"]);
    assert_eq!(side.send(1, 0, true), 0);
    let said: Vec<_> = side.new_frames().iter().map(|it| (it.kind, it.flags, it.payload.len())).collect();
    assert_eq!(said, [(0, 0, 3), (0, 1, 0)]);
    assert_eq!(side.deliver(b""), [""; 0]);
    assert_eq!(side.session.held_bytes(), 0);
    // The block is remembered, and means the same when it comes again.
    assert_eq!(side.deliver(&ask(3)), ["3 Connect None"]);
    assert!(side.session.is_tunnel(3));
}

/// A success is no answer to such a request but by a tunnel.
#[test]
fn a_success_begins_no_tunnel() {
    for (code, told) in [(200, 501), (204, 501), (206, 501), (304, 304), (403, 403), (503, 503)] {
        let mut side = Side::new();
        side.deliver(&ask(1));
        let status = Status::from_code(code).expect("a status");
        let fields = HeadFields::Lines(Fields::new(b"Content-Length: 5\r\n"));
        let head = ResponseHead { status, fields, has_body: true };
        let rule = side.session.begin_response(1, head, 0, &side.opening, &mut side.out);
        assert_eq!(rule == BodyRule::Omit, told == 501 || code == 304, "{code}");
        let frames = side.new_frames();
        let digits = told.to_string();
        let has_code = frames[0].payload.windows(3).any(|window| window == digits.as_bytes());
        assert!(has_code || frames[0].payload[0] == 0x8b, "{code}: {frames:?}");
        assert_eq!(frames[0].flags & 1 == 1, rule == BodyRule::Omit, "{code}");
    }
}

/// Silence means nothing in a tunnel, nor do short messages; an answer that waits for a window does.
#[test]
fn a_tunnel_may_be_silent_and_short() {
    let mut side = Side::new();
    side.deliver(&ask(1));
    assert_eq!(side.session.poll_timeout(&Timeouts::default()), None, "it waits for us");
    side.begin(1);
    assert_eq!(side.session.poll_timeout(&Timeouts::default()), None);
    for _ in 0..40_000 {
        assert_eq!(side.deliver(&frame(0, 0, 1, b"a ping")), ["1 a ping"]);
        side.session.taken(1, 6, 0, &mut side.out);
    }
    assert_eq!(side.session.wasted_us(), 0);
    for odd in [&b"a"[..], b""] {
        let before_us = side.session.wasted_us();
        side.deliver(&frame(0, 0, 1, odd));
        assert!(side.session.wasted_us() > before_us, "{odd:?} is no message there either");
    }
    assert_eq!(side.send(1, 100_000, false), 16_384);
    while side.session.next_to_send(&mut side.out) == Some(1) {
        side.send(1, 100_000, false);
    }
    assert!(side.session.poll_timeout(&Timeouts::default()).is_some(), "its windows are shut");
}

#[test]
fn nothing_but_data_comes_in_a_tunnel() {
    let mut side = Side::new();
    side.deliver(&ask(1));
    side.begin(1);
    assert_eq!(side.deliver(&frame(1, 5, 1, &block(&[("x", "y")]))), ["1 reset PROTOCOL_ERROR"]);
    assert_eq!(
        side.deliver(&[ask(3), frame(3, 0, 3, &8_u32.to_be_bytes())].concat()),
        ["3 Connect None", "3 reset CANCEL"]
    );
}

/// A tunnel that always has something to send gets every second frame: neither waits for the other's end.
#[test]
fn a_tunnel_takes_turns_with_answers() {
    let mut side = Side::new();
    let wide =
        [frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]), frame(8, 0, 0, &1_000_000_u32.to_be_bytes())];
    side.deliver(&wide.concat());
    side.deliver(&[ask(1), frame(1, 5, 3, &block(&super::driver::request("GET", "/")))].concat());
    side.begin(1);
    let head = ResponseHead { status: Status::OK, fields: HeadFields::Lines(Fields::NONE), has_body: true };
    side.session.begin_response(3, head, 0, &side.opening, &mut side.out);
    for stream in [1, 3] {
        side.send(stream, 1_000_000, false);
    }
    let mut turns = Vec::new();
    for _ in 0..6 {
        let stream = side.session.next_to_send(&mut side.out).expect("windows are open");
        side.send(stream, 1_000_000, false);
        turns.push(stream);
    }
    assert!(turns == [1, 3, 1, 3, 1, 3] || turns == [3, 1, 3, 1, 3, 1], "{turns:?}");
}

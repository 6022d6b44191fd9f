//! Requests that are read before they are answered, on HTTP/1.1 and HTTP/2: bodies cut at every byte, answers
//! before, amid and after them, peers that stop within them, and handlers that have no room.

use staunch_engine::{Ended, IoChoice};
use staunch_netio::simulated::{Faults, Step};
use staunch_protocol::http2::PREFACE;

use crate::client::{
    Client, DATA, END_STREAM, Inbox, RST_STREAM, Reply, SETTINGS, WINDOW_UPDATE, frame, get, request,
};
use crate::reading::{answers, sum};
use crate::real::serve;
use crate::world::{World, play, play_world};

const BODY: &[u8] = b"a body of some length";
/// The windows of a stream and of a connection as they are at first (RFC 9113, section 6.9.2).
const FIRST_WINDOW_BYTES: usize = 65_535;
/// The most that may come of all bodies of a connection and is not taken yet.
const WINDOW_BYTES: usize = 256 * 1024;
/// Milliseconds between the two parts of a body that is cut.
const PAUSE_MS: u64 = 20;

/// Framing of a body on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunks,
    Frames,
}

const FRAMINGS: [Framing; 3] = [Framing::Length, Framing::Chunks, Framing::Frames];

/// A request as far as its body has come when that is cut, and the rest of it with another request.
fn request_cut(framing: Framing, target: &str, cut: usize) -> (Vec<u8>, Vec<u8>) {
    let (first, rest) = BODY.split_at(cut);
    let next = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let chunk = |part: &[u8]| match part.len() {
        0 => Vec::new(),
        length => [format!("{length:x}\r\n").as_bytes(), part, b"\r\n"].concat(),
    };
    match framing {
        Framing::Length => {
            let length = BODY.len();
            let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            ([head.as_bytes(), first].concat(), [rest, next].concat())
        }
        Framing::Chunks => {
            let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
            let first = [head.as_bytes(), &chunk(first)].concat();
            (first, [&chunk(rest)[..], b"0\r\n\r\n", next].concat())
        }
        Framing::Frames => {
            let head = request(1, false, "POST", target, &[]);
            let start =
                [&PREFACE[..], &frame(SETTINGS, 0, 0, b""), &head, &frame(DATA, 0, 1, first)].concat();
            (start, [frame(DATA, END_STREAM, 1, rest), get(3, "/")].concat())
        }
    }
}

fn inbox(received: &[u8]) -> Inbox {
    let mut inbox = Inbox::default();
    inbox.push(received);
    while inbox.next().is_some() {}
    inbox
}

/// The bodies of the two answers.
fn bodies(framing: Framing, received: &[u8]) -> Vec<String> {
    if framing == Framing::Frames {
        let inbox = inbox(received);
        let replies = [inbox.reply(1), inbox.reply(3)];
        assert!(replies.iter().all(|reply| reply.is_whole && reply.status == 200), "{replies:?}");
        return replies.map(|reply| String::from_utf8(reply.body).expect("text")).into();
    }
    let (heard, rest) = answers(received, false);
    assert!(rest.is_empty(), "{:?}", String::from_utf8_lossy(rest));
    let body = |answer: &String| {
        let found = answer.strip_prefix("200 length ").or_else(|| answer.strip_prefix("200 chunked "));
        found.unwrap_or_else(|| panic!("{heard:?}")).to_owned()
    };
    heard.iter().map(body).collect()
}

/// Sends a request that is cut at every byte of its body, in each framing; each is answered with `expected`,
/// and so is the request behind it.
fn cut_everywhere(target: &str, expected: &[u8]) {
    for framing in FRAMINGS {
        let script = |cut| {
            let (first, rest) = request_cut(framing, target, cut);
            let end = [Step::Send(rest), Step::UntilReceived(usize::MAX)];
            [vec![Step::Send(first), Step::Wait(PAUSE_MS)], end.to_vec()].concat()
        };
        let past = play(1, Faults::NONE, (0..=BODY.len()).map(script).collect());
        for (cut, transcript) in past.transcripts.iter().enumerate() {
            let heard = bodies(framing, &transcript.received);
            let expected = [String::from_utf8_lossy(expected).into_owned(), "plain\n".to_owned()];
            assert_eq!(heard, expected, "{target}, {framing:?}, cut at {cut}");
        }
    }
}

#[test]
fn an_answer_before_amid_and_after_a_body_that_is_thrown_away() {
    for at in 0..=BODY.len() + 1 {
        let expected = &BODY[..at.min(BODY.len())];
        for then in ["stop", "wait"] {
            cut_everywhere(&format!("/read?at={at}&then={then}"), expected);
        }
    }
}

#[test]
fn an_answer_before_amid_and_after_a_body_that_goes_on() {
    for at in 0..=BODY.len() + 1 {
        cut_everywhere(&format!("/read?at={at}&then=echo"), BODY);
    }
}

#[test]
fn a_handler_that_takes_some_bytes_at_a_time_gets_each_once() {
    for step in [1, 2, 7, BODY.len()] {
        cut_everywhere(&format!("/read?step={step}"), BODY);
        cut_everywhere(&format!("/read?step={step}&at=9"), &BODY[..9]);
        cut_everywhere(&format!("/read?step={step}&at=9&then=echo"), BODY);
    }
}

/// An answer that was given stays, and nothing is taken for the next request.
#[test]
fn a_body_that_breaks_behind_an_early_answer() {
    let head = b"POST /read?at=1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na";
    let rest = b"bc\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let steps = [Step::Send(head.to_vec()), Step::Wait(PAUSE_MS), Step::Send(rest.to_vec())];
    let script = [&steps[..], &[Step::UntilReceived(usize::MAX)]].concat();
    let past = play(1, Faults::NONE, vec![script]);
    let (heard, rest) = answers(&past.transcripts[0].received, false);
    assert_eq!((heard, rest), (vec!["200 length a".to_owned()], &b""[..]));
}

/// Whatever ends a request that is read, its handler is told (`play` looks whether each was).
#[test]
fn peers_that_go_within_a_body() {
    for framing in FRAMINGS {
        for end in [Step::HalfClose, Step::Reset, Step::Wait(100_000)] {
            let script = |cut| {
                let (first, _) = request_cut(framing, "/read", cut);
                let steps = [Step::Send(first), Step::Wait(PAUSE_MS), end.clone()];
                [steps.to_vec(), vec![Step::UntilReceived(usize::MAX)]].concat()
            };
            let count = BODY.len();
            let past = play(1, Faults::NONE, (0..count).map(script).collect());
            assert_eq!(past.ended, vec![Ended::Gone; count], "{framing:?}, {end:?}");
            let is_silent = matches!(end, Step::Wait(_)) && framing != Framing::Frames;
            for transcript in past.transcripts {
                let received = String::from_utf8_lossy(&transcript.received).into_owned();
                assert_eq!(received.starts_with("HTTP/1.1 408 "), is_silent, "{received:?}");
            }
        }
    }
}

#[test]
fn a_request_that_is_taken_back_within_its_body() {
    let script = |cut| {
        let (first, _) = request_cut(Framing::Frames, "/read", cut);
        let reset = [frame(RST_STREAM, 0, 1, &8u32.to_be_bytes()), get(3, "/read")].concat();
        vec![Step::Send(first), Step::Wait(PAUSE_MS), Step::Send(reset), Step::UntilReceived(usize::MAX)]
    };
    let past = play(1, Faults::NONE, (0..BODY.len()).map(script).collect());
    for transcript in &past.transcripts {
        let inbox = inbox(&transcript.received);
        assert_eq!((inbox.reply(1), inbox.reply(3).is_whole), (Reply::default(), true));
    }
    let ways = [Ended::Gone, Ended::Complete].map(|way| past.ended.iter().filter(|it| **it == way).count());
    assert_eq!(ways, [BODY.len(); 2]);
}

#[test]
fn peers_that_go_while_a_handler_has_no_room() {
    for framing in FRAMINGS {
        for end in [Step::HalfClose, Step::Reset, Step::Close] {
            let script = |cut| {
                let (first, _) = request_cut(framing, "/read?hold=500ms", cut);
                vec![Step::Send(first), Step::Wait(PAUSE_MS), end.clone(), Step::UntilReceived(usize::MAX)]
            };
            let count = BODY.len();
            let past = play(1, Faults::NONE, (0..count).map(script).collect());
            assert_eq!(past.ended, vec![Ended::Gone; count], "{framing:?}, {end:?}");
        }
    }
}

/// The handler takes nothing for longer than a peer may be silent: what comes meanwhile stays with the peer.
#[test]
fn a_handler_without_room_holds_little_of_a_long_body() {
    const BYTES: usize = 1 << 20;
    let body: Vec<u8> = (0..BYTES as u32).map(|at| (at ^ (at >> 9)) as u8).collect();
    let target = format!("/read?hold=6000ms&at=70000&step=4000&then=echo&length={BYTES}");
    let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n");
    let sent = [head.as_bytes(), &body].concat();
    let script = vec![Step::Send(sent), Step::UntilReceived(usize::MAX)];
    let past = play_world(World::new(vec![script], Vec::new()));
    let whole = format!("200 length {BYTES} bytes, sum {}", sum(&body));
    assert_eq!(answers(&past.transcripts[0].received, false).0, [whole]);
    assert!(past.held_bytes_max < 512 << 10, "{} bytes are held", past.held_bytes_max);

    let head = request(1, false, "POST", "/read?hold=6000ms&at=60000&step=4000&then=echo", &[]);
    let mut sent = [&PREFACE[..], &frame(SETTINGS, 0, 0, b""), &head].concat();
    let body = &body[..60_000];
    body.chunks(10_000).for_each(|piece| sent.extend(frame(DATA, 0, 1, piece)));
    sent.extend(frame(DATA, END_STREAM, 1, b""));
    let script = vec![Step::Send(sent), Step::UntilReceived(usize::MAX)];
    let past = play_world(World::new(vec![script], Vec::new()));
    let reply = inbox(&past.transcripts[0].received).reply(1);
    assert!(reply.is_whole && reply.body == body, "{} and {} bytes", reply.status, reply.body.len());
}

/// More than the window of a stream is sent only if the handler takes what comes.
#[test]
fn long_bodies_with_real_sockets() {
    for io in [IoChoice::Epoll, IoChoice::Uring] {
        serve(io, |address| {
            let mut client = Client::new(address);
            client.send(&request(1, false, "POST", "/read?step=1000&at=100000", &[]));
            send_body(&mut client, 1, 200_000, &mut { FIRST_WINDOW_BYTES });
            let reply = client.reply(1);
            assert_eq!((reply.status, reply.body.len(), reply.is_whole), (200, 100_000, true));
            assert_eq!(client.get(3, "/").status, 200);
        });
    }
}

#[test]
fn interim_answers_and_trailers_with_real_sockets() {
    for io in [IoChoice::Epoll, IoChoice::Uring] {
        serve(io, |address| {
            let mut client = Client::new(address);
            let expects = [("expect", "100-continue")];
            client.send(&request(1, false, "POST", "/read?hints=1", &expects));
            client.until(1, |reply| reply.status == 100);
            client.send(&frame(DATA, END_STREAM, 1, BODY));
            let reply = client.reply(1);
            assert_eq!((reply.status, &reply.interim[..], &reply.body[..]), (200, &[103, 100][..], BODY));

            client.send(&request(3, false, "POST", "/echo?trailers=1", &[]));
            client.send(&frame(DATA, END_STREAM, 3, BODY));
            let reply = client.reply(3);
            assert_eq!((&reply.body[..], reply.is_whole), (BODY, true));
            assert_eq!(reply.trailers, [("t".to_owned(), "x".to_owned())]);
            client.send(&request(5, true, "HEAD", "/echo?trailers=1", &[]));
            assert!(client.reply(5).is_whole && client.heard(5).trailers.is_empty());
        });
    }
}

/// Whatever becomes of a body, each byte of the connection's window comes back, and none comes twice.
#[test]
fn windows_are_given_back_once() {
    let ways = ["", "?at=1", "?at=1&hold=20ms", "?at=30000&step=700", "?at=5&then=wait", "?at=5&then=echo"];
    for io in [IoChoice::Epoll, IoChoice::Uring] {
        serve(io, |address| {
            let (mut client, mut shared) = (Client::new(address), FIRST_WINDOW_BYTES);
            for (stream, way) in (1..).step_by(2).zip(ways.iter().cycle().take(30)) {
                client.send(&request(stream, false, "POST", &format!("/read{way}"), &[]));
                send_body(&mut client, stream, 60_000, &mut shared);
                assert_eq!(client.heard(stream).status, 200, "{way}");
            }
            assert!(shared >= WINDOW_BYTES / 2, "{shared} bytes are left of the window");
        });
    }
}

/// Sends a body, as far as the windows of its stream and of the connection allow, until it is answered.
fn send_body(client: &mut Client, stream: u32, bytes: usize, shared: &mut usize) {
    let (mut left, mut room) = (bytes, FIRST_WINDOW_BYTES);
    loop {
        let count = left.min(room).min(*shared).min(16_384);
        if count > 0 {
            let flags = if count == left { END_STREAM } else { 0 };
            client.send(&frame(DATA, flags, stream, &vec![b'x'; count]));
            (left, room, *shared) = (left - count, room - count, *shared - count);
            continue;
        }
        if client.heard(stream).is_whole {
            return;
        }
        let heard = client.next().expect("an open connection");
        if let (WINDOW_UPDATE, Some(more)) = (heard.kind, heard.payload.first_chunk()) {
            let more = u32::from_be_bytes(*more) as usize;
            match heard.stream {
                0 => *shared += more,
                number => room += if number == stream { more } else { 0 },
            }
            assert!(*shared <= WINDOW_BYTES, "{shared} bytes may be sent");
        }
    }
}

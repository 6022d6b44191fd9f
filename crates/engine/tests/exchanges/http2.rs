//! Exchanges of HTTP/2, many on one connection, on epoll and on io_uring: bodies in both directions,
//! upstreams, pieces over time, answers that are given up.

use staunch_engine::IoChoice;

use crate::client::{Client, DATA, END_STREAM, RST_STREAM, frame, request, websocket};
use crate::real::serve;

const WAYS: [IoChoice; 2] = [IoChoice::Epoll, IoChoice::Uring];
/// More than all windows and buffers together.
const BYTES: usize = 3 << 20;

fn pattern(seed: u32) -> Vec<u8> {
    (0..BYTES as u32).map(|at| (at ^ (at >> 9) ^ seed) as u8).collect()
}

/// Sends bodies on several streams at a time, as far as windows allow, while the answers come.
fn exchange(client: &mut Client, streams: &[u32], bodies: &[Vec<u8>]) {
    let mut sent = vec![0; streams.len()];
    let (mut connection, mut windows) = (65_535_i64, vec![65_535_i64; streams.len()]);
    loop {
        for (index, stream) in streams.iter().enumerate() {
            let left = bodies[index].len() - sent[index];
            let count = (left as i64).min(connection).min(windows[index]).min(16_384);
            if count > 0 {
                let (start, end) = (sent[index], sent[index] + count as usize);
                let flags = if end == bodies[index].len() { END_STREAM } else { 0 };
                client.send(&frame(DATA, flags, *stream, &bodies[index][start..end]));
                sent[index] = end;
                connection -= count;
                windows[index] -= count;
            }
        }
        if streams.iter().all(|stream| client.heard(*stream).is_whole) {
            return;
        }
        let can_send = streams
            .iter()
            .enumerate()
            .any(|(index, _)| sent[index] < bodies[index].len() && connection > 0 && windows[index] > 0);
        if can_send {
            continue;
        }
        let Some(heard) = client.next() else { panic!("closed: {:?}", client.goaway()) };
        if let (8, Some(bytes)) = (heard.kind, heard.payload.first_chunk()) {
            let bytes = i64::from(u32::from_be_bytes(*bytes));
            match streams.iter().position(|stream| *stream == heard.stream) {
                Some(index) => windows[index] += bytes,
                None => connection += bytes,
            }
        }
    }
}

fn come_back(paths: [&str; 3]) {
    for io in WAYS {
        serve(io, |address| {
            let mut client = Client::new(address);
            let streams = [1, 3, 5];
            let bodies = [1, 2, 3].map(pattern);
            for (stream, path) in streams.into_iter().zip(paths) {
                client.send(&request(stream, false, "POST", path, &[]));
            }
            exchange(&mut client, &streams, &bodies);
            for (stream, body) in streams.into_iter().zip(&bodies) {
                let reply = client.heard(stream);
                assert_eq!((reply.status, reply.body.len()), (200, body.len()), "stream {stream}");
                assert!(reply.body == *body, "other bytes on stream {stream}");
            }
        });
    }
}

#[test]
fn bodies_come_back_side_by_side() {
    let length = format!("/echo?length={BYTES}");
    come_back(["/echo", &length, "/echo"]);
}

#[test]
fn bodies_come_back_of_upstreams() {
    let length = format!("/upstream?length={BYTES}");
    come_back(["/upstream", "/echo", &length]);
}

#[test]
fn a_body_is_collected_and_has_a_limit() {
    for io in WAYS {
        serve(io, |address| {
            let mut client = Client::new(address);
            client.send(&request(1, false, "POST", "/collect", &[]));
            client.send(&request(3, false, "POST", "/collect?limit=10", &[]));
            client.send(&request(5, true, "POST", "/collect", &[]));
            client.send(&frame(DATA, END_STREAM, 3, b"eleven byte"));
            client.send(&frame(DATA, 0, 1, b"one, "));
            client.send(&frame(DATA, END_STREAM, 1, b"two"));
            assert!(client.reply(1).body.ends_with(b"one, two"), "{:?}", client.heard(1));
            assert_eq!((client.reply(3).status, client.reply(5).status), (413, 200));
        });
    }
}

#[test]
fn pieces_come_over_time_on_each_stream() {
    for io in WAYS {
        serve(io, |address| {
            let mut client = Client::new(address);
            for stream in [1, 3, 5, 7] {
                client.send(&request(stream, true, "GET", "/drip?every=5ms&count=20", &[]));
            }
            // Stream 7 is taken back.
            while client.heard(7).body.is_empty() {
                client.next().expect("an open connection");
            }
            client.send(&frame(RST_STREAM, 0, 7, &8u32.to_be_bytes()));
            for stream in [1, 3, 5] {
                let reply = client.reply(stream);
                let lines = reply.body.iter().filter(|byte| **byte == b'\n').count();
                assert_eq!((reply.status, lines, reply.is_whole), (200, 20, true));
            }
        });
    }
}

/// What is never taken is held up to a bound, and what is given up is reset; the others do not notice.
#[test]
fn an_answer_is_given_up_alone() {
    for io in WAYS {
        serve(io, |address| {
            let mut client = Client::new(address);
            client.send(&request(1, true, "GET", "/flood?bytes=2000000", &[]));
            client.send(&request(3, true, "GET", "/cut?bytes=100000", &[]));
            client.send(&request(5, true, "HEAD", "/flood?bytes=1000", &[]));
            assert_eq!(client.reply(3).reset, Some(2), "INTERNAL_ERROR");
            assert!(client.reply(5).is_whole && client.heard(5).body.is_empty());
            assert_eq!(client.reply(1).body.len(), 2_000_000);
            assert_eq!(client.get(7, "/raw").status, 404, "nothing is upgraded");
        });
    }
}

/// Bytes of a tunnel come back as they are, however short; a success that is none begins no tunnel.
#[test]
fn a_tunnel_carries_bytes_both_ways() {
    for io in WAYS {
        serve(io, |address| {
            let mut client = Client::new(address);
            client.send(&websocket(1, "/raw", &[]));
            client.until(1, |reply| reply.status == 200);
            assert!(!client.heard(1).is_whole && client.heard(1).field("upgrade").is_none());
            let sent: Vec<u8> = (0..3_000_u32).map(|at| at as u8).collect();
            sent.iter().for_each(|byte| client.send(&frame(DATA, 0, 1, &[*byte])));
            client.until(1, |reply| reply.body.len() == sent.len());
            client.send(&frame(DATA, END_STREAM, 1, b"last"));
            assert_eq!(client.reply(1).body, [&sent[..], b"last"].concat());
            for (stream, path, status) in [(3, "/", 501), (5, "/flood?bytes=1000", 501), (7, "/absent", 404)]
            {
                client.send(&websocket(stream, path, &[]));
                let reply = client.reply(stream);
                assert_eq!((reply.status, reply.body.len(), reply.is_whole), (status, 0, true), "{path}");
            }
            client.send(&websocket(9, "/raw", &[]));
            client.send(&frame(DATA, 0, 9, b"early"));
            client.until(9, |reply| reply.body == b"early");
            client.send(&frame(RST_STREAM, 0, 9, &8u32.to_be_bytes()));
            assert_eq!(client.get(11, "/").body, b"plain\n");
        });
    }
}

#[test]
fn upstreams_that_are_not_there() {
    for io in WAYS {
        serve(io, |address| {
            let mut client = Client::new(address);
            client.send(&request(1, true, "GET", "/upstream?to=1", &[]));
            client.send(&request(3, true, "GET", "/upstream?to=9", &[]));
            assert_eq!((client.reply(1).status, client.reply(3).status), (502, 404));
        });
    }
}

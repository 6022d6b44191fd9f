//! The paper's protocol: a number and a newline, so many bytes, the end.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use staunch_lab::MODELS;

use crate::model::{Running, with_each};

/// Sends pieces with a moment between them, and takes what comes until the end.
fn answer_to(running: &Running, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = running.connect();
    stream.set_nodelay(true).expect("an option");
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        stream.write_all(piece).expect("a peer that reads");
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap_or_else(|error| panic!("{}: {error}", running.model.name));
    answer
}

#[test]
fn so_many_bytes_and_the_end() {
    with_each(|model| {
        let running = Running::start(model);
        for bytes in [0, 1, 4_000, 16_384, 1_000_000, 16 * 1024 * 1024] {
            assert_eq!(running.ask(bytes).ok(), Some(bytes), "{}", model.name);
        }
        running.end("after requests");
    });
}

#[test]
fn a_request_may_come_in_pieces() {
    with_each(|model| {
        let running = Running::start(model);
        for request in ["4000\n", "4000\r\n", "0004000\n"].iter().filter(|_| model.speaks_paper) {
            let bytes: Vec<&[u8]> = request.as_bytes().chunks(1).collect();
            assert_eq!(answer_to(&running, &bytes), [b'x'; 4000], "{}: {request:?}", model.name);
        }
        let request = running.request(4000);
        let bytes: Vec<&[u8]> = request.as_bytes().chunks(1).collect();
        assert!(answer_to(&running, &bytes).ends_with(&[b'x'; 4000]), "{}", model.name);
        running.end("after requests in pieces");
    });
}

/// No number, or one that is too large: the end, and not one byte.
#[test]
fn what_is_no_number_gets_nothing() {
    for model in MODELS.iter().filter(|model| model.speaks_paper) {
        let running = Running::start(model);
        for request in ["16777217\n", "99999999\n", "123456789", "12x\n", "1 2\n", "1-\n"] {
            let answer = answer_to(&running, &[request.as_bytes()]);
            assert!(answer.is_empty(), "{}: {request:?}: {} bytes", model.name, answer.len());
        }
        running.assert_serves();
        running.end("after refusals");
    }
}

/// A model that speaks HTTP only says so.
#[test]
fn who_speaks_http_only_refuses() {
    for model in MODELS.iter().filter(|model| !model.speaks_paper) {
        let running = Running::start(model);
        let answer = answer_to(&running, &[b"4000\n"]);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 400 "), "{}: {text}", model.name);
        running.end("after a refusal");
    }
}

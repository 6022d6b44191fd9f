//! Peers in no hurry: who brings a little all the time is waited for, who brings next to nothing is not.

use std::time::Duration;

use crate::client::{Client, ENGINES, REQUEST, served};

/// Sends a body of so many bytes in pieces, with a pause after each, until all is sent or the server has
/// enough. Returns the client and how many were sent.
fn send_slowly(mut client: Client, length: usize, piece: usize, pause: Duration) -> (Client, usize) {
    let head = format!("POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    client.send(head.as_bytes()).expect("a head is taken");
    client.receive().expect("an answer before the body");
    let mut sent = 0;
    while sent < length {
        let bytes = piece.min(length - sent);
        if client.is_closed() || client.send(&vec![b'x'; bytes]).is_err() {
            return (client, sent);
        }
        sent += bytes;
        std::thread::sleep(pause);
    }
    (client, sent)
}

#[test]
fn a_slow_body_is_waited_for_and_one_that_only_pretends_is_not() {
    for io in ENGINES {
        let (_tree, server) = served(&["--io", io, "--body-timeout", "2s"]);
        let address = server.address();
        let start = |length, piece| {
            std::thread::spawn(move || {
                send_slowly(Client::connect(address), length, piece, Duration::from_millis(250))
            })
        };
        // 40 bytes a second: its pauses are short, but it would take an hour.
        let pretender = start(140_000, 10);
        // 400 bytes a second for 15 seconds, longer than anybody may go without a minimum.
        let honest = start(6_000, 100);
        let (mut honest, sent) = honest.join().expect("a client");
        assert_eq!(sent, 6_000, "{io}: a slow phone was cut off");
        honest.send(REQUEST).expect("an open connection");
        assert_eq!(honest.receive().expect("an answer after the body").status, 200, "{io}");
        let (_, sent) = pretender.join().expect("a client");
        assert!(sent < 140_000, "{io}: {sent} bytes were waited for");
    }
}

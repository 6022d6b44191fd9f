//! Readers that take their answer slowly, or not at all.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use staunch_tests::body::SocketLink;
use staunch_tests::conversation::Content;
use staunch_tests::tree::bytes_of;

use crate::outside::{ENGINES, PATIENCE, get, server_of, tree_of, until_all_left};

const LENGTH_BYTES: u64 = 12_000_000;

/// A client with a small window that has asked for the big file.
fn small_window(address: std::net::SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    set_socket_recv_buffer_size(&stream, 16 * 1024).expect("a small window");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    stream
}

#[test]
fn a_slow_reader_gets_everything() {
    let tree =
        tree_of(&[("big.bin", Content::Pattern(LENGTH_BYTES)), ("a.txt", Content::Bytes(b"x".to_vec()))]);
    let wanted = bytes_of(&Content::Pattern(LENGTH_BYTES));
    for io in ENGINES {
        // Each pause is far below the deadline, all of them together are above it.
        let server = server_of(&tree, &["--io", io, "--send-timeout", "1s"]);
        let mut stream = small_window(server.address());
        let mut received = Vec::new();
        let mut buffer = vec![0; 300_000];
        loop {
            let length = stream.read(&mut buffer).unwrap_or_else(|error| panic!("{io}: {error}"));
            if length == 0 {
                break;
            }
            received.extend_from_slice(&buffer[..length]);
            if received.len() < 2_000_000 {
                std::thread::sleep(Duration::from_millis(15));
            }
        }
        assert!(received.ends_with(&wanted), "{io}: {} bytes came", received.len());
    }
}

#[test]
fn a_reader_that_takes_nothing_is_given_up() {
    let tree =
        tree_of(&[("big.bin", Content::Pattern(LENGTH_BYTES)), ("a.txt", Content::Bytes(b"x".to_vec()))]);
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io, "--send-timeout", "300ms"]);
        let streams: Vec<TcpStream> = (0..4).map(|_| small_window(server.address())).collect();
        assert_eq!(
            get(server.address(), "/a.txt").expect("an answer").body,
            b"x",
            "{io}: others are answered"
        );
        until_all_left(&server, &format!("{io}: readers that take nothing"));
        let mut received = Vec::new();
        for mut stream in streams {
            received.clear();
            // An end or a reset: either way the answer is not whole, and cannot be taken for it.
            // (What the kernel still holds comes faster through a wider window.)
            set_socket_recv_buffer_size(&stream, 4 << 20).expect("a wide window");
            let _ = stream.read_to_end(&mut received);
            assert!((received.len() as u64) < LENGTH_BYTES, "{io}: {} bytes came", received.len());
        }
    }
}

#[test]
fn a_writer_that_reads_nothing_is_held_back() {
    let tree = tree_of(&[("big.bin", Content::Pattern(100_000)), ("a.txt", Content::Bytes(b"x".to_vec()))]);
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io]);
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
        let requests = b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
        // 300 MB of requests would be answered with 10^12 bytes; the window must close long before.
        let mut sent_bytes = 0;
        while sent_bytes < 300_000_000 {
            match stream.write(&requests) {
                Ok(length) => sent_bytes += length,
                Err(_) => break,
            }
        }
        assert!(
            sent_bytes < 100_000_000,
            "{io}: {sent_bytes} bytes of requests were taken from who reads nothing"
        );
        let mut beside = SocketLink::connect(server.address()).expect("a connection");
        beside.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(crate::outside::receive(&mut beside).expect("an answer").body, b"x", "{io}");
    }
}

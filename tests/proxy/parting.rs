//! Long answers end: their readers leave, their servers reset them, and others are served all the same.

use std::process::Command;

use staunch_tests::process::binary;

use crate::scripted::{Scripted, play};
use crate::world::{Client, ENGINES, Told as _, World};

const UPGRADE: &[u8] =
    b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// Agrees to another protocol.
fn agree(application: &mut Scripted) {
    application.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n");
    application.send(b"Connection: Upgrade\r\n\r\n");
}

#[test]
fn the_reader_of_a_silent_stream_that_leaves_is_noticed() {
    for io in ENGINES {
        let (address, got) = play(|application, _| {
            application.head();
            application.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n");
            application.until(|_| false);
        });
        let world = World::proxy(io, &[address.to_string()], &[]);
        let mut client = Client::of(&world);
        client.send(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.read(true).status, 200, "{io}");
        assert!(got.recv().expect("a request").starts_with(b"GET /events"), "{io}");
        drop(client);
        assert_eq!(got.recv().expect("the end of the connection"), b"", "{io}");
    }
}

#[test]
fn how_websockets_end_says_nothing_of_their_server() {
    for io in ENGINES {
        // A server that closes with bytes that it did not read resets the connection.
        let (address, _got) = play(|application, _| {
            if !application.head().starts_with(b"GET /socket") {
                return application
                    .send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
            }
            agree(application);
            let mut one = [0];
            let _ = std::io::Read::read(&mut application.stream, &mut one);
        });
        let mut world = World::proxy(io, &[address.to_string()], &[]);
        for _ in 0..30 {
            let mut client = Client::of(&world);
            client.send(UPGRADE);
            assert_eq!(client.read(true).status, 101, "{io}");
            client.send(b"more than one byte");
            client.rest();
        }
        assert_eq!(world.metric("staunch_proxy_up", ""), 1.0, "{io}");
        assert_eq!(world.get("/page").text(), "ok", "{io}");
    }
}

#[test]
fn what_a_client_has_sent_reaches_a_server_that_has_ended() {
    for io in ENGINES {
        let (address, got) = play(|application, _| {
            application.head();
            agree(application);
            application.until(|bytes| !bytes.is_empty());
            application.send(b"bye");
            let _ = application.stream.shutdown(std::net::Shutdown::Write);
            application.until(|_| false);
        });
        let world = World::proxy(io, &[address.to_string()], &[]);
        let mut client = Client::of(&world);
        client.send(UPGRADE);
        assert_eq!(client.read(true).status, 101, "{io}");
        client.send(b"x");
        assert_eq!(client.rest(), b"bye", "{io}: both connections end");
        let _head = got.recv().expect("a request");
        assert_eq!((got.recv().ok(), got.recv().ok()), (Some(b"x".to_vec()), Some(Vec::new())), "{io}");
    }
}

#[test]
fn websockets_take_no_place_and_leave_links_for_others() {
    for io in ENGINES {
        let (address, _got) = play(|application, _| {
            if !application.head().starts_with(b"GET /socket") {
                return application
                    .send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
            }
            agree(application);
            application.until(|_| false);
        });
        // A trusted proxy that names nobody: none of its clients is told from others.
        let mut command = Command::new(binary());
        command.args(["proxy", &address.to_string(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--io", io, "--workers", "1", "--proxy-connections", "64"]);
        command.args(["--trusted-proxies", "127.0.0.1"]);
        let mut world = World::of(&mut command);
        let mut sockets = Vec::new();
        let refused = loop {
            let mut client = Client::of(&world);
            client.send(UPGRADE);
            let response = client.read(true);
            if response.status != 101 {
                break response;
            }
            sockets.push(client);
        };
        assert_eq!((sockets.len(), refused.status), (60, 503), "{io}");
        assert_eq!(world.metric("staunch_proxy_in_work", ""), 0.0, "{io}");
        for _ in 0..20 {
            assert_eq!(world.get("/page").text(), "ok", "{io}");
        }
    }
}

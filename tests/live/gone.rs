//! Readers whose peers are gone without a word: a tab that is lost, a process that is killed.

use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Command;

use staunch_protocol::websocket::Opcode;
use staunch_tests::house::waiting::until;
use staunch_tests::process::is_installed;

use crate::browsers::{Client, script};
use crate::restart::metric;
use crate::socket::TestSocket;
use crate::world::{ENGINES, World, connect};

/// Waits until nobody reads, and sees that nobody was asked for a sign of life meanwhile: whoever is gone is
/// not found by that.
fn are_gone(admin: SocketAddr, transport: &str, what: &str) {
    let readers = format!("staunch_live_readers{{transport=\"{transport}\"}}");
    until(what, || metric(admin, &readers) == 0);
    assert_eq!(metric(admin, "staunch_live_heartbeats_total"), 0, "{what}");
}

fn arrived(admin: SocketAddr, transport: &str) {
    let readers = format!("staunch_live_readers{{transport=\"{transport}\"}}");
    until("a reader", || metric(admin, &readers) == 1);
}

#[test]
fn a_websocket_whose_peer_is_gone_ends_with_it() {
    type Open = fn(&World) -> TestSocket;
    let kinds: [(&str, Open); 5] = [
        ("by URL", |world| TestSocket::open(world.address(), "/ws?topic=a", "")),
        ("nothing said", |world| TestSocket::open(world.address(), "/ws", "")),
        ("connected", |world| TestSocket::connect(world.address(), "/ws", "")),
        ("subscribed", |world| {
            let mut socket = TestSocket::connect(world.address(), "/ws", "");
            socket.subscribe("a", "");
            socket
        }),
        ("echo", |world| {
            let mut socket = TestSocket::open(world.address(), "/ws/echo", "");
            socket.send(Opcode::Text, b"x");
            assert_eq!(socket.text(), "x");
            socket
        }),
    ];
    for io in ENGINES {
        let world = World::with_settings(io, &["--admin", "127.0.0.1:0"], "live_echo = true");
        let admin = world.server.admin_address();
        for (kind, open) in kinds {
            // A process that is killed, and a peer that only sends no more.
            for half in [Shutdown::Both, Shutdown::Write] {
                let socket = open(&world);
                arrived(admin, "websocket");
                socket.stream.shutdown(half).expect("a connection of ours");
                are_gone(admin, "websocket", &format!("{io} {kind} {half:?}"));
            }
        }
    }
}

#[test]
fn a_stream_whose_peer_is_gone_ends_with_it() {
    let lines = ["1.1\r\nHost: a", "1.0", "1.1\r\nHost: a\r\nAccept-Encoding: gzip"];
    for io in ENGINES {
        let world = World::new(io, &["--admin", "127.0.0.1:0"]);
        let admin = world.server.admin_address();
        world.put("a", "1");
        for line in lines {
            for half in [Shutdown::Both, Shutdown::Write] {
                let mut stream: TcpStream = connect(world.address());
                let asked = format!("GET /events?topic=a HTTP/{line}\r\n\r\n");
                stream.write_all(asked.as_bytes()).expect("a server that reads");
                arrived(admin, "sse");
                stream.shutdown(half).expect("a connection of ours");
                are_gone(admin, "sse", &format!("{io} {line} {half:?}"));
            }
        }
    }
}

/// Over TLS, by a client that is killed. And what came by TLS is not for a page that came without.
#[test]
fn a_websocket_over_tls_ends_with_its_process() {
    if !is_installed("python3") {
        return;
    }
    for io in ENGINES {
        let state = staunch_tests::tree::Tree::new().expect("a folder");
        let folder = state.root().to_str().expect("a name of ours");
        let arguments = ["--admin", "127.0.0.1:0", "--tls", "local", "--tls-listen", "127.0.0.1:0"];
        let world = World::new(io, &[&arguments[..], &["--state-folder", folder]].concat());
        let address = world.server.secured_address();
        let admin = world.server.admin_address();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let open = |path: &str, scheme: &str| {
            let mut command = Command::new("python3");
            command.arg(script("tls_socket.py")).args([host.as_str(), port.as_str(), path]);
            let mut client = Client::start(command.arg(format!("{scheme}://{host}:{port}")));
            let status = client.line_with("status");
            (client, status)
        };
        for path in ["/ws?topic=a", "/ws"] {
            let (client, status) = open(path, "https");
            assert_eq!(status, "status 101", "{io}");
            arrived(admin, "websocket");
            drop(client);
            are_gone(admin, "websocket", &format!("{io} over TLS {path}"));
        }
        let (_, status) = open("/ws", "http");
        assert_eq!(status, "status 403", "{io}: who stands between could have written that page");
    }
}

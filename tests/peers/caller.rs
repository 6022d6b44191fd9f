//! Clients that connect from an address of their choice, and the server they connect to.
//!
//! It must never judge an answer.
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::Value;
use staunch_tests::conversation::{Change, Content};
use staunch_tests::process::{Server, binary};
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;

/// Both engines.
pub(crate) const ENGINES: [&str; 2] = ["epoll", "uring"];
/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const STATUS: &str = "/status.json";

/// A server with its tree.
pub(crate) struct Served {
    pub(crate) server: Server,
    _tree: Tree,
}

/// Serves a small file, `/a.txt`, at a free port of this address.
pub(crate) fn serve(listen: &str, arguments: &[&str]) -> Served {
    let file = Change::File { path: "a.txt".into(), content: Content::Bytes(b"hello\n".to_vec()) };
    let tree = Tree::with(&[file]).expect("a tree");
    let mut command = Command::new(binary());
    command.arg("serve").arg(tree.root()).args(["--listen", listen, "--status", STATUS]).args(arguments);
    let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
    Served { server, _tree: tree }
}

impl Served {
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A counter about clients, asked from an address that no test limits.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let observer: IpAddr = if self.address().is_ipv6() { "::1" } else { "127.0.0.99" }.parse().unwrap();
        let response = Caller::from(observer, self.address()).ask(STATUS, "").expect("the status page");
        let status: Value = serde_json::from_slice(&response.body).expect("JSON");
        status["clients"][name].as_u64().unwrap_or_else(|| panic!("{name} in {status}"))
    }
}

/// A client with one connection.
pub(crate) struct Caller {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Caller {
    /// Connects from an address of this machine.
    pub(crate) fn from(source: IpAddr, to: SocketAddr) -> Self {
        let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = socket(family, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddr::new(source, 0)).unwrap_or_else(|error| panic!("{source}: {error}"));
        connect(&socket, &to).unwrap_or_else(|error| panic!("{to}: {error}"));
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        Self { stream, received: Vec::new() }
    }

    /// Sends bytes. A broken connection shows itself in what is read.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Asks for a path, with further fields; nothing if the connection ends without an answer.
    pub(crate) fn ask(&mut self, path: &str, fields: &str) -> Option<Response> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes());
        self.receive()
    }

    /// The status of the answer to a request for the file; 0 without an answer.
    pub(crate) fn status(&mut self) -> u16 {
        self.ask("/a.txt", "").map_or(0, |response| response.status)
    }

    /// The next response, or nothing if the connection ends before it.
    pub(crate) fn receive(&mut self) -> Option<Response> {
        loop {
            if let Some((response, taken)) = Response::read(&self.received, false).expect("a response") {
                self.received.drain(..taken);
                return Some(response);
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing more came: {error}"),
            }
        }
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

//! What the tests of this suite share: one client, and waiting for something to become true.
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) use staunch_tests::house::waiting::until;
use staunch_tests::process::Server;
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;

/// The ways to the network.
pub(crate) const ENGINES: [&str; 2] = ["uring", "epoll"];
pub(crate) const REQUEST: &[u8] = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
/// The beginning of a request that can be finished with one more line end.
pub(crate) const BEGINNING: &[u8] = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n";
/// So long a test waits for what should happen much sooner.
const PATIENCE: Duration = Duration::from_secs(40);

/// A tree with one small file, and a server of it.
pub(crate) fn served(arguments: &[&str]) -> (Tree, Server) {
    let tree = Tree::with(&[]).expect("a tree");
    let server = Server::start(tree.root(), arguments).unwrap_or_else(|said| panic!("{said}"));
    (tree, server)
}

/// A client with one connection.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the kernel's queue has room");
        stream.set_read_timeout(Some(PATIENCE)).expect("an open socket");
        Self(stream)
    }

    /// Connects and sends.
    pub(crate) fn with(address: SocketAddr, bytes: &[u8]) -> Self {
        let mut client = Self::connect(address);
        client.send(bytes).expect("a small request is taken");
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// The next response.
    pub(crate) fn receive(&mut self) -> io::Result<Response> {
        let mut bytes = Vec::new();
        loop {
            if let Some((response, _)) = Response::read(&bytes, false).map_err(io::Error::other)? {
                return Ok(response);
            }
            let mut piece = [0; 4096];
            match self.0.read(&mut piece)? {
                0 => return Err(io::Error::other(format!("closed after {} bytes", bytes.len()))),
                count => bytes.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// Whether the server has closed, asked without waiting.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.set_nonblocking(true).expect("an open socket");
        let closed = match self.0.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        self.0.set_nonblocking(false).expect("an open socket");
        closed
    }
}

/// Waits until the start-up block, which goes on behind the line with the address, says this.
pub(crate) fn until_said(server: &Server, text: &str) {
    let mut said = Vec::new();
    until(text, || {
        said.extend(server.said());
        said.iter().any(|line| line.contains(text))
    });
}

/// Whether a new client is answered as usual.
pub(crate) fn is_served(address: SocketAddr) -> bool {
    Client::with(address, REQUEST).receive().is_ok_and(|response| response.status == 200)
}

//! What the tests here need of the world: requests over a socket, programs that may be missing, patience.
//!
//! It must never skip a test silently: a missing program is named, and is a failure when `CI` is true.
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use staunch_tests::body::SocketLink;
use staunch_tests::conversation::{Change, Content, escape};
use staunch_tests::process::Server;
pub(crate) use staunch_tests::process::is_installed;
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;

/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Both engines.
pub(crate) const ENGINES: [&str; 2] = ["epoll", "uring"];

/// A tree of these files.
pub(crate) fn tree_of(files: &[(&str, Content)]) -> Tree {
    let changes: Vec<Change> = files
        .iter()
        .map(|(path, content)| Change::File { path: path.to_string(), content: content.clone() })
        .collect();
    Tree::with(&changes).expect("a tree")
}

/// A server of a tree.
pub(crate) fn server_of(tree: &Tree, arguments: &[&str]) -> Server {
    Server::start(tree.root(), arguments).unwrap_or_else(|said| panic!("{said}"))
}

/// Sends a GET on a connection of its own and gives the response.
pub(crate) fn get(address: SocketAddr, path: &str) -> Result<Response, String> {
    let mut link = SocketLink::connect(address).map_err(|error| error.to_string())?;
    link.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes());
    receive(&mut link)
}

/// The next response of a connection.
pub(crate) fn receive(link: &mut SocketLink) -> Result<Response, String> {
    loop {
        if let Some((response, taken)) = Response::read(link.received(), false)? {
            link.take(taken);
            return Ok(response);
        }
        if let Some(end) = link.end() {
            return Err(format!("{end}, after: {}", escape(link.received())));
        }
        if !link.fill(PATIENCE) {
            return Err(format!("no more within {PATIENCE:?}, after: {}", escape(link.received())));
        }
    }
}

/// Waits until a server holds no connection any more.
pub(crate) fn until_all_left(server: &Server, what: &str) {
    let start = Instant::now();
    loop {
        let held = server.connections();
        if held.is_empty() {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: still held after {PATIENCE:?}:\n{}", held.join("\n"));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a program to its end and gives what it wrote to both outputs.
pub(crate) fn output_of(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

/// A script of `tests/clients`.
pub(crate) fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

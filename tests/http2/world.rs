//! A served folder, a server with an admin address, and what it has counted.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::waiting::{HANG, until};
use staunch_tests::process::{Server, binary};
use staunch_tests::tree::Tree;

/// The ways to the network.
pub(crate) const ENGINES: [&str; 2] = ["uring", "epoll"];

/// A server with an admin address, and the folder that it serves.
pub(crate) struct World {
    pub(crate) tree: Tree,
    pub(crate) server: Server,
    admin: SocketAddr,
    secured: Option<SocketAddr>,
}

impl World {
    /// The standard tree, and a server of it on this engine. `{}` in an argument is a folder for its files.
    pub(crate) fn new(io: &str, arguments: &[&str]) -> Self {
        Self::with_settings(io, "", arguments)
    }

    /// A server like that of `new`, with a file of settings.
    pub(crate) fn with_settings(io: &str, settings: &str, arguments: &[&str]) -> Self {
        let tree = Tree::with(&[]).expect("a tree");
        std::fs::write(settings_of(&tree), settings).expect("a file of ours");
        let folder = tree.root().parent().expect("a folder of its own").to_str().expect("text").to_owned();
        let arguments = arguments.iter().map(|argument| argument.replace("{}", &folder));
        let mut command = Command::new(binary());
        command.arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:0", "--workers", "1", "--io", io]);
        command.args(["--admin", "127.0.0.1:0", "--config"]).arg(settings_of(&tree)).args(arguments);
        let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        let mut said = Vec::new();
        let mut admin = None;
        until("the start-up block names the admin address", || {
            said.extend(server.said());
            admin = said.iter().find_map(|line: &String| {
                line.trim_start().strip_prefix("admin")?.trim_start().strip_prefix("http://")?.parse().ok()
            });
            admin.is_some()
        });
        let secured = said
            .iter()
            .find_map(|line| line.split_once("listening on https://")?.1.split('/').next()?.parse().ok());
        Self { tree, server, admin: admin.expect("an address"), secured }
    }

    /// Writes its file of settings anew.
    pub(crate) fn set(&self, settings: &str) {
        std::fs::write(settings_of(&self.tree), settings).expect("a file of ours");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The address at which the server speaks TLS.
    pub(crate) fn secured_address(&self) -> SocketAddr {
        self.secured.expect("a listener of TLS")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.server.process_id().cast_signed()).expect("a process");
        kill_process(process, signal).expect("a signal");
    }

    /// The value of a sample of the metrics.
    pub(crate) fn metric(&self, sample: &str) -> u64 {
        let text = say(self.admin, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let text = String::from_utf8_lossy(&text).into_owned();
        let found = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("no {sample} in {text}")).parse().expect("a number")
    }

    /// Waits until a sample has this value.
    pub(crate) fn until_metric(&self, sample: &str, value: u64) {
        until(&format!("{sample} {value}"), || self.metric(sample) == value);
    }
}

fn settings_of(tree: &Tree) -> PathBuf {
    tree.root().parent().expect("a folder of its own").join("settings.toml")
}

/// Sends bytes and reads until the server closes.
pub(crate) fn say(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("room in the queue");
    stream.set_read_timeout(Some(HANG)).expect("an open socket");
    stream.write_all(bytes).expect("a server that reads");
    let mut answer = Vec::new();
    // A reset after the answer is as good as an end.
    let _ = stream.read_to_end(&mut answer);
    answer
}

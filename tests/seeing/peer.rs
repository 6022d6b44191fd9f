//! A server with an admin address, and bytes sent to it as they are.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use staunch_tests::process::{Server, binary};
use staunch_tests::tree::Tree;

/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A served folder, a server, and where its admin address is.
pub(crate) struct Seen {
    pub(crate) server: Server,
    pub(crate) admin: SocketAddr,
    pub(crate) tree: Tree,
}

/// A server of a folder with `/ten` (ten bytes), an admin address, and these further flags. `{}` in them is a
/// folder for logs.
pub(crate) fn start(flags: &[&str]) -> Seen {
    start_workers("1", flags)
}

/// A server like that of `start`, with so many workers.
pub(crate) fn start_workers(workers: &str, flags: &[&str]) -> Seen {
    let tree = Tree::new().expect("a folder");
    std::fs::write(tree.root().join("ten"), b"0123456789").expect("a file");
    let logs = logs(&tree);
    std::fs::create_dir_all(&logs).expect("a folder");
    let flags: Vec<String> =
        flags.iter().map(|flag| flag.replace("{}", logs.to_str().expect("text"))).collect();
    let mut command = Command::new(binary());
    command.arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:0", "--workers", workers]);
    command.args(["--admin", "127.0.0.1:0"]).args(flags);
    let server = Server::spawn(&mut command).expect("a server");
    let admin = server.admin_address();
    Seen { server, admin, tree }
}

/// Where the logs stand: beside nothing that is served under a name that tests ask for.
pub(crate) fn logs(tree: &Tree) -> std::path::PathBuf {
    tree.root().join(".logs")
}

/// Sends bytes and reads until the peer closes.
pub(crate) fn say(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(bytes).expect("bytes sent");
    let mut answer = Vec::new();
    // A reset after the answer is as good as an end.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request that ends its connection.
pub(crate) fn get(address: SocketAddr, path: &str, fields: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
    say(address, head.as_bytes())
}

/// The body of an answer with status 200.
pub(crate) fn body(answer: &str) -> &str {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a blank line");
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    body
}

impl Seen {
    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.server.process_id().cast_signed()).expect("a process");
        kill_process(process, signal).expect("a signal");
    }

    /// Asks the admin address.
    pub(crate) fn ask(&self, path: &str) -> String {
        get(self.admin, path, "")
    }

    /// The answer of `/readyz` once what is served is prepared.
    pub(crate) fn readiness(&self) -> String {
        let mut answer = self.ask("/readyz");
        while answer.ends_with("preparing\n") {
            std::thread::sleep(Duration::from_millis(5));
            answer = self.ask("/readyz");
        }
        answer
    }

    /// The value of a sample of the metrics.
    pub(crate) fn metric(&self, sample: &str) -> f64 {
        let answer = self.ask("/metrics");
        let found = body(&answer).lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("no {sample} in {answer}")).parse().expect("a number")
    }

    /// Waits until a sample is at least so large.
    pub(crate) fn await_metric(&self, sample: &str, least: f64) {
        let start = Instant::now();
        while self.metric(sample) < least {
            assert!(start.elapsed() < PATIENCE, "{sample} is {} and not {least}", self.metric(sample));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The figures.
    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(body(&self.ask("/status.json"))).expect("JSON")
    }
}

/// The lines of a log, once there are so many.
pub(crate) fn await_lines(path: &Path, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count {
            assert_eq!(lines.len(), count, "{text}");
            return lines;
        }
        assert!(start.elapsed() < PATIENCE, "{} lines and not {count}:\n{text}", lines.len());
        std::thread::sleep(Duration::from_millis(5));
    }
}

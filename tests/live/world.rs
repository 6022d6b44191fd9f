//! A server with live data, publishers that wait for their answer, and readers that read event by event.
//!
//! It owns the process and its folder. Order: [`World::new`], then `publish` and `read` in any order.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use staunch_protocol::event_stream::{EventReader, ReadEvent};
use staunch_tests::process::{Server, binary};
use staunch_tests::tree::Tree;

/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Both engines.
pub(crate) const ENGINES: [&str; 2] = ["uring", "epoll"];
/// The secret of publishers.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server with live data, and its folder.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) tree: Tree,
}

impl World {
    /// A server on this engine with two workers and these further arguments.
    pub(crate) fn new(io: &str, arguments: &[&str]) -> Self {
        Self::with_settings(io, arguments, "")
    }

    /// A server like that of `new`, with further lines in its file of settings.
    pub(crate) fn with_settings(io: &str, arguments: &[&str], settings: &str) -> Self {
        Self::try_new(io, arguments, settings).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// A server with arguments and settings, or what the server said instead of serving.
    pub(crate) fn try_new(io: &str, arguments: &[&str], settings: &str) -> Result<Self, String> {
        Self::run(&binary(), io, arguments, settings)
    }

    /// `try_new` with another program than the one under test.
    pub(crate) fn run(program: &Path, io: &str, arguments: &[&str], settings: &str) -> Result<Self, String> {
        let text =
            |root: &str| format!("root = \"{root}\"\nlive = true\npublish_token = \"{TOKEN}\"\n{settings}\n");
        Self::of_file(program, io, arguments, text)
    }

    /// A server with the settings that `text` makes of the name of its folder.
    pub(crate) fn of_file(
        program: &Path,
        io: &str,
        arguments: &[&str],
        text: impl FnOnce(&str) -> String,
    ) -> Result<Self, String> {
        let tree = Tree::with(&[]).expect("a tree");
        let file = settings_file(&tree);
        std::fs::write(&file, text(tree.root().to_str().expect("a name of ours"))).expect("a file of ours");
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "2", "--io", io]);
        command.arg("--config").arg(&file).args(arguments);
        Ok(Self { server: Server::spawn(&mut command)?, tree })
    }

    /// The file of its settings.
    pub(crate) fn settings_file(&self) -> PathBuf {
        settings_file(&self.tree)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let number = i32::try_from(self.server.process_id()).expect("a number");
        kill_process(Pid::from_raw(number).expect("a process"), signal).expect("our own process");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Publishes JSON, and gives the version.
    pub(crate) fn publish(&self, body: &str) -> String {
        let answer = self.ask("POST", "/publish", &publisher("application/json"), body.as_bytes());
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
        answer.field("etag").expect("a version").trim_matches('"').to_owned()
    }

    /// Whether a topic has so many readers. The server tells publishers alone, so this publishes a value.
    pub(crate) fn has_readers(&self, topic: &str, expected: u64) -> bool {
        let body = format!("{{\"topic\":\"{topic}\",\"data\":1}}");
        let answer = self.ask("POST", "/publish", &publisher("application/json"), body.as_bytes());
        answer.text().contains(&format!("\"readers\":{expected}}}"))
    }

    /// Sets a topic's value.
    pub(crate) fn put(&self, topic: &str, value: &str) {
        let path = format!("/topics/{topic}");
        let answer = self.ask("PUT", &path, &publisher("text/plain"), value.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Sends a request on a connection of its own and gives the answer.
    pub(crate) fn ask(&self, method: &str, path: &str, lines: &str, body: &[u8]) -> Reply {
        ask(self.address(), method, path, lines, body)
    }

    /// A reader of `/events` with this query and further field lines; its head was received.
    pub(crate) fn read(&self, query: &str, lines: &str) -> Events {
        self.read_host("a", query, lines)
    }

    /// A reader of `/events` of a host.
    pub(crate) fn read_host(&self, host: &str, query: &str, lines: &str) -> Events {
        self.read_at(host, &format!("/events?{query}"), lines)
    }

    /// A reader of a stream of events at a path of a host.
    pub(crate) fn read_at(&self, host: &str, path: &str, lines: &str) -> Events {
        Events::open(self.address(), host, path, lines)
    }
}

fn settings_file(tree: &Tree) -> PathBuf {
    tree.root().parent().expect("a folder of its own").join("staunch.toml")
}

/// Field lines of a publisher.
pub(crate) fn publisher(content_type: &str) -> String {
    format!("Authorization: Bearer {TOKEN}\r\nContent-Type: {content_type}\r\n")
}

/// Sends a request on a connection of its own and gives the answer.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, lines: &str, body: &[u8]) -> Reply {
    ask_host("a", address, method, path, lines, body)
}

/// Sends a request to a host and gives the answer.
pub(crate) fn ask_host(
    host: &str,
    address: SocketAddr,
    method: &str,
    path: &str,
    lines: &str,
    body: &[u8],
) -> Reply {
    let mut stream = connect(address);
    let length = body.len();
    let lines = format!("Host: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{lines}\r\n");
    let head = format!("{method} {path} HTTP/1.1\r\n{lines}");
    stream.write_all(head.as_bytes()).expect("a server that reads");
    stream.write_all(body).expect("a server that reads");
    Reply::read(stream)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server that accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// An answer that was received to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Reads one from a connection that goes on, and tells how long its body is.
    pub(crate) fn next(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            bytes.extend(byte);
        }
        let mut reply = Self::of(&bytes);
        let length = reply.field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reply.body = vec![0; length];
        stream.read_exact(&mut reply.body).expect("a body");
        reply
    }

    /// Reads it from a connection that ends with it.
    pub(crate) fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        Self::of(&bytes)
    }

    fn of(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut reply = Self { status, head, body: bytes[end + 4..].to_vec() };
        if reply.field("transfer-encoding").is_some() {
            let mut chunks = Chunks::default();
            reply.body = chunks.read(&reply.body);
        }
        reply
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The chunked coding, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    input: Vec<u8>,
    left: usize,
    pub(crate) is_over: bool,
}

impl Chunks {
    pub(crate) fn read(&mut self, piece: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(piece);
        let mut data = Vec::new();
        while !self.is_over {
            if self.left > 2 {
                let count = (self.left - 2).min(self.input.len());
                data.extend(self.input.drain(..count));
                self.left -= count;
                if self.left > 2 {
                    break;
                }
            }
            if self.left > 0 {
                let count = self.left.min(self.input.len());
                self.input.drain(..count);
                self.left -= count;
                if self.left > 0 {
                    break;
                }
            }
            let Some(end) = self.input.windows(2).position(|two| two == b"\r\n") else { break };
            let line = String::from_utf8_lossy(&self.input[..end]).into_owned();
            self.input.drain(..end + 2);
            let size =
                usize::from_str_radix(&line, 16).unwrap_or_else(|_| panic!("no size of a chunk: {line:?}"));
            (self.left, self.is_over) = (size + 2, size == 0);
        }
        data
    }
}

/// A stream of events.
pub(crate) struct Events {
    pub(crate) stream: TcpStream,
    pub(crate) status: u16,
    pub(crate) head: String,
    chunks: Chunks,
    reader: EventReader,
    events: VecDeque<ReadEvent>,
    /// All that came, as it stands in the stream.
    text: Vec<u8>,
}

impl Events {
    /// A reader of a stream at a path of a host; its head was received.
    pub(crate) fn open(address: SocketAddr, host: &str, path: &str, lines: &str) -> Self {
        let mut stream = connect(address);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
        stream.write_all(head.as_bytes()).expect("a server that reads");
        Self::new(stream)
    }

    /// A reader that has asked on a connection; its head is received.
    pub(crate) fn new(mut stream: TcpStream) -> Self {
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            let count = stream.read(&mut piece).expect("a head");
            assert!(count > 0, "no head: {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&piece[..count]);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let (chunks, reader) = (Chunks::default(), EventReader::new());
        let (events, text) = (VecDeque::new(), Vec::new());
        let mut events = Self { stream, status, head, chunks, reader, events, text };
        if events.status == 200 {
            events.take(&bytes[end + 4..]);
        }
        events
    }

    fn take(&mut self, piece: &[u8]) {
        let data = self.chunks.read(piece);
        self.text.extend_from_slice(&data);
        let events = &mut self.events;
        self.reader.read(&data, |event| events.push_back(event)).expect("a stream of events");
    }

    /// The next event; `None` when the stream was ended in an orderly way.
    pub(crate) fn next(&mut self) -> Option<ReadEvent> {
        let mut piece = [0; 64 * 1024];
        while self.events.is_empty() {
            if self.chunks.is_over {
                return None;
            }
            match self.stream.read(&mut piece) {
                Ok(0) => panic!("the stream was cut off"),
                Ok(count) => self.take(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("no event came: {error}"),
            }
        }
        self.events.pop_front()
    }

    /// The data of the next event.
    pub(crate) fn data(&mut self) -> String {
        self.next().expect("another event").data
    }

    /// Reads until the stream has told when to come back, which it does first of all.
    pub(crate) fn begin(mut self) -> Self {
        let mut piece = [0; 4096];
        while self.reader.retry_ms().is_none() {
            let count = self.stream.read(&mut piece).expect("a beginning");
            assert!(count > 0, "the stream was cut off");
            self.take(&piece[..count]);
        }
        self
    }

    /// What the stream has sent up to its first blank line.
    pub(crate) fn beginning(&mut self) -> String {
        let mut piece = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&self.text).into_owned();
            if let Some(end) = text.find("\n\n") {
                return text[..end + 2].to_owned();
            }
            let count = self.stream.read(&mut piece).expect("a beginning");
            assert!(count > 0, "the stream was cut off");
            self.take(&piece[..count]);
        }
    }

    pub(crate) fn retry_ms(&self) -> Option<u64> {
        self.reader.retry_ms()
    }

    pub(crate) fn last_id(&self) -> &str {
        self.reader.last_id()
    }
}

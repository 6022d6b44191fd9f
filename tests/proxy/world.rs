//! A proxy before an application, and clients that speak to it.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::process::{Server, binary};
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;
use staunch_tests::truth::{Address, Plan, Truth};

/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Both engines.
pub(crate) const ENGINES: [&str; 2] = ["uring", "epoll"];

/// A proxy, and what stands behind it.
pub(crate) struct World {
    pub(crate) server: Server,
    admin: Option<SocketAddr>,
}

impl World {
    /// `staunch proxy` before these servers, with further arguments.
    pub(crate) fn proxy(io: &str, servers: &[String], arguments: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.arg("proxy").args(servers).args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--workers", "2", "--io", io]).args(arguments);
        Self { server: Server::spawn(&mut command).expect("a server"), admin: None }
    }

    /// `staunch serve` by a file of settings, in which `{root}` stands for a folder with a page.
    pub(crate) fn serve(io: &str, settings: &str) -> (Self, Tree) {
        let tree = Tree::with(&[]).expect("a tree");
        std::fs::create_dir(tree.root().join("www")).expect("a folder");
        std::fs::write(tree.root().join("www/page.txt"), "a file\n").expect("a file");
        let file = Self::settings_file(&tree);
        let text = settings.replace("{root}", tree.root().join("www").to_str().expect("a name of ours"));
        std::fs::write(&file, text).expect("a file");
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--workers", "2", "--io", io, "--config"]).arg(file);
        (Self { server: Server::spawn(&mut command).expect("a server"), admin: None }, tree)
    }

    /// The server that this command starts.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self { server: Server::spawn(command).expect("a server"), admin: None }
    }

    pub(crate) fn settings_file(tree: &Tree) -> PathBuf {
        tree.root().join("staunch.toml")
    }

    /// The answer to a request, given as its bytes, on a connection of its own.
    pub(crate) fn ask(&self, request: &str) -> Response {
        let mut client = Client::of(self);
        client.send(request.as_bytes());
        client.read(request.starts_with("HEAD "))
    }

    /// The answer to a GET.
    pub(crate) fn get(&self, path: &str) -> Response {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\n\r\n"))
    }

    /// Sends the server a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let number = i32::try_from(self.server.process_id()).expect("a number");
        kill_process(Pid::from_raw(number).expect("a process"), signal).expect("our own process");
    }

    /// The address for operators.
    pub(crate) fn admin(&mut self) -> SocketAddr {
        *self.admin.get_or_insert_with(|| self.server.admin_address())
    }

    /// The value of a metric of all servers, added up.
    pub(crate) fn metric(&mut self, name: &str, label: &str) -> f64 {
        let admin = self.admin();
        let mut client = Client::to(admin);
        client
            .send(format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n").as_bytes());
        let text = client.read(false).text();
        let lines =
            text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(label));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// Waits until so many requests in all stand in line or were refused. Gives how many were.
    pub(crate) fn await_line(&mut self, requests: f64) -> f64 {
        let began = std::time::Instant::now();
        loop {
            let refused = self.metric("staunch_proxy_refused_total", "");
            if refused + self.metric("staunch_proxy_waiting", "") >= requests {
                return refused;
            }
            assert!(began.elapsed() < PATIENCE, "{requests} requests do not come");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a metric is as wanted.
    pub(crate) fn await_metric(&mut self, name: &str, label: &str, wanted: impl Fn(f64) -> bool) -> f64 {
        let began = std::time::Instant::now();
        loop {
            let value = self.metric(name, label);
            if wanted(value) {
                return value;
            }
            assert!(began.elapsed() < PATIENCE, "{name} {label} stays {value}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// An application of this plan, and its address as the proxy is told it.
pub(crate) fn application(plan: Plan) -> (Truth, String) {
    let truth = Truth::start(plan).expect("a truth server");
    let address = match truth.address() {
        Address::Internet(address) => address.to_string(),
        Address::Unix(file) => format!("unix:{}", file.display()),
    };
    (truth, address)
}

/// A client's connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    left: Vec<u8>,
}

impl Client {
    pub(crate) fn of(world: &World) -> Self {
        Self::to(world.server.address())
    }

    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
        Self { stream, left: Vec::new() }
    }

    /// Connects from an address of this machine.
    pub(crate) fn from(source: IpAddr, to: SocketAddr) -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddr::new(source, 0)).expect("an address of this machine");
        connect(&socket, &to).expect("a connection");
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
        Self { stream, left: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// The next answer, which has an end of its own or ends with the connection.
    pub(crate) fn read(&mut self, without_body: bool) -> Response {
        loop {
            if let Some((response, bytes)) = Response::read(&self.left, without_body).expect("an answer") {
                self.left.drain(..bytes);
                return response;
            }
            assert!(self.more(), "the connection ended in {:?}", String::from_utf8_lossy(&self.left));
        }
    }

    /// All that comes until the connection ends.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.left)
    }

    fn more(&mut self) -> bool {
        let mut bytes = [0; 65_536];
        let count = self.stream.read(&mut bytes).unwrap_or(0);
        self.left.extend_from_slice(&bytes[..count]);
        count > 0
    }
}

/// Words of an answer.
pub(crate) trait Told {
    fn text(&self) -> String;
}

impl Told for Response {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A body in chunks of so many bytes.
pub(crate) fn chunked(body: &[u8], chunk_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(chunk_bytes) {
        let mut size = String::new();
        write!(size, "{:x}\r\n", chunk.len()).expect("a string");
        out.extend_from_slice(size.as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

//! What one request costs in instructions, in a machine whose clock counts them: `kernel-count`.
//!
//! It plays the client of each server and mode in turn. Each line it says is `count SERVER MODE WORK REQUESTS
//! NANOSECONDS`, or `canary NANOSECONDS` for a loop that costs the same wherever nothing else runs; where one
//! instruction takes one nanosecond, these are instructions of the whole machine, its client included. The
//! caller takes differences. Words name servers, where not all are meant. It must never be run outside of a
//! machine made for it.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Where the servers listen.
const PORT: u16 = 7007;
/// Connections that are kept.
const KEPT: usize = 8;
/// Requests of the shortest run, over connections that are kept, and with one connection each.
const REQUESTS_KEPT: usize = 2000;
const REQUESTS_NEW: usize = 800;
/// Requests over kept connections before any is counted: the first 250 of each cost more. With 64 KiB that a
/// peer has sent TCP costs more again, which is after the last of these.
const REQUESTS_BEFORE: usize = 4000;
/// Times that connections are opened, kept and counted: what comes by chance is less in the sum.
const KEPT_TIMES: usize = 2;
/// Turns of the loop that is counted before and after each server.
const CANARY_TURNS: u64 = 2_000_000;
/// How long the kernel may be busy with what closed connections leave behind (RCU, their last packets).
const LEFT_BEHIND: Duration = Duration::from_secs(2);
/// How long a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of the file in it, and of what kecho is asked for.
const BODY_BYTES: usize = 100;

/// Names of files in the folder that is listed: about as many as the one of the paper has.
const LISTED: usize = 30;
/// Names in the folders whose listings are sent whole and in pieces: a piece for each name, and those around.
const SENT: [usize; 3] = [1, 10, LISTED];
/// Requests of the shortest run for a listing, and before any is counted. They cost more than others, and are
/// more alike.
const REQUESTS_LISTED: usize = 400;
const LISTED_BEFORE: usize = 2400;

/// How a server ends that cannot have its mode under this kernel.
const NOT_HERE: i32 = 78;

/// Servers, with their modes. `behind` is `staunch` behind khttpd, which hands each connection over.
/// `listing` is khttpd, asked for a folder, which in mode `streamed` is read for each answer. `whole` and
/// `pieces` are khttpd, which sends the listing of so many names from the cache in one call, or in one for
/// each line. `timers` is khttpd, which keeps deadlines in other ways than `khttpd` does.
const SERVERS: [(&str, &[&str]); 8] = [
    ("kecho", &["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"]),
    ("khttpd", &["kthread", "wq", "ready", "softirq"]),
    ("staunch", &["epoll", "uring"]),
    ("behind", &["epoll", "uring"]),
    ("listing", &["streamed", "ready", "softirq"]),
    ("whole", &["1", "10", "30"]),
    ("pieces", &["1", "10", "30"]),
    ("timers", &["heap", "wheel"]),
];

/// A target, and how its answer is known to be whole.
#[derive(Debug, Clone, Copy)]
enum Asked {
    /// The file: so many bytes behind the head.
    File,
    /// The folder of so many names, sent by its length, or in chunks.
    Folder { names: usize, is_chunked: bool },
}

impl Asked {
    fn by(server: &str, mode: &str) -> Self {
        match server {
            "listing" => Self::Folder { names: LISTED, is_chunked: mode == "streamed" },
            "whole" | "pieces" => Self::Folder { names: mode.parse().unwrap_or_default(), is_chunked: false },
            _ => Self::File,
        }
    }

    fn request(self) -> String {
        let path = match self {
            Self::File => "100".to_owned(),
            Self::Folder { names, .. } => format!("listed-{names}/"),
        };
        format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    /// Requests of the shortest run, and before any is counted.
    fn requests(self) -> (usize, usize) {
        match self {
            Self::File => (REQUESTS_KEPT, REQUESTS_BEFORE),
            Self::Folder { .. } => (REQUESTS_LISTED, LISTED_BEFORE),
        }
    }

    /// The client is counted with the server, so it looks at a few bytes alone.
    fn is_whole(self, heard: &[u8]) -> bool {
        match self {
            Self::File => {
                heard.len().checked_sub(BODY_BYTES).is_some_and(|end| heard[..end].ends_with(b"\r\n\r\n"))
            }
            Self::Folder { is_chunked: true, .. } => heard.ends_with(b"\r\n0\r\n\r\n"),
            Self::Folder { is_chunked: false, .. } => heard.ends_with(b"</html>\n"),
        }
    }
}

fn main() -> ExitCode {
    match count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("kernel-count: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The folder that is served.
fn root() -> PathBuf {
    std::env::temp_dir().join("counted")
}

/// Makes the client an idle task, and with it each server that is a process: neither cuts in on the other,
/// each works until it waits, and only threads of the kernel cut in at once. Between ordinary tasks
/// the scheduler chooses by how long each has run, and a server costs 5 % more or less from time to time.
fn give_way() -> Result<(), String> {
    let client = std::process::id().to_string();
    run(Command::new("chrt").args(["--idle", "--pid", "0", &client]))
}

fn count() -> Result<(), String> {
    give_way()?;
    std::fs::create_dir_all(root())
        .and_then(|()| std::fs::write(root().join("100"), [b'x'; BODY_BYTES]))
        .and_then(|()| SENT.into_iter().try_for_each(make_folder))
        .map_err(|error| format!("{}: {error}", root().display()))?;
    let named: Vec<String> = std::env::args().skip(1).collect();
    let is_meant = |server: &str| named.is_empty() || named.iter().any(|name| name == server);
    for (server, modes) in SERVERS.iter().filter(|(server, _)| is_meant(server)) {
        for mode in *modes {
            count_one(server, mode).map_err(|error| format!("{server} {mode}: {error}"))?;
        }
    }
    Ok(())
}

/// Makes the folder with so many names.
fn make_folder(names: usize) -> io::Result<()> {
    let folder = root().join(format!("listed-{names}"));
    std::fs::create_dir_all(&folder)?;
    (0..names).try_for_each(|number| std::fs::write(folder.join(format!("source-{number}.c")), "x"))
}

/// Counts one server in one mode.
fn count_one(server: &str, mode: &str) -> Result<(), String> {
    let Some(running) = Running::begin(server, mode)? else { return Ok(()) };
    let said = |error: io::Error| error.to_string();
    canary();
    let asked = Asked::by(server, mode);
    for (times, spent) in (1..).zip(count_kept(asked).map_err(said)?) {
        let requests = times * asked.requests().0 * KEPT_TIMES;
        println!("count {server} {mode} kept {requests} {}", spent.as_nanos());
    }
    if let Asked::File = asked {
        count_new(server, mode).map_err(said)?;
    }
    std::thread::sleep(LEFT_BEHIND);
    canary();
    running.end()
}

/// Counts requests that have a connection each.
fn count_new(server: &str, mode: &str) -> io::Result<()> {
    new(REQUESTS_NEW / 4)?;
    for times in 1..=3 {
        let requests = times * REQUESTS_NEW;
        let spent = new(requests)?;
        println!("count {server} {mode} new {requests} {}", spent.as_nanos());
    }
    Ok(())
}

/// Costs of the three runs over connections that are kept. All three have the same ones: other connections
/// would be another beginning.
fn count_kept(asked: Asked) -> io::Result<[Duration; 3]> {
    let ((requests, before), request) = (asked.requests(), asked.request());
    let mut spent = [Duration::ZERO; 3];
    for _ in 0..KEPT_TIMES {
        let mut streams = (0..KEPT).map(|_| connect()).collect::<io::Result<Vec<_>>>()?;
        kept(&mut streams, asked, &request, before)?;
        for (times, spent) in (1..).zip(&mut spent) {
            *spent += kept(&mut streams, asked, &request, times * requests)?;
        }
    }
    Ok(spent)
}

/// A loop that nothing of the kernel is needed for.
fn canary() {
    let begin = Instant::now();
    let mut sum = 0u64;
    for turn in 0..CANARY_TURNS {
        sum = black_box(sum ^ turn);
    }
    println!("canary {}", begin.elapsed().as_nanos());
}

fn connect() -> io::Result<TcpStream> {
    let stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads a head and its body.
fn hear(stream: &mut TcpStream, asked: Asked, room: &mut [u8]) -> io::Result<()> {
    let mut heard = 0;
    loop {
        let count = stream.read(&mut room[heard..])?;
        heard += count;
        if asked.is_whole(&room[..heard]) {
            let is_right = room.starts_with(b"HTTP/1.1 200 OK\r\n");
            return if is_right { Ok(()) } else { Err(io::Error::other("it is no 200")) };
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Asks so many requests over these connections, one at a time on each; what that cost.
fn kept(streams: &mut [TcpStream], asked: Asked, request: &str, requests: usize) -> io::Result<Duration> {
    let mut room = [0; 65536];
    let begin = Instant::now();
    for _ in 0..requests / KEPT {
        for stream in &mut *streams {
            stream.write_all(request.as_bytes())?;
        }
        for stream in &mut *streams {
            hear(stream, asked, &mut room)?;
        }
    }
    Ok(begin.elapsed())
}

/// So many requests, each over a connection of its own that the server ends.
fn new(requests: usize) -> io::Result<Duration> {
    let mut room = [0; 1024];
    let begin = Instant::now();
    for _ in 0..requests {
        let mut stream = connect()?;
        stream.write_all(b"GET /100 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        hear(&mut stream, Asked::File, &mut room)?;
        if stream.read(&mut room)? != 0 {
            return Err(io::Error::other("more than the answer came"));
        }
    }
    Ok(begin.elapsed())
}

/// Whether the answer is the one that is to be counted: a folder that was changed lately is not kept yet.
fn is_answered_so(asked: Asked) -> io::Result<bool> {
    let mut stream = connect()?;
    stream.write_all(asked.request().replace("Host: a", "Host: a\r\nConnection: close").as_bytes())?;
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard)?;
    Ok(asked.is_whole(&heard))
}

/// A server that runs: a module, a process, or both.
struct Running {
    process: Option<Child>,
    module: Option<&'static str>,
}

impl Running {
    /// Begins; `None` where the mode is not to be had under this kernel.
    fn begin(server: &str, mode: &str) -> Result<Option<Self>, String> {
        let address = format!("127.0.0.1:{PORT}");
        let place = [format!("listen={address}"), format!("root={}", root().display())];
        let kecho = [format!("port={PORT}"), "speaks=lab".to_owned()];
        let mut running = Self { process: None, module: None };
        match server {
            "kecho" => running.load("kecho", &[&kecho[..], &[format!("mode={mode}")]].concat())?,
            "listing" => {
                let streamed = ["mode=ready".to_owned(), "cache_kib=0".to_owned()];
                let kept = [format!("mode={mode}")];
                let how: &[String] = if mode == "streamed" { &streamed } else { &kept };
                running.load("khttpd", &[&place[..], &["listing=1".to_owned()], how].concat())?;
            }
            "whole" | "pieces" => {
                let how = ["listing=1".to_owned(), format!("send={server}")];
                running.load("khttpd", &[&place[..], &how].concat())?;
            }
            "timers" => running.load("khttpd", &[&place[..], &[format!("timers={mode}")]].concat())?,
            "khttpd" => running.load("khttpd", &[&place[..], &[format!("mode={mode}")]].concat())?,
            "behind" => {
                running.load("khttpd", &[&place[..], &["hand_over=/100".to_owned()]].concat())?;
                running.serve(mode, &format!("127.0.0.1:{}", PORT + 1), &["--behind-khttpd"])?;
            }
            _ => running.serve(mode, &address, &[])?,
        }
        let begin = Instant::now();
        while new(1).is_err() || !is_answered_so(Asked::by(server, mode)).unwrap_or(false) {
            if running.is_not_here()? {
                running.end()?;
                return Ok(None);
            }
            if begin.elapsed() > PATIENCE {
                return Err("it does not begin to serve".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(running))
    }

    fn load(&mut self, module: &'static str, parameters: &[String]) -> Result<(), String> {
        run(Command::new("insmod").arg(format!("/modules/{module}.ko")).args(parameters))?;
        self.module = Some(module);
        Ok(())
    }

    fn serve(&mut self, io: &str, address: &str, words: &[&str]) -> Result<(), String> {
        let process = Command::new("staunch")
            .arg("serve")
            .arg(root())
            .args(["--workers", "1", "--io", io, "--listen", address])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.map_err(|error| format!("staunch: {error}"))?);
        Ok(())
    }

    fn is_not_here(&mut self) -> Result<bool, String> {
        let Some(process) = &mut self.process else { return Ok(false) };
        match process.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.code() == Some(NOT_HERE) => Ok(true),
            Some(status) => Err(format!("staunch: {status}")),
            None => Ok(false),
        }
    }

    fn end(self) -> Result<(), String> {
        if let Some(mut process) = self.process {
            process.kill().and_then(|()| process.wait()).map_err(|error| error.to_string())?;
        }
        self.module.map_or(Ok(()), |module| run(Command::new("rmmod").arg(module)))
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

//! The scenario of people who wait behind those who guess or say nothing: a right password beside guessing
//! connections, and `/healthz` beside silent peers.
//!
//! It owns the guessers and the silent peers. The longest time of each round is judged, because each person
//! waits for one answer.
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustix::net::{AddressFamily, SocketType};

use super::client::fetch;
use super::setting::Setting;
use super::setup::ServerKind;
use super::{content, machine};
use crate::report::{Direction, ScenarioOutcome};

const GUESSERS: usize = 240;
/// Right passwords in a round, each of a user who was not there before: the server remembers who was.
const USERS: usize = 5;
const COST: &str = "12";
const PASSWORD: &str = "sesame";
const RIGHT_MS_MAX: f64 = 2_000.0;
const SILENT: usize = 64;
const LOOKS: usize = 20;
const HEALTH_MS_MAX: f64 = 100.0;
const ONE: &str = "right password beside 240 guessers of one address, longest";
const MANY: &str = "right password beside 240 guessers of as many addresses, longest";
const HEALTH: &str = "/healthz beside 64 silent peers, longest";
const PATIENCE: Duration = Duration::from_secs(60);
/// All guessers have asked by then, and each waits for its answer.
const GATHERING: Duration = Duration::from_secs(3);

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "waiting",
        "a right password beside 240 guessers (bcrypt 12), /healthz beside 64 silent peers",
    );
    let kinds: Vec<ServerKind> = setting.chosen(&[ServerKind::Uring, ServerKind::Epoll]);
    setting.expect_steps(kinds.len() * setting.rounds as usize);
    for round in 1..=setting.rounds {
        for kind in &kinds {
            setting.step(&format!("{}, round {round}", kind.name()));
            if let Err(error) = measure(*kind, setting, &mut outcome) {
                outcome.errors.push(format!("{}: {error}", kind.name()));
            }
        }
    }
    for kind in kinds {
        outcome.judge(kind.name(), ONE, Direction::AtMost, RIGHT_MS_MAX, "ms");
        outcome.judge(kind.name(), MANY, Direction::AtMost, RIGHT_MS_MAX, "ms");
        outcome.judge(kind.name(), HEALTH, Direction::AtMost, HEALTH_MS_MAX, "ms");
    }
    outcome
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    for (what, many) in [(ONE, false), (MANY, true)] {
        // Started anew: who was found good is remembered.
        let server = Guarded::start(kind, setting)?;
        let guessers = Guessers::start(server.address, many);
        thread::sleep(GATHERING);
        let longest = longest_right(&server);
        if many {
            // Up to 240 checks still wait. Nobody is interested in them.
            drop(server);
            guessers.end();
            outcome.add(kind.name(), what, "ms", longest?.as_secs_f64() * 1e3);
            continue;
        }
        guessers.end();
        outcome.add(kind.name(), what, "ms", longest?.as_secs_f64() * 1e3);
        let longest = longest_look(server.admin)?;
        outcome.add(kind.name(), HEALTH, "ms", longest.as_secs_f64() * 1e3);
    }
    Ok(())
}

/// The longest of some logins, one after the other.
fn longest_right(server: &Guarded) -> Result<Duration, String> {
    let mut longest = Duration::ZERO;
    for user in 0..USERS {
        let began = Instant::now();
        loop {
            let status = ask(server.address, None, &format!("user{user}:{PASSWORD}"))?;
            if status == 200 {
                break;
            }
            if !matches!(status, 429 | 503) || began.elapsed() > PATIENCE {
                return Err(format!("a right password got {status}"));
            }
            thread::sleep(Duration::from_millis(100));
        }
        longest = longest.max(began.elapsed());
    }
    Ok(longest)
}

/// The longest of some looks at `/healthz`, with silent peers that come again when they are sent away.
fn longest_look(admin: SocketAddr) -> Result<Duration, String> {
    let connect = || TcpStream::connect(admin).map_err(|error| format!("the admin address: {error}"));
    let mut silent = (0..SILENT).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
    let mut longest = Duration::ZERO;
    for _ in 0..LOOKS {
        for peer in &mut silent {
            let gone = peer.set_nonblocking(true).is_err() || matches!(peer.read(&mut [0]), Ok(0));
            if gone {
                *peer = connect()?;
            }
        }
        let began = Instant::now();
        let status = fetch(admin, "/healthz")?.status;
        longest = longest.max(began.elapsed());
        if status != 200 {
            return Err(format!("/healthz got {status}"));
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(longest)
}

/// A server whose one site asks for passwords.
struct Guarded {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Guarded {
    fn start(kind: ServerKind, setting: &Setting) -> Result<Self, String> {
        let folder = setting.scratch.join("guarded");
        content::small_file(&folder, "a.txt", 100)?;
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (address, admin) = (local(machine::free_port()?), local(machine::free_port()?));
        let hash = hash(setting)?;
        let users: Vec<String> = (0..USERS).map(|user| format!("user{user} = {:?}", hash.trim())).collect();
        let settings = format!(
            "listen = [\"{address}\"]\nadmin = \"{admin}\"\nroot = {folder:?}\nworkers = 1\nio = \"{}\"\n\
             [[path]]\nmatch = \"/*\"\nbasic_auth = {{ users = {{ {} }} }}\n",
            kind.word(),
            users.join(", ")
        );
        let file = setting.scratch.join("guarded.toml");
        fs::write(&file, settings).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut command = Command::new(&setting.programs.staunch);
        command.arg("serve").arg("--config").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("staunch: {error}"))?;
        let server = Self { child, address, admin };
        let began = Instant::now();
        while fetch(admin, "/readyz").map_or(0, |reply| reply.status) != 200 {
            if began.elapsed() > PATIENCE {
                return Err("it does not become ready".to_owned());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // A child that has ended already needs no more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The hash of the right password, made by the program itself.
fn hash(setting: &Setting) -> Result<String, String> {
    let mut command = Command::new(&setting.programs.staunch);
    command.args(["password", "--algorithm", "bcrypt", "--cost", COST]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("staunch password: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(PASSWORD.as_bytes()).map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// Connections that try one wrong password after the other.
struct Guessers {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Guessers {
    fn start(address: SocketAddr, many: bool) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let threads = (0..GUESSERS)
            .map(|number| {
                let ends = Arc::clone(&ends);
                let host = if many { 10 + (number % 240) as u8 } else { 2 };
                thread::spawn(move || guess(address, Ipv4Addr::new(127, 0, 0, host), number, &ends))
            })
            .collect();
        Self { ends, threads }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // A guesser that failed has nothing to tell.
            let _ = thread.join();
        }
    }
}

fn guess(address: SocketAddr, own: Ipv4Addr, number: usize, ends: &AtomicBool) {
    let mut tries = 0_u64;
    while !ends.load(Ordering::Relaxed) {
        // Refusals and failures are answers too: the next guess follows at once, or after what was asked for.
        if !matches!(ask(address, Some(own), &format!("user0:{number}-{tries}")), Ok(401)) {
            thread::sleep(Duration::from_millis(200));
        }
        tries += 1;
    }
}

/// A request on a connection of its own: its status.
fn ask(address: SocketAddr, own: Option<Ipv4Addr>, credentials: &str) -> Result<u16, String> {
    let mut stream = connect(address, own).map_err(|error| format!("connect: {error}"))?;
    let waits = stream.set_read_timeout(Some(PATIENCE));
    let request = format!(
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {}\r\nConnection: close\r\n\r\n",
        BASE64_STANDARD.encode(credentials)
    );
    waits.and_then(|()| stream.write_all(request.as_bytes())).map_err(|error| error.to_string())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).map_err(|error| format!("receive: {error}"))?;
    let status = std::str::from_utf8(&head[9..]).ok().and_then(|text| text.parse().ok());
    status.ok_or_else(|| "no status".to_owned())
}

fn connect(address: SocketAddr, own: Option<Ipv4Addr>) -> std::io::Result<TcpStream> {
    let Some(own) = own else { return TcpStream::connect(address) };
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::net::bind(&socket, &SocketAddr::from((own, 0)))?;
    rustix::net::connect(&socket, &address)?;
    Ok(TcpStream::from(socket))
}

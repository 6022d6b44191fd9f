//! The scenario of peers that pipeline requests and never read: memory that each makes the server hold, what
//! is left of it afterwards, and whether a small control group survives them.
//!
//! It owns the peers and the control group. Only bytes and answers are judged, no times: a busy machine gives
//! the same figures.
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::client::fetch;
use super::process::{ProcessMemory, is_running};
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use super::{content, machine};
use crate::report::{Direction, ScenarioOutcome};

const FILE: &str = "1400.txt";
const PATH: &str = "/1400.txt";
const FILE_BYTES: usize = 1400;
/// Peers, and what each of them sends.
const PEERS: usize = 2_000;
const SENT_BYTES: usize = 16_000;
const EACH: &str = "memory that a peer makes it hold";
const LEFT: &str = "memory a minute after they left, of before";
const EACH_BYTES_MAX: f64 = 16.0 * 1024.0;
const LEFT_MAX: f64 = 1.2;
/// The server has dealt with all that came, and has given back what nobody holds.
const SETTLING_TIME: Duration = Duration::from_secs(12);
const AFTERWARDS: Duration = Duration::from_secs(60);
/// The small group, and the peers that crowd it.
const GROUP_BYTES: u64 = 48 << 20;
const GROUP_PEERS: usize = 4_000;
const GROUP_RUNS: usize = 10;
const ALIVE: &str = "runs survived in 48 MB";
const ANSWERED: &str = "others answered there, of 10 a run";
const OTHERS: usize = 10;

/// Runs the scenario. One round: what is measured does not depend on the speed of the machine.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "memory",
        "2 000 peers that pipeline 16 KB of requests and never read; 4 000 of them in a group of 48 MB",
    );
    let kinds = setting.chosen(&[ServerKind::Nginx, ServerKind::Uring, ServerKind::Epoll]);
    setting.expect_steps(2 * kinds.len());
    for kind in kinds {
        setting.step(kind.name());
        if let Err(error) = measure(kind, setting, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", kind.name()));
        }
        if !kind.is_ours() {
            continue;
        }
        setting.step(&format!("{}, 48 MB", kind.name()));
        match Group::new() {
            Ok(group) => crowd_group(kind, &group, setting, &mut outcome),
            Err(error) => outcome.errors.push(format!("no control group for memory can be made: {error}")),
        }
        outcome.judge(kind.name(), EACH, Direction::AtMost, EACH_BYTES_MAX, "B");
        outcome.judge(kind.name(), LEFT, Direction::AtMost, LEFT_MAX, "");
        outcome.judge(kind.name(), ALIVE, Direction::AtLeast, GROUP_RUNS as f64, "");
        outcome.judge(kind.name(), ANSWERED, Direction::AtLeast, (GROUP_RUNS * OTHERS) as f64, "");
    }
    outcome
}

/// Memory of one server, before, beside and after the peers.
fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let body = content::small_file(&folder, FILE, FILE_BYTES)?;
    let setup = Setup { connections_max: 8192, ..Setup::new(kind, &folder, FILE) };
    let server = setting.start(&setup, PATH, &body)?;
    // Encodings are prepared by then.
    sleep(SETTLING_TIME);
    let before = ProcessMemory::of(server.id());
    let peers = crowd(server.address, PEERS)?;
    sleep(SETTLING_TIME);
    let beside = ProcessMemory::of(server.id());
    if let Err(error) = server.check(PATH, &body) {
        outcome.note(format!("beside the peers: {error}"));
    }
    drop(peers);
    sleep(AFTERWARDS);
    let after = ProcessMemory::of(server.id());
    let held = beside.anonymous_bytes.saturating_sub(before.anonymous_bytes);
    let name = kind.name();
    outcome.add(name, EACH, "B", held as f64 / PEERS as f64);
    outcome.add(name, LEFT, "", after.anonymous_bytes as f64 / before.anonymous_bytes as f64);
    outcome.add(name, "anonymous memory before", "B", before.anonymous_bytes as f64);
    outcome.note(format!("{name}: {}", server.command));
    Ok(())
}

/// Peers that ask for more than fits into any socket, and read nothing.
fn crowd(address: SocketAddr, count: usize) -> Result<Vec<TcpStream>, String> {
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: a\r\n\r\n");
    let bytes = request.repeat(SENT_BYTES / request.len());
    let mut peers = Vec::new();
    for number in 0..count {
        let mut peer = TcpStream::connect_timeout(&address, Duration::from_secs(20))
            .map_err(|error| format!("peer {number}: {error}"))?;
        let prepared = set_socket_recv_buffer_size(&peer, 4096).map_err(Into::into);
        prepared.and_then(|()| peer.set_nonblocking(true)).map_err(|error| error.to_string())?;
        // What is not taken, or was refused already, need not be sent.
        let _ = peer.write(bytes.as_bytes());
        peers.push(peer);
    }
    Ok(peers)
}

/// A control group for memory, removed at the end.
struct Group(PathBuf);

impl Group {
    fn new() -> Result<Self, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let older = groups.lines().find_map(|line| line.split_once(":memory:"));
        let newer = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let (parent, file) = match (older, newer) {
            (Some((_, group)), _) => (format!("/sys/fs/cgroup/memory{group}"), "memory.limit_in_bytes"),
            (None, Some(group)) => (format!("/sys/fs/cgroup{group}"), "memory.max"),
            (None, None) => return Err("there are none".to_owned()),
        };
        let group = Self(Path::new(&parent).join(format!("staunch-bench-{}", std::process::id())));
        let made =
            fs::create_dir(&group.0).and_then(|()| fs::write(group.0.join(file), GROUP_BYTES.to_string()));
        made.map_err(|error| format!("{}: {error}", group.0.display()))?;
        Ok(group)
    }

    /// A server in it.
    fn start(&self, kind: ServerKind, folder: &Path, port: u16, setting: &Setting) -> Result<Child, String> {
        let join = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
        let mut command = Command::new("sh");
        command.arg("-c").arg(join).arg(&self.0).arg(&setting.programs.staunch).arg("serve").arg(folder);
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--io", kind.word()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map_err(|error| format!("sh: {error}"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let began = Instant::now();
        // The last process in it may still be ending.
        while fs::remove_dir(&self.0).is_err() && began.elapsed() < Duration::from_secs(5) {
            sleep(Duration::from_millis(50));
        }
    }
}

/// Crowds a small group again and again.
fn crowd_group(kind: ServerKind, group: &Group, setting: &Setting, outcome: &mut ScenarioOutcome) {
    let (mut alive, mut answered) = (0, 0);
    for run in 1..=GROUP_RUNS {
        match crowd_once(kind, group, setting) {
            Ok(count) => {
                alive += 1;
                answered += count;
            }
            Err(error) => outcome.note(format!("{}, 48 MB, run {run}: {error}", kind.name())),
        }
    }
    outcome.add(kind.name(), ALIVE, "", f64::from(alive));
    outcome.add(kind.name(), ANSWERED, "", answered as f64);
}

/// How many others were answered beside the crowd.
fn crowd_once(kind: ServerKind, group: &Group, setting: &Setting) -> Result<usize, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, machine::free_port()?));
    let mut child = group.start(kind, &setting.scratch.join("files"), address.port(), setting)?;
    let result = (|| {
        let began = Instant::now();
        while fetch(address, PATH).is_err() {
            if began.elapsed() > Duration::from_secs(10) {
                return Err("it does not answer".to_owned());
            }
            sleep(Duration::from_millis(20));
        }
        let peers = crowd(address, GROUP_PEERS);
        let answered =
            (0..OTHERS).filter(|_| fetch(address, PATH).is_ok_and(|reply| reply.status == 200)).count();
        if !is_running(child.id()) {
            return Err("it was killed".to_owned());
        }
        peers.map(|_| answered)
    })();
    super::process::end(&[child.id()]);
    // Collects the ended child; there is nothing to do about a failure.
    let _ = child.wait();
    result
}

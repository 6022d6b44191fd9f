//! A `staunch serve` process under test.
//!
//! It owns the process and ends it on drop. It must never outlive its test or use a port of its own choosing:
//! the kernel gives a free one, and the start-up block names it.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::house::skipping::skip;

/// How long a line or an end of a process is waited for: a limit for what hangs, far above a busy machine's
/// need.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    lines: Receiver<String>,
    complaints: Option<JoinHandle<String>>,
}

/// What a finished process said.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The program under test: `STAUNCH_BINARY`, else `staunch` beside the test's own folder of executables. The
/// instruments that it starts (`staunch load`) are `staunch-load`, beside it.
///
/// # Panics
/// When it was not built: the message says how to.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("STAUNCH_BINARY") {
        return path.into();
    }
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.parent().and_then(Path::parent).expect("a folder of executables");
    let path = folder.join("staunch");
    assert!(
        path.exists(),
        "{} is missing: run `cargo build -p staunch -p staunch-instruments` with the same profile first",
        path.display()
    );
    path
}

/// Makes a program of these bytes at `path`, with `mode` for its rights.
///
/// Another process writes it: what this one has open for writing, children that other tests start at that
/// moment have too, and a program that is open for writing cannot be run ("Text file busy").
///
/// # Panics
/// When a file cannot be written.
pub fn write_program(path: &Path, bytes: &[u8], mode: u32) {
    let source = path.with_extension("source");
    fs::write(&source, bytes).expect("a file");
    let status = Command::new("cp").args([&*source, path]).status().expect("cp");
    assert!(status.success(), "cp: {status}");
    fs::remove_file(source).expect("a file of ours");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a file of ours");
}

/// A command that serves a folder on a free port, to be extended by the caller.
pub fn serve(root: &Path) -> Command {
    let mut command = serve_nothing();
    command.arg(root);
    command
}

/// A command that serves on a free port what a file of settings says, to be extended by the caller.
pub fn serve_by(settings: &Path) -> Command {
    let mut command = serve_nothing();
    command.arg("--config").arg(settings);
    command
}

fn serve_nothing() -> Command {
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
    command
}

/// Runs a command to its end, with a limit of time so that no mistake hangs the test.
///
/// # Panics
/// When it cannot be started, or does not end within 20 s.
pub fn finish(command: &mut Command) -> Finished {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // Read meanwhile: who writes more than a pipe holds does not end before.
    let (stdout, stderr) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let (stdout, stderr) = (read_all(stdout), read_all(stderr));
    let status = await_end(&mut child, PATIENCE);
    if status.is_none() {
        let _ = child.kill();
    }
    let (stdout, stderr) = (stdout.join().expect("is read"), stderr.join().expect("is read"));
    let status = status.unwrap_or_else(|| panic!("{command:?} did not end.\n{stdout}\n{stderr}"));
    Finished { status, stdout, stderr }
}

/// Whether a program is installed. If not, the test that needs it says so and is over, or fails in CI.
///
/// # Panics
/// When it is missing and `CI` is true: where everything is meant to be tested, no test may say nothing.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

fn await_end(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < patience {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

impl Server {
    /// Starts a server of `root` with these arguments.
    ///
    /// # Errors
    /// What the process said, when it did not begin to listen.
    pub fn start(root: &Path, arguments: &[&str]) -> Result<Self, String> {
        Self::spawn(serve(root).args(arguments))
    }

    /// Starts a prepared command and waits for the line that names the address.
    ///
    /// # Errors
    /// What the process said, when it did not begin to listen.
    pub fn spawn(command: &mut Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let lines = read_lines(child.stdout.take().ok_or("no pipe")?);
        let mut said = String::new();
        let start = Instant::now();
        while let Ok(line) = lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
            if let Some(address) = address_in(&line) {
                let complaints = child.stderr.take().map(read_all);
                return Ok(Self { child, address, lines, complaints });
            }
            said.push_str(&line);
            said.push('\n');
        }
        let _ = child.kill();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let _ = child.wait();
        Err(format!("{command:?} did not say where it listens. It said:\n{said}"))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it speaks TLS: the next address of the start-up block that is one of https.
    ///
    /// # Panics
    /// When it says none.
    pub fn secured_address(&self) -> SocketAddr {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line with an address of https");
            if let Some((_, rest)) = line.split_once("listening on https://") {
                let address = rest.split('/').next().and_then(|address| address.parse().ok());
                return address.unwrap_or_else(|| panic!("no address: {line}"));
            }
        }
    }

    /// Its admin address: the next one of the start-up block.
    ///
    /// # Panics
    /// When it says none.
    pub fn admin_address(&self) -> SocketAddr {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line with an admin address");
            if let Some(rest) = line.trim_start().strip_prefix("admin") {
                let address = rest.trim_start().strip_prefix("http://").and_then(|text| text.parse().ok());
                return address.unwrap_or_else(|| panic!("no address: {line}"));
            }
        }
    }

    /// Its address as a URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its process number.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Lines of its standard output that came since the last call.
    pub fn said(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// All it says on standard output from the last call until it, and all it has started, have ended.
    pub fn last_words(&self) -> String {
        self.lines.iter().map(|line| line + "\n").collect()
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// How it ended, if it does within two minutes.
    pub fn end(&mut self) -> Option<ExitStatus> {
        await_end(&mut self.child, PATIENCE)
    }

    /// Processor time it has used, in milliseconds (`utime` and `stime` of `/proc/PID/stat`).
    ///
    /// # Panics
    /// When the process is gone.
    pub fn processor_time_ms(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.process_id());
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let fields = text.rsplit_once(") ").expect("a stat line").1;
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
        ticks * 1000 / rustix::param::clock_ticks_per_second()
    }

    /// Connections of its port that it holds, those of io_uring's own table included: their lines of
    /// `/proc/net/tcp`.
    ///
    /// # Panics
    /// When the kernel does not tell.
    pub fn connections(&self) -> Vec<String> {
        let table = fs::read_to_string("/proc/net/tcp").expect("the table of connections");
        let local = format!(":{:04X}", self.address.port());
        // Columns: 1 the local address, 3 the state (0A: the listener), 9 the inode (0: nobody's any more).
        let is_ours = |line: &&str| {
            let columns: Vec<&str> = line.split_ascii_whitespace().collect();
            matches!(columns[..], [_, here, _, state, _, _, _, _, _, inode, ..]
                if here.ends_with(&local) && state != "0A" && inode != "0")
        };
        table.lines().filter(is_ours).map(str::to_owned).collect()
    }

    /// Number of descriptors it holds.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.process_id());
        fs::read_dir(&path).unwrap_or_else(|error| panic!("{path}: {error}")).count()
    }
}

impl Drop for Server {
    /// Ends the process. A panic inside it fails the test, even if every answer was right.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        if said.contains("panicked") {
            eprintln!("the server on {} said:\n{said}", self.address);
            assert!(std::thread::panicking(), "the server panicked");
        }
    }
}

/// The address in a line of the start-up block such as `listening on http://127.0.0.1:8080/ (this machine only)`.
pub fn address_in(line: &str) -> Option<SocketAddr> {
    if !line.contains("listening on") {
        return None;
    }
    let (_, rest) = line.split_once("http://")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || ".:[]abcdef".contains(c))).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { return };
            // A test that no longer listens does not stop the pipe from being read.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Reads a pipe to its end on a thread of its own, so that its writer never blocks.
fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = pipe.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// The hash by which a browser is told to trust the key of the server at an address
/// (`--ignore-certificate-errors-spki-list`). Where it passes over all errors instead, it keeps nothing in
/// its cache and follows no early hints.
///
/// # Panics
/// When nobody there shows a certificate.
pub fn key_hash(address: SocketAddr) -> String {
    let script = "openssl s_client -connect \"$1\" </dev/null 2>/dev/null | openssl x509 -pubkey -noout \
                  | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64";
    let output = Command::new("sh").args(["-c", script, "sh", &address.to_string()]).output();
    let hash = String::from_utf8(output.expect("sh").stdout).expect("text").trim().to_owned();
    assert!(!hash.is_empty(), "no certificate");
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_the_start_up_line() {
        assert_eq!(address_in("  listening on http://127.0.0.1:4711"), "127.0.0.1:4711".parse().ok());
        assert_eq!(address_in("listening on http://[::1]:80/ (this machine only)"), "[::1]:80".parse().ok());
        assert_eq!(address_in("staunch 0.1"), None);
    }
}

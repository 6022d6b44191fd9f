//! A model that serves in a process of its own, be it under strace, for as long as it is measured.
//!
//! It owns the process and ends it on drop. It must never let strace outlive it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio, id};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

use super::strace;
use crate::syscall::end_with_us;

/// What strace is told: all threads and processes, when and how long, no signals, no content of buffers; to
/// pass on what it is ended by.
const STRACE: [&str; 11] =
    ["-I", "2", "-f", "-ttt", "-T", "--syscall-times=ns", "-qq", "-e", "signal=none", "-s", "0"];
const WITHOUT_STRACE: &str = "strace is not installed: `cargo xtask install --for test` or `apt-get install \
                              strace` brings it";
const NOT_ALLOWED: &str = "a process may not trace another here: /proc/sys/kernel/yama/ptrace_scope must not \
                           be 3, and a container needs the capability SYS_PTRACE";

/// A model that serves.
pub(super) struct Served {
    /// The model, or strace, whose child it is.
    child: Child,
    /// What strace has written.
    trace: Option<File>,
    stdout: BufReader<ChildStdout>,
    /// Where it listens.
    pub(super) address: SocketAddr,
}

impl Served {
    /// Starts `PROGRAM lab serve MODEL --pool N`, be it under strace, and waits until it listens.
    ///
    /// # Errors
    /// There is no strace, it may not trace, or the model does not come up: with what was said.
    pub(super) fn start(program: &Path, model: &str, pool: u16, traced: bool) -> Result<Self, String> {
        let trace = traced.then(trace_file).transpose().map_err(|error| format!("memfd_create: {error}"))?;
        let mut command = match &trace {
            Some(file) => {
                let mut command = Command::new("strace");
                command.args(STRACE).arg(format!("--output=/proc/{}/fd/{}", id(), file.as_raw_fd()));
                command.arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(["lab", "serve", model, "--pool", &pool.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_us(&mut command);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if traced => WITHOUT_STRACE.to_owned(),
            _ => format!("{model} cannot be started: {error}"),
        })?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let mut line = String::new();
        let _ = stdout.read_line(&mut line);
        let address = line.trim_end().strip_prefix("listening on http://").and_then(|text| text.parse().ok());
        match address {
            Some(address) => Ok(Self { child, trace, stdout, address }),
            None => Err(complaint(child, model)),
        }
    }

    /// Tells it to end, waits until it has, and returns what strace wrote, empty without.
    ///
    /// # Errors
    /// It did not end well.
    pub(super) fn end(mut self) -> Result<String, String> {
        let said = |error| format!("the model cannot be ended: {error}");
        self.tell(Signal::TERM).map_err(said)?;
        let _ = self.stdout.read_to_string(&mut String::new());
        let status = self.child.wait().map_err(said)?;
        if !status.success() {
            return Err(format!("the model did not end well: {status}"));
        }
        self.written().map_err(|error| format!("what strace wrote cannot be read: {error}"))
    }

    fn tell(&self, signal: Signal) -> io::Result<()> {
        let model = match self.trace {
            Some(_) => strace::first_process(&self.written()?),
            None => Some(self.child.id() as i32),
        };
        match model.and_then(Pid::from_raw) {
            Some(process) => Ok(kill_process(process, signal)?),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn written(&self) -> io::Result<String> {
        let Some(file) = &self.trace else { return Ok(String::new()) };
        // Opened anew: it has a place of its own to read from.
        let bytes = std::fs::read(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Children of a model end with it, and strace when it has nobody to trace.
            if self.tell(Signal::KILL).is_err() {
                let _ = self.child.kill();
            }
            let _ = self.child.wait();
        }
    }
}

/// A file in memory: nothing is left behind, whatever happens.
fn trace_file() -> io::Result<File> {
    Ok(memfd_create("strace", MemfdFlags::CLOEXEC)?.into())
}

/// Why it does not listen.
fn complaint(mut child: Child, model: &str) -> String {
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    let _ = child.wait();
    let said = said.trim();
    if said.contains("ptrace") || said.contains("PTRACE") {
        return format!("{NOT_ALLOWED} ({})", said.lines().next().unwrap_or_default());
    }
    format!("{model} does not come up: {said}")
}

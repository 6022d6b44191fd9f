//! A model in a process of its own, and what it may not leave behind.
//!
//! It owns how a model is started, asked and ended. It must never know what is tested.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use staunch_lab::{MODELS, Model};
use staunch_tests::process::{self, Server};

/// Processes or threads of a pool under test: few, so that it is easily busy.
pub(crate) const POOL: usize = 3;
/// A limit for what hangs, not a measurement.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a test with every model, and names the one at work for when it fails.
pub(crate) fn with_each(test: impl Fn(&'static Model)) {
    for model in MODELS {
        println!("{}", model.name);
        test(model);
    }
}

/// A model that serves.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) model: &'static Model,
}

impl Running {
    pub(crate) fn start(model: &'static Model) -> Self {
        Self::start_with(model, "true", &[])
    }

    /// Starts it with further arguments, behind a command of the shell such as `ulimit -n 40`.
    pub(crate) fn start_with(model: &'static Model, before: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(process::binary());
        command.args(["lab", "serve", model.name, "--pool", &POOL.to_string()]).args(arguments);
        let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{}: {said}", model.name));
        Self { server, model }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A connection that has said nothing yet.
    pub(crate) fn connect(&self) -> TcpStream {
        self.try_connect().unwrap_or_else(|error| panic!("{}: {error}", self.model.name))
    }

    /// A connection that has said nothing yet, or why there is none: who is sent away at once hears a reset
    /// before he knows that he was connected.
    pub(crate) fn try_connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address(), PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// A request for so many bytes in the language of the model, after which it closes.
    pub(crate) fn request(&self, bytes: usize) -> String {
        if self.model.speaks_paper {
            format!("{bytes}\n")
        } else {
            format!("GET /{bytes} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        }
    }

    /// Asks for so many bytes, takes them, and sees the end.
    ///
    /// # Errors
    /// What went wrong on the way.
    pub(crate) fn ask(&self, bytes: usize) -> std::io::Result<usize> {
        let mut stream = self.try_connect()?;
        stream.write_all(self.request(bytes).as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer.iter().rev().take_while(|byte| **byte == b'x').count())
    }

    /// Asserts that it serves, be it after a while: what tests have left must be dealt with first.
    pub(crate) fn assert_serves(&self) {
        let start = Instant::now();
        loop {
            match self.ask(4000) {
                Ok(4000) => return,
                other if start.elapsed() > PATIENCE => panic!("{}: {other:?}", self.model.name),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Its child processes.
    pub(crate) fn children(&self) -> Vec<u32> {
        let process_id = self.server.process_id();
        let path = format!("/proc/{process_id}/task/{process_id}/children");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        text.split_ascii_whitespace().map(|number| number.parse().expect("a number")).collect()
    }

    /// Asserts that orphans run no more. Whoever has inherited them may take his time to reap them.
    pub(crate) fn assert_gone(&self, orphans: &[u32]) {
        let runs = |process: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
        };
        let start = Instant::now();
        while orphans.iter().any(runs) {
            assert!(start.elapsed() < PATIENCE, "{}: children outlive it", self.model.name);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Tells it to end, and asserts that it does and that nothing is left: no process, no zombie, no port.
    pub(crate) fn end(mut self, state: &str) {
        let name = self.model.name;
        let process_id = self.server.process_id();
        let children = self.children();
        tell(process_id, Signal::TERM);
        let status = self.server.end().unwrap_or_else(|| panic!("{name}, {state}: it does not end"));
        assert_eq!(status.code(), Some(0), "{name}, {state}");
        for child in children {
            let left = std::fs::read_to_string(format!("/proc/{child}/stat"));
            assert!(left.is_err(), "{name}, {state}: a child is left: {left:?}");
        }
        let address = self.address();
        let bound = TcpListener::bind(address);
        assert!(bound.is_ok(), "{name}, {state}: the port is taken: {bound:?}");
    }
}

/// Sends a signal to a process of ours.
pub(crate) fn tell(process_id: u32, signal: Signal) {
    let process = Pid::from_raw(process_id as i32).expect("a number of a process");
    kill_process(process, signal).expect("a process of ours");
}

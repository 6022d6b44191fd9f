//! Two network namespaces joined by a veth: the server's, with a gate, and the clients'.
//!
//! It owns both and every process in them. It must never change anything outside of them.
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{self, Finished};

/// The server's end of the veth.
pub(crate) const INTERFACE: &str = "vs";
/// Where servers listen.
pub(crate) const SERVER: &str = "10.0.0.1";
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// The two namespaces, each held by a process.
pub(crate) struct World {
    server: Child,
    client: Child,
}

impl World {
    /// Makes both, with `vs` at the server and `vc` at the clients. Nothing without the right to.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root may make namespaces and load programs");
            return None;
        }
        let (server, client) = (hold(), hold());
        let world = Self { server, client };
        world.join(INTERFACE, "vc", 0);
        world.at_server("ip link set lo up");
        world.at_server("sysctl -qw net.core.somaxconn=4096 net.ipv4.tcp_max_syn_backlog=4096");
        Some(world)
    }

    /// Adds a veth, in a network of its own: the server has address 1 in it, clients 2.
    pub(crate) fn join(&self, ours: &str, theirs: &str, network: u8) {
        let client = self.client.id();
        self.at_server(&format!("ip link add {ours} type veth peer name {theirs} netns {client}"));
        self.at_server(&format!("ip address add 10.0.{network}.1/24 dev {ours} && ip link set {ours} up"));
        self.at_clients(&format!(
            "ip address add 10.0.{network}.2/24 dev {theirs} && ip link set {theirs} up"
        ));
    }

    /// A third namespace, joined to the server's by one more veth. Neither end has an address or is up.
    pub(crate) fn third(&self, ours: &str, theirs: &str) -> Third {
        let third = Third { holder: hold() };
        let holder = third.holder.id();
        self.at_server(&format!("ip link add {ours} type veth peer name {theirs} netns {holder}"));
        third.run("ip link set lo up");
        third
    }

    /// A command in the server's namespace.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        entered(&self.server, program)
    }

    /// A command in the clients'.
    pub(crate) fn client_command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        entered(&self.client, program)
    }

    /// A line of the shell in the server's namespace, which must succeed; what it wrote.
    pub(crate) fn at_server(&self, line: &str) -> String {
        shell(&self.server, line)
    }

    /// A line of the shell in the clients' namespace, which must succeed; what it wrote.
    pub(crate) fn at_clients(&self, line: &str) -> String {
        shell(&self.client, line)
    }

    /// Runs something on a thread in the clients' namespace.
    pub(crate) fn client<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        on_thread(&self.client, work)
    }

    /// Runs something on a thread in the server's namespace.
    pub(crate) fn server<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        on_thread(&self.server, work)
    }

    /// A gate on the interface with these arguments, once it stands.
    pub(crate) fn gate(&self, arguments: &[&str]) -> Gate {
        let mut command = self.command(process::binary());
        command.args(["gate", "--interface", INTERFACE]).args(arguments);
        let gate = Gate::spawn(&mut command);
        gate.await_line("shed ");
        gate
    }

    /// A gate that does not come to stand.
    pub(crate) fn no_gate(&self, arguments: &[&str]) -> Finished {
        process::finish(self.command(process::binary()).arg("gate").args(arguments))
    }

    /// The figures of the gate here.
    pub(crate) fn status(&self) -> Value {
        let finished =
            process::finish(self.command(process::binary()).args(["gate", "status", "--json", "--once"]));
        assert!(finished.status.success(), "{finished:?}");
        serde_json::from_str(&finished.stdout).expect("a snapshot")
    }

    /// The figures once they are as expected.
    pub(crate) fn await_status(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let status = self.status();
            if is_so(&status) {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "{what} did not come true: {status:#}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether a program is on an interface of the server's.
    pub(crate) fn has_program(&self, interface: &str) -> bool {
        self.at_server(&format!("ip -details link show dev {interface}")).contains("prog/xdp")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for holder in [&mut self.server, &mut self.client] {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// A host behind the server's.
pub(crate) struct Third {
    holder: Child,
}

impl Third {
    /// A line of the shell there, which must succeed.
    pub(crate) fn run(&self, line: &str) {
        shell(&self.holder, line);
    }

    /// A listener there.
    pub(crate) fn listen(&self, address: &'static str) -> TcpListener {
        let listen = move || TcpListener::bind(address).expect("a listener");
        on_thread(&self.holder, listen).join().expect("a listener")
    }
}

impl Drop for Third {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A process that keeps a network namespace alive.
fn hold() -> Child {
    let mut command = Command::new("unshare");
    command.args(["--net", "sleep", "1000"]).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().expect("unshare");
    let ours = std::fs::read_link("/proc/self/ns/net").expect("our namespace");
    let namespace = format!("/proc/{}/ns/net", child.id());
    until("a namespace", || std::fs::read_link(&namespace).is_ok_and(|theirs| theirs != ours));
    child
}

fn entered(holder: &Child, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{}/ns/net", holder.id())).arg(program);
    command
}

fn shell(holder: &Child, line: &str) -> String {
    let output = entered(holder, "sh").args(["-c", line]).output().expect("nsenter");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn on_thread<T: Send + 'static>(holder: &Child, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let namespace = File::open(format!("/proc/{}/ns/net", holder.id())).expect("a namespace");
    thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("setns");
        work()
    })
}

/// A running `staunch gate`.
pub(crate) struct Gate {
    child: Child,
    lines: Receiver<String>,
    heard: std::cell::RefCell<Vec<String>>,
}

impl Gate {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("our program");
        let (sender, lines) = mpsc::channel();
        let stdout: Box<dyn Read + Send> = Box::new(child.stdout.take().expect("a pipe"));
        let stderr: Box<dyn Read + Send> = Box::new(child.stderr.take().expect("a pipe"));
        for pipe in [stdout, stderr] {
            let sender = sender.clone();
            thread::spawn(move || {
                BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        Self { child, lines, heard: std::cell::RefCell::default() }
    }

    /// Waits for a line with these words; those before it are remembered.
    pub(crate) fn await_line(&self, words: &str) -> String {
        let start = Instant::now();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
            self.heard.borrow_mut().push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
        panic!("nothing with `{words}` was said, but: {:#?}", self.heard.borrow());
    }

    /// All it has said until now.
    pub(crate) fn said(&self) -> Vec<String> {
        self.heard.borrow_mut().extend(self.lines.try_iter());
        self.heard.borrow().clone()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        kill_process(process, signal).expect("a process of ours");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it by this signal.
    pub(crate) fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        until("the end", || !self.is_running());
        self.child.wait().expect("a child of ours")
    }
}

impl Drop for Gate {
    /// The gate may end in order, so that it leaves no socket. A panic of the loop fails the test.
    fn drop(&mut self) {
        if self.is_running() {
            self.signal(Signal::TERM);
            let start = Instant::now();
            while self.is_running() && start.elapsed() < Duration::from_secs(5) {
                thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.said().join("\n");
        assert!(!said.contains("panicked") || thread::panicking(), "{said}");
    }
}

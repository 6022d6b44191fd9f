//! A LAN of namespaces, and the nodes that run in it.
//!
//! It owns all of them and every process in them. It must never change anything outside.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use staunch_tests::house::waiting::{HANG, until};
use staunch_tests::process;

static LANS: AtomicU32 = AtomicU32::new(0);

/// Node `n` has the interface `dv` and the address 10.88.0.n, counted from 1.
pub(crate) struct Lan {
    name: String,
    nodes: usize,
}

impl Lan {
    /// Makes it. Nothing without the right to.
    pub(crate) fn new(nodes: usize) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root may make namespaces");
            return None;
        }
        let name = format!("dostp-t{}-{}", std::process::id(), LANS.fetch_add(1, Ordering::Relaxed));
        let lan = Self { name, nodes };
        let hub = format!("{}-hub", lan.name);
        ip(&format!("netns add {hub}"));
        ip(&format!("-n {hub} link add br0 type bridge"));
        ip(&format!("-n {hub} link set br0 up"));
        for node in 1..=nodes {
            let own = lan.namespace(node);
            ip(&format!("netns add {own}"));
            ip(&format!("-n {own} link add dv type veth peer name p{node} netns {hub}"));
            ip(&format!("-n {hub} link set p{node} master br0 up"));
            ip(&format!("-n {own} address add 10.88.0.{node}/16 broadcast + dev dv"));
            ip(&format!("-n {own} link set dv up"));
            ip(&format!("-n {own} link set lo up"));
        }
        Some(lan)
    }

    /// Makes one whose nodes have no segment in common: each hangs at a port of a router, which passes IP on
    /// and nothing else, as clouds do.
    pub(crate) fn routed(nodes: usize) -> Option<Self> {
        let lan = Self::new(nodes)?;
        let hub = format!("{}-hub", lan.name);
        let forwarding = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        let done = Command::new("ip").args(["netns", "exec", &hub, "sh", "-c", forwarding]).status();
        assert!(done.is_ok_and(|status| status.success()), "{forwarding}");
        for node in 1..=nodes {
            ip(&format!("-n {hub} link set p{node} nomaster"));
            ip(&format!("-n {hub} address add 10.88.255.1/32 dev p{node}"));
            ip(&format!("-n {hub} route add 10.88.0.{node}/32 dev p{node}"));
            lan.ip(node, "address flush dev dv");
            lan.ip(node, &format!("address add 10.88.0.{node}/32 dev dv"));
            lan.route(node);
        }
        Some(lan)
    }

    /// Gives a node of a routed LAN its way to the others, also after its interface was down.
    pub(crate) fn route(&self, node: usize) {
        self.ip(node, "route add 10.88.255.1 dev dv");
        self.ip(node, "route add default via 10.88.255.1");
    }

    /// Ends what is left in a node's namespace: an upgrade leaves a process that nobody else knows.
    fn end_all(&self, node: usize) {
        let listed = Command::new("ip").args(["netns", "pids", &self.namespace(node)]).output();
        let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        for process in listed.unwrap_or_default().split_whitespace() {
            if let Some(process) = process.parse().ok().and_then(Pid::from_raw) {
                kill_process(process, Signal::KILL).ok();
            }
        }
    }

    fn namespace(&self, node: usize) -> String {
        format!("{}-{node}", self.name)
    }

    /// The control socket of a node.
    pub(crate) fn control(&self, node: usize) -> PathBuf {
        std::env::temp_dir().join(format!("{}.sock", self.namespace(node)))
    }

    /// Runs `ip` in a node's namespace.
    pub(crate) fn ip(&self, node: usize, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.namespace(node)));
    }

    /// Cuts a node off from the others, whose interface stays up, or joins it to them again.
    pub(crate) fn set_joined(&self, node: usize, is_joined: bool) {
        let state = if is_joined { "up" } else { "down" };
        ip(&format!("-n {}-hub link set p{node} {state}", self.name));
    }

    /// What runs a program in a node's namespace. It does not see what this host keeps in /var/lib: there is
    /// a folder of Staunch's, for root alone.
    fn within_namespace(&self, node: usize) -> Command {
        const PRIVATE: &str =
            "mount -t tmpfs staunch /var/lib && mkdir -m 700 /var/lib/staunch && exec \"$@\"";
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(node), "sh", "-c", PRIVATE, "sh"]);
        command
    }

    /// `staunch dostp` in a node's namespace.
    pub(crate) fn command(&self, node: usize, arguments: &[&str]) -> Command {
        let mut command = self.staunch(node);
        command.arg("dostp").args(arguments).stdin(Stdio::null());
        command
    }

    /// `staunch` in a node's namespace.
    pub(crate) fn staunch(&self, node: usize) -> Command {
        self.program(node, &process::binary())
    }

    /// Another program in a node's namespace.
    pub(crate) fn program(&self, node: usize, program: &Path) -> Command {
        let mut command = self.within_namespace(node);
        command.arg(program);
        command
    }

    /// A folder that everybody may write to.
    pub(crate) fn folder_for_others(&self) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("{}-others", self.name));
        std::fs::create_dir_all(&folder).expect("a folder");
        set_mode(&folder, 0o777);
        folder
    }

    /// A copy of `staunch` in it: the program may stand where another user may not look.
    pub(crate) fn program_for_others(&self, folder: &Path) -> PathBuf {
        let copy = folder.join("staunch");
        std::fs::copy(process::binary(), &copy).expect("a copy");
        copy
    }

    /// `staunch` there, by root without a capability, who may read the program and nothing of others.
    pub(crate) fn staunch_without_rights(&self, node: usize) -> Command {
        let mut command = self.within_namespace(node);
        command.args(["setpriv", "--bounding-set=-all", "--inh-caps=-all"]).arg(process::binary());
        command
    }

    /// Does something in a node's namespace.
    pub(crate) fn within<T: Send + 'static>(
        &self,
        node: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let path = format!("/run/netns/{}", self.namespace(node));
        let done = thread::spawn(move || {
            let namespace = File::open(path).expect("a namespace of the test");
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
            work()
        });
        done.join().expect("no panic")
    }

    /// `staunch dostp` there, on its interface, to the end.
    pub(crate) fn dostp(&self, node: usize, arguments: &[&str]) -> Output {
        self.command(node, arguments).args(["--interface", "dv"]).output().expect("ip of iproute2")
    }

    /// What asks the node that runs there.
    pub(crate) fn dostp_here(&self, node: usize, arguments: &[&str]) -> Output {
        let mut command = self.command(node, arguments);
        command
            .args(["--interface", "dv", "--control"])
            .arg(self.control(node))
            .output()
            .expect("ip of iproute2")
    }

    /// What it says, as JSON.
    pub(crate) fn looks(&self, node: usize, arguments: &[&str]) -> Value {
        let output = self.dostp_here(node, arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// `staunch dostp` there, by a user without rights.
    pub(crate) fn as_nobody(&self, node: usize, arguments: &[&str]) -> Output {
        // The program stands where another user may not look: it is run from a copy.
        let copy = std::env::temp_dir().join(format!("{}-staunch", self.name));
        if !copy.exists() {
            std::fs::copy(process::binary(), &copy).expect("a copy");
        }
        let mut command = self.within_namespace(node);
        command.args(["setpriv", "--reuid", "65534", "--regid", "65534"]);
        command.args(["--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]).arg(&copy);
        let output = command.arg("dostp").args(arguments).output().expect("setpriv of util-linux");
        std::fs::remove_file(&copy).ok();
        output
    }

    /// A node, once it stands.
    pub(crate) fn serve(&self, node: usize, arguments: &[&str]) -> Node {
        let node = self.serve_lazily(node, arguments);
        node.await_line(" on dv");
        node
    }

    /// A node, whether it stands or not.
    pub(crate) fn serve_lazily(&self, node: usize, arguments: &[&str]) -> Node {
        Node::spawn(&mut self.serving(node, arguments))
    }

    /// A node that ends by itself.
    pub(crate) fn serve_to_the_end(&self, node: usize, arguments: &[&str]) -> Output {
        self.serving(node, arguments).output().expect("ip of iproute2")
    }

    fn serving(&self, node: usize, arguments: &[&str]) -> Command {
        let mut command = self.command(node, &["serve", "--interface", "dv", "--control"]);
        command.arg(self.control(node)).args(arguments);
        command
    }

    /// A key file whose secret repeats this byte.
    pub(crate) fn key(&self, byte: &str) -> String {
        let path = std::env::temp_dir().join(format!("{}-{byte}.key", self.name));
        std::fs::write(&path, byte.repeat(32)).expect("a file");
        set_mode(&path, 0o600);
        path.to_str().expect("a path of ours").to_owned()
    }

    /// The path of a file that is not there yet.
    pub(crate) fn scratch(&self, name: &str) -> String {
        let path = std::env::temp_dir().join(format!("{}-{name}", self.name));
        path.to_str().expect("a path of ours").to_owned()
    }

    /// Lets others read a file.
    pub(crate) fn open_to_others(&self, path: &str) {
        set_mode(Path::new(path), 0o644);
    }

    /// Until the node there is beyond its trial: its second HELLO and 500 ms have passed, so it has sent two.
    pub(crate) fn wait_for_trial(&self, node: usize) {
        // Each question that has failed takes 900 ms of the nodes' own clock.
        self.dostp(node, &["ping", "10.88.0.77", "-c", "3", "--interval", "1s", "--timeout", "1ms"]);
    }

    /// Waits until so many more frames have come to a node's interface.
    pub(crate) fn await_frames(&self, node: usize, count: u64) {
        let frames = || {
            let read =
                || std::fs::read_to_string("/proc/thread-self/net/dev").expect("what the kernel counts");
            let counts = self.within(node, read);
            let line =
                counts.lines().find_map(|line| line.trim().strip_prefix("dv:")).expect("its interface");
            line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0_u64)
        };
        let end = frames() + count;
        until(&format!("{count} frames at node {node}"), || frames() >= end);
    }

    /// Asks node 1 from there until it answers.
    pub(crate) fn ping_until_answered(&self, node: usize) {
        let ping = ["ping", "10.88.0.1", "-c", "1", "--timeout", "500ms"];
        for _ in 0..100 {
            if self.dostp(node, &ping).status.success() {
                return;
            }
        }
        panic!("node 1 does not answer");
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        for node in 1..=self.nodes {
            self.end_all(node);
            Command::new("ip").args(["netns", "del", &self.namespace(node)]).status().ok();
        }
        Command::new("ip").args(["netns", "del", &format!("{}-hub", self.name)]).status().ok();
        std::fs::remove_dir_all(std::env::temp_dir().join(format!("{}-others", self.name))).ok();
        for byte in ["11", "22"] {
            std::fs::remove_file(std::env::temp_dir().join(format!("{}-{byte}.key", self.name))).ok();
        }
    }
}

/// A running node.
pub(crate) struct Node {
    child: Child,
    lines: Receiver<String>,
}

impl Node {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("ip of iproute2");
        let (say, lines) = mpsc::channel();
        let stderr = child.stderr.take().expect("it is piped");
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                println!("{line}");
                say.send(line).ok();
            }
        });
        Self { child, lines }
    }

    /// Waits for a line that contains this.
    pub(crate) fn await_line(&self, part: &str) {
        loop {
            let line = self.lines.recv_timeout(HANG);
            if line.unwrap_or_else(|error| panic!("no line with `{part}`: {error}")).contains(part) {
                return;
            }
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        kill_process(process, signal).expect("our own process");
    }

    /// Waits until it has ended, and says by which code.
    pub(crate) fn end_by_itself(mut self) -> Option<i32> {
        self.child.wait().ok()?.code()
    }

    /// Ends it, and says by which code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.terminate();
        self.child.wait().ok()?.code()
    }

    /// How often its first thread has gone to sleep.
    pub(crate) fn sleeps(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.and_then(|count| count.trim().parse().ok()).expect("a count")
    }

    fn terminate(&self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            kill_process(pid, Signal::TERM).ok();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.terminate();
        self.child.wait().ok();
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a file of ours");
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip of iproute2");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

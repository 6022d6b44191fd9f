//! Namespaces joined by a bridge, each with one interface: a LAN of its own.
//!
//! It must never touch an interface of the host: everything stands in namespaces of the test, and is gone
//! with them.

use std::fs::File;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use staunch_dostp::{Backend, Options, Socket};

/// The interface of every node.
pub(crate) const INTERFACE: &str = "dv";
/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something holds, and fails the test if it never does.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// A LAN: node `n` has the address 10.77.0.n, counted from 1.
pub(crate) struct World {
    name: String,
    nodes: usize,
}

impl World {
    /// Makes it. Nothing without the right to.
    pub(crate) fn new(nodes: usize, mtu: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var("CI").is_err(), "in CI this must run as root");
            println!("skipped: only root may make namespaces");
            return None;
        }
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let name = format!("dostp-{}-{number}", std::process::id());
        let world = Self { name, nodes };
        ip(&format!("netns add {}-hub", world.name));
        ip(&format!("-n {}-hub link add br0 mtu {mtu} type bridge", world.name));
        ip(&format!("-n {}-hub link set br0 up", world.name));
        for node in 1..=nodes {
            ip(&format!("netns add {}", world.namespace(node)));
            world.plug(node, mtu);
        }
        Some(world)
    }

    /// Gives a node its interface.
    pub(crate) fn plug(&self, node: usize, mtu: u32) {
        let (own, hub) = (self.namespace(node), format!("{}-hub", self.name));
        ip(&format!(
            "-n {own} link add {INTERFACE} mtu {mtu} type veth peer name p{node} mtu {mtu} netns {hub}"
        ));
        ip(&format!("-n {hub} link set p{node} master br0 up"));
        ip(&format!("-n {own} address add 10.77.0.{node}/16 broadcast + dev {INTERFACE}"));
        ip(&format!("-n {own} link set {INTERFACE} up"));
    }

    /// The name of a node's namespace.
    pub(crate) fn namespace(&self, node: usize) -> String {
        format!("{}-{node}", self.name)
    }

    /// Where a node that gives rings listens.
    pub(crate) fn node_path(&self, node: usize) -> PathBuf {
        std::env::temp_dir().join(format!("{}.sock", self.namespace(node)))
    }

    /// Runs `ip` in a node's namespace.
    pub(crate) fn ip(&self, node: usize, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.namespace(node)));
    }

    /// Gives a node an interface for a VLAN of its own. Whether the kernel can.
    pub(crate) fn add_vlan(&self, node: usize, number: u16) -> bool {
        let words = format!("-n {} link add link {INTERFACE} name v{number}", self.namespace(node));
        let words = format!("{words} up type vlan id {number}");
        Command::new("ip").args(words.split(' ')).status().is_ok_and(|status| status.success())
    }

    /// Lets the bridge forward what a node sends, or not.
    pub(crate) fn forward(&self, node: usize, forwards: bool) {
        let state = if forwards { "forwarding" } else { "disabled" };
        let words = format!("-n {}-hub link set dev p{node} state {state}", self.name);
        run("bridge", &words);
    }

    /// Lets a node send slowly, so that its sockets find no room. Whether the kernel can.
    pub(crate) fn slow_down(&self, node: usize) -> bool {
        let words = format!("-n {} qdisc add dev {INTERFACE} root tbf", self.namespace(node));
        let words = words + " rate 20mbit burst 16kb limit 1mb";
        Command::new("tc").args(words.split(' ')).status().is_ok_and(|status| status.success())
    }

    /// Frames that have come to the bridge from a node.
    pub(crate) fn frames_from(&self, node: usize) -> u64 {
        let file = format!("/sys/class/net/p{node}/statistics/rx_packets");
        run("ip", &format!("netns exec {}-hub cat {file}", self.name)).trim().parse().expect("a number")
    }

    /// Runs something on a thread in a node's namespace.
    pub(crate) fn at<T: Send + 'static>(
        &self,
        node: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.namespace(node));
        thread::spawn(move || {
            let namespace = File::open(path).expect("a namespace of the test");
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
            work()
        })
    }

    /// Opens a socket in a node's namespace.
    pub(crate) fn socket(&self, node: usize, port: u16, options: Options) -> std::io::Result<Socket> {
        self.at(node, move || Socket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port), &options))
            .join()
            .unwrap()
    }

    /// Opens a socket on a port, or by a queue, that may just have been given up. A process that another test
    /// has begun to start keeps copies of all descriptors until it is itself.
    pub(crate) fn reopen(&self, node: usize, port: u16, options: Options) -> Socket {
        let began = Instant::now();
        let is_held = |kind| matches!(kind, ErrorKind::AddrInUse | ErrorKind::ResourceBusy);
        loop {
            match self.socket(node, port, options.clone()) {
                Err(error) if is_held(error.kind()) && began.elapsed() < PATIENCE => thread::yield_now(),
                opened => return opened.expect("a socket"),
            }
        }
    }

    /// Opens one with a backend, and a limit to its patience.
    pub(crate) fn open(&self, node: usize, port: u16, backend: Backend) -> Socket {
        let options =
            Options { backend: Some(backend), node: Some(self.node_path(node)), ..Options::on(INTERFACE) };
        let socket = self.reopen(node, port, options);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for node in 1..=self.nodes {
            Command::new("ip").args(["netns", "del", &self.namespace(node)]).status().ok();
        }
        Command::new("ip").args(["netns", "del", &format!("{}-hub", self.name)]).status().ok();
    }
}

/// An address of the LAN.
pub(crate) fn address(node: usize, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, node as u8), port)
}

fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Runs a program of iproute2 and says what it said.
fn run(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output().expect("iproute2");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {wrong}");
    said
}

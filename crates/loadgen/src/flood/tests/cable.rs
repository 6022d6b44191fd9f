//! Two network namespaces and a cable between them, made for one test and gone with it: 10.0.0.1 and fd00::1
//! at the server's end `vs`, 10.0.0.2 and fd00::2 at the client's end `vc`.
//!
//! It must never touch an interface of the machine itself.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Both namespaces.
pub(crate) struct Cable {
    name: String,
}

/// An end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// `vs`
    Server,
    /// `vc`
    Client,
}

impl Cable {
    /// Lays it. `None`, with the reason printed, where namespaces cannot be made; with `CI=true` that is a
    /// panic.
    pub(crate) fn lay() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("staunch-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let cable = Self { name };
        match cable.build() {
            Ok(()) => Some(cable),
            Err(why) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "no network namespaces: {why}");
                println!("skipped: no network namespaces: {why}");
                None
            }
        }
    }

    fn build(&self) -> Result<(), String> {
        let client = self.namespace(End::Client);
        shell(&format!("ip netns add {} && ip netns add {client}", self.namespace(End::Server)))?;
        // Before it goes up, so that the kernel's own search for neighbours is over before a test.
        self.try_run(End::Server, &format!("ip link add vs type veth peer name vc netns {client}"))?;
        self.try_run(
            End::Server,
            "ip link set lo up && ip addr add 10.0.0.1/24 dev vs && ip addr add fd00::1/64 dev vs nodad \
             && ip link set vs up && ip link add sink type bridge && ip link set sink arp off up \
             && ip route add 10.9.0.0/16 dev sink && ip route add fd09::/64 dev sink && ethtool -K vs gro on",
        )?;
        self.try_run(
            End::Client,
            "ip link set lo up && ip addr add 10.0.0.2/24 dev vc && ip addr add fd00::2/64 dev vc nodad \
             && ip link set vc up",
        )
    }

    /// Runs a line of the shell at one end.
    pub(crate) fn run(&self, end: End, line: &str) {
        self.try_run(end, line).unwrap();
    }

    fn try_run(&self, end: End, line: &str) -> Result<(), String> {
        shell(&format!("exec ip netns exec {} sh -c '{line}'", self.namespace(end)))
    }

    /// Does something on a thread that is at one end. What starts a thread there stays there.
    pub(crate) fn at<T: Send + 'static>(&self, end: End, work: impl FnOnce() -> T + Send + 'static) -> T {
        let path = format!("/run/netns/{}", self.namespace(end));
        let worker = thread::spawn(move || {
            let namespace = File::open(path).unwrap();
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        worker.join().unwrap()
    }

    /// The name of an end's namespace.
    pub(crate) fn namespace(&self, end: End) -> String {
        format!("{}-{}", self.name, if end == End::Server { "server" } else { "client" })
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in [End::Client, End::Server] {
            let _ = shell(&format!("ip netns del {}", self.namespace(end)));
        }
    }
}

fn shell(line: &str) -> Result<(), String> {
    match Command::new("sh").args(["-c", line]).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

/// Packets that an interface of the calling thread's namespace has received.
pub(crate) fn received(interface: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{interface}:"))).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

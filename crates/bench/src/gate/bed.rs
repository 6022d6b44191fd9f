//! The test bed: a namespace for the server, one for its clients, and a cable whose packets for the server
//! are received on a processor of our choice.
//!
//! It owns the namespaces. They are gone when it is dropped, and when this process ends in any other way: a
//! guard waits for that, and ends what still runs in them; besides, the kernel kills each command when the
//! process that began it dies. It must never touch an interface, a setting or a process of the machine
//! itself. Order: `make`, then commands in either namespace.
//!
//! The cable behaves like a card with moderated interrupts: packets are taken every 125 us by a kernel thread
//! that is pinned and goes before everything in user space, as softirqs do. It alone has a real-time
//! priority, and the gate, so that it can run beside it: a server that has one stands still when the kernel
//! takes the processor from real-time priorities. Answers are received by the clients' processors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::machine;
use crate::process;
use crate::servers::pinned;

/// Address of the server, as its clients know it.
pub(crate) const SERVER_ADDRESS: &str = "10.0.0.1";
/// Where forged packets seem to come from; answers to them end in a bridge without ports.
const FORGED: &str = "10.9.0.0/16";
/// Between two looks at the cable while packets come: 8000 a second, as cards do under load. Each costs a
/// virtual machine some 10 us.
pub(super) const MODERATION_NS: u32 = 125_000;
/// Real-time priority of reception: it stands above any server, as softirqs do.
const RECEPTION_PRIORITY: u32 = 50;
/// Niceness: a server goes before all that this machine does besides, clients before a flood on the same
/// processor.
const SERVER_NICE: &str = "-15";
const CLIENT_NICE: &str = "-20";
const FLOOD_NICE: &str = "-5";

/// Begins a command that the kernel kills when the thread that began it ends (PR_SET_PDEATHSIG).
pub(crate) const WITH_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];

/// What the clients' end needs to receive frames that XDP has answered.
const PASS: &str = include_str!("../../../../bench/pass.bpf.c");

/// Compiles `bench/pass.bpf.c` into a file of this folder.
///
/// # Errors
/// No clang, or a file that cannot be written.
pub(crate) fn compile_pass(scratch: &Path) -> Result<PathBuf, String> {
    let (source, object) = (scratch.join("pass.bpf.c"), scratch.join("pass.bpf.o"));
    fs::write(&source, PASS).map_err(|error| format!("{}: {error}", source.display()))?;
    execute_all(&format!("clang -O2 -g -target bpf -c {} -o {}", source.display(), object.display()))?;
    Ok(object)
}

/// Which processor receives the server's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reception {
    /// The server's own: what floods it, starves it.
    OwnCore,
    /// Another takes them from the cable, what passes goes on to the server's.
    OtherCore,
}

impl Reception {
    /// The processor that receives what is for the server: the last one where there are four, for the flood
    /// is on 1, and would have to be received beside its own making.
    fn processor(self) -> u32 {
        match self {
            Self::OwnCore => 0,
            Self::OtherCore if machine::processors() < 4 => 1,
            Self::OtherCore => 3,
        }
    }

    /// Processors of the load, and how many these are: 2 and 3 where they are, for one alone cannot offer ten
    /// times the capacity beside the answers it receives.
    pub(crate) fn client_processors(self) -> (&'static str, u32) {
        match self {
            _ if machine::processors() < 4 => ("1", 1),
            Self::OwnCore => ("2,3", 2),
            Self::OtherCore => ("2", 1),
        }
    }
}

/// Held by the bed of this process: all of them would have the same names.
static ONLY: Mutex<()> = Mutex::new(());

/// Both namespaces and the cable.
#[derive(Debug)]
pub(crate) struct Bed {
    /// Where the server is.
    pub(crate) server: String,
    /// Where its clients are.
    pub(crate) client: String,
    /// The server's end of the cable.
    pub(crate) interface: String,
    /// The clients' end.
    pub(crate) client_interface: String,
    /// The processor that receives the server's packets.
    pub(crate) reception: Reception,
    guard: Child,
    /// (Given back after the namespaces are gone: fields are dropped after [`Drop::drop`].)
    _only: MutexGuard<'static, ()>,
}

impl Bed {
    /// Makes them, when this process has no other bed any more.
    ///
    /// # Errors
    /// The command that failed: usually a privilege or a tool is missing.
    pub(crate) fn make(reception: Reception) -> Result<Self, String> {
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let id = std::process::id();
        let name = |end: &str| format!("staunch-gate-{id}-{end}");
        let (server, client) = (name("server"), name("client"));
        // Interface names have at most 15 characters, and name the gate's socket in a folder all share.
        let (interface, client_interface) = (format!("vs{id}"), format!("vc{id}"));
        let guard = guard(&[&client, &server])?;
        let bed = Self { server, client, interface, client_interface, reception, guard, _only: only };
        bed.lay_cable()?;
        bed.steer()?;
        Ok(bed)
    }

    /// A command on the server's processor, to be completed by the program and its arguments. It goes before
    /// all that this machine does besides, and after the reception of packets, as a server does on a host of
    /// its own. It is killed when the calling thread ends.
    pub(crate) fn at_server(&self) -> Command {
        self.inside(&self.server, "0", SERVER_NICE)
    }

    /// A command in the clients' namespace.
    pub(crate) fn at_client(&self, cpus: &str) -> Command {
        self.inside(&self.client, cpus, CLIENT_NICE)
    }

    /// A command in the clients' namespace that gives way to clients on the same processor.
    pub(crate) fn behind_clients(&self, cpus: &str) -> Command {
        self.inside(&self.client, cpus, FLOOD_NICE)
    }

    /// The longest queue of connections any server may ask for from now on.
    ///
    /// # Errors
    /// The setting cannot be written.
    pub(crate) fn limit_backlog(&self, connections: u32) -> Result<(), String> {
        let server = &self.server;
        execute(&format!("ip netns exec {server} sysctl -qw net.core.somaxconn={connections}")).map(drop)
    }

    /// Lets the kernel take every SYN cookie that is right, as the gate's own need it, and the clients' end
    /// receive what the gate answers; see `bench/pass.bpf.c`, which is compiled into a file of this folder.
    ///
    /// # Errors
    /// The program cannot be compiled, or a setting not be written.
    pub(crate) fn take_cookies(&self, scratch: &Path) -> Result<(), String> {
        let Self { server, client, client_interface, .. } = self;
        let object = compile_pass(scratch)?;
        let object = object.display();
        execute_all(&format!(
            "ip netns exec {server} sysctl -qw net.ipv4.tcp_syncookies=2
             ip -n {client} link set dev {client_interface} xdp object {object} section xdp"
        ))?;
        receive_on(self.reception.client_processors().0, client, client_interface)
    }

    /// Packets that came to the server's end, with those its queue had no room for.
    ///
    /// # Errors
    /// `ip` fails or says something else.
    pub(crate) fn came(&self) -> Result<u64, String> {
        let said = execute(&format!("ip -n {} -s -j link show dev {}", self.server, self.interface))?;
        let links: serde_json::Value = serde_json::from_str(&said).map_err(|error| format!("ip: {error}"))?;
        let count = |name: &str| {
            let pointer = format!("/0/stats64/rx/{name}");
            links.pointer(&pointer).and_then(serde_json::Value::as_u64).ok_or("ip does not count packets")
        };
        Ok(count("packets")? + count("dropped")?)
    }

    /// The kernel thread that receives the server's packets.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn receiver(&self) -> Result<u32, String> {
        receiver(&self.interface)
    }

    fn inside(&self, namespace: &str, cpus: &str, nice: &str) -> Command {
        let mut command = pinned(cpus);
        command.args(["ip", "netns", "exec", namespace, "nice", "-n", nice]).args(WITH_PARENT);
        command
    }

    fn lay_cable(&self) -> Result<(), String> {
        let Self { server, client, interface, client_interface, .. } = self;
        // The clients own whole networks, and the server knows the way there. The cable's end must take
        // frames in bursts (gro), or a flood cannot be sent by the fastest way.
        execute_all(&format!(
            "ip netns add {server}
             ip netns add {client}
             ip -n {server} link add {interface} type veth peer name {client_interface} netns {client}
             ip -n {server} addr add {SERVER_ADDRESS}/24 dev {interface}
             ip -n {client} addr add 10.0.0.2/24 dev {client_interface}
             ip netns exec {server} ethtool -K {interface} gro on
             ip netns exec {client} ethtool -K {client_interface} tso off
             ip -n {server} link set lo up
             ip -n {client} link set lo up
             ip -n {server} link set {interface} up
             ip -n {client} link set {client_interface} up
             ip -n {client} route add local 10.1.0.0/16 dev lo
             ip -n {client} route add local 10.2.0.0/15 dev lo
             ip -n {server} route add 10.1.0.0/16 via 10.0.0.2 dev {interface}
             ip -n {server} route add 10.2.0.0/15 via 10.0.0.2 dev {interface}
             ip -n {server} link add sink type bridge
             ip -n {server} link set sink arp off up
             ip -n {server} route add {FORGED} dev sink
             ip netns exec {server} sysctl -qw net.ipv4.tcp_max_syn_backlog=4096
             ip netns exec {server} sysctl -qw net.ipv4.conf.all.rp_filter=0
             ip netns exec {server} sysctl -qw net.ipv4.conf.{interface}.rp_filter=0
             ip netns exec {client} sysctl -qw net.ipv4.ip_local_port_range=1024\u{a0}65535"
        ))?;
        self.limit_backlog(4096)?;
        self.introduce(server, interface, client, client_interface, SERVER_ADDRESS)?;
        self.introduce(client, client_interface, server, interface, "10.0.0.2")
    }

    /// Tells one end's hardware address to the other, for good: nobody asks for it under a flood.
    fn introduce(
        &self,
        namespace: &str,
        interface: &str,
        other: &str,
        other_interface: &str,
        address: &str,
    ) -> Result<(), String> {
        let said = execute(&format!("ip -n {namespace} -j link show dev {interface}"))?;
        let links: serde_json::Value = serde_json::from_str(&said).map_err(|error| format!("ip: {error}"))?;
        let hardware = links.pointer("/0/address").and_then(serde_json::Value::as_str);
        let hardware = hardware.ok_or_else(|| format!("{interface} has no hardware address"))?;
        let entry = format!("neigh add {address} lladdr {hardware} dev {other_interface} nud permanent");
        execute(&format!("ip -n {other} {entry}")).map(drop)
    }

    fn steer(&self) -> Result<(), String> {
        // All processors but the server's receive what it answers.
        let mask = format!("{:x}", (1_u32 << machine::processors().clamp(2, 31)) - 2);
        set(&self.client, &self.client_interface, "queues/rx-0/rps_cpus", &mask)?;
        if self.reception == Reception::OtherCore {
            set(&self.server, &self.interface, "queues/rx-0/rps_cpus", "1")?;
        }
        receive_on(&self.reception.processor().to_string(), &self.server, &self.interface)
    }
}

/// Lets an interface's packets be received by a thread on these processors, with moderated interrupts.
fn receive_on(cpus: &str, namespace: &str, interface: &str) -> Result<(), String> {
    set(namespace, interface, "gro_flush_timeout", &MODERATION_NS.to_string())?;
    set(namespace, interface, "napi_defer_hard_irqs", "200")?;
    set(namespace, interface, "threaded", "1")?;
    let thread = receiver(interface)?;
    execute(&format!("taskset -pc {cpus} {thread}"))?;
    execute(&format!("chrt -f -p {RECEPTION_PRIORITY} {thread}")).map(drop)
}

/// Writes a setting of an interface.
fn set(namespace: &str, interface: &str, name: &str, value: &str) -> Result<(), String> {
    let script = format!("echo {value} > /sys/class/net/{interface}/{name}");
    let words = ["netns", "exec", namespace, "sh", "-c", &script];
    finished(Command::new("ip").args(words), &script).map(drop)
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        process::collect(&mut self.guard);
    }
}

/// Ends what runs in namespaces until nothing does, for who is ended may just have started another, and
/// removes them.
const GUARD: &str = "cat > /dev/null
for name in \"$@\"; do
    for turn in 1 2 3 4 5 6 7 8 9 10; do
        pids=$(ip netns pids \"$name\") && [ -n \"$pids\" ] || break
        kill -9 $pids
        sleep 0.1
    done
    ip netns del \"$name\"
done";

/// Starts the guard. It is in a group of its own, so that Ctrl-C does not end it, and waits for the end of
/// its input, which comes when this process is gone, however it went.
fn guard(namespaces: &[&str]) -> Result<Child, String> {
    let mut command = Command::new("sh");
    command.args(["-c", GUARD, "sh"]).args(namespaces).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map_err(|error| format!("sh: {error}"))
}

/// The kernel thread that receives an interface's packets.
fn receiver(interface: &str) -> Result<u32, String> {
    let name = format!("napi/{interface}-");
    let threads = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let mut numbers = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |number: &u32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|comm| comm.starts_with(&name))
    };
    numbers.find(is_it).ok_or_else(|| format!("the kernel has no thread {name}*: no threaded NAPI"))
}

fn execute_all(script: &str) -> Result<(), String> {
    script.lines().try_for_each(|line| execute(line).map(drop))
}

/// Runs a line; a no-break space stands for a blank inside a word.
fn execute(line: &str) -> Result<String, String> {
    let mut words = line.trim().split(' ').filter(|word| !word.is_empty());
    let program = words.next().unwrap_or_default();
    let words = words.map(|word| word.replace('\u{a0}', " "));
    finished(Command::new(program).args(words), line.trim())
}

fn finished(command: &mut Command, words: &str) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{words}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{words}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_named() {
        let error = execute("ls /no-such-folder").expect_err("it fails");
        assert!(error.starts_with("ls /no-such-folder: "), "{error}");
        assert!(execute("no-such-program-here").is_err_and(|error| error.contains("no-such-program-here")));
        assert_eq!(execute("printf %s. a\u{a0}b c").as_deref(), Ok("a b.c."));
    }

    /// A process that sleeps where these words take it.
    fn asleep(at: &mut Command) -> Child {
        let sleeper = at.args(["sleep", "600"]).spawn().expect("a process inside");
        let name = format!("/proc/{}/comm", sleeper.id());
        // Until then it is one of the programs that prepare it, and may not be inside yet.
        while !fs::read_to_string(&name).expect("a running process").starts_with("sleep") {
            std::thread::yield_now();
        }
        sleeper
    }

    #[test]
    fn nothing_of_the_bed_stays() {
        let made = Bed::make(Reception::OwnCore);
        let Ok(bed) = made else {
            eprintln!("skipped: no network namespaces here: {:?}", made.err());
            return;
        };
        let is_there = |name: &str| Path::new("/run/netns").join(name).exists();
        let (server, client) = (bed.server.clone(), bed.client.clone());
        assert!(is_there(&server) && is_there(&client));
        let mut sleeper = asleep(&mut bed.at_server());
        drop(bed);
        assert!(!is_there(&server) && !is_there(&client));
        assert!(!sleeper.wait().expect("it was ended").success());
    }

    #[test]
    fn nothing_of_the_bed_outlives_who_made_it() {
        let Ok(bed) = Bed::make(Reception::OwnCore) else {
            eprintln!("skipped: no network namespaces here");
            return;
        };
        let begin = || asleep(&mut bed.at_client("0"));
        let mut sleeper = std::thread::scope(|scope| scope.spawn(begin).join()).expect("a thread");
        let status = sleeper.wait().expect("it was ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }
}

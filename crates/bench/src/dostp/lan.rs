//! Two hosts as namespaces with a cable between them, and the processes that serve on one of them.
//!
//! This module owns the namespaces and every process in them. It must never touch an interface of the
//! machine, nor wait for a process without an end.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::gate::bed::WITH_PARENT;
use crate::generator::running;
use crate::process;
use crate::report::ScenarioOutcome;
use crate::servers::pinned;
use crate::setting::Setting;

/// The interface of either host.
pub(super) const INTERFACE: &str = "dv";
/// Address of the host that serves.
pub(super) const SERVER_ADDRESS: &str = "10.0.0.1";
/// The port that answers by UDP.
pub(super) const UDP_ECHO: &str = "5289";

/// How DOSTP's frames travel and how its sockets wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// The name in results.
    pub(super) name: &'static str,
    backend: &'static str,
    wait: &'static str,
}

/// By a packet ring, asleep until an answer comes.
pub(super) const RING_ASLEEP: Way =
    Way { name: "DOSTP, packet ring, asleep", backend: "ring", wait: "sleep" };
/// By each of the backends of Ethernet, looking all the time.
pub(super) const SPINNING: [Way; 3] = [
    Way { name: "DOSTP, packet ring, looking", backend: "ring", wait: "spin" },
    Way { name: "DOSTP, AF_XDP generic, looking", backend: "xdp-generic", wait: "spin" },
    Way { name: "DOSTP, AF_XDP native, looking", backend: "xdp-native", wait: "spin" },
];

impl Way {
    /// The words that both ends are started with.
    pub(super) fn words(&self) -> [&'static str; 6] {
        ["--interface", INTERFACE, "--backend", self.backend, "--wait", self.wait]
    }
}

/// The name of UDP in results.
pub(super) const UDP: &str = "UDP";
/// The processor of the host that serves, and of the one that asks.
pub(super) const SERVER_CPU: usize = 0;
pub(super) const CLIENT_CPU: usize = 1;
/// How long a process is waited for until it serves.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs what measures a scenario; it needs root.
pub(super) fn measured(
    setting: &Setting,
    mut outcome: ScenarioOutcome,
    measure: impl FnOnce(&Setting, &mut ScenarioOutcome) -> Result<(), String>,
) -> ScenarioOutcome {
    if !rustix::process::geteuid().is_root() {
        return outcome.skip("only root may make namespaces");
    }
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    outcome
}

/// Begins a scenario of so many steps: both hosts, and the folder of its files.
///
/// # Errors
/// A host or a folder that cannot be made.
pub(super) fn begin(setting: &Setting, steps: usize) -> Result<(Lan, PathBuf), String> {
    setting.expect_steps(1 + steps);
    setting.step("starting");
    let folder = setting.scratch.join("run/dostp");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok((Lan::make()?, folder))
}

/// Starts the node on the host that serves, by DOSTP and by UDP and with these further `words`.
///
/// # Errors
/// A node that cannot be started.
pub(super) fn serve(
    setting: &Setting,
    lan: &Lan,
    way: Way,
    words: &[&str],
    folder: &Path,
) -> Result<HostService, String> {
    let (program, control) = (text(&setting.programs.staunch), text(&folder.join("node.sock")));
    let serve = [&*program, "dostp", "serve", "--control", &control, "--udp-echo", UDP_ECHO];
    // The line that a node prints once it hears.
    let ready = format!(" by {} on ", way.backend);
    HostService::start(lan, "node", &[&serve, &way.words()[..], words].concat(), &ready, folder)
}

/// Both hosts.
#[derive(Debug)]
pub(super) struct Lan {
    server: String,
    client: String,
}

impl Lan {
    /// Makes them.
    ///
    /// # Errors
    /// The command that failed: usually a privilege or a tool is missing.
    pub(super) fn make() -> Result<Self, String> {
        let name = |end: &str| format!("staunch-dostp-{}-{end}", std::process::id());
        let lan = Self { server: name("server"), client: name("client") };
        let Self { server, client } = &lan;
        let script = format!(
            "netns add {server}
             netns add {client}
             -n {server} link add {INTERFACE} type veth peer name {INTERFACE} netns {client}
             -n {server} address add {SERVER_ADDRESS}/16 broadcast + dev {INTERFACE}
             -n {client} address add 10.0.0.2/16 broadcast + dev {INTERFACE}
             -n {server} link set lo up
             -n {server} link set {INTERFACE} up
             -n {client} link set {INTERFACE} up"
        );
        script.lines().try_for_each(ip)?;
        Ok(lan)
    }

    /// Does something on the host that serves.
    ///
    /// # Errors
    /// A host that cannot be entered, or what was done in vain.
    pub(super) fn on_server<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, String> {
        on(&self.server, work)
    }

    /// Does something on the host that asks.
    ///
    /// # Errors
    /// A host that cannot be entered, or what was done in vain.
    pub(super) fn on_client<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, String> {
        on(&self.client, work)
    }

    /// Runs a command on the host that asks to its end; says what it printed.
    ///
    /// # Errors
    /// The command fails, or takes much longer than it is meant to: then it is ended.
    pub(super) fn ask(&self, words: &[&str], meant: Duration, scratch: &Path) -> Result<String, String> {
        let words = inside(&self.client, words);
        running::run_on(&CLIENT_CPU.to_string(), &words, meant, scratch).map(|watched| watched.output)
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            // A namespace that was never made cannot be removed, and that is no loss.
            let _ = ip(&format!("netns del {namespace}"));
        }
    }
}

/// Does something in a namespace, by a thread that ends with it.
fn on<T: Send>(namespace: &str, work: impl FnOnce() -> io::Result<T> + Send) -> Result<T, String> {
    let enter = || {
        let namespace = File::open(format!("/run/netns/{namespace}"))?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    let done = thread::scope(|scope| scope.spawn(enter).join());
    match done {
        Ok(done) => done.map_err(|error| format!("{namespace}: {error}")),
        Err(_) => Err(format!("{namespace}: a thread has failed")),
    }
}

/// A process on the host that serves, or on the one that asks, until this value is dropped.
#[derive(Debug)]
pub(super) struct HostService {
    /// The command that started it.
    pub(super) command: String,
    child: Child,
    log: PathBuf,
}

impl HostService {
    /// Starts a process and waits until it has said `ready`. What the process says goes into a file: nobody
    /// reads a pipe that a hung process holds open.
    ///
    /// # Errors
    /// The process cannot be started, ends, or is not ready in time.
    pub(super) fn start(
        lan: &Lan,
        name: &str,
        words: &[&str],
        ready: &str,
        folder: &Path,
    ) -> Result<Self, String> {
        let mut service = Self::spawn((SERVER_CPU, &lan.server), name, words, folder)?;
        service.wait_until(ready, PATIENCE)?;
        Ok(service)
    }

    /// Starts a process on the host that asks, which goes on until this value is dropped.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(super) fn start_asking(lan: &Lan, name: &str, words: &[&str], folder: &Path) -> Result<Self, String> {
        Self::spawn((CLIENT_CPU, &lan.client), name, words, folder)
    }

    fn spawn(
        (cpu, namespace): (usize, &str),
        name: &str,
        words: &[&str],
        folder: &Path,
    ) -> Result<Self, String> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let mut command = pinned(cpu);
        command.args(inside(namespace, words));
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let command_words = words.join(" ");
        let child = command.spawn().map_err(|error| format!("{command_words}: {error}"))?;
        Ok(Self { command: command_words, child, log })
    }

    /// Makes sure that the process goes on.
    ///
    /// # Errors
    /// The end of the service, with the words that it printed.
    pub(super) fn is_there(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(self.ended(status)),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    fn ended(&self, status: ExitStatus) -> String {
        let said = fs::read(&self.log).unwrap_or_default();
        format!("{} ended ({status}): {}", self.command, String::from_utf8_lossy(&said).trim())
    }

    fn wait_until(&mut self, ready: &str, patience: Duration) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let said = fs::read(&self.log).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            if said.contains(ready) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.ended(status));
            }
            if began.elapsed() > patience {
                let seconds = patience.as_secs();
                return Err(format!("{} is not ready after {seconds} s: {}", self.command, said.trim()));
            }
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for HostService {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        process::collect(&mut self.child);
    }
}

/// A path as a word of a command.
pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn inside(namespace: &str, words: &[&str]) -> Vec<String> {
    let before = ["ip", "netns", "exec", namespace];
    [&before[..], &WITH_PARENT, words].concat().into_iter().map(str::to_owned).collect()
}

fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split_ascii_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", line.trim(), String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(script: &str, name: &str) -> (HostService, PathBuf) {
        let folder = std::env::temp_dir().join(format!("staunch-dostp-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let log = folder.join("log");
        let output = File::create(&log).expect("a file");
        let child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).stdout(output).spawn();
        (HostService { command: script.to_owned(), child: child.expect("a shell"), log }, folder)
    }

    #[test]
    fn a_process_that_hangs_is_given_up_and_ended() {
        let (mut service, folder) = service("echo begun; exec sleep 1000", "hung");
        service.wait_until("begun", PATIENCE).expect("it says so");
        let error = service.wait_until("ready", Duration::ZERO).expect_err("it never is");
        assert!(error.ends_with("is not ready after 0 s: begun"), "{error}");
        let number = service.child.id();
        drop(service);
        assert!(!process::is_running(number));
        fs::remove_dir_all(&folder).expect("our folder");
    }

    #[test]
    fn a_process_that_ends_is_told_with_its_words() {
        let (mut service, folder) = service("echo no room; exit 3", "ended");
        let error = service.wait_until("ready", PATIENCE).expect_err("it ended");
        assert!(error.ends_with("ended (exit status: 3): no room"), "{error}");
        fs::remove_dir_all(&folder).expect("our folder");
    }
}

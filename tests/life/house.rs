//! A server with a life of its own: it may be taken over by another process, which is found by the file with
//! its number.
//!
//! It owns its folder and every process that has ever served in it: all are ended on drop.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::process::{binary, finish};

/// How long anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Both ways to the network.
pub(crate) const WAYS: [&str; 2] = ["uring", "epoll"];

/// The body of the small file.
pub(crate) const SMALL: &[u8] = b"small\n";
/// Length of the large one: more than the kernel holds for a connection whose reader is slow.
pub(crate) const LARGE_BYTES: usize = 40_000_000;

/// A server with its folder and every process that has ever served in it; dropped, all of them are ended.
pub(crate) struct House {
    folder: PathBuf,
    child: Child,
    address: SocketAddr,
    processes: BTreeSet<u32>,
}

impl House {
    /// A server with these arguments, serving.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self::furnished(arguments, |_| {})
    }

    /// A server like that of `new`; the caller changes its command before it is run.
    pub(crate) fn furnished(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let folder = new_folder();
        let mut command = command(&folder, &binary());
        command.args(arguments);
        change(&mut command);
        Self::of(folder, &mut command)
    }

    /// A server that is run by a prepared command in a folder of [`new_folder`].
    pub(crate) fn of(folder: PathBuf, command: &mut Command) -> Self {
        let child = spawn(&folder, command);
        let address = SocketAddr::from(([0; 4], 0));
        let mut house = Self { processes: BTreeSet::from([child.id()]), folder, child, address };
        house.address = house.until("it listens", |house| house.addresses().into_iter().next());
        house.until("it has written its number", |house| house.process());
        house
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Every address that any process of this house has said it listens at.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let lines = read(&self.folder.join("out"));
        lines.lines().filter_map(staunch_tests::process::address_in).collect()
    }

    /// The process that serves, by its file.
    pub(crate) fn process(&self) -> Option<u32> {
        read(&self.folder.join("pid")).trim().parse().ok()
    }

    /// The process first started.
    pub(crate) fn first(&self) -> u32 {
        self.child.id()
    }

    /// What all processes of this house have said on standard error.
    pub(crate) fn said(&self) -> String {
        read(&self.folder.join("err"))
    }

    /// Sends a signal to the process that serves.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.process().expect("a process"), signal);
    }

    /// Waits until something was said so many times.
    #[track_caller]
    pub(crate) fn until_said(&self, words: &str, times: usize) {
        self.until(words, |house| (house.said().matches(words).count() >= times).then_some(()));
    }

    /// Upgrades once: the new process's number, once it serves.
    #[track_caller]
    pub(crate) fn upgrade(&mut self) -> u32 {
        let before = self.process().expect("a process");
        self.signal(Signal::USR2);
        let after =
            self.until("another process serves", |house| house.process().filter(|now| *now != before));
        self.processes.insert(after);
        after
    }

    /// Runs `staunch reload` on the server: its exit code, and what it says.
    pub(crate) fn reload_by_command(&self) -> (Option<i32>, String) {
        let mut command = Command::new(binary());
        command.arg("reload").arg("--pid-file").arg(self.path("pid")).env_remove("STAUNCH_CONFIG");
        let told = finish(&mut command);
        (told.status.code(), told.stdout + &told.stderr)
    }

    /// Another process may serve now: it will be ended with the house.
    pub(crate) fn upgraded(&mut self) {
        self.processes.extend(self.process());
    }

    /// How the process first started has ended.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts the first process again, in the same folder, at the same address.
    pub(crate) fn start_again(&mut self, command: &mut Command) {
        fs::remove_file(self.path("out")).expect("an output");
        self.child = spawn(&self.folder, command);
        self.processes.insert(self.child.id());
        self.until("it listens again", |house| house.addresses().into_iter().next());
        let own = self.child.id();
        self.until("it has written its number", |house| (house.process() == Some(own)).then_some(()));
    }

    /// Waits for something.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "{what}: not in time; it said: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.processes.extend(self.process());
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in &self.processes {
            if is_ours(*process, &self.folder) {
                send(*process, Signal::KILL);
            }
        }
        let said = self.said();
        let _ = fs::remove_dir_all(&self.folder);
        if said.contains("panicked") {
            assert!(std::thread::panicking(), "a process panicked:\n{said}");
        }
    }
}

/// A folder with a site in it.
pub(crate) fn new_folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("staunch-life-{}-{number}", std::process::id()));
    fs::create_dir_all(folder.join("site")).expect("a folder");
    fs::write(folder.join("site/small.txt"), SMALL).expect("a file");
    let large = File::create(folder.join("site/large.bin")).expect("a file");
    large.set_len(LARGE_BYTES as u64).expect("a length");
    folder
}

/// Every request is answered by what it asks for: a test that counts failures is not about overload, and a
/// machine that is busy with other work lets requests wait for longer than they have patience.
pub(crate) const WITHOUT_PATIENCE: [&str; 2] = ["--patience", "off"];

/// A program that serves the site of a folder on a free port.
pub(crate) fn command(folder: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").arg(folder.join("site")).args(["--listen", "127.0.0.1:0"]);
    command.args(WITHOUT_PATIENCE);
    command.arg("--pid-file").arg(folder.join("pid")).stdin(Stdio::null());
    command
}

/// Sends a signal, to nobody if the process is gone.
pub(crate) fn send(process: u32, signal: Signal) {
    let process = Pid::from_raw(process as i32).expect("a number");
    let _ = kill_process(process, signal);
}

/// Whether a process runs, and is not only not yet collected.
pub(crate) fn is_running(process: u32) -> bool {
    let stat = read(Path::new(&format!("/proc/{process}/stat")));
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn is_ours(process: u32, folder: &Path) -> bool {
    read(Path::new(&format!("/proc/{process}/cmdline"))).contains(&*folder.to_string_lossy())
}

fn spawn(folder: &Path, command: &mut Command) -> Child {
    let open = |name: &str| {
        let path = folder.join(name);
        File::options().create(true).append(true).open(&path).expect("a file for its output")
    };
    command
        .stdout(open("out"))
        .stderr(open("err"))
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

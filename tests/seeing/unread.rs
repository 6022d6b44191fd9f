//! Standard output and standard error that nobody takes: the server serves, obeys, ends, and counts what is
//! lost.
//!
//! Every fault is combined with every cause to say something, on both engines.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::disk::Disk;
use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::{binary, finish, is_installed};
use staunch_tests::tree::Tree;

use crate::peer::{PATIENCE, get};

/// What is wrong with standard output and standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    FullDisk,
    ClosedPipe,
    FullPipe,
    DevFull,
}

/// What makes the server say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Hup,
    Term,
    Usr2,
    FullTable,
}

const FAULTS: [Fault; 4] = [Fault::FullDisk, Fault::ClosedPipe, Fault::FullPipe, Fault::DevFull];
const CAUSES: [Cause; 4] = [Cause::Hup, Cause::Term, Cause::Usr2, Cause::FullTable];

/// A server that cannot say where it listens: its addresses were chosen before.
struct Unheard {
    child: Child,
    site: SocketAddr,
    admin: SocketAddr,
    /// The process that serves, which may be another one later.
    pid_file: std::path::PathBuf,
    /// Keeps a pipe open that is never read.
    _unread: Option<io::PipeReader>,
}

impl Unheard {
    /// Starts the program with these words in front of it (a tracer, or none).
    fn start(tree: &Tree, io: &str, outputs: [Stdio; 2], before: &[&str]) -> Self {
        let [site, admin] = [(); 2].map(|()| reserved_address());
        let pid_file = tree.root().join(".pid");
        let _ = fs::remove_file(&pid_file);
        let program = binary();
        let mut words = before.iter().map(std::ffi::OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).arg("serve").arg(tree.root());
        command.args(["--listen", &site.to_string(), "--admin", &admin.to_string()]);
        command.args(["--workers", "1", "--io", io, "--max-connections", "16"]);
        command.arg("--pid-file").arg(&pid_file);
        let [out, error] = outputs;
        let child = command.stdin(Stdio::null()).stdout(out).stderr(error).spawn().expect("a server");
        let unheard = Self { child, site, admin, pid_file, _unread: None };
        let is_ready = |answer: String| answer.contains(" 200 ");
        unheard.until("it is ready", || unheard.tries("/readyz").is_some_and(is_ready));
        unheard
    }

    fn process(&self) -> Option<Pid> {
        Pid::from_raw(fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()?)
    }

    fn signal(&self, signal: Signal) {
        // What was ended meanwhile shows later.
        let _ = kill_process(self.process().expect("a process"), signal);
    }

    /// An answer of the admin address, if there is one at this moment.
    fn tries(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer).filter(|answer| !answer.is_empty())
    }

    fn metric(&self, sample: &str) -> u64 {
        let answer = self.tries("/metrics").unwrap_or_default();
        let found = answer.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        found.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn lost(&self) -> u64 {
        self.metric("staunch_error_log_lines_total{outcome=\"lost\"}")
    }

    #[track_caller]
    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "{what}: not in time");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether a request is answered. A client that held all connections may still be there for a moment.
    fn serves(&self) -> bool {
        get(self.site, "/ten", "").ends_with("0123456789")
    }

    fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Connections until one is not served, so that "all connections in use" is said.
    fn fill(&self) {
        let refused = "staunch_accept_stops_total";
        let evicted = "staunch_refusals_total{reason=\"idle_for_others\"}";
        let before = self.metric(refused) + self.metric(evicted);
        let mut held = Vec::new();
        self.until("all connections are in use", || {
            if let Ok(stream) = TcpStream::connect(self.site) {
                let _ = (&stream).write_all(b"GET /ten HTTP/1.1\r\nHo");
                held.push(stream);
            }
            self.metric(refused) + self.metric(evicted) > before || held.len() > 200
        });
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let Some(process) = self.process() {
            let _ = kill_process(process, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> Tree {
    let tree = Tree::new().expect("a folder");
    fs::write(tree.root().join("ten"), b"0123456789").expect("a file");
    tree
}

/// Standard output and error with this fault, and what keeps it up.
fn broken(fault: Fault, disk: &Path) -> ([Stdio; 2], Option<io::PipeReader>) {
    let twice = |file: File| [file.try_clone().expect("a copy").into(), file.into()];
    match fault {
        Fault::DevFull => (twice(File::options().write(true).open("/dev/full").expect("it")), None),
        Fault::FullDisk => {
            let mut file = File::create(disk.join("full")).expect("a file");
            while file.write_all(&[b'x'; 4096]).is_ok() {}
            (twice(File::options().append(true).open(disk.join("full")).expect("it")), None)
        }
        Fault::ClosedPipe | Fault::FullPipe => {
            let (read, mut write) = io::pipe().expect("a pipe");
            let read = (fault == Fault::FullPipe).then_some(read);
            if read.is_some() {
                let size = fcntl_setpipe_size(&write, 4096).expect("a size");
                write.write_all(&vec![b'x'; size]).expect("it holds as much");
            }
            (twice(File::from(OwnedFd::from(write))), read)
        }
    }
}

/// Does what makes the server say something, and sees to it that it lives on and counts.
fn provoke(server: &mut Unheard, fault: Fault, cause: Cause) {
    let before = server.lost();
    let first = server.process();
    match cause {
        Cause::Term => {}
        // More than fit into the queue, if nobody takes one.
        Cause::Hup => {
            let start = Instant::now();
            while server.lost() < before + 10 {
                server.signal(Signal::HUP);
                assert!(start.elapsed() < PATIENCE, "no line is lost");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Cause::Usr2 => {
            server.signal(Signal::USR2);
            server.until("another process serves", || {
                let now = server.process();
                now.is_some() && now != first
            });
            let status = server.end();
            assert_eq!(status.code(), Some(0), "the former process: {status}");
        }
        Cause::FullTable => {
            server.fill();
            // A line that waits for a full pipe is not lost, if there are no more than wait.
            server.until("it is counted", || fault == Fault::FullPipe || server.lost() > before);
        }
    }
    server.until("it answers", || server.tries("/healthz").is_some());
    server.until("it serves", || server.serves());
}

#[test]
fn no_output_that_nobody_takes_ends_or_holds_the_server() {
    let tree = folder();
    let Some(disk) = Disk::mount(tree.root().join(".disk"), "size=64k") else { return };
    for io in ["epoll", "uring"] {
        for fault in FAULTS {
            for cause in CAUSES {
                println!("{io}, {fault:?}, {cause:?}");
                let (outputs, unread) = broken(fault, disk.folder());
                let mut server = Unheard::start(&tree, io, outputs, &[]);
                server._unread = unread;
                provoke(&mut server, fault, cause);
                if cause == Cause::Usr2 {
                    // The process is no child of ours: that it has gone shows by its file.
                    server.signal(Signal::TERM);
                    server.until("the file is removed", || !server.pid_file.exists());
                } else {
                    server.signal(Signal::TERM);
                    let status = server.end();
                    assert_eq!(status.code(), Some(0), "{io}, {fault:?}, {cause:?}: {status}");
                }
            }
        }
    }
}

/// What could not be said is spoken of once somebody listens again.
#[test]
fn lost_lines_are_spoken_of() {
    let tree = folder();
    let (read, mut write) = io::pipe().expect("a pipe");
    let size = fcntl_setpipe_size(&write, 4096).expect("a size");
    write.write_all(&vec![b'\n'; size]).expect("it holds as much");
    let outputs = [Stdio::null(), File::from(OwnedFd::from(write)).into()];
    let mut server = Unheard::start(&tree, "auto", outputs, &[]);
    provoke(&mut server, Fault::FullPipe, Cause::Hup);
    let said = std::thread::spawn(move || {
        let (mut text, mut read) = (String::new(), read);
        let _ = read.read_to_string(&mut text);
        text
    });
    server.until("all is said", || server.metric("staunch_error_log_lines_total{outcome=\"written\"}") > 256);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), Some(0));
    drop(server);
    let said = said.join().expect("it is read");
    assert!(said.contains(" lines before this were lost\n"), "{said}");
    assert!(said.trim_end().ends_with("a further signal after 1 s ends at once"), "{said}");
}

/// Every write to standard output and error fails, as the kernel would have it.
#[test]
fn no_error_of_a_write_ends_the_server() {
    if !is_installed("strace") {
        return;
    }
    let tree = folder();
    for io in ["epoll", "uring"] {
        for error in ["ENOSPC", "EPIPE", "EIO"] {
            let (out, trace) = (tree.root().join(".out"), tree.root().join(".trace"));
            let output = || File::create(&out).expect("a file");
            let (path, rule) = (out.to_str().expect("text"), format!("inject=write:error={error}"));
            let words = ["strace", "-f", "-qq", "-o", trace.to_str().expect("text"), "-P", path];
            let words = [&words[..], &["-e", "trace=write", "-e", &rule]].concat();
            let mut server = Unheard::start(&tree, io, [output().into(), output().into()], &words);
            provoke(&mut server, Fault::DevFull, Cause::Hup);
            server.signal(Signal::TERM);
            let status = server.end();
            assert_eq!(status.code(), Some(0), "{io}, {error}: {status}");
            let traced = fs::read_to_string(&trace).expect("a trace");
            let fired = traced.lines().filter(|line| line.contains(error) && line.contains("(INJECTED)"));
            assert!(fired.count() > 10, "{io}, {error}: nothing was injected:\n{traced}");
            assert_eq!(fs::read_to_string(&out).expect("a file"), "", "{io}, {error}");
        }
    }
}

/// A command that prints ends quietly when its reader goes away, and says so when the disk is full.
#[test]
fn commands_that_print_end_quietly_without_a_reader() {
    for words in [&["config", "show"][..], &["config", "reference"], &["completions", "bash"], &["man"]] {
        let (read, write) = io::pipe().expect("a pipe");
        drop(read);
        let output = Command::new(binary()).args(words).stdout(write).stderr(Stdio::piped()).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(141), "{words:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
        let full = File::options().write(true).open("/dev/full").expect("it");
        let output = Command::new(binary()).args(words).stdout(full).stderr(Stdio::piped()).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        assert!(said.contains("cannot write to standard output: No space left"), "{words:?}: {said}");
    }
    let (read, write) = io::pipe().expect("a pipe");
    drop(read);
    let status = Command::new(binary()).args(["-t", "--config", "/nowhere"]).stderr(write).status();
    assert_eq!(status.expect("it runs").code(), Some(78));
    assert!(finish(Command::new(binary()).args(["config", "show"])).status.success());
}

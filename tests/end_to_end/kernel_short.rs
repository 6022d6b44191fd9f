//! A kernel that is short of memory: what it refuses for the moment is asked for again, and nothing spins.
//!
//! Owns the injection of errors into the server's system calls (strace), and the check that they were
//! injected.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::waiting::until;
use staunch_tests::process::Server;
use staunch_tests::tree::Tree;

use crate::outside::{get, is_installed, server_of};

const ENTER: &str = "io_uring_enter";
const EPOLL: &str = "epoll_wait,epoll_pwait,epoll_pwait2";

/// How often a shortage that lasts is met with: some two seconds.
const ATTEMPTS: usize = 200;

/// A process whose system calls fail. The injection must end by itself before this is dropped: a process that
/// is let go in the middle of one is told ENOSYS.
pub(crate) struct Injection {
    strace: Child,
    log: PathBuf,
}

impl Injection {
    fn into(server: &Server, tree: &Tree, calls: &str, error: &str, when: &str) -> Self {
        Self::of(server, tree, calls, error, when, None)
    }

    /// Injects errors into calls that concern the file `only`, if one is named.
    pub(crate) fn of(
        server: &Server,
        tree: &Tree,
        calls: &str,
        error: &str,
        when: &str,
        only: Option<&Path>,
    ) -> Self {
        let log = tree.root().parent().expect("a folder").join("strace.log");
        // What an earlier injection wrote is no word of this one.
        let _ = std::fs::remove_file(&log);
        let process = server.process_id().to_string();
        let rule = format!("inject={calls}:error={error}:when={when}");
        let mut command = Command::new("strace");
        command.args(["-f", "-p", &process, "-e", &format!("trace={calls}"), "-e", &rule, "-o"]).arg(&log);
        if let Some(path) = only {
            command.arg("-P").arg(path);
        }
        let strace = command.stderr(Stdio::null()).spawn().expect("strace");
        Self { strace, log }
    }

    /// How many errors were injected.
    pub(crate) fn count(&self) -> usize {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter(|line| line.contains("(INJECTED)")).count()
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        let strace = Pid::from_raw(self.strace.id() as i32).expect("a process");
        let _ = kill_process(strace, Signal::TERM);
        let _ = self.strace.wait();
    }
}

fn is_served(server: &Server) -> bool {
    get(server.address(), "/a.txt").is_ok_and(|response| response.status == 200)
}

#[test]
fn what_the_kernel_refuses_for_a_moment_is_asked_for_again() {
    if !is_installed("strace") {
        return;
    }
    let table = [
        ("uring", ENTER, "ENOMEM"),
        ("uring", ENTER, "EAGAIN"),
        ("uring", ENTER, "EBUSY"),
        ("uring", ENTER, "EINTR"),
        ("epoll", EPOLL, "ENOMEM"),
        ("epoll", EPOLL, "EINTR"),
        ("epoll", "accept4", "ENOMEM"),
        ("epoll", "accept4", "ENOBUFS"),
        ("epoll", "recvfrom", "ENOMEM"),
        ("epoll", "sendto,sendmsg", "ENOBUFS"),
    ];
    for (io, calls, error) in table {
        let tree = Tree::with(&[]).expect("a tree");
        let mut server = server_of(&tree, &["--io", io]);
        let injection = Injection::into(&server, &tree, calls, error, "1..15+2");
        let what = format!("{io}, {calls}, {error}");
        let mut served = 0;
        until(&what, || {
            served += u32::from(is_served(&server));
            assert!(server.is_running(), "{what}");
            injection.count() >= 8 && served >= 8
        });
        drop(injection);
        let response = get(server.address(), "/a.txt").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(response.status, 200, "{what}");
        assert!(server.is_running(), "{what}");
    }
}

#[test]
fn a_shortage_that_lasts_is_waited_for() {
    if !is_installed("strace") {
        return;
    }
    for (io, calls) in [("uring", ENTER), ("epoll", EPOLL)] {
        let tree = Tree::with(&[]).expect("a tree");
        let mut server = server_of(&tree, &["--io", io]);
        let injection = Injection::into(&server, &tree, calls, "ENOMEM", &format!("1..{ATTEMPTS}"));
        until("the shortage begins", || {
            // What ends the present wait.
            let _ = std::net::TcpStream::connect(server.address());
            injection.count() > 0
        });
        std::thread::sleep(Duration::from_millis(500));
        assert!(server.is_running(), "{io}");
        assert!(injection.count() < ATTEMPTS, "{io}: nothing was waited for");
        until("the shortage is over", || injection.count() == ATTEMPTS && is_served(&server));
    }
}

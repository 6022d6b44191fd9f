//! Writes, reads and waits that fail as the kernel lets them: the server goes on, and serves as before once
//! they succeed again.
//!
//! Every row says which calls fail with which error and what makes the server call them. That the errors were
//! injected is checked; how often an answer is lost by one is not, for that is the error's.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::conversation::Content;
use staunch_tests::process::Server;
use staunch_tests::tree::Tree;

use crate::kernel_short::Injection;
use staunch_tests::house::waiting::until;

use crate::outside::{get, is_installed, server_of, tree_of};

/// What makes the server call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A short answer.
    Short,
    /// A file that is too large to be held.
    Large,
    /// A file that was not there before.
    New,
    /// A signal that opens logs anew.
    Signal,
    /// A line of the access log.
    Line,
}

const ERRORS: [&str; 4] = ["ENOSPC", "EPIPE", "EIO", "ENOMEM"];

/// Engine, calls, cause.
const KINDS: [(&str, &str, Cause); 10] = [
    ("epoll", "sendto,sendmsg", Cause::Short),
    ("epoll", "recvfrom", Cause::Short),
    ("epoll", "sendfile", Cause::Large),
    ("uring", "sendfile", Cause::Large),
    ("epoll", "pread64,preadv2", Cause::New),
    ("uring", "pread64,preadv2", Cause::New),
    ("epoll", "openat2", Cause::New),
    ("epoll", "poll,ppoll", Cause::Signal),
    ("epoll", "write", Cause::Line),
    ("uring", "write", Cause::Line),
];

/// So many errors are seen at least, each followed by a call that may succeed.
const FAILURES: usize = 4;
const LARGE: usize = 2 << 20;

struct World {
    tree: Tree,
    server: Server,
    log: PathBuf,
    files: usize,
}

impl World {
    fn new(io: &str) -> Self {
        let tree = tree_of(&[("a.txt", Content::Pattern(5)), ("large.bin", Content::Pattern(LARGE as u64))]);
        let log = tree.root().parent().expect("a folder").join("access.log");
        let server = server_of(&tree, &["--io", io, "--access-log", log.to_str().expect("text")]);
        Self { tree, server, log, files: 0 }
    }

    /// Asks, and gives whether the answer was whole.
    fn provoke(&mut self, cause: Cause) -> bool {
        let path = match cause {
            Cause::Short | Cause::Line => "/a.txt".to_owned(),
            Cause::Large => "/large.bin".to_owned(),
            Cause::New => {
                self.files += 1;
                let name = format!("new-{}.txt", self.files);
                fs::write(self.tree.root().join(&name), "12345").expect("a file");
                format!("/{name}")
            }
            Cause::Signal => {
                let process = Pid::from_raw(self.server.process_id().cast_signed()).expect("a process");
                kill_process(process, Signal::USR1).expect("a signal");
                "/a.txt".to_owned()
            }
        };
        let length = if cause == Cause::Large { LARGE } else { 5 };
        get(self.server.address(), &path)
            .is_ok_and(|response| response.status == 200 && response.body.len() == length)
    }
}

#[test]
fn no_error_of_the_kernel_ends_the_server() {
    if !is_installed("strace") {
        return;
    }
    for (io, calls, cause) in KINDS {
        let mut world = World::new(io);
        for error in ERRORS {
            let what = format!("{io}, {calls}, {error}");
            let only = if cause == Cause::Line { Some(world.log.clone()) } else { None };
            fail(&mut world, calls, error, only.as_deref(), cause, &what);
            until(&format!("{what}: all is as before"), || world.provoke(cause));
            assert!(world.server.is_running(), "{what}");
        }
    }
}

/// Lets calls fail until that was seen often enough.
fn fail(world: &mut World, calls: &str, error: &str, only: Option<&Path>, cause: Cause, what: &str) {
    let when = format!("1..{}+2", 2 * FAILURES);
    let injection = Injection::of(&world.server, &world.tree, calls, error, &when, only);
    until(&format!("{what}: errors are injected"), || {
        world.provoke(cause);
        assert!(world.server.is_running(), "{what}");
        injection.count() >= FAILURES
    });
}

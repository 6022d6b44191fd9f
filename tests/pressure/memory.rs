//! Little memory: what a control group allows counts as all there is, and is lived with.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use staunch_tests::process::{Server, binary, finish};
use staunch_tests::tree::Tree;

use crate::client::{BEGINNING, Client, ENGINES, is_served, until, until_said};

/// A control group of our own for memory, removed at the end. `None` where none can be made.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, limit: &str) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let newer = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let older = groups.lines().find_map(|line| line.split_once(":memory:"));
        let (parent, file) = match (older, newer) {
            (Some((_, group)), _) => (format!("/sys/fs/cgroup/memory{group}"), "memory.limit_in_bytes"),
            (None, Some(group)) => (format!("/sys/fs/cgroup{group}"), "memory.max"),
            (None, None) => return None,
        };
        let group = Self(PathBuf::from(parent).join(format!("staunch-{}-{name}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(file), limit).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process in it may still be ending.
        until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn thirty_two_mebibytes_are_seen_and_enough() {
    for io in ENGINES {
        let Some(group) = Group::new(io, "33554432") else {
            return println!("skipped: no control group for memory can be made here");
        };
        let tree = Tree::with(&[]).expect("a tree");
        let mut command = Command::new("sh");
        let join = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
        command.arg("-c").arg(join).arg(&group.0).arg(binary()).arg("serve").arg(tree.root());
        command.args(["--listen", "127.0.0.1:0", "--workers", "1", "--cache-size", "4MiB", "--io", io]);
        let mut server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        until_said(&server, "at most 2048 (a quarter of the memory this process may use");
        let held: Vec<Client> = (0..1_500).map(|_| Client::with(server.address(), BEGINNING)).collect();
        until("new clients are served beside them", || is_served(server.address()));
        assert!(server.is_running(), "{io}");
        drop(held);
        until("they are served afterwards", || is_served(server.address()));
        drop(server);
    }
}

#[test]
fn more_connections_than_memory_holds_are_refused_with_the_way_out() {
    let tree = Tree::with(&[]).expect("a tree");
    let mut command = Command::new(binary());
    command.arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:0", "--max-connections", "99000000"]);
    let finished = finish(&mut command);
    assert!(!finished.status.success());
    assert!(finished.stderr.contains("--max-connections 99000000"), "{}", finished.stderr);
}

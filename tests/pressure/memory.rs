//! Little memory: what a control group allows counts as all there is, and is lived with.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use staunch_tests::conversation::{Change, Content};
use staunch_tests::process::{Server, binary, finish};
use staunch_tests::tree::Tree;

use crate::client::{BEGINNING, Client, ENGINES, is_served, until, until_said};

/// A control group of our own for memory, removed at the end. `None` where none can be made.
struct Group(PathBuf);

impl Group {
    /// The test that needs it is over if there is none, or fails in CI.
    fn new(name: &str, limit: &str) -> Option<Self> {
        let group = Self::make(name, limit);
        if group.is_none() {
            let continuous = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!continuous, "no control group for memory can be made here");
            println!("skipped: no control group for memory can be made here");
        }
        group
    }

    /// The program under test, in this group.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        let join = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
        command.arg("-c").arg(join).arg(&self.0).arg(binary());
        command
    }

    fn make(name: &str, limit: &str) -> Option<Self> {
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
        let Some(group) = Group::new(io, "33554432") else { return };
        let tree = Tree::with(&[]).expect("a tree");
        let mut command = group.command();
        command.arg("serve").arg(tree.root());
        command.args(["--listen", "127.0.0.1:0", "--workers", "1", "--cache-size", "4MiB", "--io", io]);
        let mut server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        until_said(&server, "at most 1792 (a quarter of the memory this process may use");
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

/// Peers that ask for much more than fits into any socket, and read nothing.
fn greedy(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    const REQUEST: &[u8] = b"GET /1400.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let bytes = REQUEST.repeat(16_000 / REQUEST.len());
    let mut peers = Vec::new();
    for _ in 0..count {
        // A server that is full lets them wait in the kernel's queue, and that may be full too.
        let Ok(mut peer) = TcpStream::connect_timeout(&address, std::time::Duration::from_secs(5)) else {
            break;
        };
        set_socket_recv_buffer_size(&peer, 4096).expect("a socket");
        peer.set_nonblocking(true).expect("a socket");
        // What is not taken, or was refused already, need not be sent.
        let _ = peer.write(&bytes);
        peers.push(peer);
    }
    peers
}

fn tree_for_greedy() -> Tree {
    let file = |path: &str, length| Change::File { path: path.to_owned(), content: Content::Pattern(length) };
    Tree::with(&[file("1400.txt", 1400), file("a.txt", 5)]).expect("a tree")
}

/// A line of the process's status, in KiB.
fn status_kib(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn peers_that_read_nothing_give_way_and_their_memory_comes_back() {
    const BUDGET_KIB: u64 = 4096;
    // Buffers of a ring that grew with the burst.
    const RECEIVE_KIB: u64 = 20 * 1024;
    let tree = tree_for_greedy();
    for io in ENGINES {
        let mut server = Server::start(tree.root(), &["--memory-budget", "4MiB", "--io", io])
            .unwrap_or_else(|said| panic!("{said}"));
        until("the first answer", || is_served(server.address()));
        until_said(&server, "  prepared ");
        let before_kib = status_kib(&server, "RssAnon:");
        let peers = greedy(server.address(), 1_500);
        until("others are served beside them", || is_served(server.address()));
        let peak_kib = status_kib(&server, "VmHWM:") - status_kib(&server, "RssFile:");
        // What the allocator keeps between blocks of many sizes is no more than the blocks.
        let most_kib = before_kib + 3 * BUDGET_KIB + RECEIVE_KIB;
        assert!(peak_kib < most_kib, "{io}: {peak_kib} KiB at the peak, {before_kib} before");
        drop(peers);
        let receive_kib = if io == "uring" { RECEIVE_KIB } else { 0 };
        until("memory is given back", || {
            status_kib(&server, "RssAnon:") < before_kib + before_kib / 5 + receive_kib
        });
        assert!(server.is_running());
    }
}

#[test]
fn a_small_group_survives_a_crowd_that_reads_nothing() {
    let tree = tree_for_greedy();
    for io in ENGINES {
        let Some(group) = Group::new(&format!("crowd-{io}"), "50331648") else { return };
        let mut command = group.command();
        command.arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:0", "--io", io]);
        let mut server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        until("the first answer", || is_served(server.address()));
        let peers = greedy(server.address(), 4_000);
        for _ in 0..10 {
            until("others are served beside them", || is_served(server.address()));
        }
        assert!(server.is_running(), "{io}");
        drop(peers);
        drop(server);
    }
}

#[test]
fn a_limit_of_the_process_counts_and_is_survived() {
    let tree = tree_for_greedy();
    for io in ENGINES {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -d 400000 && exec \"$@\"", "sh"]).arg(binary());
        command.arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:0", "--io", io]);
        command.args(["--max-connections", "10000"]);
        let mut server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        until_said(&server, "(an eighth of the memory this process may use)");
        let peers = greedy(server.address(), 1_300);
        until("others are served beside them", || is_served(server.address()));
        assert!(server.is_running(), "{io}");
        drop(peers);
    }
}

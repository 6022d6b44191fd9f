//! What happens when descriptors, memory or work run out, or there is nothing to do.
use std::process::Command;
use std::time::Duration;

use staunch_tests::body::SocketLink;
use staunch_tests::conversation::{Change, Content};
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, binary};
use staunch_tests::tree::{Tree, bytes_of};

use crate::outside::{ENGINES, get, receive, server_of, tree_of};

const REQUEST: &[u8] = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server under `ulimit`, which raises no limit itself.
fn limited(tree: &Tree, io: &str, limit: &str) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"]);
    command.arg(binary()).arg("serve").arg(tree.root());
    command.args(["--listen", "127.0.0.1:0", "--workers", "1", "--io", io]);
    Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"))
}

#[test]
fn sixty_four_descriptors_are_enough_to_go_on() {
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let mut server = limited(&tree, io, "-n 64");
        let mut links: Vec<SocketLink> = Vec::new();
        for _ in 0..200 {
            let mut link = SocketLink::connect(server.address()).expect("the kernel's queue has room");
            link.send(REQUEST);
            links.push(link);
        }
        let first = receive(&mut links[0]).unwrap_or_else(|error| panic!("{io}: {error}"));
        assert_eq!(first.status, 200);
        // Full now: nothing may spin on the listener that cannot accept.
        let before_ms = server.processor_time_ms();
        std::thread::sleep(Duration::from_millis(1000));
        let spent_ms = server.processor_time_ms() - before_ms;
        assert!(spent_ms <= 200, "{io}: {spent_ms} ms of processor time while full");
        assert!(server.is_running());
        // What holds a place goes on, big files included.
        links[0].send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        let big = receive(&mut links[0]).unwrap_or_else(|error| panic!("{io}: {error}"));
        assert!(big.status == 200 || big.status == 503, "{io}: {}", big.status);
        drop(links);
        until("a new client is answered after the others left", || {
            get(server.address(), "/a.txt").is_ok_and(|response| response.status == 200)
        });
    }
}

/// Tables of connections are as large as the limits of the process let them be: what says that it listens
/// serves.
#[test]
fn little_memory_to_map_is_enough() {
    let tree = Tree::with(&[]).expect("a tree");
    for limit in ["-v 300000", "-v 1000000", "-v 1500000", "-d 100000", "-d 200000"] {
        for io in ["auto", "uring", "epoll"] {
            let mut server = limited(&tree, io, limit);
            for _ in 0..3 {
                let response = get(server.address(), "/a.txt");
                assert_eq!(response.expect(limit).status, 200, "{limit}, {io}");
            }
            assert!(server.is_running(), "{limit}, {io}");
        }
    }
}

#[test]
fn waiting_clients_get_their_turn_when_places_are_free() {
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io, "--max-connections", "8"]);
        let mut links: Vec<SocketLink> = (0..24)
            .map(|_| {
                let mut link = SocketLink::connect(server.address()).expect("the kernel's queue has room");
                link.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                link
            })
            .collect();
        for (number, link) in links.iter_mut().enumerate() {
            let response = receive(link).unwrap_or_else(|error| panic!("{io}: client {number}: {error}"));
            assert!(matches!(response.status, 200 | 503), "{io}: client {number}: {}", response.status);
        }
    }
}

#[test]
fn memory_stays_within_the_budget() {
    const BUDGET_KIB: u64 = 32 * 1024;
    let files: Vec<(String, Content)> =
        (0..400).map(|number| (format!("{number}.bin"), Content::Pattern(300_000))).collect();
    let files: Vec<(&str, Content)> =
        files.iter().map(|(path, content)| (path.as_str(), content.clone())).collect();
    let tree = tree_of(&files);
    let wanted = bytes_of(&Content::Pattern(300_000));
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io, "--cache-size", "32MiB"]);
        for (path, _) in &files {
            let response =
                get(server.address(), &format!("/{path}")).unwrap_or_else(|error| panic!("{io}: {error}"));
            assert!(response.body == wanted, "{io}: {path} is wrong");
        }
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", server.process_id())).expect("a process");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        // Besides the budget: the program, receive buffers, and the work space of the encoders.
        assert!(peak_kib < BUDGET_KIB + 96 * 1024, "{io}: {peak_kib} KiB at its peak");
    }
}

#[test]
fn a_small_address_space_is_survived() {
    let tree = Tree::with(&[]).expect("a tree");
    let change = Change::File { path: "huge.bin".to_owned(), content: Content::Sparse(8 << 30) };
    tree.apply(&change).expect("a sparse file");
    // An allocator may reserve address space it does not use: 3 GiB are little for it, and for the file.
    let mut server = limited(&tree, "epoll", "-v 3145728");
    for _ in 0..3 {
        let link = SocketLink::connect(server.address());
        let mut link = link.expect("a connection");
        link.send(b"GET /huge.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=8589934580-\r\n\r\n");
        assert_eq!(receive(&mut link).expect("an answer").status, 206);
        assert_eq!(get(server.address(), "/a.txt").expect("an answer").status, 200);
    }
    assert!(server.is_running());
}

/// How often the threads of a process have gone to sleep of their own will, which is how often they woke.
fn sleeps(server: &Server) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.process_id())).expect("a process");
    let count = |task: std::fs::DirEntry| {
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    tasks.filter_map(Result::ok).filter_map(count).sum()
}

#[test]
fn an_idle_server_does_not_wake() {
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io, "--keep-alive", "600s"]);
        let mut links: Vec<SocketLink> =
            (0..50).map(|_| SocketLink::connect(server.address()).expect("a connection")).collect();
        for link in &mut links {
            link.send(REQUEST);
            receive(link).unwrap_or_else(|error| panic!("{io}: {error}"));
        }
        until(&format!("{io}: fifty idle connections wake nobody for half a second"), || {
            let before = sleeps(&server);
            std::thread::sleep(Duration::from_millis(500));
            sleeps(&server) == before
        });
    }
}

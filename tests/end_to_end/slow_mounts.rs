//! A file system that hangs delays only those who ask for what is on it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use staunch_tests::body::SocketLink;
use staunch_tests::conversation::Content;
use staunch_tests::house::skipping::skip;
use staunch_tests::process::Server;
use staunch_tests::response::Response;
use staunch_tests::tree::bytes_of;

use crate::outside::{ENGINES, PATIENCE, get, script, tree_of};

/// More than is held in memory.
const LENGTH_BYTES: u64 = 3_000_000;

/// What is asked for: a file, a range, and the bytes of it that come.
const ASKED: [(&str, &str, std::ops::Range<usize>); 4] = [
    ("slow-whole.bin", "", 0..3_000_000),
    ("slow-direct.bin", "", 0..3_000_000),
    ("slow-range.bin", "Range: bytes=990000-1100000\r\n", 990_000..1_100_001),
    ("slow-end.bin", "Range: bytes=500000-2999999\r\n", 500_000..3_000_000),
];

/// A folder mounted by `slow_mount.py`.
struct SlowMount {
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
    point: PathBuf,
}

impl SlowMount {
    /// `None`, and a line that says so, where nothing can be mounted.
    fn of(folder: &Path) -> Option<Self> {
        let point = folder.with_extension("mounted");
        std::fs::create_dir_all(&point).expect("a folder");
        let mut command = Command::new("python3");
        command.arg(script("slow_mount.py")).args([folder, &point]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            skip("python3 is missing");
            return None;
        };
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let (sender, said) = channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        if said.recv_timeout(PATIENCE) != Ok("mounted".into()) {
            skip("FUSE may not be mounted here");
            return None;
        }
        Some(Self { child, input, said, point })
    }

    fn await_hanging(&self, count: usize) {
        for _ in 0..count {
            let said = self.said.recv_timeout(PATIENCE).expect("a file hangs");
            assert!(said.starts_with("hangs slow"), "{said}");
        }
    }

    fn let_go(&mut self) {
        self.input.as_mut().expect("a pipe").write_all(b"go\n").expect("it listens");
    }
}

impl Drop for SlowMount {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
        let _ = Command::new("umount").arg("--lazy").arg(&self.point).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir(&self.point);
    }
}

/// A server of such a folder. The mount goes first: what hangs on it keeps the process from ending.
struct Scene {
    mount: SlowMount,
    server: Server,
}

/// Asks, and reads all of the answer in a thread.
fn ask(server: &Server, path: &str, fields: &str) -> JoinHandle<Response> {
    let mut link = SocketLink::connect(server.address()).expect("a connection");
    link.send(format!("GET /{path} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n").as_bytes());
    thread::spawn(move || receive_all(link))
}

fn receive_all(mut link: SocketLink) -> Response {
    while link.end().is_none() {
        assert!(link.fill(PATIENCE), "an answer goes on");
    }
    let (response, _) = Response::read(link.received(), false).expect("an answer").expect("all of it");
    response
}

#[test]
fn a_file_system_that_hangs_delays_nobody_else() {
    let pattern = || Content::Pattern(LENGTH_BYTES);
    let mut files: Vec<_> = ASKED.iter().map(|(name, _, _)| (*name, pattern())).collect();
    files.extend([("slow-parts.bin", pattern()), ("big.bin", pattern())]);
    files.push(("small.txt", Content::Bytes(b"small".to_vec())));
    let tree = tree_of(&files);
    let whole = bytes_of(&pattern());
    for io in ENGINES {
        let Some(mount) = SlowMount::of(tree.root()) else { return };
        // Patience is off: that the machine is busy must not answer for the server.
        let arguments = ["--io", io, "--patience", "off", "--send-timeout", "10min"];
        let server = Server::start(&mount.point, &arguments).unwrap_or_else(|said| panic!("{said}"));
        let mut scene = Scene { mount, server };
        let server = &scene.server;
        let links: Vec<_> = ASKED.iter().map(|(name, fields, _)| ask(server, name, fields)).collect();
        let parts = ask(server, "slow-parts.bin", "Range: bytes=0-9,999990-1000100\r\n");
        // A device may take no more of the threads that wait: the last of the five stands in line for them.
        scene.mount.await_hanging(ASKED.len());
        // While they hang, the one worker answers: what it holds, what it has to load, what it sends in
        // steps.
        for _ in 0..2 {
            assert_eq!(get(server.address(), "/small.txt").expect("an answer").body, b"small", "{io}");
            assert_eq!(get(server.address(), "/none").expect("an answer").status, 404, "{io}");
        }
        scene.mount.let_go();
        for (link, (name, _, range)) in links.into_iter().zip(ASKED) {
            let response = link.join().expect(name);
            assert!(response.body == whole[range], "{io}: {name}: {} bytes", response.body.len());
        }
        let parts = parts.join().expect("an answer");
        assert!(parts.body.windows(111).any(|part| part == &whole[999_990..1_000_101]), "{io}: parts");
        let big = get(scene.server.address(), "/big.bin").expect("an answer");
        assert!(big.body == whole, "{io}: {} bytes", big.body.len());
    }
}

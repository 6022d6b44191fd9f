//! A file system that hangs delays only those who ask for what is on it, and a folder that is mounted again
//! is served as any other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use staunch_tests::body::SocketLink;
use staunch_tests::conversation::Content;
use staunch_tests::house::skipping::skip;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, serve};
use staunch_tests::response::Response;
use staunch_tests::tree::{Tree, bytes_of};
use staunch_tls::LocalAuthority;

use crate::outside::{ENGINES, PATIENCE, get, is_installed, script, tree_of};

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

/// Files of which reads will hang, and others.
fn slow_tree() -> Tree {
    let pattern = || Content::Pattern(LENGTH_BYTES);
    let mut files: Vec<_> = ASKED.iter().map(|(name, _, _)| (*name, pattern())).collect();
    files.extend([("slow-parts.bin", pattern()), ("big.bin", pattern())]);
    files.push(("small.txt", Content::Bytes(b"small".to_vec())));
    tree_of(&files)
}

#[test]
fn a_file_system_that_hangs_delays_nobody_else() {
    let tree = slow_tree();
    let whole = bytes_of(&Content::Pattern(LENGTH_BYTES));
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

/// Arguments of curl for a protocol, and whether they go to the port of HTTPS.
const WAYS: [(&[&str], bool); 3] = [
    (&["--http1.1", "--insecure"], true),
    (&["--http2-prior-knowledge"], false),
    (&["--http2", "--insecure"], true),
];

/// A server that speaks HTTPS and HTTP/2 beside HTTP/1.1, with the addresses of both ports.
struct Doors {
    server: Server,
    secured: std::net::SocketAddr,
}

impl Doors {
    /// A server of a folder with a certificate for its address, which lies beside it.
    fn open(root: &Path, folder: &Path, io: &str) -> Self {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
        let authority = LocalAuthority::create(now_s).expect("an authority");
        let issued = authority.issue(&["127.0.0.1"], now_s).expect("a pair");
        let [pair, key] = ["pair.pem", "pair.key"].map(|name| folder.join(name));
        std::fs::write(&pair, issued.certificate_pem).expect("a file");
        std::fs::write(&key, issued.key_pem.as_bytes()).expect("a file");
        let mut command = serve(root);
        command.args(["--io", io, "--patience", "off", "--send-timeout", "10min"]);
        command
            .args(["--tls-listen", "127.0.0.1:0", "--https-redirect", "off", "--tls-certificate"])
            .arg(pair);
        let server = Server::spawn(command.arg("--tls-key").arg(key)).unwrap_or_else(|said| panic!("{said}"));
        let secured = server.secured_address();
        Self { server, secured }
    }

    fn url(&self, is_secured: bool, name: &str) -> String {
        match is_secured {
            true => format!("https://{}/{name}", self.secured),
            false => format!("http://{}/{name}", self.server.address()),
        }
    }
}

/// Runs curl with these further words in a thread, which gives what was read.
fn curl(way: &[&str], words: &[&str]) -> JoinHandle<Vec<u8>> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail", "--max-time", "120"]).args(way).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("curl");
    thread::spawn(move || {
        let Output { status, stdout, stderr } = child.wait_with_output().expect("an end");
        assert!(status.success(), "curl: {}", String::from_utf8_lossy(&stderr));
        stdout
    })
}

/// The words of curl for a field `Range`.
fn range_words(fields: &str) -> Vec<&str> {
    let range = fields.strip_prefix("Range: bytes=").map(str::trim_end);
    range.map_or_else(Vec::new, |range| vec!["--range", range])
}

#[test]
fn a_file_system_that_hangs_delays_nobody_else_by_tls_or_http2() {
    if !is_installed("curl") {
        return;
    }
    let tree = slow_tree();
    let folder = tree.root().parent().expect("a folder of the test's own");
    let whole = bytes_of(&Content::Pattern(LENGTH_BYTES));
    for (io, (way, is_secured)) in ENGINES.iter().flat_map(|io| WAYS.map(|way| (*io, way))) {
        let Some(mount) = SlowMount::of(tree.root()) else { return };
        let doors = Doors::open(&mount.point, folder, io);
        // The mount goes first: what hangs on it keeps the process from ending.
        let mut scene = (mount, doors);
        let (mount, doors) = (&mut scene.0, &scene.1);
        let url = |name: &str| doors.url(is_secured, name);
        let ask = |(name, fields, _): &(&str, &str, _)| {
            curl(way, &[range_words(fields), vec![&url(name)]].concat())
        };
        let slow: Vec<_> = ASKED.iter().map(ask).collect();
        mount.await_hanging(ASKED.len());
        for _ in 0..2 {
            let small = curl(way, &[&url("small.txt")]).join().expect("an answer");
            assert_eq!(small, b"small", "{io} {way:?}");
            assert_eq!(get(doors.server.address(), "/none").expect("an answer").status, 404, "{io} {way:?}");
        }
        mount.let_go();
        for (asked, (name, _, range)) in slow.into_iter().zip(ASKED) {
            let body = asked.join().expect(name);
            assert!(body == whole[range], "{io} {way:?}: {name}: {} bytes", body.len());
        }
        let big = curl(way, &[&url("big.bin")]).join().expect("an answer");
        assert!(big == whole, "{io} {way:?}: {} bytes", big.len());
    }
}

/// A folder or file that is mounted at a second place, until it is dropped.
struct Bound(PathBuf);

impl Bound {
    /// `None`, and a line that says so, where nothing can be mounted.
    fn at(point: PathBuf, from: &Path) -> Option<Self> {
        let told = Command::new("mount").arg("--bind").args([from, &point]).output();
        if told.is_ok_and(|told| told.status.success()) {
            return Some(Self(point));
        }
        skip("nothing may be mounted here");
        None
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

/// A root, a folder within it and a file within it may each be mounted from elsewhere: what changes there is
/// seen, by every protocol.
#[test]
fn what_is_mounted_from_elsewhere_is_served_and_seen_to_change() {
    let text = |words: &str| Content::Bytes(words.as_bytes().to_vec());
    let tree = tree_of(&[
        ("root/page.txt", text("one")),
        ("root/within/page.txt", text("hidden")),
        ("root/file.txt", text("hidden")),
        ("elsewhere/page.txt", text("one")),
        ("file.txt", text("one")),
        ("point/nothing.txt", text("hidden")),
    ]);
    let at = |name: &str| tree.root().join(name);
    let Some(_folder) = Bound::at(at("root/within"), &at("elsewhere")) else { return };
    let Some(_file) = Bound::at(at("root/file.txt"), &at("file.txt")) else { return };
    // As `mount --rbind`: what is mounted within comes along.
    let told = Command::new("mount").arg("--rbind").args([at("root"), at("point")]).output().expect("mount");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let _root = Bound(at("point"));
    let sources = ["root/page.txt", "elsewhere/page.txt", "file.txt"].map(at);
    for io in ENGINES {
        let doors = Doors::open(&at("point"), tree.root(), io);
        for words in ["two", "three", "and four"] {
            // In place, for a mounted file stays the one that was mounted.
            sources.iter().for_each(|source| std::fs::write(source, words).expect("a file"));
            for path in ["/page.txt", "/within/page.txt", "/file.txt"] {
                let is_new = |body: &[u8]| body == words.as_bytes();
                until(path, || is_new(&get(doors.server.address(), path).expect("an answer").body));
                if !is_installed("curl") {
                    continue;
                }
                for (way, is_secured) in WAYS {
                    let url = doors.url(is_secured, &path[1..]);
                    let body = curl(way, &[&url]).join().expect("an answer");
                    assert_eq!(String::from_utf8_lossy(&body), words, "{io} {way:?} {url}");
                }
            }
        }
    }
}

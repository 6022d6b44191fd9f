//! `staunch publish --follow`: lines of a file that grows, is replaced and is cut, of standard input, and
//! files of a folder.
//!
//! It must never leave a process behind.

use std::fs::{File, remove_dir_all, remove_file, rename, write};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, finish};

use crate::line::Line;
use crate::store::Store;
use crate::world::{ENGINES, TOKEN, World};

/// A running `staunch publish --follow`; killed on drop.
struct Follower {
    child: Child,
    complaints: BufReader<ChildStderr>,
}

impl Follower {
    fn begin(world: &World, file: &str) -> Self {
        Self::run(command(world.server.url(), &["log.a", file], TOKEN))
    }

    fn run(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let complaints = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, complaints }
    }

    /// The next line of its standard error.
    fn said(&mut self) -> String {
        let mut line = String::new();
        self.complaints.read_line(&mut line).expect("a line of text");
        line
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that follows what these arguments say, and publishes to a server.
fn command(url: String, arguments: &[&str], token: &str) -> Command {
    let mut command = Command::new(binary());
    command.arg("publish").args(arguments).args(["--follow", "--to", &url]);
    command.env("STAUNCH_PUBLISH_TOKEN", token);
    command
}

fn append(path: &Path, text: &str) {
    let mut file = File::options().create(true).append(true).open(path).expect("a file of ours");
    file.write_all(text.as_bytes()).expect("a file of ours");
}

#[test]
fn lines_that_are_added_to_a_file_are_published() {
    for io in ENGINES {
        let line = Line::begin(&binary(), io, "always", &[]);
        let world = &line.world;
        let [path, moved] = ["log", "log.1"].map(|name| line.store.path().join(name));
        append(&path, "old\n");
        let mut events = world.read("topic=log.a&plain=1&from=now", "").begin();
        let mut follower = Follower::begin(world, path.to_str().expect("a name of ours"));
        assert_eq!(follower.said(), format!("staunch: following {}\n", path.display()));
        append(&path, "1\nha");
        assert_eq!(events.data(), "1", "{io}");
        append(&path, "lf\n");
        assert_eq!(events.data(), "half", "{io}");
        rename(&path, &moved).expect("a file of ours");
        append(&moved, "late\n");
        append(&path, "of the new one\n");
        assert_eq!([events.data(), events.data()], ["late", "of the new one"], "{io}");
        write(&path, "cut\n").expect("a file of ours");
        assert_eq!(events.data(), "cut", "{io}");
        // A line longer than `live_value_size` is reported; the lines behind it are published.
        append(&path, &format!("{}\nnext\n", "x".repeat(70_000)));
        assert_eq!(events.data(), "next", "{io}");
        let said = follower.said();
        assert!(said.starts_with("staunch: a line was left out: log.a: "), "{io}: {said}");
        line.upgrade();
        append(&path, "over an upgrade\n");
        assert!(events.next().is_none(), "{io}: the former process sends its readers away");
        let resumed = format!("Last-Event-ID: {}\r\n", events.last_id());
        let mut events = world.read("topic=log.a&plain=1", &resumed);
        assert_eq!(events.data(), "over an upgrade", "{io}");
    }
}

#[test]
fn standard_input_is_published_line_by_line() {
    let world = World::new("epoll", &[]);
    let mut events = world.read("topic=log.a&plain=1&from=now", "").begin();
    let mut follower = Follower::begin(&world, "-");
    let mut input = follower.child.stdin.take().expect("a pipe");
    for line in ["first", "second"] {
        writeln!(input, "{line}").expect("a pipe that is read");
        assert_eq!(events.data(), line);
    }
    drop(input);
    assert!(follower.child.wait().expect("a child of ours").success(), "it ends with its input");
}

#[test]
fn who_may_not_publish_is_told_and_ends() {
    let world = World::new("epoll", &[]);
    let path = world.tree.root().join("log");
    append(&path, "1\n");
    let mut command =
        command(world.server.url(), &["log.a", path.to_str().expect("a name of ours")], "wrong");
    let finished = finish(command.arg("--lines"));
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    assert!(finished.stderr.contains("staunch: log.a: "), "{finished:?}");
}

#[test]
fn files_of_a_folder_are_topics() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let folder = Store::new();
        let path = |name: &str| folder.path().join(name);
        write(path("a"), "there").expect("a file of ours");
        write(path(".hidden"), "never").expect("a file of ours");
        let mut events = world.read("topic=*", "").begin();
        let name = folder.path().to_str().expect("a name of ours").to_owned();
        let mut follower = Follower::run(command(world.server.url(), &[&name], TOKEN));
        assert_eq!(follower.said(), format!("staunch: following {name}\n"));
        let told = |topic: &str, data: &str| format!("{{\"topic\":\"{topic}\",\"data\":{data}}}");
        assert_eq!(events.data(), told("a", "\"there\""), "{io}");
        // A file counts once it is closed, or has its name.
        let mut half = File::create(path("b")).expect("a file of ours");
        half.write_all(b"ha").expect("a file of ours");
        write(path(".c.tmp"), r#"{"is":"json"}"#).expect("a file of ours");
        rename(path(".c.tmp"), path("c")).expect("a file of ours");
        assert_eq!(events.data(), told("c", r#"{"is":"json"}"#), "{io}");
        half.write_all(b"lf").expect("a file of ours");
        drop(half);
        assert_eq!(events.data(), told("b", "\"half\""), "{io}");
        // What the server refuses is told and left out; so is a file that is gone, without a word.
        // One that is longer than a server reads in vain is answered before it was sent.
        for (name, length) in [("long", 70_000), ("longer", 16_000_000)] {
            write(path(name), "x".repeat(length)).expect("a file of ours");
            let (said, begin) = (follower.said(), format!("staunch: a file was left out: {name}: 413 "));
            assert!(said.starts_with(&begin), "{io}: {said}");
        }
        remove_file(path("a")).expect("a file of ours");
        write(path("b"), "again").expect("a file of ours");
        assert_eq!(events.data(), told("b", "\"again\""), "{io}");
        drop(follower);
        assert_eq!(world.ask("GET", "/live/a", "", b"").text(), "there", "{io}");
    }
}

#[test]
fn files_that_are_removed_end_their_topics_if_that_is_asked_for() {
    let world = World::new("epoll", &[]);
    let folder = Store::new();
    let path = |name: &str| folder.path().join(name);
    write(path("a"), "1").expect("a file of ours");
    let name = folder.path().to_str().expect("a name of ours").to_owned();
    let mut follower = Follower::run(command(world.server.url(), &["quotes.", &name, "--delete"], TOKEN));
    until("the file is published", || world.ask("GET", "/live/quotes.a", "", b"").status == 200);
    rename(path("a"), path("b")).expect("a file of ours");
    until("it has its new name", || world.ask("GET", "/live/quotes.b", "", b"").text() == "1");
    assert_eq!(world.ask("GET", "/live/quotes.a", "", b"").status, 404);
    remove_dir_all(folder.path()).expect("a folder of ours");
    assert_eq!(follower.child.wait().expect("a child of ours").code(), Some(1));
    assert_eq!(world.ask("GET", "/live/quotes.b", "", b"").status, 404);
    assert_eq!(follower.said(), format!("staunch: following {name}\n"));
    assert!(follower.said().contains(": the folder is gone"));
    let finished = finish(
        Command::new(binary())
            .args(["publish", "a", "--follow", "--delete"])
            .env("STAUNCH_PUBLISH_TOKEN", TOKEN),
    );
    assert!(finished.stderr.contains("--delete: it is for a folder"), "{finished:?}");
    let finished = finish(
        Command::new(binary())
            .args(["publish", "/no/such/folder", "--follow"])
            .stdin(Stdio::null())
            .env("STAUNCH_PUBLISH_TOKEN", TOKEN),
    );
    assert!(finished.stderr.contains("/no/such/folder: there is no such folder"), "{finished:?}");
}

/// Passes on what comes to a server, and its answers, but for the first answer: its connection is cut in its
/// place. Ends with its last connection.
fn lose_an_answer(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut is_lost = false;
        for client in listener.incoming() {
            let mut client = client.expect("a connection");
            let mut upstream = TcpStream::connect(server).expect("a server that accepts");
            let mut piece = [0; 64 * 1024];
            while let Ok(count @ 1..) = client.read(&mut piece) {
                upstream.write_all(&piece[..count]).expect("a server that reads");
                let count = upstream.read(&mut piece).expect("an answer");
                if !std::mem::replace(&mut is_lost, true) {
                    break;
                }
                client.write_all(&piece[..count]).expect("a client that reads");
            }
        }
    });
    address
}

#[test]
fn a_line_whose_answer_was_lost_is_published_once() {
    let world = World::with_settings("epoll", &[], "live_topic = [{ match = \"log.*\", kind = \"log\" }]");
    let proxy = lose_an_answer(world.address());
    let mut events = world.read("topic=log.a&plain=1&from=now", "").begin();
    let mut follower = Follower::run(command(format!("http://{proxy}"), &["log.a", "-"], TOKEN));
    let mut input = follower.child.stdin.take().expect("a pipe");
    input.write_all(b"one\ntwo\n").expect("a pipe that is read");
    drop(input);
    assert_eq!([events.data(), events.data()], ["one", "two"]);
    assert!(follower.child.wait().expect("a child of ours").success());
    assert!(follower.said().contains("trying again every second"), "the answer was lost");
    let history = world.read("topic=log.a&plain=1", "");
    let mut history = history.begin();
    assert_eq!([history.data(), history.data()], ["one", "two"]);
}

#[test]
fn a_server_that_is_as_full_as_it_may_be_is_not_asked_for_ever() {
    let world = World::new("epoll", &["--live-topics", "1"]);
    world.put("first", "1");
    let path = world.tree.root().join("log");
    append(&path, "1\n");
    let mut command = command(world.server.url(), &["log.a", path.to_str().expect("a name of ours")], TOKEN);
    let finished = finish(command.arg("--lines"));
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    assert!(finished.stderr.contains("as many topics as `live_topics` allows"), "{finished:?}");
}

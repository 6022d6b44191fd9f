//! `staunch publish --follow`: lines of a file that grows, is replaced and is cut, and of standard input.
//!
//! It must never leave a process behind.

use std::fs::{File, rename, write};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use staunch_tests::process::{binary, finish};

use crate::upgrade::Line;
use crate::world::{ENGINES, TOKEN, World};

/// A running `staunch publish --follow`; killed on drop.
struct Follower {
    child: Child,
    complaints: BufReader<ChildStderr>,
}

impl Follower {
    fn begin(world: &World, file: &str) -> Self {
        let mut command = command(world, file, TOKEN);
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

/// The command that follows a file and publishes its lines to the topic `log.a`.
fn command(world: &World, file: &str, token: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(["publish", "log.a", file, "--follow", "--to", &world.server.url()]);
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
    let mut command = command(&world, path.to_str().expect("a name of ours"), "wrong");
    let finished = finish(command.arg("--lines"));
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    assert!(finished.stderr.contains("staunch: log.a: "), "{finished:?}");
}

//! A new process that serves and is gone before the former one has heard of it: nobody else may have numbered.
//!
//! It must never leave a process behind.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, write_program};

use crate::line::Line;
use crate::store::{Store, parts};
use crate::world::{ENGINES, connect, publisher};

/// Which process answers on a connection: the file `who` of its folder has 6 letters.
fn who(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /who HTTP/1.1\r\nHost: a\r\n\r\n").expect("a server that reads");
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"former") && !answer.ends_with(b"latter") {
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    String::from_utf8_lossy(&answer[answer.len() - 6..]).into_owned()
}

/// A connection that the new process has accepted: both accept at the same sockets.
fn at_successor(address: SocketAddr) -> TcpStream {
    let mut found = None;
    until("the successor accepts", || {
        let mut stream = connect(address);
        found = (who(&mut stream) == "latter").then_some(stream);
        found.is_some()
    });
    found.expect("a connection")
}

fn put(stream: &mut TcpStream, topic: &str) {
    let lines = publisher("text/plain");
    let head = format!("PUT /topics/{topic} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n{lines}\r\n1");
    stream.write_all(head.as_bytes()).expect("a server that reads");
}

#[test]
fn a_process_that_is_gone_before_it_was_heard_has_numbered_nothing() {
    for (io, sync) in ENGINES.into_iter().flat_map(|io| [(io, "always"), (io, "memory")]) {
        let folder = Store::new();
        let names = ["server", "real", "new", "latter"];
        let [program, real, new, latter] = names.map(|name| folder.path().join(name));
        for path in [&program, &real] {
            write_program(path, &std::fs::read(binary()).expect("the program"), 0o755);
        }
        let line = Line::begin(&program, io, sync, &["--sandbox", "off"]);
        let root = line.world.tree.root();
        std::fs::write(root.join("who"), "former").expect("a file of ours");
        std::fs::create_dir(&latter).expect("a folder of ours");
        std::fs::write(latter.join("who"), "latter").expect("a file of ours");
        let settings = std::fs::read_to_string(line.world.settings_file()).expect("a file of ours");
        let [root, latter] = [root, &latter].map(|path| path.to_str().expect("a name of ours"));
        std::fs::write(line.world.settings_file(), settings.replace(root, latter)).expect("a file of ours");
        // Its word is said to nobody: the pipe stays open, and is another descriptor than the one it knows.
        let script = format!(
            "#!/bin/sh\nfor free in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$free ] || break; done\n\
             eval \"exec $free> /dev/null\"\n\
             STAUNCH_HANDOVER=$(echo \"$STAUNCH_HANDOVER\" | sed \"s/\\\"ready\\\":[0-9]*/\\\"ready\\\":$free/\")\n\
             export STAUNCH_HANDOVER\nexec {} \"$@\"\n",
            real.display()
        );
        write_program(&new, script.as_bytes(), 0o755);
        std::fs::rename(&new, &program).expect("a replacement");
        let epoch = parts(&line.world.publish(r#"{"topic":"v","data":1}"#)).0;
        let mut former = connect(line.world.address());
        assert_eq!(who(&mut former), "former", "{io} {sync}");
        line.upgrade();
        let mut successor = at_successor(line.world.address());
        put(&mut successor, "s");
        put(&mut former, "f");
        // Time enough for a process that numbers.
        (0..100).for_each(|_| drop(at_successor(line.world.address())));
        line.kill_successor();
        let mut answer = Vec::new();
        // It was cut, or reset.
        let _ = successor.read_to_end(&mut answer);
        assert_eq!(String::from_utf8_lossy(&answer), "", "{io} {sync}: it has not taken over");
        let mut head = [0; 15];
        former.read_exact(&mut head).expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 200 OK", "{io} {sync}");
        let next = line.world.publish(r#"{"topic":"v","data":2}"#);
        assert_eq!(parts(&next), (epoch, 3), "{io} {sync}");
        assert!(line.said().contains("this process goes on"), "{io} {sync}: {}", line.said());
    }
}

//! A new process that serves and is gone before the former one has heard of it: nobody else may have
//! numbered.
//!
//! It must never leave a process behind.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use staunch_tests::house::ports::reserved_address;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, write_program};

use crate::line::Line;
use crate::store::{Store, parts};
use crate::world::{ENGINES, ask, connect, publisher};

fn put(stream: &mut TcpStream, topic: &str) {
    let lines = publisher("text/plain");
    let head = format!("PUT /topics/{topic} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n{lines}\r\n1");
    stream.write_all(head.as_bytes()).expect("a server that reads");
}

/// The status of the next answer on a connection.
fn status(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).expect("an answer");
    String::from_utf8_lossy(&line[9..]).into_owned()
}

/// The new program tells nobody that it serves: the descriptor for that is another one, and the pipe stays
/// open. It listens at an address of its own besides, where it is met alone.
#[test]
fn a_process_that_is_gone_before_it_was_heard_has_numbered_nothing() {
    for (io, sync) in ENGINES.into_iter().flat_map(|io| [(io, "always"), (io, "memory")]) {
        let folder = Store::new();
        let [program, real, new] = ["server", "real", "new"].map(|name| folder.path().join(name));
        for path in [&program, &real] {
            write_program(path, &std::fs::read(binary()).expect("the program"), 0o755);
        }
        let line = Line::begin(&program, io, sync, &["--sandbox", "off"]);
        let own = reserved_address();
        let script = format!(
            "#!/bin/sh\nfor free in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$free ] || break; done\n\
             eval \"exec $free> /dev/null\"\n\
             told=$(echo \"$STAUNCH_HANDOVER\" | sed \"s/\\\"ready\\\":[0-9]*/\\\"ready\\\":$free/\")\n\
             STAUNCH_HANDOVER=$told\n\
             export STAUNCH_HANDOVER\nexec {} \"$@\" --listen {own}\n",
            real.display()
        );
        write_program(&new, script.as_bytes(), 0o755);
        std::fs::rename(&new, &program).expect("a replacement");
        let epoch = parts(&line.world.publish(r#"{"topic":"v","data":1}"#)).0;
        let mut former = connect(line.world.address());
        former.write_all(b"HEAD /none HTTP/1.1\r\nHost: a\r\n\r\n").expect("a server that reads");
        assert_eq!(status(&mut former), "404", "{io} {sync}");
        line.upgrade();
        let mut successor = connect(own);
        put(&mut successor, "s");
        // Time enough for a process that numbers.
        for _ in 0..200 {
            assert_eq!(ask(own, "GET", "/live/s", "", b"").status, 404, "{io} {sync}: it has not taken over");
        }
        line.kill_successor();
        let mut answer = Vec::new();
        // The connection was cut, or reset.
        let _ = successor.read_to_end(&mut answer);
        assert_eq!(String::from_utf8_lossy(&answer), "", "{io} {sync}: it has not taken over");
        put(&mut former, "f");
        let mut answer = String::new();
        while !answer.ends_with("\"readers\":0}\n") {
            let mut byte = [0];
            former.read_exact(&mut byte).expect("an answer");
            answer.push(char::from(byte[0]));
        }
        assert!(answer.contains(&format!("\"version\":\"{epoch}-2\"")), "{io} {sync}: {answer}");
        let next = line.world.publish(r#"{"topic":"v","data":2}"#);
        assert_eq!(parts(&next), (epoch, 3), "{io} {sync}");
        until(&format!("{io} {sync}: the failed upgrade is told"), || {
            line.said().contains("this process goes on")
        });
    }
}

//! The truth server as a program.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use staunch_tests::process::{Server, finish};

use crate::client::PATIENCE;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_truth-server"))
}

fn ask(address: std::net::SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    stream
}

fn read(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_truth_can_be_asked_for() {
    let server = Server::spawn(&mut program()).unwrap();
    assert!(read(ask(server.address(), "/ok?bytes=3")).ends_with("\r\n\r\nabc"));
    let answer = read(ask(server.address(), "/truth"));
    let counts: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(counts["requests"]["ok"], 1, "{counts}");
    assert_eq!(counts["answers"]["200"], 1);
    assert_eq!((&counts["connections_accepted"], &counts["truth_asked"]), (&2.into(), &1.into()));
    assert_eq!(counts["stalls"], serde_json::json!([]));
}

#[test]
fn it_can_be_killed_in_the_middle() {
    let server = Server::spawn(program().args(["--service-time", "2ms", "--workers", "1"])).unwrap();
    let address = server.address();
    let mut waiting = ask(address, "/stall");
    let mut other = ask(address, "/slow-body?bytes=10&over=3600s");
    assert!(other.read(&mut [0; 1]).unwrap() == 1);
    drop(server);
    // No answer: the end or a reset, both are how a killed server looks.
    let mut rest = Vec::new();
    let _ = waiting.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    let _ = other.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"j"), "{rest:?}");
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn it_ends_with_its_input_and_says_what_it_did() {
    let mut child = program()
        .args(["--end-with-input", "--stall-at", "0s", "--stall-for", "1ms"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdin.take());
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("listening on http://127.0.0.1:"), "{said}");
    let counts: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(counts["connections_accepted"], 0);
}

#[test]
fn faults_are_named() {
    let server = Server::spawn(&mut program()).unwrap();
    let busy = server.address().to_string();
    let cases = [
        (vec!["--listen", &busy], &busy[..]),
        (vec!["--listen", "localhost"], "`localhost`"),
        (vec!["--service-time", "2"], "`2`"),
        (vec!["--stall-at", "2s"], "--stall-for"),
        (vec!["--workers", "0"], "worker"),
        (vec!["--work", "hard"], "`hard`"),
    ];
    for (arguments, named) in cases {
        let finished = finish(program().args(&arguments));
        assert!(!finished.status.success(), "{arguments:?}");
        assert!(finished.stderr.contains(named), "{arguments:?}: {}", finished.stderr);
    }
}

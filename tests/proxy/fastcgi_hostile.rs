//! FastCGI applications that answer with any bytes, and settings that cannot be.

use staunch_protocol::fastcgi::renumber;
use staunch_tests::process::{binary, finish};

use crate::scripted::{Scripted, play};
use crate::world::{Client, ENGINES, Told as _, World};

const STDOUT: u8 = 6;
const STDERR: u8 = 7;
/// A record of request 1.
fn record(kind: u8, content: &[u8], padding_bytes: u8) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let head = [1, kind, 0, 1, high, low, padding_bytes, 0];
    [&head[..], content, &vec![0xff; usize::from(padding_bytes)]].concat()
}

/// The end of a request.
fn end(protocol_status: u8) -> Vec<u8> {
    record(3, &[0, 0, 0, 0, protocol_status, 0, 0, 0], 0)
}

fn out(text: &str) -> Vec<u8> {
    record(STDOUT, text.as_bytes(), 0)
}

/// Each way to answer, by the path that asks for it; what the client sees, and its body where that is whole.
const WAYS: [(&str, u16, Option<&str>); 17] = [
    ("/good", 200, Some("ab")),
    ("/padding", 200, Some("ab")),
    ("/stderr-between", 200, Some("ab")),
    ("/empty-records", 200, Some("ab")),
    ("/stderr-flood", 200, Some("ab")),
    ("/unasked", 200, Some("ab")),
    ("/no-type", 200, Some("x")),
    ("/version", 502, None),
    ("/other-request", 502, None),
    ("/kind", 502, None),
    ("/http", 502, None),
    ("/closed", 502, None),
    ("/cut-in-head", 502, None),
    ("/ended-in-head", 502, None),
    ("/cannot-multiplex", 502, None),
    ("/overloaded", 503, None),
    ("/status-twice", 502, None),
];

fn answer_of(path: &str) -> Vec<u8> {
    let good = [out("Content-Length: 2\r\n\r\nab"), end(0)].concat();
    match path {
        "/good" | "/late" => good,
        "/padding" => [record(STDOUT, b"A: b\r\n\r\na", 255), record(STDOUT, b"b", 7), end(0)].concat(),
        "/stderr-between" => {
            [record(STDERR, b"one", 1), out("A: b\r\n"), record(STDERR, b"two", 0), out("\r\nab"), end(0)]
                .concat()
        }
        "/empty-records" => [record(STDOUT, b"", 3).repeat(10_000), good].concat(),
        "/stderr-flood" => [record(STDERR, &[b'e'; 60_000], 0).repeat(50), good].concat(),
        "/unasked" => [good, out("X: evil\r\n\r\nevil"), end(0)].concat(),
        "/no-type" => [out("\r\nx"), record(STDOUT, b"", 0), end(0)].concat(),
        "/version" => vec![2, 6, 0, 1, 0, 0, 0, 0],
        "/other-request" => vec![1, 6, 0x77, 0x77, 0, 0, 0, 0],
        "/kind" => record(1, &[0; 8], 0),
        "/http" => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "/cut-in-head" => out("A: b\r\n"),
        "/ended-in-head" => [out("A: b\r\n"), end(0)].concat(),
        "/cannot-multiplex" => end(1),
        "/overloaded" => end(2),
        "/status-twice" => [out("Status: 200\r\nStatus: 404\r\n\r\n"), end(0)].concat(),
        "/short" => [out("Content-Length: 9\r\n\r\nab"), end(0)].concat(),
        "/cut-in-body" => out("Content-Length: 9\r\n\r\nab"),
        _ => Vec::new(),
    }
}

/// Whether a request has come whole: its body ends by an empty record of its number.
fn is_whole(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && bytes.ends_with(&[1, 5, bytes[2], bytes[3], 0, 0, 0, 0])
}

/// Answers each request of a connection by its path. Behind `/late` some of another answer to it comes with
/// the next one.
fn act(application: &mut Scripted, _number: usize) {
    let mut late = Vec::new();
    loop {
        let got = application.until(is_whole);
        let text = String::from_utf8_lossy(&got).into_owned();
        let Some((_, rest)) = text.split_once("PATH_INFO") else { return };
        let path: String =
            rest.chars().take_while(|one| one.is_ascii_lowercase() || "/-".contains(*one)).collect();
        let mut answer = answer_of(&path);
        if !["/version", "/http", "/other-request"].contains(&&*path) {
            renumber(&mut answer, u16::from_be_bytes([got[2], got[3]]));
        }
        application.send(&[std::mem::take(&mut late), answer.clone()].concat());
        if path == "/late" {
            late = out("Content-Length: 4\r\n\r\nLATE");
            renumber(&mut late, u16::from_be_bytes([got[2], got[3]]));
        }
        if answer.is_empty() || path.starts_with("/cut") {
            return;
        }
    }
}

fn world(io: &str, address: &str, more: &[&str]) -> World {
    let arguments = [&["--fastcgi-index", "off"], more].concat();
    World::proxy(io, &[format!("fastcgi:{address}")], &arguments)
}

#[test]
fn answers_of_every_kind_have_their_status() {
    for io in ENGINES {
        for more in [&[][..], &["--fastcgi-keep-alive", "1min"]] {
            let (address, _got) = play(act);
            let mut world = world(io, &address.to_string(), more);
            for (path, status, body) in WAYS.iter().chain(&WAYS) {
                let response = world.get(path);
                assert_eq!(response.status, *status, "{io} {path}: {}", response.text());
                if let Some(body) = body {
                    assert_eq!(response.text(), *body, "{io} {path}");
                }
                if *status == 503 {
                    assert!(response.value("retry-after").is_some(), "{io} {path}");
                }
            }
            for path in ["/short", "/cut-in-body"] {
                let mut client = Client::of(&world);
                client
                    .send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes());
                let rest = String::from_utf8_lossy(&client.rest()).into_owned();
                let is_cut = rest.contains("Content-Length: 9") && rest.ends_with("ab");
                assert!(is_cut || rest.contains(" 502 "), "{io} {path}: {rest}");
            }
            world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
        }
    }
}

#[test]
fn what_comes_late_is_no_answer_to_the_next() {
    for io in ENGINES {
        let (address, _got) = play(act);
        let world = world(io, &address.to_string(), &["--fastcgi-keep-alive", "1min"]);
        let mut client = Client::of(&world);
        let mut get = |path: &str| {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            let response = client.read(false);
            (response.status, response.text().contains("LATE"))
        };
        assert_eq!(get("/late"), (200, false), "{io}");
        assert_eq!(get("/good"), (502, false), "{io}: of that connection nothing can be believed");
        assert_eq!(get("/good"), (200, false), "{io}");
    }
}

#[test]
fn a_request_that_may_not_be_repeated_is_sent_once() {
    for io in ENGINES {
        let (address, got) = play(act);
        let world = world(io, &address.to_string(), &[]);
        let post = "POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(world.ask(post).status, 502, "{io}");
        assert_eq!(got.try_iter().count(), 1, "{io}: a POST");
        assert_eq!(world.get("/closed").status, 502, "{io}");
        assert_eq!(got.try_iter().count(), 2, "{io}: a GET goes there once more");
    }
}

#[test]
fn a_request_that_has_come_round_is_refused() {
    let (address, got) = play(act);
    let world = world("epoll", &address.to_string(), &[]);
    assert_eq!(world.get("/good").status, 200);
    let seen = String::from_utf8_lossy(&got.recv().expect("a request")).into_owned();
    let via = seen.split_once("HTTP_VIA").and_then(|(_, rest)| rest.get(..28)).expect("Via");
    let name = via.trim_start_matches("1.1 ");
    let again = format!("GET /good HTTP/1.1\r\nHost: a\r\nVia: 1.1 {name}\r\n\r\n");
    assert_eq!(world.ask(&again).status, 508, "{name}");
}

#[test]
fn settings_that_cannot_be_say_so() {
    for (settings, expected) in [
        ("proxy = [\"127.0.0.1:8000\", \"fastcgi:9000\"]\n", "not servers of one application"),
        (
            "[[path]]\nmatch = \"/a\"\nproxy = [\"fastcgi:9000\", \"8000\"]\n",
            "not servers of one application",
        ),
        ("proxy = \"fastcgi:run.sock\"\n", "fastcgi:/run/php/php-fpm.sock"),
        ("proxy = \"fastcgi:9000\"\nroot = \"off\"\n", "scripts are in a folder"),
        ("root = \"off\"\n[[path]]\nmatch = \"/a\"\nproxy = \"fastcgi:9000\"\n", "scripts are in a folder"),
        ("proxy = \"fastcgi:9000\"\nfastcgi_index = \"a/index.php\"\n", "the name of a script"),
        ("proxy = \"fastcgi:9000\"\nfastcgi_index = \"index.html\"\n", "the name of a script"),
        ("proxy = \"fastcgi:9000\"\nfastcgi_root = \"www\"\n", "the whole path of a folder"),
    ] {
        let tree = staunch_tests::tree::Tree::with(&[]).expect("a tree");
        let file = World::settings_file(&tree);
        let root = if settings.contains("root = \"off") { "" } else { "root = \"/srv\"\n" };
        std::fs::write(&file, format!("{root}{settings}")).expect("a file");
        let finished = finish(std::process::Command::new(binary()).arg("-t").arg("-c").arg(&file));
        assert!(!finished.status.success() && finished.stderr.contains(expected), "{}", finished.stderr);
        assert!(finished.stderr.contains("staunch.toml:"), "{}", finished.stderr);
    }
    let mut command = std::process::Command::new(binary());
    let finished = finish(command.args(["proxy", "fastcgi:9000", "--listen", "127.0.0.1:0"]));
    assert!(!finished.status.success() && finished.stderr.contains("--root"), "{}", finished.stderr);
}

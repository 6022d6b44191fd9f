//! Applications by HTTPS: whom the proxy believes, what it shows, and how an end is told from a cut.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use staunch_tests::house::skipping::skip;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, finish};
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;
use staunch_tls::LocalAuthority;

use crate::scripted::play;
use crate::world::{Client, ENGINES, Told as _, World};

/// Files of an authority and of what it has signed.
struct Files {
    tree: Tree,
}

impl Files {
    fn new() -> Self {
        let tree = Tree::with(&[]).expect("a tree");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
        let authority = LocalAuthority::create(now).expect("an authority");
        let write = |name: &str, text: &str| std::fs::write(tree.root().join(name), text).expect("a file");
        write("ca.pem", authority.certificate_pem());
        let issued = authority.issue(&["app.internal", "127.0.0.1"], now).expect("names of ours");
        write("app.pem", &issued.certificate_pem);
        write("app.key", &issued.key_pem);
        let own = rcgen::generate_simple_self_signed(["proxy.internal".to_owned()]).expect("a certificate");
        write("own.pem", &pem("CERTIFICATE", own.cert.der()));
        write("own.key", &pem("PRIVATE KEY", &own.signing_key.serialize_der()));
        Self { tree }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tree.root().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// The text of a binary value (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// A program that is an application by TLS.
struct Program {
    child: Child,
    address: String,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// An application of node. With a third file it asks for certificates of that authority.
    fn node(files: &Files, names: &[&str]) -> Option<Self> {
        Self::start("node", "secured.mjs", files, names)
    }

    /// Without the interpreter there is none, which is said.
    fn start(interpreter: &str, script: &str, files: &Files, names: &[&str]) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("proxy").join(script);
        let mut command = Command::new(interpreter);
        command.arg(script).args(names.iter().map(|name| files.path(name))).stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            skip(&format!("{interpreter} is missing (cargo xtask install --for test brings it)"));
            return None;
        };
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut program = Self { child, address: String::new(), output };
        program.address = format!("https://127.0.0.1:{}", program.line());
        Some(program)
    }

    /// The next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a log has these words.
fn await_line(log: &str, words: &str) {
    until(words, || std::fs::read_to_string(log).unwrap_or_default().contains(words));
}

fn text(response: &Response) -> (u16, String) {
    (response.status, response.text())
}

#[test]
fn an_application_by_https_gets_requests_and_answers_them() {
    let files = Files::new();
    let Some(node) = Program::node(&files, &["app.pem", "app.key"]) else { return };
    for io in ENGINES {
        let ca = files.word("ca.pem");
        let world = World::proxy(io, std::slice::from_ref(&node.address), &["--proxy-tls-ca", &ca]);
        let mut client = Client::of(&world);
        let mut get = |path: &str| {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            client.read(false)
        };
        let connections =
            |who: &str| who.split_once("\"connections\":").map(|(_, rest)| rest[..2].to_owned());
        let (status, who) = text(&get("/who"));
        // By its address it is asked for no name.
        assert!(
            status == 200 && who.contains("\"name\":false") && who.contains("\"resumed\":false"),
            "{who}"
        );
        assert_eq!(connections(&get("/who").text()), connections(&who), "{io}");
        assert_eq!(get("/large").body, vec![b'x'; 3_000_000], "{io}");
        // Behind a connection that was closed, the session is resumed.
        assert_eq!(text(&get("/close")), (200, "bye".to_owned()), "{io}");
        let who = get("/who").text();
        assert!(who.contains("\"resumed\":true"), "{io}: {who}");
    }
}

#[test]
fn bodies_of_any_length_go_to_an_application_by_https() {
    let files = Files::new();
    let Some(node) = Program::node(&files, &["app.pem", "app.key"]) else { return };
    for io in ENGINES {
        let ca = files.word("ca.pem");
        let world = World::proxy(io, std::slice::from_ref(&node.address), &["--proxy-tls-ca", &ca]);
        let mut sums = Vec::new();
        for length in [1_000, 3_000_000] {
            let head = format!("POST /sum HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            let mut client = Client::of(&world);
            client.send(&[head.as_bytes(), &vec![b'y'; length]].concat());
            sums.push(client.read(false).text());
        }
        // sha256 of 1 000 and of 3 000 000 letters y.
        let expected = [1_000, 3_000_000].map(|length| sum(&vec![b'y'; length]));
        assert_eq!(sums, expected, "{io}");
    }
}

fn sum(bytes: &[u8]) -> String {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("coreutils");
    child.stdin.take().expect("its input").write_all(bytes).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn a_server_that_proves_nothing_gets_no_request() {
    let files = Files::new();
    let other = Files::new();
    let Some(node) = Program::node(&files, &["app.pem", "app.key"]) else { return };
    let (ca, strange) = (files.word("ca.pem"), other.word("ca.pem"));
    let name = node.address.replace("127.0.0.1", "localhost");
    for io in ENGINES {
        for (address, arguments, status, said) in [
            (&node.address, vec!["--proxy-tls-ca", &ca], 200, ""),
            (&node.address, vec!["--proxy-tls-ca", &strange], 502, "TLS: its certificate is of an unknown"),
            (&node.address, vec!["--proxy-tls-insecure"], 200, ""),
            (&name, vec!["--proxy-tls-ca", &ca], 502, "TLS: its certificate is for another name"),
            (&name, vec!["--proxy-tls-ca", &ca, "--proxy-tls-name", "app.internal"], 200, ""),
        ] {
            let log = files.word("error.log");
            let arguments = [&arguments[..], &["--error-log", &log]].concat();
            let world = World::proxy(io, std::slice::from_ref(address), &arguments);
            let response = world.get("/who");
            assert_eq!(response.status, status, "{io} {address} {arguments:?}: {}", response.text());
            await_line(&log, said);
            std::fs::remove_file(&log).expect("a log");
        }
    }
}

#[test]
fn a_certificate_of_ours_is_shown_where_one_is_asked_for() {
    let files = Files::new();
    let Some(node) = Program::node(&files, &["app.pem", "app.key", "own.pem"]) else { return };
    let (ca, chain, key) = (files.word("ca.pem"), files.word("own.pem"), files.word("own.key"));
    let world = World::proxy("uring", std::slice::from_ref(&node.address), &["--proxy-tls-ca", &ca]);
    assert_eq!(world.get("/who").status, 502, "without one");
    let arguments = ["--proxy-tls-ca", &ca, "--proxy-tls-certificate", &chain, "--proxy-tls-key", &key];
    let world = World::proxy("uring", std::slice::from_ref(&node.address), &arguments);
    let (status, who) = text(&world.get("/who"));
    assert!(status == 200 && who.contains("proxy.internal"), "{status} {who}");
}

#[test]
fn an_end_that_nobody_has_said_is_a_cut() {
    let files = Files::new();
    let Some(node) = Program::node(&files, &["app.pem", "app.key"]) else { return };
    for io in ENGINES {
        let ca = files.word("ca.pem");
        let world = World::proxy(io, std::slice::from_ref(&node.address), &["--proxy-tls-ca", &ca]);
        assert_eq!(text(&world.get("/ends")), (200, "whole".to_owned()), "{io}");
        let mut client = Client::of(&world);
        client.send(b"GET /cut HTTP/1.1\r\nHost: a\r\n\r\n");
        let rest = String::from_utf8_lossy(&client.rest()).into_owned();
        assert!(!rest.ends_with("0\r\n\r\n") && !rest.contains("Content-Length: 4"), "{io}: {rest}");
    }
}

#[test]
fn tunnels_go_through_tls() {
    let files = Files::new();
    let Some(node) = Program::node(&files, &["app.pem", "app.key"]) else { return };
    for io in ENGINES {
        let ca = files.word("ca.pem");
        let world = World::proxy(io, std::slice::from_ref(&node.address), &["--proxy-tls-ca", &ca]);
        let mut client = Client::of(&world);
        client.send(b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        assert_eq!(client.read(true).status, 101, "{io}");
        for round in 0..20_u32 {
            let piece: Vec<u8> = (0..5_000_u32).map(|at| (at * round % 251) as u8).collect();
            client.send(&piece);
            let mut heard = vec![0; piece.len()];
            client.stream.read_exact(&mut heard).expect("an echo");
            assert!(heard == piece, "{io} {round}");
        }
    }
}

#[test]
fn a_server_without_tls_is_named() {
    let files = Files::new();
    for io in ENGINES {
        let (address, got) = play(|application, _| {
            application.until(|bytes| bytes.len() > 5);
            application.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        });
        let log = files.word("error.log");
        let arguments = ["--proxy-tls-insecure", "--error-log", &log];
        let world = World::proxy(io, &[format!("https://{address}")], &arguments);
        assert_eq!(world.get("/secret").status, 502, "{io}");
        let hello = got.recv().expect("a hello");
        assert!(hello.starts_with(&[22, 3]) && !hello.windows(6).any(|six| six == b"secret"), "{io}");
        await_line(&log, "it does not speak TLS");
        std::fs::remove_file(&log).expect("a log");
    }
}

/// A server that takes connections, and answers no handshake.
#[test]
fn a_long_body_waits_for_the_handshake_without_being_held() {
    for io in ENGINES {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("https://{}", listener.local_addr().expect("an address"));
        let arguments = ["--proxy-tls-insecure", "--proxy-body-size", "16KiB"];
        let world = World::proxy(io, &[address], &arguments);
        let mut client = Client::of(&world);
        client.send(b"POST /sum HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
        client.stream.set_write_timeout(Some(std::time::Duration::from_secs(2))).expect("a deadline");
        let (piece, mut sent) = (vec![b'z'; 100_000], 0);
        while let Ok(bytes @ 1..) = client.stream.write(&piece) {
            sent += bytes;
            assert!(sent < 50_000_000, "{io}: {sent} bytes were taken");
        }
    }
}

#[test]
fn checks_speak_tls_too() {
    let files = Files::new();
    let Some(node) = Program::node(&files, &["app.pem", "app.key"]) else { return };
    let ca = files.word("ca.pem");
    for (path, up) in [("/who", 1.0), ("/nowhere", 0.0)] {
        let arguments = ["--proxy-tls-ca", &ca, "--proxy-check", path, "--proxy-check-interval", "100ms"];
        let mut world = World::proxy("epoll", std::slice::from_ref(&node.address), &arguments);
        world.await_metric("staunch_proxy_server_up", "", |value| value == up);
    }
}

#[test]
fn settings_that_cannot_be_meant_are_refused() {
    let files = Files::new();
    let (ca, key, none) = (files.word("ca.pem"), files.word("own.key"), files.word("none.pem"));
    let server = "https://127.0.0.1:8443";
    for (arguments, said) in [
        (vec!["--proxy-tls-ca", &none], "none.pem: No such file"),
        (vec!["--proxy-tls-ca", &key], "own.key: no certificate in it"),
        (vec!["--proxy-tls-key", &key], "a key is named, and no certificate"),
        (
            vec!["--proxy-tls-ca", &ca, "--proxy-tls-certificate", &ca],
            "proxy_tls_certificate: the key cannot",
        ),
        (vec!["--proxy-tls-ca", &ca, "--proxy-tls-insecure"], "leave out one of the two"),
        (vec!["--proxy-tls-ca", &ca, "--proxy-tls-name", "a b"], "no certificate can have the name 'a b'"),
        (
            vec!["--proxy-tls-ca", &ca, "--proxy-tls-certificate", &ca, "--proxy-tls-key", &key],
            "the key is not",
        ),
    ] {
        let mut command = Command::new(binary());
        command.args(["proxy", server, "--listen", "127.0.0.1:0"]).args(&arguments);
        let finished = finish(&mut command);
        assert!(!finished.status.success(), "{arguments:?}");
        assert!(finished.stderr.contains(said), "{arguments:?}: {}", finished.stderr);
    }
}

/// What a server says by TLS before it ends is heard, and its end is one, though its connection stays.
#[test]
fn an_end_that_is_said_by_tls_alone_is_one() {
    let files = Files::new();
    let Some(program) = Program::start("python3", "closing.py", &files, &["app.pem", "app.key"]) else {
        return;
    };
    for io in ENGINES {
        let ca = files.word("ca.pem");
        let world = World::proxy(io, std::slice::from_ref(&program.address), &["--proxy-tls-ca", &ca]);
        // On one connection, so that one worker has all links.
        let mut client = Client::of(&world);
        let mut ask = |method: &str, path: &str| {
            let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
            client.send(head.as_bytes());
            text(&client.read(false))
        };
        // A POST is sent once, so that a link which is spent would fail it.
        for path in ["/without-length", "/with-length", "/garbage", "/begun"] {
            for (method, path) in [("GET", path), ("POST", "/plain")] {
                assert_eq!(ask(method, path), (200, "ok".to_owned()), "{io} {path}");
            }
        }
        let counts: serde_json::Value = serde_json::from_str(&ask("GET", "/counts").1).expect("an object");
        let rounds = 1 + ENGINES.iter().position(|engine| *engine == io).expect("one of them");
        assert_eq!(counts["/garbage"], rounds, "{io}: an answer was asked for twice");
    }
}

/// A server hears why it is refused, and that nothing follows, before its connection ends.
#[test]
fn last_words_by_tls_reach_the_server() {
    let (files, other) = (Files::new(), Files::new());
    let names = ["app.pem", "app.key"];
    let Some(mut program) = Program::start("python3", "last_words.py", &files, &names) else { return };
    let (ca, strange) = (files.word("ca.pem"), other.word("ca.pem"));
    for io in ENGINES {
        let servers = std::slice::from_ref(&program.address).to_vec();
        let world = World::proxy(io, &servers, &["--proxy-tls-ca", &strange]);
        assert_eq!(world.get("/keep").status, 502, "{io}");
        // A request of which nothing was sent is tried once more.
        for _ in 0..2 {
            assert_eq!(program.line(), "TLSV1_ALERT_UNKNOWN_CA", "{io}");
        }
        let world = World::proxy(io, &servers, &["--proxy-tls-ca", &ca]);
        for (path, status) in [("/close", 200), ("/bad", 502)] {
            let request = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(world.ask(&request).status, status, "{io} {path}");
            assert_eq!(program.line(), "notified", "{io} {path}");
        }
        // The client goes before it is answered.
        let mut client = Client::of(&world);
        client.send(b"GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(program.line(), "asked", "{io}");
        client.stream.shutdown(Shutdown::Write).expect("a half-close");
        assert_eq!(program.line(), "notified", "{io}");
    }
}

#[test]
fn a_handshake_that_trickles_is_given_up() {
    for io in ENGINES {
        let (address, _) = play(|application, _| {
            application.until(|bytes| bytes.len() > 5);
            // The head of a long record, and then a byte now and then.
            application.send(&[22, 3, 3, 64, 0]);
            while application.stream.write_all(&[0]).is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        });
        let arguments = ["--proxy-tls-insecure", "--proxy-answer-timeout", "1s"];
        let world = World::proxy(io, &[format!("https://{address}")], &arguments);
        assert_eq!(world.get("/a").status, 504, "{io}");
    }
}

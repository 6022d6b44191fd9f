//! Real clients and their codecs against the session: nghttp and h2load (nghttp2), Python's h2 and hpack.
//!
//! The server is that of the example, over a real socket. Each codec reads what ours has written, and ours
//! reads what it has written.

#[path = "../../examples/http2_serve/server.rs"]
mod server;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use staunch_protocol::Fields;
use staunch_protocol::http2::PreparedFields;
use staunch_protocol::http2::probe::Blocks;

/// Debian's own, which sees the modules that Debian's packages bring.
const PYTHON: &str = "/usr/bin/python3";
const PYTHON_H2: &str = "/usr/lib/python3/dist-packages/h2";

fn start() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("its number");
    thread::spawn(move || server::serve(&listener));
    address
}

/// Whether a tool is there. Without it a test is skipped, and says so, but where everything must be tested.
fn has(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(tool));
    let there =
        Path::new(tool).is_absolute() && Path::new(tool).exists() || places.any(|place| place.exists());
    if !there {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{tool} is missing");
        eprintln!("skipped: {tool} is missing (cargo xtask install --for test brings it)");
    }
    there
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4000)]).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http2_clients").join(name)
}

#[test]
fn nghttp_gets_and_posts() {
    if !has("nghttp") {
        return;
    }
    let address = start();
    let urls = [5, 0, 70_000, 1].map(|size| format!("http://{address}/{size}"));
    let output = run(Command::new("nghttp").args(&urls));
    assert_eq!(output.stdout.len(), 70_006);
    let file = std::env::temp_dir().join(format!("staunch-nghttp-{}", std::process::id()));
    std::fs::write(&file, vec![b'u'; 1_000_000]).expect("a temporary file");
    let output = run(Command::new("nghttp").arg("-d").arg(&file).arg(format!("http://{address}/echo")));
    std::fs::remove_file(&file).expect("the temporary file");
    assert!(output.stdout == vec![b'u'; 1_000_000]);
}

#[test]
fn h2load_loses_nothing() {
    if !has("h2load") {
        return;
    }
    let address = start();
    for (size, window) in [("5000", "16"), ("200000", "14")] {
        let url = format!("http://{address}/{size}");
        let output =
            run(Command::new("h2load").args(["-n", "300", "-c", "3", "-m", "20", "-w", window, &url]));
        let told = String::from_utf8(output.stdout).expect("text");
        assert!(told.contains("300 succeeded, 0 failed, 0 errored, 0 timeout"), "{told}");
    }
}

#[test]
fn a_client_of_python_keeps_to_its_windows() {
    if has(PYTHON_H2) && has(PYTHON) {
        let port = start().port().to_string();
        let output = run(Command::new(PYTHON).arg(script("client.py")).arg(port));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok");
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).expect("hex") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What the codec of Python says: `B` and a block, or `F`, a name and a value; all in hex.
fn codec(arguments: &[&str], input: &str) -> Vec<Vec<Vec<u8>>> {
    let mut command = Command::new(PYTHON);
    command.arg(script("codec.py")).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("python3 starts");
    let (mut pipe, input) = (child.stdin.take().expect("a pipe"), input.to_owned());
    // By a thread of its own: it writes while we write.
    let writer = thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines()
        .map(|line| line.split(' ').map(|word| unhex(word.trim_start_matches('-'))).collect())
        .collect()
}

#[test]
fn blocks_of_another_encoder_are_read() {
    if !(has(PYTHON_H2) && has(PYTHON)) {
        return;
    }
    for seed in ["1", "2", "3"] {
        let mut blocks = Blocks::default();
        let lines = codec(&["encode", seed, "400"], "");
        assert_eq!(lines.len(), 400);
        for line in lines {
            let (block, fields) = line.split_first().expect("a block");
            let read = blocks.read(block).expect("a good block");
            let read: Vec<Vec<u8>> = read.into_iter().flat_map(|(name, value)| [name, value]).collect();
            assert_eq!(read, fields);
        }
        blocks.release();
        assert_eq!(blocks.held_bytes(), (0, 0));
    }
}

#[test]
fn our_blocks_are_read_by_another_decoder() {
    if !(has(PYTHON_H2) && has(PYTHON)) {
        return;
    }
    let names = prop_oneof!["[A-Za-z-]{1,20}x", Just("Content-Type".into()), Just("Set-Cookie".into())];
    let fields = prop::collection::vec((names, "[ -~]{0,80}"), 0..12);
    let config = Config { rng_seed: RngSeed::Fixed(7), ..Config::default() };
    let mut runner = TestRunner::new(config);
    let mut expected = Vec::new();
    let mut input = String::new();
    for _ in 0..300 {
        let fields = fields.new_tree(&mut runner).expect("fields").current();
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let _ = writeln!(input, "{}", hex(PreparedFields::new(Fields::new(lines.as_bytes())).as_bytes()));
        let parts = fields.iter().flat_map(|(name, value)| [name.to_lowercase(), value.trim().into()]);
        expected.push(parts.map(String::into_bytes).collect::<Vec<_>>());
    }
    let read = codec(&["decode"], &input);
    assert_eq!(read.len(), expected.len());
    for (read, expected) in read.iter().zip(&expected) {
        assert_eq!(read[1..], expected[..]);
    }
}

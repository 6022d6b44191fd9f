//! What kecho understands, without a kernel: the file that reads its bytes, compiled for user space with
//! checks of every access.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use proptest::prelude::*;

/// The program, compiled once.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kecho-talk");
        let sources = here.join("../kernel/kecho");
        let status = Command::new("cc")
            .args([
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsanitize=undefined,address",
                "-fno-sanitize-recover",
            ])
            .arg(format!("-I{}", sources.display()))
            .arg(here.join("kernels/talk.c"))
            .arg(sources.join("talk.c"))
            .arg("-o")
            .arg(&program)
            .status()
            .expect("cc runs");
        assert!(status.success());
        program
    })
}

/// What a connection sends that hears these pieces, and how the program ended.
fn told(language: &str, pieces: &[&[u8]], most_bytes: usize) -> (Vec<u8>, i32) {
    let mut child = Command::new(program())
        .args([language, &most_bytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let records: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| piece.chunks(255))
        .flat_map(|piece| [&[piece.len() as u8], piece].concat())
        .collect();
    let mut input = child.stdin.take().expect("piped");
    // The program may have ended the connection before it has read all of it.
    let writing = std::thread::spawn(move || drop(input.write_all(&records)));
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("written");
    (output.stdout, output.status.code().expect("no fault"))
}

const GOES_ON: i32 = 0;
const ENDS: i32 = 7;

#[test]
fn requests_are_answered_or_refused() {
    let answer = |bytes: usize| {
        let head = format!("HTTP/1.1 200 OK\r\nServer: kecho\r\nContent-Length: {bytes}\r\n\r\n");
        [head.into_bytes(), vec![b'x'; bytes]].concat()
    };
    let refusal = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
    let long = [b"GET /1 HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 4096]].concat();
    let table: [(&[u8], Vec<u8>, i32); 14] = [
        (b"", vec![], GOES_ON),
        (b"12\n", vec![b'x'; 12], ENDS),
        (b"0\n", vec![], ENDS),
        (b"12", vec![], GOES_ON),
        (b"12a\n", vec![], ENDS),
        (b"16777217\n", vec![], ENDS),
        (b"GET /7 HTTP/1.1\r\nHost: a\r\n\r\n", answer(7), GOES_ON),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", answer(4000), GOES_ON),
        (b"GET /7 HTTP/1.1\r\n\r\nGET /8 HTTP/1.1\r\n\r\n", [answer(7), answer(8)].concat(), GOES_ON),
        (b"GET /7 HTTP/1.0\r\n\r\nGET /8 HTTP/1.1\r\n\r\n", answer(7), ENDS),
        (b"GET /7 HTTP/1.1\r\nConnection: close\r\n\r\n", answer(7), ENDS),
        (b"POST /7 HTTP/1.1\r\n\r\n", refusal.clone(), ENDS),
        (b"\r\n\r\n", refusal.clone(), ENDS),
        (&long, refusal, ENDS),
    ];
    for (request, answer, end) in table {
        let shown = String::from_utf8_lossy(request).into_owned();
        assert_eq!(told("lab", &[request], 1 << 20), (answer, end), "{shown:?}");
    }
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "GET /",
        "9",
        "70",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        "\r\n",
        "Connection: close\r\n",
        "a",
        "\n",
        "\0",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..12)
        .prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn echo_gives_back_what_came(
        bytes in prop::collection::vec(any::<u8>(), 0..20_000),
        most in 1_usize..5_000,
    ) {
        prop_assert_eq!(told("echo", &[&bytes], most), (bytes, GOES_ON));
    }

    #[test]
    fn requests_mean_the_same_however_they_are_cut(
        bytes in requests(),
        cuts in prop::collection::vec(1_usize..9, 1..9),
    ) {
        let whole = told("lab", &[&bytes], 1 << 20);
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = left;
        }
        prop_assert_eq!(told("lab", &pieces, 3), whole);
    }
}

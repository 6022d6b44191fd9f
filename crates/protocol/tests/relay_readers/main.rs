//! Requests that are passed on, read by node, h11, gunicorn, Go, nginx and Apache: as many requests as this
//! server counted, with the same targets, hosts and bodies; and every answer that is passed on is the same
//! to node. A seventh reader, httparse, reads each head in `tests/relay`.
//!
//! `STAUNCH_PAIRS` sets how many connections each reader is given.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use staunch_protocol::http1::relay::{RelayReader, RelayStep};
use staunch_protocol::{Fields, Method};

#[path = "../relay_messages/mod.rs"]
mod relay_messages;
#[path = "../relay_writing/mod.rs"]
#[allow(dead_code)]
mod relay_writing;
mod servers;

use relay_writing::{PassedOn, Understood, pass_on_with_host};

/// Connections that a reader is given by default, with two requests each: for six readers 30 000 requests.
/// `make soak` gives three hundred times as many.
const CONNECTIONS: usize = 2_500;

/// A program that reads requests, or answers, each line of its input a connection of its own.
struct Reader {
    child: Child,
}

impl Reader {
    /// Without the program the test is skipped, and says so, but where everything must be tested.
    fn start(program: &str, arguments: &[&Path]) -> Option<Self> {
        let started =
            Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        match started {
            Ok(child) => Some(Self { child }),
            Err(error) => {
                missing(&format!("{program}: {error}"));
                None
            }
        }
    }

    /// Asks about each line, and gives the lines that came back.
    fn read(mut self, lines: &[String]) -> Vec<String> {
        let mut input = self.child.stdin.take().expect("the input");
        let output = BufReader::new(self.child.stdout.take().expect("the output"));
        let told = std::thread::scope(|scope| {
            scope.spawn(move || lines.iter().for_each(|line| writeln!(input, "{line}").expect("it reads")));
            output.lines().map(|line| line.expect("text")).collect::<Vec<_>>()
        });
        let last = lines.get(told.len());
        assert!(self.child.wait().expect("it ends").success(), "nothing was told of {last:?}");
        assert_eq!(told.len(), lines.len(), "less was told than was asked for");
        told
    }
}

/// Says that a test is skipped, which must not be where everything is tested.
fn missing(what: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "missing: {what}");
    eprintln!("skipped: {what} (cargo xtask install --for test brings it)");
}

/// A file beside this one.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relay_readers").join(name)
}

fn node() -> Option<Reader> {
    Reader::start("node", &[&script("read_node.mjs")])
}

/// Debian's Python, to which Debian's packages belong.
fn python(name: &str, module: &str) -> Option<Reader> {
    let imported = Command::new("/usr/bin/python3").args(["-c", &format!("import {module}")]).output();
    if !imported.is_ok_and(|output| output.status.success()) {
        missing(&format!("module {module} of Python"));
        return None;
    }
    Reader::start("/usr/bin/python3", &[&script(name)])
}

fn connections() -> usize {
    std::env::var("STAUNCH_PAIRS").ok().and_then(|count| count.parse().ok()).unwrap_or(CONNECTIONS)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Samples of a strategy, the same in each run.
fn samples<T: std::fmt::Debug>(seed: u64, count: usize, strategy: impl Strategy<Value = T>) -> Vec<T> {
    let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("a sample").current()).collect()
}

fn told_of(request: &Understood) -> String {
    let query = request.query.as_ref().map(|query| [b"?", &query[..]].concat()).unwrap_or_default();
    [hex(&[&request.path[..], &query].concat()), hex(&request.host), hex(&request.body)].join(":")
}

/// The rest behind the method, which `understand` compares.
fn without_method(told: &str) -> &str {
    told.split_once(':').map_or(told, |(_, rest)| rest)
}

/// Requests before one that a reader does not know.
fn stopped(before: &[String]) -> Vec<String> {
    [before, &["error".to_owned()]].concat()
}

/// Whether a reader tells of a request, answers it by itself, or stops there.
enum Habit {
    /// The reader tells of the request.
    Tells,
    /// The request is answered by the reader itself, which goes on with the next.
    Answers,
    /// The reader does not know such requests, and takes nothing behind them.
    Stops,
    /// Either of `Tells` and `Stops`.
    MayStop,
}

/// Bytes of clients, and the requests that are passed on for them.
struct Pairs {
    sent: Vec<Vec<u8>>,
    passed: Vec<PassedOn>,
}

impl Pairs {
    fn of(seed: u64) -> Self {
        let (sent, trusted): (Vec<_>, Vec<_>) =
            samples(seed, connections(), (relay_messages::requests(), any::<bool>())).into_iter().unzip();
        let pass = |(bytes, trusts): (&Vec<u8>, &bool)| pass_on_with_host(bytes, |way| way.trusts = *trusts);
        let passed = sent.iter().zip(&trusted).map(pass).collect();
        Self { sent, passed }
    }

    fn lines(&self) -> Vec<String> {
        self.passed.iter().map(|passed| format!("request {}", hex(&passed.stream))).collect()
    }

    /// Compares what a reader told of each connection with what was understood here. `habit` is told a
    /// request and all bytes of its connection.
    fn compare(&self, told: &[String], habit: impl Fn(&Understood, &[u8]) -> Habit) {
        let mut count = 0;
        for ((told, passed), sent) in told.iter().zip(&self.passed).zip(&self.sent) {
            let told: Vec<_> =
                told.split(' ').filter(|request| !request.is_empty()).map(without_method).collect();
            let (mut expected, mut instead) = (Vec::new(), None);
            for request in &passed.requests {
                match habit(request, &passed.stream) {
                    Habit::Tells => expected.push(told_of(request)),
                    Habit::Answers => {}
                    Habit::MayStop => {
                        instead.get_or_insert_with(|| stopped(&expected));
                        expected.push(told_of(request));
                    }
                    Habit::Stops => {
                        expected = stopped(&expected);
                        break;
                    }
                }
            }
            count += told.len();
            let is_expected = told == expected || instead.is_some_and(|instead| told == instead);
            let (sent, stream) = (sent.escape_ascii(), passed.stream.escape_ascii());
            assert!(is_expected, "{told:?} instead of {expected:?}: {sent} was passed on as {stream}");
        }
        assert!(count > connections(), "too few are good");
    }
}

#[test]
fn node_understands_as_many_requests_and_the_same() {
    let Some(node) = node() else { return };
    let pairs = Pairs::of(0x42);
    // Node knows the methods of the registry alone.
    pairs.compare(&node.read(&pairs.lines()), |request, _| match request.method {
        Method::Unknown => Habit::Stops,
        _ => Habit::Tells,
    });
}

#[test]
fn h11_understands_as_many_requests_and_the_same() {
    let Some(h11) = python("read_h11.py", "h11") else { return };
    let pairs = Pairs::of(0x44);
    pairs.compare(&h11.read(&pairs.lines()), |_, _| Habit::Tells);
}

#[test]
fn gunicorn_understands_as_many_requests_and_the_same() {
    let Some(gunicorn) = python("read_gunicorn.py", "gunicorn") else { return };
    let pairs = Pairs::of(0x45);
    pairs.compare(&gunicorn.read(&pairs.lines()), |_, _| Habit::Tells);
}

#[test]
fn go_understands_as_many_requests_and_the_same() {
    let Some(go) = Reader::start("go", &[Path::new("run"), &script("read_go.go")]) else { return };
    let pairs = Pairs::of(0x46);
    pairs.compare(&go.read(&pairs.lines()), |_, _| Habit::Tells);
}

#[test]
fn nginx_understands_as_many_requests_and_the_same() {
    let Some(nginx) = servers::nginx() else { return };
    let pairs = Pairs::of(0x47);
    // nginx takes methods of letters in upper case alone.
    pairs.compare(&nginx.read(&pairs), |request, _| match (&request.path[..], request.method) {
        (b"*", _) => Habit::Stops,
        (_, Method::Unknown) => Habit::MayStop,
        _ => Habit::Tells,
    });
}

#[test]
fn apache_understands_as_many_requests_and_the_same() {
    let Some(apache) = servers::apache() else { return };
    let pairs = Pairs::of(0x48);
    // Apache takes hosts as DNS has them, and ports with digits.
    let is_in_host = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    pairs.compare(&apache.read(&pairs), |request, stream| match (&request.path[..], request.method) {
        _ if !request.host.iter().all(is_in_host) => Habit::Stops,
        // Port 0 is refused too.
        _ if stream.windows(4).any(|bytes| bytes == b":0\r\n") => Habit::MayStop,
        (b"*", _) => Habit::Answers,
        (_, Method::Unknown) => Habit::MayStop,
        _ => Habit::Tells,
    });
}

/// A good answer: its status, its body, the fields that are passed on, and how many bytes it has.
struct Answer {
    code: u16,
    body: Vec<u8>,
    fields: Vec<u8>,
    used_bytes: usize,
}

/// The first answer, if it is passed on.
fn first(bytes: &[u8], asked_by_head: bool) -> Option<Answer> {
    let mut reader = RelayReader::new();
    reader.begin(asked_by_head);
    let mut input = bytes;
    let mut answer = Answer { code: 0, body: Vec::new(), fields: Vec::new(), used_bytes: 0 };
    loop {
        match reader.next(&mut input).ok()? {
            RelayStep::Interim(_) => {}
            RelayStep::Head(head) => {
                answer.code = head.status.code();
                answer.fields = head.fields.lines().to_vec();
            }
            RelayStep::Piece(piece) => answer.body.extend_from_slice(piece),
            RelayStep::End { .. } => break,
            RelayStep::More => {
                reader.end().ok()?;
                break;
            }
        }
    }
    answer.used_bytes = bytes.len() - input.len();
    Some(answer)
}

#[test]
fn node_understands_every_answer_that_is_passed_on() {
    let Some(node) = node() else { return };
    let sent = samples(0x43, connections(), (relay_messages::answers(), any::<bool>()));
    let good: Vec<_> =
        sent.iter().filter_map(|(bytes, head)| Some((bytes, head, first(bytes, *head)?))).collect();
    assert!(good.len() > sent.len() / 3, "too few are good: {}", good.len());
    let lines: Vec<_> = good
        .iter()
        .map(|(bytes, head, answer)| {
            let method = if **head { "HEAD" } else { "GET" };
            format!("answer {method} {}", hex(&bytes[..answer.used_bytes]))
        })
        .collect();
    for (told, (bytes, _, answer)) in node.read(&lines).iter().zip(&good) {
        let text = bytes.escape_ascii();
        let parts: Vec<_> = told.splitn(3, ':').collect();
        let [code, body, fields] = parts[..] else { panic!("{told} of {text}") };
        assert_eq!((code, body), (&answer.code.to_string()[..], &hex(&answer.body)[..]), "{text}");
        let fields: Vec<_> = fields.split(',').collect();
        for (name, value) in Fields::new(&answer.fields).iter() {
            let field = format!("{}={}", hex(name), hex(value));
            let is_ours = name == b"Content-Length";
            assert!(is_ours || fields.contains(&&field[..]), "{} of {text}", name.escape_ascii());
        }
    }
}

#[test]
fn canaries_every_reader_sees_what_is_wrong() {
    let two_lengths = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n";
    let lines = [format!("request {}", hex(two_lengths.as_bytes()))];
    let readers =
        [python("read_h11.py", "h11"), Reader::start("go", &[Path::new("run"), &script("read_go.go")])];
    for reader in readers.into_iter().flatten() {
        assert_eq!(reader.read(&lines), ["error"]);
    }
}

#[test]
fn canary_node_sees_what_is_wrong() {
    let Some(node) = node() else { return };
    let two_lengths = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n";
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na";
    let lines =
        [format!("request {}", hex(two_lengths.as_bytes())), format!("answer GET {}", hex(cut.as_bytes()))];
    assert_eq!(node.read(&lines), ["error", "error"]);
}

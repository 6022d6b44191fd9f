//! What is passed on, read by node's own reader (llhttp): as many requests as this server counted, with the
//! same targets, hosts and bodies; and every answer that is passed on is the same to node.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
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

use relay_writing::{Understood, pass_on_with_host};

/// As many of each as take some seconds.
const CASES: usize = 1_000;

/// Node with its script.
struct Node {
    child: Child,
}

impl Node {
    /// Without node the test is skipped, and says so, but where everything must be tested.
    fn start() -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relay_node/read.mjs");
        let started = Command::new("node").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        match started {
            Ok(child) => Some(Self { child }),
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "node is missing: {error}");
                eprintln!("skipped: node is missing (cargo xtask install --for test brings it)");
                None
            }
        }
    }

    /// Asks about each line, and gives the lines that came back.
    fn read(mut self, lines: &[String]) -> Vec<String> {
        let mut input = self.child.stdin.take().expect("the input");
        let output = BufReader::new(self.child.stdout.take().expect("the output"));
        let told = std::thread::scope(|scope| {
            scope.spawn(move || lines.iter().for_each(|line| writeln!(input, "{line}").expect("node reads")));
            output.lines().map(|line| line.expect("text")).collect::<Vec<_>>()
        });
        let last = lines.get(told.len());
        assert!(self.child.wait().expect("node ends").success(), "node has told nothing of {last:?}");
        assert_eq!(told.len(), lines.len(), "node has told less than it was asked for");
        told
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Samples of a strategy, the same in each run.
fn samples<T: std::fmt::Debug>(seed: u64, strategy: impl Strategy<Value = T>) -> Vec<T> {
    let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    (0..CASES).map(|_| strategy.new_tree(&mut runner).expect("a sample").current()).collect()
}

fn told_of(request: &Understood) -> String {
    let query = request.query.as_ref().map(|query| [b"?", &query[..]].concat()).unwrap_or_default();
    [hex(&[&request.path[..], &query].concat()), hex(&request.host), hex(&request.body)].join(":")
}

/// The rest behind the method, which `understand` compares.
fn without_method(told: &str) -> &str {
    told.split_once(':').map_or(told, |(_, rest)| rest)
}

#[test]
fn node_understands_as_many_requests_and_the_same() {
    let Some(node) = Node::start() else { return };
    let sent = samples(0x42, (relay_messages::requests(), any::<bool>()));
    let passed: Vec<_> =
        sent.iter().map(|(bytes, trusts)| pass_on_with_host(bytes, |way| way.trusts = *trusts)).collect();
    let lines: Vec<_> = passed.iter().map(|passed| format!("request {}", hex(&passed.stream))).collect();
    for ((told, passed), (sent, _)) in node.read(&lines).iter().zip(&passed).zip(&sent) {
        let told: Vec<_> =
            told.split(' ').filter(|request| !request.is_empty()).map(without_method).collect();
        let mut expected: Vec<_> = passed.requests.iter().map(told_of).collect();
        // Node knows the methods of the registry alone, and takes nothing behind another.
        if let Some(place) = passed.requests.iter().position(|request| request.method == Method::Unknown) {
            expected.splice(place.., ["error".to_owned()]);
        }
        assert_eq!(
            told,
            expected,
            "{} was passed on as {}",
            sent.escape_ascii(),
            passed.stream.escape_ascii()
        );
    }
    assert!(passed.iter().map(|passed| passed.requests.len()).sum::<usize>() > CASES, "too few are good");
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
    let Some(node) = Node::start() else { return };
    let sent = samples(0x43, (relay_messages::answers(), any::<bool>()));
    let good: Vec<_> =
        sent.iter().filter_map(|(bytes, head)| Some((bytes, head, first(bytes, *head)?))).collect();
    assert!(good.len() > CASES / 3, "too few are good: {}", good.len());
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
fn canary_node_sees_what_is_wrong() {
    let Some(node) = Node::start() else { return };
    let two_lengths = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n";
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na";
    let lines =
        [format!("request {}", hex(two_lengths.as_bytes())), format!("answer GET {}", hex(cut.as_bytes()))];
    assert_eq!(node.read(&lines), ["error", "error"]);
}

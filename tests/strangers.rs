//! What a worker remembers of one client must not show in what another gets.
//!
//! Many clients ask one worker in any order; then each asks the same of a worker of its own. Both answers are
//! the same, byte for byte, but for their dates. So every memory of a worker is under test, known or not:
//! heads, rendered answers, preferences, credentials, buffers that are used again.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use staunch_tests::body::SimulatorBody;

/// What a client sends at once: some requests.
type Message = Vec<Ask>;

/// A request, drawn.
#[derive(Debug, Clone)]
struct Ask {
    method: &'static str,
    host: &'static str,
    target: &'static str,
    fields: Vec<&'static str>,
    http10: bool,
}

/// What happens next: a client sends its next message, and what is under way may come to its end first.
#[derive(Debug, Clone)]
struct Step {
    client: prop::sample::Index,
    settles: bool,
    passes_ms: u64,
}

const METHODS: [&str; 8] = ["GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "BREW"];
const HOSTS: [&str; 4] = ["a.example", "a.example", "b.example", "unknown.example"];
const TARGETS: [&str; 20] = [
    "/",
    "/index.html",
    "/short.html",
    "/middle.html",
    "/middle.html",
    "/long.html",
    "/middle.html?query",
    "/middle.bin",
    "/huge.bin",
    "/empty.txt",
    "/app/page",
    "/none.png",
    "/%zz",
    "/secret/a.bin",
    "/secret/",
    "/shared/a.bin",
    "/bare",
    "/list/",
    "/list/?sort=size",
    "/list/?json",
];
/// A group of lines, of which each request has one or none.
const FIELDS: [&[&str]; 7] = [
    &[
        "Accept-Encoding: br\r\n",
        "Accept-Encoding: gzip\r\n",
        "Accept-Encoding: gzip, br;q=0.5\r\n",
        "Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n",
        "Accept-Encoding:\r\n",
        "Accept-Encoding:\r\n",
        "Accept-Encoding: identity\r\n",
        "Accept-Encoding: *;q=0\r\n",
    ],
    &["Accept: text/html\r\n", "Accept: application/json\r\n", "Accept: image/png\r\n", "Accept: */*\r\n"],
    &[
        // anna:secret and anna:wrong
        "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n",
        "Authorization: Basic YW5uYTp3cm9uZw==\r\n",
        "Authorization: Basic YW5uYTpzZWNyZXQ=\r\nAuthorization: Basic YW5uYTpzZWNyZXQ=\r\n",
        "Authorization: Bearer x\r\n",
    ],
    &["Range: bytes=1-2\r\n", "Range: bytes=0-0,5-6\r\n", "Range: bytes=999999999-\r\n"],
    &["If-None-Match: *\r\n", "If-Match: \"x\"\r\n", "If-Modified-Since: Fri, 20 Nov 2026 10:00:00 GMT\r\n"],
    &["Origin: https://x.example\r\n", "Origin: https://y.example\r\n"],
    &["Cookie: a=1\r\n", "Cookie: a=2\r\n", "Cookie: a=22\r\n", "Connection: keep-alive\r\n"],
];
/// The last request of every client.
const LAST: &str = "GET /middle.html HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

impl Ask {
    fn any() -> impl Strategy<Value = Self> {
        let fields: Vec<_> = FIELDS
            .iter()
            .map(|group| prop_oneof![2 => Just(""), 1 => prop::sample::select(*group)])
            .collect();
        let words = (
            prop::sample::select(&METHODS[..]),
            prop::sample::select(&HOSTS[..]),
            prop::sample::select(&TARGETS[..]),
        );
        (words, fields, prop::bool::weighted(0.05)).prop_map(|((method, host, target), fields, http10)| {
            Self { method, host, target, fields, http10 }
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Self { method, host, target, fields, http10 } = self;
        let (version, kept) = if *http10 { ("1.0", "Connection: keep-alive\r\n") } else { ("1.1", "") };
        let body = if *method == "POST" { "Content-Length: 3\r\n" } else { "" };
        let fields = fields.concat();
        let head = format!("{method} {target} HTTP/{version}\r\nHost: {host}\r\n{fields}{kept}{body}\r\n");
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(if body.is_empty() { b"" } else { b"abc" });
    }
}

fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.iter().for_each(|ask| ask.write(&mut bytes));
    bytes
}

/// Two folders and the settings that serve them. Which encodings there are depends on no thread's speed:
/// whatever could be encoded lies beside its file, or is too short.
struct World {
    root: PathBuf,
    settings: String,
}

impl World {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("staunch-strangers-{name}-{}", std::process::id()));
        let write = |path: &str, content: &[u8]| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        };
        for site in ["a", "b"] {
            let text = |path: &str, length: usize| {
                let content = format!("{site}{path} ").into_bytes();
                content.into_iter().cycle().take(length).collect::<Vec<u8>>()
            };
            for (path, length) in [("index.html", 150), ("short.html", 100), ("empty.txt", 0)] {
                write(&format!("{site}/{path}"), &text(path, length));
            }
            for (path, length) in [("middle.html", 5_000), ("long.html", 40_000)] {
                write(&format!("{site}/{path}"), &text(path, length));
                for (end, part) in [("br", 2), ("gz", 3)] {
                    let beside = format!("{path}.{end}");
                    write(&format!("{site}/{beside}"), &text(&beside, length / part));
                }
            }
            for (path, length) in [
                ("middle.bin", 6_000),
                ("huge.bin", 1_100_000),
                ("secret/a.bin", 3_000),
                ("shared/a.bin", 30),
                ("bare/a.bin", 3),
                ("list/a.bin", 1),
                ("list/b.bin", 2),
            ] {
                write(&format!("{site}/{path}"), &text(path, length));
            }
        }
        let settings = settings(&root);
        Self { root, settings }
    }

    fn serve(&self, confused: bool) -> SimulatorBody {
        let body = SimulatorBody::new(&self.root, &[], Some(self.settings.clone()), 24).expect("a server");
        if confused {
            body.confuse();
        }
        body
    }

    /// What a client gets that is alone.
    fn alone(&self, messages: &[Message]) -> Vec<u8> {
        let body = self.serve(false);
        let mut link = body.connect();
        for message in messages {
            link.send(&bytes_of(message));
            link.settle();
        }
        link.send(LAST.as_bytes());
        whole(&mut link)
    }

    /// What each client gets of one worker.
    fn together(&self, clients: &[Vec<Message>], steps: &[Step], confused: bool) -> Vec<Vec<u8>> {
        let body = self.serve(confused);
        let mut links: Vec<_> = clients.iter().map(|messages| (body.connect(), messages.iter())).collect();
        for step in steps {
            let (link, messages) = &mut links[step.client.index(clients.len())];
            if let Some(message) = messages.next() {
                link.send(&bytes_of(message));
            }
            if step.settles {
                link.settle();
            }
            if step.passes_ms > 0 {
                link.pass(step.passes_ms);
            }
        }
        for (link, messages) in &mut links {
            for message in messages {
                link.send(&bytes_of(message));
            }
            link.send(LAST.as_bytes());
        }
        links.iter_mut().map(|(link, _)| whole(link)).collect()
    }

    fn check(&self, clients: &[Vec<Message>], steps: &[Step], confused: bool) -> Result<(), TestCaseError> {
        let together = self.together(clients, steps, confused);
        for (messages, got) in clients.iter().zip(together) {
            let expected = self.alone(messages);
            let same = expected.iter().zip(&got).take_while(|(one, other)| one == other).count();
            let near = |bytes: &[u8]| {
                let end = bytes.len().min(same + 300);
                String::from_utf8_lossy(&bytes[same.saturating_sub(300)..end]).into_owned()
            };
            prop_assert!(got == expected, "alone:\n{}\namong others:\n{}", near(&expected), near(&got));
        }
        Ok(())
    }

    fn run(&self, cases: u32, confused: bool) -> Result<(), String> {
        let clients =
            prop::collection::vec(prop::collection::vec(prop::collection::vec(Ask::any(), 1..4), 1..6), 2..5);
        let step = (any::<prop::sample::Index>(), any::<bool>(), prop::bool::weighted(0.1));
        let steps = prop::collection::vec(
            step.prop_map(|(client, settles, passes)| Step {
                client,
                settles,
                passes_ms: if passes { 1_000 } else { 0 },
            }),
            0..20,
        );
        // A canary's case is thrown away: it need not be made small.
        let max_shrink_iters = if confused { 0 } else { 200 };
        let config = Config { cases, max_shrink_iters, failure_persistence: None, ..Config::default() };
        TestRunner::new(config)
            .run(&(clients, steps), |(clients, steps)| self.check(&clients, &steps, confused))
            .map_err(|error| error.to_string())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.root));
    }
}

fn settings(root: &Path) -> String {
    let hash = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A";
    let root = root.display();
    format!(
        "[[site]]\nhosts = [\"a.example\"]\ndefault = true\nroot = \"{root}/a\"\n\
         encodings = [\"br\", \"gzip\"]\nfallback = \"/index.html\"\n\
         [[site.path]]\nmatch = \"/secret/*\"\n\
         basic_auth = {{ realm = \"a\", users = {{ anna = \"{hash}\" }} }}\n\
         [[site.path]]\nmatch = \"/shared/*\"\ncors = {{ origins = [\"https://x.example\"] }}\n\
         [[site]]\nhosts = [\"b.example\"]\nroot = \"{root}/b\"\nencodings = \"off\"\nlisting = true\n"
    )
}

/// All a client gets, without dates.
fn whole(link: &mut staunch_tests::body::SimulatorLink) -> Vec<u8> {
    while link.end().is_none() {
        assert!(link.fill(Duration::from_secs(600)), "neither an answer nor an end");
    }
    let mut bytes = link.received().to_vec();
    let name = b"\r\nDate: ";
    let places: Vec<_> = (0..bytes.len())
        .filter(|&place| bytes[place..].starts_with(name))
        .map(|at| at + name.len())
        .collect();
    for place in places {
        bytes[place..place + 29].fill(b'-');
    }
    bytes
}

#[test]
fn whatever_others_ask_a_client_gets_what_it_would_get_alone() {
    let cases = std::env::var("STAUNCH_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(64);
    World::new("sound").run(cases, false).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn canary_a_memory_that_takes_one_head_for_another_is_found() {
    assert!(World::new("confused").run(64, true).is_err(), "nobody noticed");
}

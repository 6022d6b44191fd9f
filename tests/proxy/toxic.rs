//! A bad way between the proxy and an application: toxiproxy (Shopify's) delays, slices, throttles, holds
//! back and cuts what passes. Each fault has its answer, and no request is repeated that may be at work.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use staunch_tests::truth::{Plan, Truth, body};

use crate::world::{Client, ENGINES, PATIENCE, Told as _, World, application};

/// The port at which toxiproxy is told what to do; each process of tests has an address of loopback.
const PORT: u16 = 8474;
/// How many were started by this process.
static STARTED: AtomicU16 = AtomicU16::new(0);

/// A running toxiproxy, and one way through it.
struct Way {
    child: Child,
    api: SocketAddr,
    /// Where the way begins.
    address: String,
}

impl Way {
    /// A way to an application; nothing where toxiproxy is not installed.
    fn to(behind: &str) -> Option<Self> {
        let program = program()?;
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let host = Ipv4Addr::new(127, high | 0x40, middle, low);
        let port = PORT + STARTED.fetch_add(1, Relaxed);
        let mut command = Command::new(&program);
        command.args(["-host", &host.to_string(), "-port", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut way = Self { child, api: (host, port).into(), address: String::new() };
        way.await_start();
        let told = way.tell(
            "POST",
            "/proxies",
            &json!({
                "name": "way", "listen": "127.0.0.1:0", "upstream": behind, "enabled": true,
            }),
        );
        way.address = told["listen"].as_str().expect("an address").to_owned();
        Some(way)
    }

    fn await_start(&mut self) {
        let began = Instant::now();
        while std::net::TcpStream::connect(self.api).is_err() {
            let ended = self.child.try_wait().expect("a child of ours");
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "toxiproxy does not listen: {ended:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Gives what is said in return.
    fn tell(&self, method: &str, path: &str, what: &Value) -> Value {
        let body = what.to_string();
        let mut client = Client::to(self.api);
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: toxiproxy\r\nContent-Length: {}\r\n", body.len());
        client.send(format!("{head}\r\n{body}").as_bytes());
        let response = client.read(false);
        assert!((200..300).contains(&response.status), "{path} {body}: {}", response.text());
        serde_json::from_slice(&response.body).unwrap_or_default()
    }

    /// Puts a fault on the way: `downstream` is that of answers.
    fn poison(&self, kind: &str, stream: &str, attributes: &Value) {
        let toxic = json!({ "name": "toxic", "type": kind, "stream": stream, "attributes": attributes });
        self.tell("POST", "/proxies/way/toxics", &toxic);
    }

    /// Takes all faults off.
    fn heal(&self) {
        self.tell("POST", "/reset", &json!({}));
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where `cargo xtask install` puts it, or on the path.
fn program() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests have a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([root.join("target/tools/bin")]);
    let found = folders.map(|folder| folder.join("toxiproxy-server")).find(|program| program.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "toxiproxy-server is missing");
        println!("skipped: toxiproxy-server is missing (cargo xtask install brings it where there is Go)");
    }
    found
}

/// An application, a way to it, and the proxy before that.
fn world(io: &str, arguments: &[&str]) -> Option<(Truth, Way, World)> {
    let (truth, address) = application(Plan::default());
    let way = Way::to(&address)?;
    let world = World::proxy(io, std::slice::from_ref(&way.address), arguments);
    Some((truth, way, world))
}

fn post(path: &str, body: &[u8]) -> String {
    let head = format!("POST {path} HTTP/1.1\r\nHost: shop.test\r\nContent-Length: {}\r\n\r\n", body.len());
    head + &String::from_utf8_lossy(body)
}

/// Bytes of the bodies that are sent: many pieces for each of the ways.
const BYTES: usize = 40_000;

/// For `make soak`: toxiproxy takes Go a minute and a half of processor time to build; what each of these
/// faults comes to without it is shown by `failing`.
mod in_depth {
    use super::*;

    #[test]
    fn a_slow_way_changes_no_byte() {
        let faults = [
            ("latency", json!({ "latency": 50, "jitter": 20 })),
            ("slicer", json!({ "average_size": 40, "size_variation": 20, "delay": 10 })),
            ("bandwidth", json!({ "rate": 100 })),
            ("slow_close", json!({ "delay": 200 })),
        ];
        for io in ENGINES {
            let Some((truth, way, mut world)) = world(io, &[]) else { return };
            let upload = "x".repeat(BYTES);
            let mut asked = 0;
            for (kind, attributes) in &faults {
                for stream in ["upstream", "downstream"] {
                    way.poison(kind, stream, attributes);
                    let words = format!("{io} {kind} {stream}");
                    let answer = world.get(&format!("/ok?bytes={BYTES}"));
                    assert_eq!(answer.status, 200, "{words}");
                    assert!(answer.body == body(BYTES), "{words}");
                    let answer = world.get(&format!("/chunked?bytes={BYTES}&chunk=700"));
                    assert!(answer.status == 200 && answer.body == body(BYTES), "{words}");
                    let answer = world.ask(&post("/echo", upload.as_bytes()));
                    assert!(answer.status == 200 && answer.body.ends_with(upload.as_bytes()), "{words}");
                    asked += 3;
                    way.heal();
                }
            }
            assert_eq!(truth.counts().requests_total(), asked, "{io}: each request went there once");
            assert_eq!(world.metric("staunch_proxy_failures_total", ""), 0.0, "{io}");
        }
    }

    #[test]
    fn a_way_that_is_cut_shows_itself_to_the_client() {
        for io in ENGINES {
            let Some((truth, way, mut world)) = world(io, &[]) else { return };
            // Within the body: the client has a part of it, and sees that it is one.
            way.poison("limit_data", "downstream", &json!({ "bytes": BYTES / 2 }));
            let mut client = Client::of(&world);
            client.send(format!("GET /ok?bytes={BYTES} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            let got = client.rest();
            let is_refused = got.starts_with(b"HTTP/1.1 502 ");
            assert!(
                is_refused || (got.starts_with(b"HTTP/1.1 200 ") && got.len() < BYTES),
                "{io}: {}",
                got.len()
            );
            assert_eq!(world.metric("staunch_proxy_failures_total", "short"), 1.0, "{io}");
            assert_eq!(truth.counts().requests_of("ok"), 1, "{io}: not repeated");
            way.heal();
            // Within the head.
            way.poison("limit_data", "downstream", &json!({ "bytes": 20 }));
            assert_eq!(world.get("/ok").status, 502, "{io}");
            assert_eq!(
                truth.counts().requests_of("ok"),
                2,
                "{io}: an answer that began is not asked for again"
            );
            way.heal();
            assert_eq!(world.get("/ok").status, 200, "{io}");
        }
    }

    #[test]
    fn a_way_that_is_reset_is_502_and_a_request_that_may_be_is_tried_once_more() {
        for io in ENGINES {
            let Some((truth, way, mut world)) = world(io, &[]) else { return };
            way.poison("reset_peer", "downstream", &json!({ "timeout": 0 }));
            assert_eq!(world.ask(&post("/echo", b"once")).status, 502, "{io}");
            assert!(truth.counts().requests_of("echo") <= 1, "{io}: a POST");
            assert_eq!(world.get("/ok").status, 502, "{io}");
            assert!(truth.counts().requests_of("ok") <= 2, "{io}: a GET");
            // A POST may be, too, where the way was reset before anything was sent.
            let retries = world.metric("staunch_proxy_retries_total", "");
            assert!((1.0..=2.0).contains(&retries), "{io}: {retries}");
            assert!(world.metric("staunch_proxy_failures_total", "unreachable") >= 2.0, "{io}");
            way.heal();
            assert_eq!(world.get("/ok").status, 200, "{io}");
            assert_eq!(world.metric("staunch_proxy_in_work", ""), 0.0, "{io}");
        }
    }

    #[test]
    fn a_way_that_takes_all_and_gives_nothing_is_504_and_nothing_is_repeated() {
        for io in ENGINES {
            for stream in ["upstream", "downstream"] {
                let Some((truth, way, mut world)) = world(io, &["--proxy-answer-timeout", "3s"]) else {
                    return;
                };
                way.poison("timeout", stream, &json!({ "timeout": 0 }));
                let words = format!("{io} {stream}");
                assert_eq!(world.get("/ok").status, 504, "{words}");
                assert_eq!(world.ask(&post("/echo", b"once")).status, 504, "{words}");
                assert_eq!(world.metric("staunch_proxy_failures_total", "timeout"), 2.0, "{words}");
                assert_eq!(world.metric("staunch_proxy_retries_total", ""), 0.0, "{words}");
                let most = if stream == "upstream" { 0 } else { 2 };
                assert!(truth.counts().requests_total() <= most, "{words}");
                // The connection was given up: the next request has one of its own.
                way.heal();
                assert_eq!(world.get("/ok").status, 200, "{words}");
            }
        }
    }

    #[test]
    fn a_way_that_falls_silent_within_a_body_cuts_the_answer() {
        const LONG_BYTES: usize = 5_000_000;
        for io in ENGINES {
            let Some((_truth, way, mut world)) = world(io, &["--proxy-answer-timeout", "3s"]) else {
                return;
            };
            // Slow enough that it is under way when the way falls silent.
            way.poison("bandwidth", "downstream", &json!({ "rate": 100 }));
            let mut client = Client::of(&world);
            client.send(format!("GET /ok?bytes={LONG_BYTES} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            let mut first = [0; 1_000];
            std::io::Read::read_exact(&mut client.stream, &mut first).expect("an answer begins");
            assert!(first.starts_with(b"HTTP/1.1 200 "), "{io}: {}", String::from_utf8_lossy(&first));
            let silent = json!({ "name": "silent", "type": "timeout", "attributes": { "timeout": 0 } });
            way.tell("POST", "/proxies/way/toxics", &silent);
            assert!(client.rest().len() < LONG_BYTES, "{io}");
            world.await_metric("staunch_proxy_failures_total", "timeout", |count| count == 1.0);
        }
    }

    #[test]
    fn a_way_that_is_closed_is_502_until_it_is_open_again() {
        for io in ENGINES {
            let Some((_truth, way, world)) = world(io, &[]) else { return };
            assert_eq!(world.get("/ok").status, 200, "{io}");
            way.tell("PATCH", "/proxies/way", &json!({ "enabled": false }));
            for _ in 0..30 {
                assert_eq!(world.get("/ok").status, 502, "{io}");
            }
            way.tell("PATCH", "/proxies/way", &json!({ "enabled": true }));
            assert_eq!(world.get("/ok").status, 200, "{io}: where all are ill, all are asked");
        }
    }
}

//! Servers that are checked: how they are found ill, and well again.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::Receiver;

use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, finish};
use staunch_tests::tree::Tree;

use crate::scripted::{Scripted, play_at};
use crate::world::{Client, ENGINES, Told as _, World};

/// The way a server meets its checks.
pub(crate) const WELL: u8 = 0;
pub(crate) const FAILS: u8 = 1;
const SILENT: u8 = 2;
const GARBAGE: u8 = 3;
const CLOSES: u8 = 4;

/// A server that tells its name, and meets its checks as it is told to.
pub(crate) struct Checked {
    pub(crate) address: SocketAddr,
    mood: Arc<AtomicU8>,
    pub(crate) got: Receiver<Vec<u8>>,
}

impl Checked {
    pub(crate) fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self::at(listener, name)
    }

    fn at(listener: TcpListener, name: &'static str) -> Self {
        let address = listener.local_addr().expect("an address");
        let mood = Arc::<AtomicU8>::default();
        let told = Arc::clone(&mood);
        let got = play_at(listener, move |application: &mut Scripted, _| {
            loop {
                let head = application.head();
                if head.is_empty() {
                    return;
                }
                if head.starts_with(b"GET /healthz ") {
                    return check(application, told.load(SeqCst));
                }
                if head.starts_with(b"GET /held ") {
                    application.until(|_| false);
                    return;
                }
                let length = name.len();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}");
                application.send(answer.as_bytes());
            }
        });
        Self { address, mood, got }
    }

    pub(crate) fn be(&self, mood: u8) {
        self.mood.store(mood, SeqCst);
    }

    fn label(&self) -> String {
        format!("server=\"{}\"", self.address)
    }

    /// Waits until checks find it so.
    pub(crate) fn until_it_is(&self, up: f64, world: &mut World) {
        world.await_metric("staunch_proxy_server_up", &self.label(), |value| value == up);
    }
}

/// Answers a check.
fn check(application: &mut Scripted, mood: u8) {
    match mood {
        WELL => application.send(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
        FAILS => application.send(b"HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nno"),
        GARBAGE => application.send(b"220 mail.test ESMTP\r\n"),
        CLOSES => return,
        _ => {}
    }
    application.until(|_| false);
}

/// Whether a server answers every one of twenty requests. A busy machine may make a server look ill for a
/// moment, so this is waited for.
fn all_come_from(name: &str, world: &World) -> bool {
    (0..20).all(|_| world.get("/").text() == name)
}

fn checking(io: &str, servers: &[&Checked], further: &[&str]) -> World {
    let addresses: Vec<String> = servers.iter().map(|one| one.address.to_string()).collect();
    let checks = ["--proxy-check", "/healthz", "--proxy-check-interval", "150ms"];
    World::proxy(io, &addresses, &[&checks, further].concat())
}

#[test]
fn a_server_that_fails_its_checks_is_asked_no_more_until_it_passes_them() {
    for io in ENGINES {
        let [one, other] = ["one", "other"].map(Checked::start);
        let mut world = checking(io, &[&one, &other], &[]);
        // Without a check there is no figure, which reads as 0.
        one.until_it_is(1.0, &mut world);
        for mood in [FAILS, SILENT, GARBAGE, CLOSES] {
            one.be(mood);
            one.until_it_is(0.0, &mut world);
            other.until_it_is(1.0, &mut world);
            until("only the other is asked", || all_come_from("other", &world));
            one.be(WELL);
            one.until_it_is(1.0, &mut world);
            until("requests come back", || world.get("/").text() == "one");
        }
    }
}

#[test]
fn a_server_that_refuses_is_ill_and_where_all_are_ill_all_are_asked() {
    for io in ENGINES {
        let gone = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = gone.local_addr().expect("an address");
        drop(gone);
        let other = Checked::start("other");
        let checks = ["--proxy-check", "/healthz", "--proxy-check-interval", "150ms"];
        let servers = [address, other.address].map(|address| address.to_string());
        let mut world = World::proxy(io, &servers, &checks);
        let label = format!("server=\"{address}\"");
        // A server that is not checked yet shows nothing: the other is waited for first.
        other.until_it_is(1.0, &mut world);
        world.await_metric("staunch_proxy_checks_total", &format!("{label},result=\"failed\""), |n| n >= 3.0);
        world.await_metric("staunch_proxy_server_up", &label, |value| value == 0.0);
        until("only the other is asked", || {
            let before = world.metric("staunch_proxy_retries_total", "");
            all_come_from("other", &world) && world.metric("staunch_proxy_retries_total", "") == before
        });
        other.be(FAILS);
        other.until_it_is(0.0, &mut world);
        until("requests are tried once more", || {
            all_come_from("other", &world) && world.metric("staunch_proxy_retries_total", "") > 0.0
        });
        let Ok(listener) = TcpListener::bind(address) else { continue };
        let one = Checked::at(listener, "one");
        one.until_it_is(1.0, &mut world);
        until("only the first is asked", || all_come_from("one", &world));
    }
}

#[test]
fn checks_stand_in_no_line_and_count_as_no_request() {
    for io in ENGINES {
        let one = Checked::start("one");
        let mut world = checking(io, &[&one], &["--proxy-limit", "1", "--proxy-patience", "5min"]);
        assert_eq!(world.get("/").text(), "one");
        let mut held = Client::of(&world);
        held.send(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
        world.await_metric("staunch_proxy_in_work", "", |count| count == 1.0);
        let mut waits = Client::of(&world);
        waits.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        world.await_metric("staunch_proxy_waiting", "", |count| count == 1.0);
        let passed = "result=\"passed\"";
        let before = world.metric("staunch_proxy_checks_total", passed);
        world.await_metric("staunch_proxy_checks_total", passed, |count| count >= before + 3.0);
        assert_eq!(world.metric("staunch_proxy_answers_total", ""), 1.0, "{io}");
        assert_eq!(world.metric("staunch_proxy_checks_total", "result=\"failed\""), 0.0, "{io}");
        drop(held);
        assert_eq!(waits.read(false).text(), "one", "{io}");
        let check = one.got.try_iter().find(|head| head.starts_with(b"GET /healthz ")).expect("a check");
        let expected = format!(
            "GET /healthz HTTP/1.1\r\nHost: {}\r\nUser-Agent: Staunch-check\r\nAccept: */*\r\nConnection: \
             close\r\n\r\n",
            one.address
        );
        assert_eq!(String::from_utf8_lossy(&check), expected, "{io}");
    }
}

#[test]
fn each_change_is_told_once_and_explained() {
    let tree = Tree::with(&[]).expect("a tree");
    let log = tree.root().join("error.log");
    let one = Checked::start("one");
    let arguments = ["--error-log", log.to_str().expect("a name of ours")];
    let mut world = checking("epoll", &[&one], &arguments);
    let told = |words: &str| std::fs::read_to_string(&log).unwrap_or_default().matches(words).count();
    let explained = |world: &mut World| {
        let mut command = Command::new(binary());
        let admin = world.admin().to_string();
        finish(command.args(["proxy", "explain", "--admin", &admin])).stdout
    };
    one.until_it_is(1.0, &mut world);
    let text = explained(&mut world);
    assert!(text.contains("checks find it well: answers 204; "), "{text}");
    one.be(FAILS);
    one.until_it_is(0.0, &mut world);
    world.await_metric("staunch_proxy_checks_total", "result=\"failed\"", |count| count >= 6.0);
    let text = explained(&mut world);
    assert!(text.contains("checks find it ill: answers 500; "), "{text}");
    one.be(WELL);
    one.until_it_is(1.0, &mut world);
    until("both are told", || told("is well again by its checks (answers 204)") == 1);
    assert_eq!(told("is ill by its checks (answers 500): requests go elsewhere, if they can"), 1);
}

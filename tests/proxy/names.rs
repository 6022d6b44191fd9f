//! Servers that have names: the proxy follows where they lead, by a process of its own.
//!
//! Names are those of a folder that stands in the place of /etc, in a namespace of the test's own: nothing of
//! the host is seen, and no server of DNS is asked.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::skipping::skip;
use staunch_tests::house::waiting::until;
use staunch_tests::process::binary;
use staunch_tests::tree::Tree;

use crate::scripted::{Scripted, play_at};
use crate::world::{Client, ENGINES, Told as _, World};

const INSIDE: &str = "STAUNCH_TEST_NAMES";
/// The files in that folder, beside `hosts`.
const FILES: [(&str, &str); 5] = [
    ("nsswitch.conf", "hosts: files\npasswd: files\ngroup: files\n"),
    ("host.conf", "multi on\n"),
    ("resolv.conf", ""),
    ("passwd", "root:x:0:0::/:/bin/sh\n"),
    ("group", "root:x:0:\n"),
];

/// Runs a test of this file in a namespace of mounts, where a folder of its own stands in the place of /etc.
/// Gives that folder once inside.
fn inside(name: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return Some(folder.into());
    }
    let tree = Tree::with(&[]).expect("a tree");
    for (name, text) in FILES {
        std::fs::write(tree.root().join(name), text).expect("a file of ours");
    }
    let unshare = |line: &str| {
        let mut command = Command::new("unshare");
        let test = std::env::current_exe().expect("the path of this test");
        command.args(["--map-root-user", "--mount", "sh", "-c", line]).arg(test).env(INSIDE, tree.root());
        command.output()
    };
    let mount = format!("mount --bind '{}' /etc", tree.root().display());
    if !unshare(&mount).is_ok_and(|output| output.status.success()) {
        skip("no namespace of mounts may be made");
        return None;
    }
    let line = format!("{mount} && exec \"$0\" --exact names::{name} --nocapture");
    let output = unshare(&line).expect("unshare");
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
    None
}

/// Lets names lead to these addresses. The file is replaced as a whole, as editors do.
fn lead(folder: &Path, lines: &[(&str, &str)]) {
    let text: String = lines.iter().map(|(address, name)| format!("{address} {name}\n")).collect();
    std::fs::write(folder.join("hosts.new"), text).expect("a file of ours");
    std::fs::rename(folder.join("hosts.new"), folder.join("hosts")).expect("a file of ours");
}

/// Two servers that tell their addresses, at one port of two addresses. A request for `/held` is answered
/// once it is let go.
struct Twins {
    port: u16,
    lets_go: Arc<AtomicBool>,
}

impl Twins {
    fn new() -> Self {
        loop {
            let one = TcpListener::bind("127.0.0.2:0").expect("a port");
            let port = one.local_addr().expect("an address").port();
            let Ok(other) = TcpListener::bind(("127.0.0.3", port)) else { continue };
            let twins = Self { port, lets_go: Arc::default() };
            twins.tell(one);
            twins.tell(other);
            return twins;
        }
    }

    fn tell(&self, listener: TcpListener) {
        let address = listener.local_addr().expect("an address").ip().to_string();
        let lets_go = Arc::clone(&self.lets_go);
        let _got = play_at(listener, move |application: &mut Scripted, _| {
            loop {
                let head = application.head();
                if head.is_empty() {
                    return;
                }
                if head.starts_with(b"GET /held ") {
                    until("the request is let go", || lets_go.load(SeqCst));
                }
                let length = address.len();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{address}");
                application.send(answer.as_bytes());
            }
        });
    }

    fn label(&self, host: &str) -> String {
        format!("server=\"{host}:{}\"", self.port)
    }
}

/// Whether the metrics have a server.
fn shows(world: &mut World, label: &str) -> bool {
    // The sum over no line is 0, and so it is of a server that is not well: none is here.
    world.metric("staunch_proxy_up", label) > 0.0
}

fn answers_of(world: &World, count: usize) -> Vec<String> {
    (0..count).map(|_| world.get("/")).map(|response| response.text()).collect()
}

/// Processes that this one has started.
fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let words = |text: String| text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    tasks.map(words).unwrap_or_default()
}

fn words_of(process: u32) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// The resolver of a server, and the process that it has started.
fn resolver(server: u32) -> Option<(u32, u32)> {
    let first = children(server).into_iter().find(|child| words_of(*child).contains("name-resolver"))?;
    Some((first, *children(first).first()?))
}

fn is_filtered(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.split_ascii_whitespace().eq(["Seccomp:", "2"]))
}

fn has_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn send(process: u32, signal: Signal) {
    let number = i32::try_from(process).expect("a number");
    kill_process(Pid::from_raw(number).expect("a process"), signal).expect("a process of ours");
}

fn follow(io: &str, twins: &Twins, further: &[&str]) -> World {
    let mut command = Command::new(binary());
    command.args(["proxy", &format!("app.test:{}", twins.port), "--listen", "127.0.0.1:0"]);
    command.args(["--admin", "127.0.0.1:0", "--workers", "2", "--io", io]);
    command.args(["--proxy-resolve-interval", "100ms"]).args(further);
    World::of(&mut command)
}

#[test]
fn addresses_come_and_go_and_what_is_in_work_ends() {
    let Some(etc) = inside("addresses_come_and_go_and_what_is_in_work_ends") else { return };
    for io in ENGINES {
        lead(&etc, &[("127.0.0.1", "localhost")]);
        let twins = Twins::new();
        let [two, three] = ["127.0.0.2", "127.0.0.3"];
        let mut world = follow(io, &twins, &[]);
        assert_eq!(world.get("/").status, 502, "{io}: it leads nowhere");
        lead(&etc, &[(two, "app.test")]);
        until("the name leads to the first", || world.get("/").text() == two);
        let answers = world.metric("staunch_proxy_answers_total", &twins.label(two));
        assert!(answers >= 1.0);
        lead(&etc, &[(three, "app.test"), (two, "app.test")]);
        until("the name leads to both", || world.get("/").text() == three);
        until("both are asked", || world.get("/").text() == two);
        let label = twins.label(two);
        assert!(world.metric("staunch_proxy_answers_total", &label) > answers, "{io}: counted on");
        // Held by the first: the second is asked only then.
        lead(&etc, &[(two, "app.test")]);
        until("the second vanishes", || !shows(&mut world, &twins.label(three)));
        let mut held = Client::of(&world);
        held.send(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
        world.await_metric("staunch_proxy_in_work", &label, |count| count == 1.0);
        lead(&etc, &[(three, "app.test")]);
        until("the first vanishes", || !shows(&mut world, &label));
        assert!(answers_of(&world, 20).iter().all(|answer| answer == three), "{io}: nothing new begins");
        assert_eq!(world.metric("staunch_proxy_answers_total", &label), 0.0, "{io}: no series is left");
        twins.lets_go.store(true, SeqCst);
        assert_eq!(held.read(false).text(), two, "{io}: what is in work ends");
    }
}

#[test]
fn those_in_line_at_an_address_that_vanishes_are_answered_by_another() {
    let Some(etc) = inside("those_in_line_at_an_address_that_vanishes_are_answered_by_another") else {
        return;
    };
    for io in ENGINES {
        let [two, three] = ["127.0.0.2", "127.0.0.3"];
        lead(&etc, &[(two, "app.test")]);
        let twins = Twins::new();
        let mut world = follow(io, &twins, &["--proxy-limit", "1", "--proxy-patience", "5min"]);
        let mut held = Client::of(&world);
        held.send(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
        world.await_metric("staunch_proxy_in_work", &twins.label(two), |count| count == 1.0);
        let mut waiting: Vec<Client> = (0..3).map(|_| Client::of(&world)).collect();
        waiting.iter_mut().for_each(|client| client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        world.await_metric("staunch_proxy_waiting", &twins.label(two), |count| count == 3.0);
        lead(&etc, &[(three, "app.test")]);
        for client in &mut waiting {
            assert_eq!(client.read(false).text(), three, "{io}");
        }
        twins.lets_go.store(true, SeqCst);
        assert_eq!(held.read(false).text(), two, "{io}");
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
    }
}

#[test]
fn the_last_addresses_stay_where_a_lookup_fails_and_the_resolver_is_started_again() {
    let name = "the_last_addresses_stay_where_a_lookup_fails_and_the_resolver_is_started_again";
    let Some(etc) = inside(name) else { return };
    let [two, three] = ["127.0.0.2", "127.0.0.3"];
    lead(&etc, &[(two, "app.test")]);
    let twins = Twins::new();
    let log = etc.join("error.log");
    let log_name = log.to_str().expect("a name of ours").to_owned();
    let mut world = follow("epoll", &twins, &["--error-log", &log_name]);
    let told = |words: &str| std::fs::read_to_string(&log).unwrap_or_default().matches(words).count();
    lead(&etc, &[("127.0.0.1", "localhost")]);
    until("the lookup fails", || told("requests go where it led last") > 0);
    assert!(answers_of(&world, 5).iter().all(|answer| answer == two));
    let server = world.server.process_id();
    let (first, second) = resolver(server).expect("a resolver");
    assert_eq!(is_filtered(second), is_filtered(server), "it is confined where the server is");
    send(second, Signal::KILL);
    lead(&etc, &[(three, "app.test")]);
    until("the name leads to the other", || world.get("/").text() == three);
    assert_eq!((told("the resolver has ended (signal: 9"), told("led last")), (1, 1));
    let (still, after) = resolver(server).expect("a resolver");
    assert!(still == first && after != second);
    world.signal(Signal::TERM);
    until("the server ends", || !world.server.is_running());
    until("the resolver ends with it", || has_ended(first) && has_ended(after));
}

#[test]
fn names_are_followed_after_a_reload_and_after_an_upgrade() {
    let Some(etc) = inside("names_are_followed_after_a_reload_and_after_an_upgrade") else { return };
    let [two, three] = ["127.0.0.2", "127.0.0.3"];
    lead(&etc, &[(two, "app.test"), (two, "also.test")]);
    let twins = Twins::new();
    let (file, pid) = (etc.join("staunch.toml"), etc.join("pid"));
    let settings = |servers: &str| {
        let text = format!("proxy = [{servers}]\nproxy_resolve_interval = \"100ms\"\npid_file = {pid:?}\n");
        std::fs::write(&file, text).expect("a file of ours");
    };
    let server = |name: &str| format!("\"{name}:{}\"", twins.port);
    settings(&server("app.test"));
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", "2"]);
    let mut world = World::of(command.arg("--config").arg(&file));
    let address: SocketAddr = world.server.address();
    let process = || std::fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok();
    assert_eq!(world.get("/").text(), two);
    // An address to which a name leads and that is written too is one server.
    settings(&format!("{}, {}", server("app.test"), server(two)));
    world.signal(Signal::HUP);
    let of_both = format!("application=\"app.test:{0} {two}:{0}\"", twins.port);
    until("the reload", || shows(&mut world, &of_both));
    assert_eq!(world.metric("staunch_proxy_up", &of_both), 1.0, "merged");
    lead(&etc, &[(three, "app.test"), (two, "also.test")]);
    until("both are asked", || world.metric("staunch_proxy_up", &of_both) == 2.0);
    // A name that was not looked up: another process is started for it.
    settings(&format!("{}, {}", server("also.test"), server("app.test")));
    let before = process().expect("a process");
    let resolver_before = resolver(before).expect("a resolver");
    world.signal(Signal::HUP);
    until("another process serves", || process().is_some_and(|now| now != before));
    let after = process().expect("a process");
    until("the resolver before has ended", || has_ended(resolver_before.0) && has_ended(resolver_before.1));
    lead(&etc, &[(three, "app.test"), (three, "also.test")]);
    let asked = || {
        let mut client = Client::to(address);
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.read(false).text()
    };
    until("all go to the other", || (0..20).all(|_| asked() == three));
    send(after, Signal::TERM);
    until("it ends", || has_ended(after));
}

//! Classes of requests and known clients: who goes first in a line, who gives way, and what is told of it.

use std::net::{IpAddr, TcpListener};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use staunch_tests::house::waiting::until;
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;

use crate::scripted::play_at;
use crate::world::{Client, ENGINES, PATIENCE, Told as _, World};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// Settings by which an application gets a request at a time, and others wait for as long as a test takes.
const SETTINGS: &str = "proxy_limit = 1\nproxy_patience = \"10min\"\nknown_cookie = [\"session\"]\n\
                        [[path]]\nmatch = \"/pay*\"\nclass = \"high\"\n\
                        [[path]]\nmatch = \"/export*\"\nclass = \"low\"\n";
const AHEAD: &str = "Sec-Purpose: prefetch\r\n";
/// Requests that may wait while no rate of a server is known.
const ROOM: usize = 8;

/// An application that answers while its gate is open, what it was sent, and the gate.
fn gated() -> (String, Receiver<Vec<u8>>, Arc<Mutex<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let gate = Arc::new(Mutex::new(()));
    let own = Arc::clone(&gate);
    let got = play_at(listener, move |application, _| {
        while !application.head().is_empty() {
            drop(own.lock());
            application.send(OK);
        }
    });
    (address, got, gate)
}

/// Asks for a path with these field lines; what is asked ahead comes from another address.
fn ask(world: &World, path: &str, fields: &str) -> Client {
    ask_from(if fields == AHEAD { [127, 0, 0, 2].into() } else { [127, 0, 0, 3].into() }, world, path, fields)
}

fn ask_from(source: IpAddr, world: &World, path: &str, fields: &str) -> Client {
    let mut client = Client::from(source, world.server.address());
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes());
    client
}

/// The path of the next request that an application got.
fn path(got: &Receiver<Vec<u8>>) -> String {
    let head = got.recv_timeout(PATIENCE).expect("a request");
    let text = String::from_utf8_lossy(&head);
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn await_waiting(world: &mut World, count: usize) {
    world.await_metric("staunch_proxy_waiting", "", |waiting| waiting as usize == count);
}

fn assert_gave_way(response: &Response, words: &str) {
    assert_eq!(response.status, 503, "{words}");
    assert_eq!(response.value("cache-control").as_deref(), Some("no-store"), "{words}");
    assert!(response.value("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()), "{words}");
}

/// A page of the admin address.
fn page(world: &mut World, path: &str) -> String {
    let mut client = Client::to(world.admin());
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes());
    client.read(false).text()
}

#[test]
fn urgent_requests_go_first_then_known_clients_and_what_is_asked_ahead_comes_last() {
    for io in ENGINES {
        let (address, got, gate) = gated();
        let (mut world, _tree) = World::serve(io, &format!("proxy = \"{address}\"\n{SETTINGS}"));
        let shut = gate.lock().expect("no test has panicked with it");
        let mut clients = vec![ask(&world, "/first", "")];
        assert_eq!(path(&got), "/first", "{io}");
        let session = "Cookie: theme=dark; session=anything\r\n";
        let rest = [
            ("/ahead", AHEAD),
            ("/export", ""),
            ("/stranger", ""),
            ("/known", session),
            ("/pay/ahead", "Sec-Purpose: prefetch;prerender\r\n"),
            ("/pay", ""),
            ("/pay/known", session),
            ("/stranger/2", ""),
        ];
        for (count, (path, fields)) in (1..).zip(rest) {
            let source = [127, 0, 1, u8::try_from(count).expect("few")].into();
            clients.push(ask_from(source, &world, path, fields));
            await_waiting(&mut world, count);
        }
        drop(shut);
        let order: Vec<String> = rest.iter().map(|_| path(&got)).collect();
        let wanted =
            ["/pay/known", "/pay", "/known", "/stranger", "/stranger/2", "/ahead", "/export", "/pay/ahead"];
        assert_eq!(order, wanted, "{io}");
        for mut client in clients {
            assert_eq!(client.read(false).status, 200, "{io}");
        }
    }
}

#[test]
fn one_client_goes_before_others_at_a_quarter_of_the_places() {
    for io in ENGINES {
        let (address, got, gate) = gated();
        let (mut world, _tree) = World::serve(io, &format!("proxy = \"{address}\"\n{SETTINGS}"));
        let shut = gate.lock().expect("no test has panicked with it");
        let [greedy, other] = [[127, 0, 0, 4], [127, 0, 0, 5]].map(IpAddr::from);
        let mut clients = vec![ask_from(greedy, &world, "/first", "")];
        assert_eq!(path(&got), "/first", "{io}");
        let rest = [(other, "/other"), (greedy, "/pay/1"), (greedy, "/pay/2"), (other, "/pay/other")];
        for (count, (source, path)) in (1..).zip(rest) {
            clients.push(ask_from(source, &world, path, ""));
            await_waiting(&mut world, count);
        }
        drop(shut);
        let order: Vec<String> = rest.iter().map(|_| path(&got)).collect();
        assert_eq!(order, ["/pay/1", "/pay/other", "/other", "/pay/2"], "{io}");
        for mut client in clients {
            assert_eq!(client.read(false).status, 200, "{io}");
        }
    }
}

#[test]
fn what_is_asked_ahead_gives_way_and_users_find_room() {
    for io in ENGINES {
        let (address, got, gate) = gated();
        let log = Tree::with(&[]).expect("a tree");
        let file = log.root().join("access.log");
        let settings = format!(
            "proxy = \"{address}\"\naccess_log = \"{}\"\n\
             access_log_format = \"$request_uri $status $upstream_class\"\n",
            file.display()
        );
        let (mut world, _tree) = World::serve(io, &format!("{settings}{SETTINGS}"));
        let shut = gate.lock().expect("no test has panicked with it");
        let mut clients = vec![ask(&world, "/first", "")];
        assert_eq!(path(&got), "/first", "{io}");
        for count in 1..=ROOM {
            clients.push(ask(&world, "/ahead", AHEAD));
            await_waiting(&mut world, count);
        }
        assert_gave_way(&ask(&world, "/ahead/refused", AHEAD).read(false), io);
        assert_gave_way(&ask(&world, "/export/refused", "").read(false), io);
        // Refused prefetch stands before no user, and does not make the line full for one address.
        for count in 1..=ROOM {
            clients.push(ask(&world, "/user", ""));
            await_waiting(&mut world, ROOM + count);
        }
        let refused = ask(&world, "/user/refused", "").read(false);
        assert_eq!((refused.status, refused.value("cache-control").as_deref()), (503, Some("no-cache")));
        for (name, class, wanted) in [
            ("requests", "low", ROOM + 2),
            ("refused", "low", 2),
            ("requests", "normal", ROOM + 2),
            ("refused", "normal", 1),
        ] {
            let name = format!("staunch_proxy_class_{name}_total");
            assert_eq!(world.metric(&name, &format!("class=\"{class}\"")) as usize, wanted, "{io} {class}");
        }
        let waiting = world.metric("staunch_proxy_class_waiting", "class=\"low\",client=\"new\"");
        assert_eq!(waiting as usize, ROOM, "{io}");
        let explained = page(&mut world, "/proxy");
        let words = format!("low: {} came, 2 refused, {ROOM} waiting", ROOM + 2);
        assert!(explained.contains(&words), "{io} {explained}");
        drop(shut);
        for mut client in clients {
            assert_eq!(client.read(false).status, 200, "{io}");
        }
        let line = |line: &str| {
            until(line, || {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                text.lines().any(|one| one == line)
            });
        };
        ["/ahead/refused 503 low", "/user 200 normal", "/user/refused 503 normal"].into_iter().for_each(line);
    }
}

#[test]
fn what_is_asked_ahead_waits_for_a_quarter_of_the_patience() {
    for io in ENGINES {
        let (address, got, gate) = gated();
        let world = World::proxy(io, &[address], &["--proxy-limit", "1", "--proxy-patience", "2s"]);
        let shut = gate.lock().expect("no test has panicked with it");
        let mut first = ask(&world, "/first", "");
        assert_eq!(path(&got), "/first", "{io}");
        // By a rule of nobody: the browser says it.
        assert_gave_way(&ask(&world, "/ahead", AHEAD).read(false), io);
        drop(shut);
        assert_eq!(first.read(false).status, 200, "{io}");
    }
}

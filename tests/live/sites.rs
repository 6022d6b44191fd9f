//! Sites with live data of their own: whatever is published at one is never seen at another, also after a
//! restart, a reload and an upgrade.

use std::io::{Read as _, Write as _};

use rustix::process::Signal;
use staunch_tests::house::waiting::until;
use staunch_tests::process::binary;

use crate::line::Line;
use crate::socket::TestSocket;
use crate::store::{Store, end, parts};
use crate::world::{ENGINES, Reply, TOKEN, World, ask_host, connect};

/// The secret of publishers at `b.example`.
const OTHER: &str = "another-secret-of-at-least-thirty-two-bytes";
/// Both sites with the secrets of their publishers.
const SITES: [(&str, &str); 2] = [("a.example", TOKEN), ("b.example", OTHER)];

/// A table of settings for a site.
fn site(root: &str, host: &str, more: &str) -> String {
    format!("[[site]]\nhosts = [\"{host}\"]\nroot = \"{root}\"\n{more}\n")
}

/// Settings of both sites; that of `b.example` says some of its own.
fn two_sites(root: &str) -> String {
    let own = format!("publish_token = \"{OTHER}\"\nlive_value_size = \"1KiB\"");
    let top = format!(
        "live = true\npublish_token = \"{TOKEN}\"\nlive_topic = [{{ match = \"log.*\", kind = \"log\" }}]\n"
    );
    [top, site(root, "a.example", ""), site(root, "b.example", &own)].concat()
}

fn run(io: &str, arguments: &[&str]) -> World {
    World::of_file(&binary(), io, arguments, two_sites).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Puts a value at a site with a secret.
fn put(world: &World, host: &str, token: &str, topic: &str, value: &str) -> Reply {
    let lines = format!("Authorization: Bearer {token}\r\nContent-Type: text/plain\r\n");
    let path = format!("/topics/{topic}");
    ask_host(host, world.address(), "PUT", &path, &lines, value.as_bytes())
}

fn get(world: &World, host: &str, path: &str) -> Reply {
    ask_host(host, world.address(), "GET", path, "", b"")
}

#[test]
fn what_is_published_at_a_site_is_seen_there_alone() {
    for io in ENGINES {
        let world = run(io, &[]);
        for topic in ["log.x", "quotes.s1", "only"] {
            assert_eq!(put(&world, "a.example", TOKEN, topic, "of a").status, 200, "{io}");
        }
        assert_eq!(put(&world, "b.example", TOKEN, "log.x", "1").status, 401, "{io}: another site's secret");
        assert_eq!(put(&world, "a.example", OTHER, "log.x", "1").status, 401, "{io}");
        assert_eq!(put(&world, "b.example", OTHER, "log.x", &"x".repeat(1025)).status, 413, "{io}");
        assert_eq!(get(&world, "b.example", "/live/log.x").status, 404, "{io}");
        assert_eq!(get(&world, "b.example", "/quotes?symbols=s1").text(), "{\"s1\":null}\n", "{io}");
        assert_eq!(get(&world, "b.example", "/list=s1").text(), "var s1=\"\";\n", "{io}");
        let mut events = world.read_host("b.example", "topic=*&plain=1", "").begin();
        let mercure = "/.well-known/mercure?topic=*&last-event-id=earliest";
        let mut hub = world.read_at("b.example", mercure, "").begin();
        let host = "Host: b.example\r\n";
        let mut socket = TestSocket::connect(world.address(), "/ws", host);
        socket.subscribe("*", "");
        let history = socket.ask("\"history\":{\"channel\":\"log.x\",\"limit\":-1}");
        assert_eq!(history["history"]["publications"], serde_json::json!([]), "{io}: {history}");
        let mut by_url = TestSocket::open(world.address(), "/ws?topic=*&plain=1", host);
        // Its readers are none of those that a publisher at the other site is told of.
        let told = put(&world, "a.example", TOKEN, "log.x", "again");
        assert!(
            told.text().ends_with("\"readers\":0}\n") || told.text().ends_with("\"readers\":0}"),
            "{told:?}"
        );
        let first = put(&world, "b.example", OTHER, "log.x", "of b");
        assert_eq!(parts(first.field("etag").expect("a version")).1, 1, "{io}: a numbering of its own");
        assert_eq!([events.data(), hub.data()], ["of b", "of b"], "{io}");
        assert_eq!((socket.data(), by_url.text()), ("of b".into(), "of b".to_owned()), "{io}");
        assert_eq!(get(&world, "a.example", "/live/log.x").text(), "again", "{io}");
        // A place in the numbering of another site says nothing here.
        let other = told.field("etag").expect("a version").trim_matches('"').to_owned();
        let resumed = format!("Last-Event-ID: {other}\r\n");
        assert_eq!(world.read_host("b.example", "topic=*&plain=1", &resumed).data(), "of b", "{io}");
        assert_eq!(get(&world, "a.example", "/live/only").text(), "of a", "{io}");
    }
}

#[test]
fn long_polls_of_a_site_hear_nothing_of_another() {
    let world = run("epoll", &[]);
    let etag = |host, token, value| {
        let answer = put(&world, host, token, "v", value);
        answer.field("etag").expect("a version").trim_matches('"').to_owned()
    };
    let [_, version] = SITES.map(|(host, token)| etag(host, token, "before"));
    let path = format!("/live/v?after={version}");
    let waiting = std::thread::scope(|scope| {
        let address = world.address();
        let waiting = scope.spawn(move || ask_host("b.example", address, "GET", &path, "", b""));
        until("it waits", || put(&world, "b.example", OTHER, "w", "1").status == 200);
        etag("a.example", TOKEN, "of a");
        etag("b.example", OTHER, "of b");
        waiting.join().expect("an answer")
    });
    assert_eq!(waiting.text(), "of b");
}

/// Publishes at both sites; gives the versions.
fn fill(world: &World, value: &str) -> [String; 2] {
    SITES.map(|(host, token)| {
        let answer = put(world, host, token, "v", &format!("{value} of {host}"));
        answer.field("etag").expect("a version").to_owned()
    })
}

#[track_caller]
fn each_has_its_own(world: &World, value: &str) {
    for (host, _) in SITES {
        let answer = get(world, host, "/live/v");
        assert_eq!(answer.text(), format!("{value} of {host}"), "{answer:?}");
    }
}

#[test]
fn topics_of_sites_stay_apart_over_a_restart() {
    for io in ENGINES {
        let store = Store::new();
        let state = ["--live-state", store.path().to_str().expect("a name of ours")];
        let world = run(io, &state);
        let before = fill(&world, "first");
        end(world, Signal::KILL);
        let world = run(io, &state);
        each_has_its_own(&world, "first");
        let after = fill(&world, "second");
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(parts(after), (parts(before).0, 2), "{io}: each numbering goes on");
        }
        end(world, Signal::TERM);
        // Without the site its file is left alone, and the site finds it when it is back.
        let alone =
            |root: &str| format!("live = true\npublish_token = \"{TOKEN}\"\n{}", site(root, "a.example", ""));
        let world = World::of_file(&binary(), io, &state, alone).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(
            get(&world, "b.example", "/live/v").text(),
            "second of a.example",
            "{io}: the default site"
        );
        end(world, Signal::TERM);
        let world = run(io, &state);
        each_has_its_own(&world, "second");
    }
}

/// A store of a server with one site for all hosts becomes that of the default site.
#[test]
fn a_store_of_all_hosts_becomes_that_of_the_default_site() {
    let store = Store::new();
    let world = store.serve("epoll", "always");
    world.put("v", "first of a.example");
    end(world, Signal::TERM);
    let world = run("epoll", &["--live-state", store.path().to_str().expect("a name of ours")]);
    assert_eq!(get(&world, "a.example", "/live/v").text(), "first of a.example");
    assert_eq!(get(&world, "b.example", "/live/v").status, 404);
    assert!(!store.file().exists() && store.path().join("live-a.example.redb").exists());
}

/// Gives a server other settings.
fn reload(line: &Line, text: &str) {
    let count = || line.said().matches("the configuration was read again").count();
    let before = count();
    std::fs::write(line.world.settings_file(), text).expect("a file of ours");
    line.world.signal(Signal::HUP);
    until("it was read again", || count() > before);
}

/// A publisher's body comes after a reload has taken its site away: its secret is none of the site that
/// answers to the host since, and says nothing where no live data is.
#[test]
fn a_secret_of_a_site_that_is_gone_meanwhile_publishes_nothing() {
    for io in ENGINES {
        let line = Line::run(|_, own| World::of_file(&binary(), io, own, two_sites));
        let world = &line.world;
        let root = world.tree.root().to_str().expect("a name of ours").to_owned();
        let own = format!("live = true\npublish_token = \"{TOKEN}\"\n");
        let alone = [site(&root, "a.example", &own), site(&root, "c.example", "")];
        for (text, statuses) in alone.iter().zip([[401, 404], [405, 404]]) {
            reload(&line, &two_sites(&root));
            let head = format!(
                "PUT /topics/v HTTP/1.1\r\nHost: b.example\r\nAuthorization: Bearer {OTHER}\r\n\
                 Expect: 100-continue\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"
            );
            let mut stream = connect(world.address());
            stream.write_all(head.as_bytes()).expect("a server that reads");
            let mut go_on = [0; 25];
            stream.read_exact(&mut go_on).expect("an answer");
            assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n", "{io}");
            reload(&line, text);
            stream.write_all(b"1").expect("a server that reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            let begin = format!("HTTP/1.1 {} ", statuses[0]);
            assert!(answer.starts_with(&begin), "{io} {text}: {answer}");
            assert_eq!(get(world, "b.example", "/live/v").status, statuses[1], "{io} {text}");
        }
    }
}

#[test]
fn a_site_of_the_same_name_keeps_its_topics_over_a_reload() {
    for io in ENGINES {
        let line = Line::run(|_, own| World::of_file(&binary(), io, own, two_sites));
        let world = &line.world;
        fill(world, "first");
        let mut events = world.read_host("b.example", "topic=v&plain=1", "");
        assert_eq!(events.data(), "first of b.example");
        let root = world.tree.root().to_str().expect("a name of ours").to_owned();
        let reload = |text: String| reload(&line, &text);
        let top = "live = true\npublish_token = \"0123456789abcdef0123456789abcdef\"\n";
        let [a, b, c] = ["a", "b", "c"].map(|name| site(&root, &format!("{name}.example"), ""));
        // In another order, so with another default; and with one that comes too late.
        reload([top, &b, &a, &c].concat());
        each_has_its_own(world, "first");
        assert_eq!(get(world, "other", "/live/v").text(), "first of b.example", "{io}: the default site");
        assert_eq!(get(world, "c.example", "/live/v").status, 404, "{io}");
        assert_eq!(put(world, "c.example", TOKEN, "v", "1").status, 405, "{io}: it has no live data");
        assert!(line.said().contains("only a restart or an upgrade changes live"), "{io}: {}", line.said());
        // Its readers go on, also while it is away.
        put(world, "b.example", OTHER, "v", "second of b.example");
        assert_eq!(events.data(), "second of b.example", "{io}");
        reload([top, &a].concat());
        assert_eq!(get(world, "b.example", "/live/v").text(), "first of a.example", "{io}: the default site");
        reload([top, &a, &b].concat());
        assert_eq!(get(world, "b.example", "/live/v").text(), "second of b.example", "{io}");
        assert_eq!(get(world, "a.example", "/live/v").text(), "first of a.example", "{io}");
    }
}

#[test]
fn a_reload_that_would_serve_a_store_is_refused() {
    let line = Line::run(|store, own| {
        let folder = store.path().to_str().expect("a name of ours");
        World::of_file(&binary(), "epoll", &[own, &["--live-state", folder]].concat(), two_sites)
    });
    let root = line.store.path().to_str().expect("a name of ours");
    std::fs::write(line.world.settings_file(), two_sites(root)).expect("a file of ours");
    line.world.signal(Signal::HUP);
    until("it is told", || line.said().contains("the configuration stays as it was: live_state: "));
    assert_eq!(get(&line.world, "a.example", "/live-a.example.redb").status, 404);
}

#[test]
fn topics_of_sites_stay_apart_over_an_upgrade() {
    for io in ENGINES {
        let line = Line::run(|store, own| {
            let folder = store.path().to_str().expect("a name of ours");
            World::of_file(&binary(), io, &[own, &["--live-state", folder]].concat(), two_sites)
        });
        let before = fill(&line.world, "first");
        line.upgrade();
        each_has_its_own(&line.world, "first");
        for ((host, token), before) in SITES.iter().zip(&before) {
            let mut version = None;
            until("the successor takes it", || {
                let answer = put(&line.world, host, token, "v", "second");
                version = answer.field("etag").filter(|_| answer.status == 200).map(str::to_owned);
                version.is_some()
            });
            assert_eq!(parts(&version.expect("a version")), (parts(before).0, 2), "{io} {host}");
        }
    }
}

#[test]
fn what_a_site_cannot_have_is_told_with_its_name() {
    let refused = |text: fn(&str) -> String| match World::of_file(&binary(), "epoll", &[], text) {
        Ok(_) => panic!("it serves"),
        Err(said) => said,
    };
    let said = refused(|root| {
        let own = "live = true\nlive_topic = [{ match = \"$x\" }]";
        [site(root, "a.example", ""), site(root, "b.example", own)].concat()
    });
    assert!(said.contains("must not begin with `$`") && said.contains("(site b.example)"), "{said}");
    let said = refused(|root| {
        let many = |number| site(root, &format!("s{number}.example"), "");
        ["live = true\n".to_owned(), (0..257).map(many).collect()].concat()
    });
    assert!(said.contains("live: 257 sites have live data, and 256 may"), "{said}");
}

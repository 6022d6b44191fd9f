//! Paths for the clients of some networks only, over real sockets.
use std::fs;
use std::process::Command;

use staunch_tests::house::waiting::until;

use super::caller::{Caller, ENGINES, ip, serve};
use super::scratch::Scratch;

/// The proxy of these tests is 127.0.0.2.
const RULES: &str = "\
    trusted_proxies = [\"127.0.0.2\"]\n\
    [[path]]\n\
    match = \"/a.*\"\n\
    allow = [\"127.0.0.0/28\", \"198.51.100.0/24\", \"::1\"]\n\
    deny = [\"127.0.0.4\", \"198.51.100.7\"]\n";

#[test]
fn who_is_served_is_said_by_networks() {
    for io in ENGINES {
        let (file, log) =
            (Scratch::new(&format!("networks-{io}.toml")), Scratch::new(&format!("networks-{io}.log")));
        fs::write(file.path(), format!("access_log = \"{}\"\n{RULES}", log.path())).expect("a file");
        let served = serve("127.0.0.1:0", &["--io", io, "--config", file.path()]);
        let forwarded = |address: &str| format!("X-Forwarded-For: {address}\r\n");
        for (source, fields, expected) in [
            ("127.0.0.3", String::new(), 200),
            ("127.0.0.4", String::new(), 403),
            ("127.0.0.16", String::new(), 403),
            ("127.0.0.16", forwarded("198.51.100.1"), 403),
            ("127.0.0.2", forwarded("198.51.100.1"), 200),
            ("127.0.0.2", forwarded("198.51.100.7"), 403),
            ("127.0.0.2", forwarded("203.0.113.1"), 403),
            ("127.0.0.2", forwarded("198.51.100.1, 203.0.113.1"), 403),
        ] {
            let mut caller = Caller::from(ip(source), served.address());
            for round in ["from the loader", "from the store"] {
                let response = caller.ask("/a.txt", &fields).expect("an answer");
                assert_eq!(response.status, expected, "{io} {source} {fields} {round}");
                assert!(!response.has("Connection"), "the connection stays");
            }
            let none = caller.ask("/a.none", &fields).unwrap().status;
            assert_eq!(none, if expected == 200 { 404 } else { 403 }, "what is not there, {source} {fields}");
        }
        assert_eq!(served.counter("denied"), 18);
        until("the log has the refused client", || {
            let text = fs::read_to_string(log.path()).unwrap_or_default();
            text.lines().any(|line| line.starts_with("198.51.100.7 ") && line.contains(" 403 "))
        });
    }
}

#[test]
fn networks_of_ipv6_are_told_apart() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return println!("skipped: no IPv6 here");
    }
    for io in ENGINES {
        for (allowed, expected) in [("::1", 200), ("2001:db8::/32", 403), ("0.0.0.0/0", 403)] {
            let file = Scratch::new(&format!("networks6-{io}.toml"));
            fs::write(file.path(), RULES.replace("::1", allowed)).expect("a file");
            let served = serve("[::1]:0", &["--io", io, "--config", file.path()]);
            assert_eq!(Caller::from(ip("::1"), served.address()).status(), expected, "{io} {allowed}");
        }
    }
}

/// Addresses are asked for from the reload on. A connection that was there before is refused once.
#[test]
fn a_reload_brings_networks() {
    for io in ENGINES {
        let file = Scratch::new(&format!("networks-reload-{io}.toml"));
        fs::write(file.path(), "").expect("a file");
        let served = serve("127.0.0.1:0", &["--io", io, "--config", file.path()]);
        let mut before = Caller::from(ip("127.0.0.3"), served.address());
        assert_eq!(before.status(), 200);
        fs::write(file.path(), RULES).expect("a file");
        let process = served.server.process_id().to_string();
        assert!(Command::new("kill").args(["-HUP", &process]).status().expect("kill").success());
        until("the rules hold", || Caller::from(ip("127.0.0.4"), served.address()).status() == 403);
        let response = before.ask("/a.txt", "").expect("an answer");
        assert_eq!((response.status, response.value("Connection").as_deref()), (403, Some("close")), "{io}");
        until("a new connection is known", || {
            Caller::from(ip("127.0.0.3"), served.address()).status() == 200
        });
    }
}

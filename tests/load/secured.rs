//! Load by TLS, offered to the real server.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use staunch_tests::process::{Server, serve};
use staunch_tests::tree::Tree;
use staunch_tls::LocalAuthority;

use crate::generator::{WAYS, count, ends, load, measure, measure_to};

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock stands after 1970").as_secs()
}

/// A server that speaks HTTPS, and the file of the authority that its certificate is of.
struct House {
    _tree: Tree,
    authority: PathBuf,
    server: Server,
}

impl House {
    fn new() -> Self {
        let tree = Tree::with(&[]).expect("a tree");
        let folder = tree.root().parent().expect("a folder of the test's own").join("tls");
        fs::create_dir_all(&folder).expect("a folder");
        let authority = LocalAuthority::create(now_s()).expect("an authority");
        let issued = authority.issue(&["localhost", "127.0.0.1"], now_s()).expect("local names");
        let [ca, pair, key] = ["ca.pem", "server.pem", "server.key"].map(|name| folder.join(name));
        fs::write(&ca, authority.certificate_pem()).expect("a file");
        fs::write(&pair, issued.certificate_pem).expect("a file");
        fs::write(&key, issued.key_pem.as_bytes()).expect("a file");
        let mut command = serve(tree.root());
        command.args(["--tls-listen", "127.0.0.1:0"]);
        command.arg("--tls-certificate").arg(pair).arg("--tls-key").arg(key);
        let server = Server::spawn(&mut command).expect("a server");
        Self { _tree: tree, authority: ca, server }
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}/", self.server.secured_address().port())
    }

    fn authority(&self) -> &str {
        self.authority.to_str().expect("a path")
    }

    /// The file of an authority that has signed nothing here.
    fn other(&self) -> String {
        let authority = LocalAuthority::create(now_s()).expect("an authority");
        let path = self.authority.with_file_name("other.pem");
        fs::write(&path, authority.certificate_pem()).expect("a file");
        path.to_str().expect("a path").to_owned()
    }
}

#[test]
fn closed_and_open_loops_speak_tls() {
    let house = House::new();
    let (url, authority) = (house.url(), house.authority());
    for io in WAYS {
        let words = ["--cacert", authority, "--io", io, "-t", "1"];
        let closed = measure(&[&[url.as_str(), "-n", "40", "-c", "4"][..], &words].concat());
        assert_eq!(ends(&closed), [("in_time", 40)], "{io}");
        assert_eq!(count(&closed, "handshakes"), 4, "{io}: {closed:#}");
        assert!(closed["handshake_ms"]["p50"].is_f64(), "{io}: {closed:#}");
        let suites = closed["tls"]["suites"].as_object().expect("suites");
        assert!(suites.keys().all(|suite| suite.starts_with("TLS 1.3 ")), "{io}: {suites:?}");

        let open = ["--rate", "200/s", "-d", "500ms", "--no-keep-alive"];
        let open = measure(&[&[url.as_str()][..], &open, &words].concat());
        assert_eq!(ends(&open), [("in_time", 100)], "{io}: {open:#}");
        assert_eq!(count(&open, "handshakes"), 100, "{io}: {open:#}");
        assert!(count(&open, "handshakes_resumed") > 0, "{io}: {open:#}");
    }
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_unless_it_is_not_looked_at() {
    let house = House::new();
    let url = house.url();
    let refused = measure_to(1, &[&url, "-n", "4", "-c", "2", "--cacert", &house.other()]);
    assert_eq!(ends(&refused), [("failed", 4)]);
    assert!(
        refused["warnings"][0].as_str().is_some_and(|said| said.starts_with("TLS failed on 4 connections: "))
    );
    let believed = measure(&[&url, "-n", "4", "-c", "2", "-k", "--no-resumption", "--no-keep-alive"]);
    assert_eq!(ends(&believed), [("in_time", 4)]);
    assert_eq!(count(&believed, "handshakes_resumed"), 0, "{believed:#}");
}

#[test]
fn connections_are_held_and_sweeps_made_by_tls() {
    let house = House::new();
    let (url, authority) = (house.url(), house.authority());
    for io in WAYS {
        let held = load(&["hold", &url, "-c", "50", "--for", "100ms", "--cacert", authority, "--io", io]);
        assert_eq!(held.status.code(), Some(0), "{io}: {}", held.stderr);
        assert!(held.stderr.contains("50 of 50"), "{io}: {}", held.stderr);
    }
    let words = ["sweep", &url, "--cacert", authority, "--capacity", "100/s", "--factors", "0.5,1"];
    let rest = ["--rounds", "1", "-d", "300ms", "--rest", "10ms", "--json", "-"];
    let swept = load(&[&words[..], &rest].concat());
    assert_eq!(swept.status.code(), Some(0), "{}", swept.stderr);
    assert!(swept.stdout.contains("\"handshakes\""), "{}", swept.stdout);
}

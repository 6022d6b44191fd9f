//! Sites as peers see them while they are exchanged.

use std::path::Path;

use crate::config::PathRule;
use crate::content::testing::Folder;
use crate::site::testing::Peer;
use crate::sites::Replaced;
use crate::{SiteConfig, SiteRules};

fn site(root: &Path, host: &str) -> SiteConfig {
    let hosts = vec![host.to_owned()];
    SiteConfig { root: root.to_path_buf(), hosts, cache_bytes_max: 1024 * 1024, ..SiteConfig::default() }
}

fn folder(text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("a.txt", text.as_bytes());
    folder
}

fn denied(config: SiteConfig) -> SiteConfig {
    let paths = vec![PathRule { pattern: "/*".into(), deny: Some(true), ..PathRule::default() }];
    SiteConfig { rules: SiteRules { paths, ..SiteRules::default() }, ..config }
}

fn body(peer: &mut Peer, host: &str) -> String {
    peer.ask_host(host, "GET", "/a.txt", &[]).text().to_owned()
}

#[test]
fn each_name_has_its_site() {
    let (one, two) = (folder("one"), folder("two"));
    let second = SiteConfig { default: true, ..site(two.path(), "*.two.example") };
    let mut peer = Peer::with_sites(vec![site(one.path(), "one.example"), second]);
    for (host, text) in [
        ("one.example", "one"),
        ("ONE.example:8080", "one"),
        ("www.two.example", "two"),
        ("two.example", "two"),
        ("other", "two"),
        ("[::1]:80", "two"),
    ] {
        assert_eq!(body(&mut peer, host), text, "{host}");
        assert_eq!(body(&mut peer, host), text, "{host} again, from the store");
    }
}

#[test]
fn what_is_the_same_goes_on_as_it_was() {
    let (one, two, three) = (folder("one"), folder("two"), folder("three"));
    let (first, second) = (site(one.path(), "one"), site(two.path(), "two"));
    let mut peer = Peer::with_sites(vec![first.clone(), second.clone()]);
    peer.settle();
    let held = peer.shared.progress().prepared;
    // Other names and another order are no change of what is held.
    let renamed = SiteConfig { hosts: vec!["eins".into()], default: true, ..first.clone() };
    let replaced = peer.shared.prepare(vec![second.clone(), renamed]).unwrap().commit();
    assert_eq!(replaced, Replaced { kept: 2, opened: 0, closed: 0 });
    assert_eq!(peer.shared.progress().prepared, held);
    assert_eq!(body(&mut peer, "one"), "one", "the default one");
    assert_eq!(body(&mut peer, "two"), "two");
    let replaced =
        peer.shared.prepare(vec![denied(first), site(three.path(), "three"), second]).unwrap().commit();
    assert_eq!(replaced, Replaced { kept: 1, opened: 2, closed: 1 });
    assert_eq!(peer.ask_host("one", "GET", "/a.txt", &[]).code, 403);
    assert_eq!(body(&mut peer, "three"), "three");
    assert_eq!(body(&mut peer, "two"), "two");
}

#[test]
fn a_fault_changes_nothing() {
    let one = folder("one");
    let first = site(one.path(), "one");
    let mut peer = Peer::with_sites(vec![first.clone()]);
    let missing = site(&one.path().join("none"), "two");
    let rules = SiteRules { fallback: Some("x".into()), ..SiteRules::default() };
    let wrong = SiteConfig { rules, ..site(one.path(), "three") };
    for (configs, words) in [
        (vec![first.clone(), missing], "none does not exist"),
        (vec![first.clone(), wrong], "site three: fallback"),
        (vec![first.clone(), first.clone()], "one stands in two sites"),
        (vec![first.clone(), site(one.path(), "x:80")], "without port"),
        (vec![], "no site"),
    ] {
        let fault = peer.shared.prepare(configs).map(|_| ()).unwrap_err().to_string();
        assert!(fault.contains(words), "{fault}");
        assert_eq!(body(&mut peer, "one"), "one");
    }
}

#[test]
fn a_link_that_leads_elsewhere_is_seen() {
    let releases = Folder::new();
    releases.write("1/a.txt", b"one");
    releases.write("2/a.txt", b"two");
    releases.link("1", "current");
    let config = site(&releases.path().join("current"), "a");
    let mut peer = Peer::with_sites(vec![config.clone()]);
    assert_eq!(body(&mut peer, "a"), "one");
    releases.link("2", "next");
    std::fs::rename(releases.path().join("next"), releases.path().join("current")).unwrap();
    assert_eq!(body(&mut peer, "a"), "one", "not before it is told");
    let replaced = peer.shared.prepare(vec![config.clone()]).unwrap().commit();
    assert_eq!(replaced, Replaced { kept: 0, opened: 1, closed: 1 });
    assert_eq!(body(&mut peer, "a"), "two");
    assert_eq!(peer.shared.prepare(vec![config]).unwrap().commit().kept, 1);
}

#[test]
fn a_request_that_waits_is_answered_by_the_site_it_asked() {
    let (one, two) = (folder("one"), folder("two"));
    let mut peer = Peer::with_sites(vec![site(one.path(), "a")]);
    let next = vec![site(two.path(), "a")];
    let shared = std::sync::Arc::clone(&peer.shared);
    let response = peer.ask_and("a", "/a.txt", || {
        shared.prepare(next.clone()).unwrap().commit();
    });
    assert_eq!((response.code, response.text()), (200, "one"));
    assert_eq!(body(&mut peer, "a"), "two");
}

#[test]
fn nothing_is_left_of_a_hundred_exchanges() {
    let (one, two) = (folder(&"one ".repeat(20_000)), folder(&"two ".repeat(20_000)));
    let mut peer = Peer::with_sites(vec![site(one.path(), "a"), site(two.path(), "b")]);
    peer.settle();
    let weak = std::sync::Arc::downgrade(&peer.shared.sites.load().sites[0]);
    let names = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/fd", std::process::id())).unwrap();
        tasks.filter_map(|task| std::fs::read_link(task.ok()?.path()).ok()).collect::<Vec<_>>()
    };
    let roots = |names: &[std::path::PathBuf]| {
        names.iter().filter(|name| *name == one.path() || *name == two.path()).count()
    };
    assert_eq!(roots(&names()), 2);
    for round in 0..100 {
        let (first, second) = (site(one.path(), "a"), site(two.path(), "b"));
        let configs = match round % 2 {
            0 => vec![denied(first), second],
            _ => vec![first, denied(second)],
        };
        peer.shared.prepare(configs).unwrap().commit();
        let code = peer.ask_host("a", "GET", "/a.txt", &[]).code;
        assert_eq!(code, if round % 2 == 0 { 403 } else { 200 });
    }
    peer.settle();
    // A thread may just be looking at the last of the removed ones.
    for _ in 0..2000 {
        if weak.strong_count() == 0 && roots(&names()) == 2 {
            return;
        }
        // tidy: allow(clock): a test waits for background threads, with a bound.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{} roots are open, the first site is held {} times", roots(&names()), weak.strong_count());
}

#[test]
fn what_a_removed_site_held_is_let_go_though_a_worker_sleeps() {
    let (one, two) = (folder("one"), folder("two"));
    let peer = Peer::with_sites(vec![site(one.path(), "a")]);
    peer.settle();
    let removed = std::sync::Arc::clone(&peer.shared.sites.load().sites[0]);
    assert!(removed.progress().prepared > 0);
    peer.shared.prepare(vec![site(two.path(), "a")]).unwrap().commit();
    assert_eq!((removed.progress().prepared, removed.progress().bytes_held), (0, 0));
}

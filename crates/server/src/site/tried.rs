//! What `try` answers with, driven through real sessions, with a store and without.

use std::time::Duration;

use super::testing::{Peer, Response};
use crate::content::testing::Folder;
use crate::{Attempts, PathRule, SiteConfig, SiteRules};

fn attempts(paths: &[&str], status: u16) -> Option<Attempts> {
    Some(Attempts { paths: paths.iter().map(|&path| path.to_owned()).collect(), status })
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("index.html", b"home");
    folder.write("about.html", b"about");
    folder.write("about/team.html", b"team");
    folder.write("docs/index.html", b"docs");
    folder.write("docs.html", b"docs beside");
    folder.write("bare/a.txt", b"bare");
    folder.write("old/gone.txt", b"still there");
    folder.write(".html", b"hidden");
    folder.write("app/.secret.html", b"hidden");
    folder.write("static/only.txt", b"only");
    folder
}

fn peers(folder: &Folder, rules: SiteRules) -> [Peer; 2] {
    let root = folder.path().to_path_buf();
    let config = SiteConfig { root, rules, listing: false, ..SiteConfig::default() };
    [Peer::with(config.clone()), Peer::with(SiteConfig { no_cache: true, ..config })]
}

fn of(site: Option<Attempts>) -> SiteRules {
    SiteRules { attempts: site, ..SiteRules::default() }
}

/// Asked twice: once by the loader, once from the store.
fn twice(peer: &mut Peer, target: &str) -> Response {
    let first = peer.get(target);
    assert_eq!(first, peer.get(target), "{target} again");
    first
}

#[test]
fn the_first_that_is_there_answers() {
    let folder = folder();
    let rules = of(attempts(&["$path", "$path.html", "$path/", "/static$path", "/nothing", "/docs/"], 404));
    for mut peer in peers(&folder, rules) {
        for (target, text) in [
            ("/", "home"),
            ("/about", "about"),
            ("/about/team", "team"),
            ("/docs", "docs beside"),
            ("/docs/", "docs"),
            ("/only.txt", "only"),
            ("/bare/a.txt", "bare"),
            // A folder without index is nothing to be shown, hidden names are not there.
            ("/bare/", "docs"),
            ("/about/", "docs"),
            ("/app/.secret", "404"),
            ("/deep/er/path.png?query", "docs"),
            ("/%2e%2e/%2e%2e/etc/passwd", "400"),
        ] {
            let response = twice(&mut peer, target);
            let found = match response.code {
                200 => response.text().to_owned(),
                code => code.to_string(),
            };
            assert_eq!(found, text, "{target}");
        }
        let whole = twice(&mut peer, "/about");
        assert_eq!(whole.field("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(whole.field("etag"), twice(&mut peer, "/about.html").field("etag"));
        let etag = whole.field("etag").unwrap();
        assert_eq!(peer.get_with("/about", &[("If-None-Match", etag)]).code, 304);
        assert_eq!(peer.ask("POST", "/about", &[("Content-Length", "0")]).code, 405);
    }
}

#[test]
fn without_a_hit_it_is_the_status() {
    let folder = folder();
    let rules = SiteRules {
        fallback: Some("/index.html".into()),
        paths: vec![
            PathRule {
                pattern: "/old/*".into(),
                attempts: Some(attempts(&["$path"], 410)),
                ..PathRule::default()
            },
            PathRule { pattern: "/docs*".into(), attempts: Some(None), ..PathRule::default() },
        ],
        ..of(attempts(&["$path", "$path/", "$path.html"], 404))
    };
    for mut peer in peers(&folder, rules) {
        for (target, code) in [
            ("/none", 404),
            ("/bare", 404),
            ("/old/gone.txt", 200),
            ("/old/more", 410),
            ("/old/", 410),
            ("/about", 200),
            // Here nothing is tried, so there is the folder's redirect, and the fallback.
            ("/docs", 301),
            ("/docs/none", 200),
        ] {
            assert_eq!(twice(&mut peer, target).code, code, "{target}");
        }
        assert_eq!(twice(&mut peer, "/docs/none").text(), "home");
    }
    let rules = of(attempts(&["$path", "$path/"], 404));
    for mut peer in peers(&folder, rules) {
        let response = twice(&mut peer, "/docs");
        assert_eq!((response.code, response.field("location")), (301, Some("/docs/")));
    }
}

/// Both paths' rules say who may see it, that of what is sent which fields it has.
#[test]
fn rules_of_both_paths_hold() {
    let folder = folder();
    let rule = |pattern: &str| PathRule { pattern: pattern.into(), ..PathRule::default() };
    let rules = SiteRules {
        paths: vec![
            PathRule { headers: vec![("X-Html".into(), "1".into())], ..rule("*.html") },
            PathRule { deny: Some(true), ..rule("/about/*.html") },
            PathRule { deny: Some(true), ..rule("/docs") },
        ],
        ..of(attempts(&["$path", "$path.html"], 404))
    };
    for mut peer in peers(&folder, rules) {
        let shown = twice(&mut peer, "/about");
        assert_eq!((shown.code, shown.field("x-html")), (200, Some("1")));
        assert_eq!(twice(&mut peer, "/about/team").code, 403);
        assert_eq!(twice(&mut peer, "/docs").code, 403);
    }
}

/// Whatever appears or goes is seen, whoever answered before.
#[test]
fn changes_are_seen() {
    let folder = folder();
    let list = ["$path", "/first$path", "$path.html", "$path/", "/index.html"];
    let rules = of(attempts(&list, 404));
    for mut peer in peers(&folder, rules) {
        let mut expect = |text: &str| {
            for round in 0..2000 {
                // What lies in folders that are not there yet is looked for once a second.
                peer.date[24] = b'0' + (round / 10 % 10) as u8;
                let response = peer.get("/new");
                let found = if response.code == 200 { response.text().to_owned() } else { String::new() };
                let found = if response.code == 301 { "folder".to_owned() } else { found };
                if found == text {
                    return;
                }
                // tidy: allow(clock): a test waits for another thread, with a bound.
                std::thread::sleep(Duration::from_millis(5));
            }
            panic!("never {text:?}");
        };
        let path = |name: &str| folder.path().join(name);
        expect("home");
        folder.write("new/index.html", b"in a folder");
        expect("folder");
        folder.write("new.html", b"html");
        expect("html");
        folder.write("first/new", b"first");
        expect("first");
        folder.write("first/new", b"first again");
        expect("first again");
        std::fs::rename(path("first"), path("second")).unwrap();
        expect("html");
        std::fs::rename(path("second"), path("first")).unwrap();
        expect("first again");
        std::fs::remove_dir_all(path("first")).unwrap();
        expect("html");
        std::fs::remove_file(path("new.html")).unwrap();
        expect("folder");
        std::fs::remove_dir_all(path("new")).unwrap();
        expect("home");
        folder.write("new", b"itself");
        expect("itself");
        std::fs::remove_file(path("new")).unwrap();
        expect("home");
    }
}

/// Paths that nobody has a file for leave nothing behind.
#[test]
fn what_answers_for_all_is_not_remembered_for_each() {
    let folder = folder();
    let [mut peer, _] = peers(&folder, of(attempts(&["$path", "$path.html", "/index.html"], 404)));
    peer.settle();
    assert_eq!(peer.get("/about").text(), "about");
    let held = peer.shared.progress().prepared;
    for number in 0..100 {
        assert_eq!(peer.get(&format!("/route/{number}")).text(), "home");
    }
    assert_eq!(peer.shared.progress().prepared, held);
}

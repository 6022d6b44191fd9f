//! Rules as a peer sees them, driven through real sessions.

mod guarded;
mod origins;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::content::testing::Folder;
use crate::limits::CHECKS_PER_CLIENT_MAX;
use crate::site::testing::{Peer, Response};
use crate::{BasicAuth, Cors, PathRule, RedirectRule, SiteConfig, SiteRules};

/// `echo -n secret | argon2 somesalt -id -t 1 -k 8 -p 1 -e`
const HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A";
/// anna:secret
const GOOD: (&str, &str) = ("Authorization", "Basic YW5uYTpzZWNyZXQ=");
/// anna:wrong
const BAD: (&str, &str) = ("Authorization", "Basic YW5uYTp3cm9uZw==");

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("index.html", b"<h1>home</h1>");
    folder.write("404.html", &b"<h1>lost</h1> ".repeat(100));
    folder.write("login.html", b"who?");
    folder.write("a.txt", b"0123456789");
    folder.write("secret/a.txt", b"for anna");
    folder.write("secret/index.html", b"index for anna");
    folder.write("bare/a.txt", b"x");
    folder
}

fn rule(pattern: &str) -> PathRule {
    PathRule { pattern: pattern.to_owned(), ..PathRule::default() }
}

fn auth() -> Option<Option<BasicAuth>> {
    let users = BTreeMap::from([("anna".to_owned(), HASH.to_owned())]);
    Some(Some(BasicAuth { realm: "here".to_owned(), users, users_file: None }))
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A peer of a site with these rules; and one of the same site that holds nothing, which must do the same.
fn peers(folder: &Folder, rules: SiteRules) -> [Peer; 2] {
    let root = folder.path().to_path_buf();
    let config = SiteConfig { root, rules, listing: false, ..SiteConfig::default() };
    [Peer::with(config.clone()), Peer::with(SiteConfig { no_cache: true, ..config })]
}

fn paths(paths: Vec<PathRule>) -> SiteRules {
    SiteRules { paths, ..SiteRules::default() }
}

/// Asked twice: once by the loader, once from the store.
fn twice(peer: &mut Peer, target: &str, fields: &[(&str, &str)]) -> Response {
    let first = peer.get_with(target, fields);
    assert_eq!(first, peer.get_with(target, fields), "{target} again");
    first
}

#[test]
fn headers_are_on_every_response() {
    let folder = folder();
    let rules = SiteRules {
        headers: vec![pair("X-All", "1")],
        redirects: vec![RedirectRule { from: "/old".into(), to: "/a.txt".into(), status: 302 }],
        ..paths(vec![PathRule {
            headers: vec![pair("X-Text", "2")],
            cache_control: Some("max-age=60".into()),
            ..rule("*.txt")
        }])
    };
    for mut peer in peers(&folder, rules) {
        let whole = twice(&mut peer, "/a.txt", &[]);
        let etag = whole.field("etag").unwrap().to_owned();
        let many = [("Range", "bytes=0-0,2-2")];
        for (fields, code) in [
            (&[][..], 200),
            (&[("Range", "bytes=1-2")][..], 206),
            (&many[..], 206),
            (&[("Range", "bytes=20-")][..], 416),
            (&[("If-None-Match", &*etag)][..], 304),
            (&[("If-Match", "\"x\"")][..], 412),
        ] {
            let response = twice(&mut peer, "/a.txt", fields);
            assert_eq!(response.code, code);
            assert_eq!((response.field("x-all"), response.field("x-text")), (Some("1"), Some("2")), "{code}");
            let kept = if code < 400 { "max-age=60" } else { "no-cache" };
            assert_eq!(response.field("cache-control"), Some(kept), "{code}");
        }
        for (target, code, text) in [
            ("/", 200, None),
            ("/none.txt", 404, Some("2")),
            ("/none", 404, None),
            ("/old", 302, None),
            ("/bare", 301, None),
            ("/bare/", 403, None),
            ("/%zz", 400, None),
        ] {
            let response = twice(&mut peer, target, &[]);
            assert_eq!(response.code, code, "{target}");
            assert_eq!(response.field("x-text"), text, "{target}");
            // What is no path has no rules.
            assert_eq!(response.field("x-all"), (code != 400).then_some("1"), "{target}");
            let kept = response.field("cache-control").unwrap();
            assert_eq!(kept, "no-cache", "{target}");
        }
        let post = peer.ask("POST", "/a.txt", &[("Content-Length", "0")]);
        assert_eq!((post.code, post.field("x-text")), (405, Some("2")));
        assert_eq!(post.field("allow"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(peer.ask("OPTIONS", "/a.txt", &[]).field("x-text"), Some("2"));
    }
}

#[test]
fn encodings_have_the_headers_too() {
    let folder = folder();
    folder.write("long.txt", &b"many words ".repeat(1000));
    let rules = paths(vec![PathRule { headers: vec![pair("X-A", "1")], ..rule("/*") }]);
    let [mut peer, _] = peers(&folder, rules);
    peer.settle();
    let response = peer.get_with("/long.txt", &[("Accept-Encoding", "br")]);
    assert_eq!((response.field("content-encoding"), response.field("x-a")), (Some("br"), Some("1")));
}

#[test]
fn error_pages() {
    let folder = folder();
    let rules = SiteRules {
        error_pages: BTreeMap::from([
            (404, "/404.html".into()),
            (403, "/none.html".into()),
            (400, "/404.html".into()),
            (405, "/404.html".into()),
        ]),
        ..SiteRules::default()
    };
    for mut peer in peers(&folder, rules) {
        let response = twice(&mut peer, "/none", &[]);
        assert_eq!((response.code, response.field("content-type")), (404, Some("text/html; charset=utf-8")));
        assert!(response.text().starts_with("<h1>lost</h1>"));
        assert_eq!(response.field("content-length").unwrap().parse(), Ok(response.body.len()));
        for absent in ["etag", "last-modified", "accept-ranges"] {
            assert_eq!(response.field(absent), None, "{absent}");
        }
        let head = peer.ask("HEAD", "/none", &[]);
        assert_eq!((head.code, head.body.len(), &head.head), (404, 0, &response.head));
        assert_eq!(peer.get("/%zz").code, 400);
        assert!(peer.get("/%zz").text().starts_with("<h1>lost</h1>"));
        let missing = peer.get("/bare/");
        assert!(missing.code == 403 && missing.text().contains("403 Forbidden"), "{missing:?}");
        let post = peer.ask("PUT", "/a.txt", &[("Content-Length", "0")]);
        assert_eq!((post.code, post.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
        assert_eq!(peer.get_with("/404.html", &[("Range", "bytes=0-0")]).code, 206, "itself a file");
        assert_eq!(peer.get_with("/none", &[("If-None-Match", "*"), ("Range", "bytes=0-0")]).code, 404);
    }
}

#[test]
fn an_error_page_is_encoded_and_follows_changes() {
    let folder = folder();
    let error_pages = BTreeMap::from([(404, "/404.html".into())]);
    let [mut peer, _] = peers(&folder, SiteRules { error_pages, ..SiteRules::default() });
    peer.settle();
    let response = peer.get_with("/none", &[("Accept-Encoding", "gzip")]);
    assert_eq!((response.code, response.field("content-encoding")), (404, Some("gzip")));
    assert_eq!(response.field("vary"), Some("Accept, Accept-Encoding"));
    folder.write("404.html", b"new");
    for _ in 0..2000 {
        if peer.get("/none").text() == "new" {
            return;
        }
        // tidy: allow(clock): a test waits for background threads, with a bound.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the new page is not shown");
}

#[test]
fn the_fallback_is_for_pages() {
    let folder = folder();
    let rules = SiteRules { fallback: Some("/index.html".into()), ..SiteRules::default() };
    for mut peer in peers(&folder, rules) {
        for (target, accept, code) in [
            ("/users/7", "text/html", 200),
            ("/users/7", "image/png, */*;q=0.1", 200),
            ("/users/", "*/*", 200),
            ("/users/7", "image/png", 404),
            ("/users/7", "text/html;q=0", 404),
            ("/users/7.png", "text/html", 404),
            ("/a.txt", "text/html", 200),
            ("/bare/", "text/html", 403),
            ("/a%2fb", "text/html", 404),
        ] {
            let response = twice(&mut peer, target, &[("Accept", accept)]);
            assert_eq!(response.code, code, "{target} {accept}");
            assert_eq!(response.text() == "<h1>home</h1>", code == 200 && target != "/a.txt", "{target}");
        }
        assert_eq!(peer.get("/users").text(), "<h1>home</h1>", "no Accept is any");
        let head = peer.ask("HEAD", "/users", &[]);
        assert_eq!((head.code, head.field("content-length")), (200, Some("13")));
        let etag = head.field("etag").unwrap().to_owned();
        assert_eq!(peer.get_with("/users", &[("If-None-Match", &etag)]).code, 304);
        assert_eq!(peer.ask("POST", "/users", &[("Content-Length", "0")]).code, 405);
    }
    let gone = SiteRules { fallback: Some("/gone.html".into()), ..SiteRules::default() };
    for mut peer in peers(&folder, gone) {
        assert_eq!(peer.get("/users").code, 404);
    }
}

#[test]
fn redirects_come_before_files() {
    let folder = folder();
    let redirect = |from: &str, to: &str, status| RedirectRule { from: from.into(), to: to.into(), status };
    let rules = SiteRules {
        redirects: vec![redirect("/index.html", "/", 308), redirect("/old/*", "/$1", 301)],
        ..SiteRules::default()
    };
    for mut peer in peers(&folder, rules) {
        let response = twice(&mut peer, "/index.html?a=b", &[]);
        assert_eq!((response.code, response.field("location")), (308, Some("/?a=b")));
        assert_eq!(twice(&mut peer, "/", &[]).text(), "<h1>home</h1>", "no circle");
        assert_eq!(peer.get("/old/a%20b").field("location"), Some("/a%20b"));
        assert_eq!(peer.get("/old/%0d%0aX:y").field("location"), Some("/%0D%0AX%3Ay"));
        assert_eq!(peer.ask("POST", "/old/x", &[("Content-Length", "0")]).code, 301);
    }
}

#[test]
fn what_is_denied() {
    let folder = folder();
    let allowed = PathRule { deny: Some(false), ..rule("/secret/a*") };
    let denied = PathRule { deny: Some(true), ..rule("/secret/*") };
    for mut peer in peers(&folder, paths(vec![denied, allowed])) {
        for (target, code) in [
            ("/secret/", 403),
            ("/secret/x", 403),
            ("/secret/a.txt", 200),
            ("/secret/an", 404),
            ("/a.txt", 200),
        ] {
            assert_eq!(twice(&mut peer, target, &[]).code, code, "{target}");
        }
        assert_eq!(peer.get("/secret/../secret/x").code, 403);
        assert_eq!(peer.get("/%73ecret/x").code, 403);
        assert_eq!(peer.ask("OPTIONS", "/secret/x", &[]).code, 403);
    }
    // The index file is denied by its own name, too.
    for mut peer in peers(&folder, paths(vec![PathRule { deny: Some(true), ..rule("*.html") }])) {
        assert_eq!(twice(&mut peer, "/", &[]).code, 403);
        assert_eq!(twice(&mut peer, "/secret/", &[]).code, 403);
    }
}

#[test]
fn listings_by_path() {
    let folder = folder();
    for mut peer in peers(&folder, paths(vec![PathRule { listing: Some(true), ..rule("/bare/*") }])) {
        // Without a store there are no listings.
        let code = twice(&mut peer, "/bare/", &[]).code;
        assert_eq!(code, 200);
    }
}

#[test]
fn work_is_done_for_each_file() {
    let folder = folder();
    let rules = paths(vec![PathRule { response_work_us: Some(20_000), ..rule("/a*") }]);
    for mut peer in peers(&folder, rules) {
        peer.get("/a.txt");
        for (target, works) in [("/a.txt", true), ("/secret/a.txt", false), ("/ab", false)] {
            let before_ns = staunch_engine::thread_busy_ns();
            peer.get(target);
            let spent_ns = staunch_engine::thread_busy_ns() - before_ns;
            // Processor time, not time by the clock: nobody else's work is in it.
            assert_eq!(spent_ns >= 20_000_000, works, "{target}: {spent_ns}");
        }
    }
}

#[test]
fn what_depends_on_accept_says_so() {
    let folder = folder();
    let kept = PathRule { cache_control: Some("public, max-age=3600".into()), ..rule("/*") };
    let error_pages = BTreeMap::from([(404, "/404.html".into())]);
    let fallback = Some("/index.html".to_owned());
    for rules in [
        SiteRules { fallback: fallback.clone(), ..paths(vec![kept.clone()]) },
        SiteRules { fallback: fallback.clone(), ..SiteRules::default() },
        SiteRules { fallback, error_pages, ..SiteRules::default() },
    ] {
        for mut peer in peers(&folder, rules) {
            for (target, accept, code, depends) in [
                ("/app/page", "text/html", 200, true),
                ("/app/page", "image/png", 404, true),
                ("/app/page.png", "image/png", 404, true),
                ("/index.html", "text/html", 200, false),
                ("/a.txt", "*/*", 200, false),
            ] {
                let response = twice(&mut peer, target, &[("Accept", accept)]);
                assert_eq!(response.code, code, "{target} {accept}");
                let says = response
                    .head
                    .lines()
                    .any(|line| line == "Vary: Accept" || line == "Vary: Accept, Accept-Encoding");
                assert_eq!(says, depends, "{target} {accept}: {}", response.head);
            }
            let page = peer.get_with("/app/page", &[("Accept", "text/html")]);
            let fields = [("Accept", "text/html"), ("If-None-Match", page.field("etag").unwrap())];
            let unchanged = twice(&mut peer, "/app/page", &fields);
            assert_eq!(unchanged.code, 304);
            assert!(unchanged.head.lines().any(|line| line == "Vary: Accept"), "{}", unchanged.head);
        }
    }
}

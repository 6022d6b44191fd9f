//! Answers told as differences, as a peer sees them.

use std::time::Duration;

use staunch_dictionary::{Hash, apply};

use crate::config::{BasicAuth, Cors, Dictionary, PathRule, SiteRules};
use crate::content::testing::Folder;
use crate::metrics::SiteFigures;
use crate::site::testing::{Peer, Response};
use crate::{Encoding, SiteConfig};

const ACCEPTED: (&str, &str) = ("Accept-Encoding", "gzip, br, zstd, dcb, dcz");

/// A page of some kilobytes that compress to about a third.
fn page(sentence: &str) -> Vec<u8> {
    let lines =
        (0..200_u32).map(|number| format!("<p>{} of {number}</p>\n", number.wrapping_mul(2_654_435_761)));
    lines.chain([format!("<p>{sentence}</p>\n")]).collect::<String>().into_bytes()
}

fn rule(pattern: &str, dictionary: Dictionary) -> PathRule {
    PathRule { pattern: pattern.to_owned(), dictionary: Some(Some(dictionary)), ..PathRule::default() }
}

fn config(folder: &Folder, paths: Vec<PathRule>) -> SiteConfig {
    let rules = SiteRules { paths, ..SiteRules::default() };
    SiteConfig { root: folder.path().to_path_buf(), rules, ..SiteConfig::default() }
}

fn own(folder: &Folder) -> Peer {
    Peer::with(config(folder, vec![rule("/*", Dictionary::Own)]))
}

/// Asks as a browser does that has this text; `fields` go before those it would send.
fn ask(peer: &mut Peer, target: &str, dictionary: &[u8], fields: &[(&str, &str)]) -> Response {
    let hash = Hash::of(dictionary).to_field();
    let usual = [ACCEPTED, ("Available-Dictionary", hash.as_str())];
    let is_said = |name: &str| fields.iter().any(|(said, _)| *said == name);
    let fields: Vec<_> =
        fields.iter().copied().chain(usual.into_iter().filter(|(name, _)| !is_said(name))).collect();
    peer.ask_host("localhost", "GET", target, &fields)
}

/// Asks until the answer is as wanted; the test fails if it never is.
fn until(peer: &mut Peer, target: &str, dictionary: &[u8], wanted: impl Fn(&Response) -> bool) -> Response {
    let mut last = None;
    for _ in 0..6000 {
        let response = ask(peer, target, dictionary, &[]);
        if wanted(&response) {
            return response;
        }
        last = Some(response.head);
        // tidy: allow(clock): a test waits for background threads, with a bound.
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{target} stayed {last:?}");
}

fn is_difference(response: &Response) -> bool {
    response.field("Content-Encoding") == Some("dcz")
}

/// Waits until a difference to `dictionary` is the answer that leads to `body`.
fn difference(peer: &mut Peer, target: &str, dictionary: &[u8], body: &[u8]) -> Response {
    let leads = |response: &Response| apply(dictionary, &response.body, body.len()).as_deref() == Some(body);
    until(peer, target, dictionary, |response| is_difference(response) && leads(response))
}

fn figures(peer: &Peer) -> SiteFigures {
    peer.shared.figures().into_iter().next().unwrap()
}

#[test]
fn a_changed_page_is_told_as_the_difference() {
    let folder = Folder::new();
    let versions: Vec<_> = ["first", "second", "third"].map(page).into();
    folder.write("page.html", &versions[0]);
    let mut peer = own(&folder);
    peer.settle();
    let first = peer.get_with("/page.html", &[ACCEPTED]);
    assert_eq!(first.field("Use-As-Dictionary"), Some("match=\"/page.html\""));
    assert_eq!(first.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
    assert_eq!(first.field("Cache-Control"), Some("max-age=0, stale-while-revalidate=60"));
    assert_eq!(first.field("Content-Encoding"), Some("br"));
    for (current, version) in versions.iter().enumerate().skip(1) {
        folder.write("page.html", version);
        for former in &versions[..=current] {
            let told = difference(&mut peer, "/page.html", former, version);
            assert!(told.body.len() < 200, "{} bytes", told.body.len());
            assert_eq!(told.field("Use-As-Dictionary"), Some("match=\"/page.html\""));
            assert_eq!(told.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
            assert_eq!(told.field("Content-Type"), Some("text/html; charset=utf-8"));
        }
    }
    let counted = figures(&peer).dictionary.unwrap();
    assert!(
        counted.answered >= 5 && counted.asked >= counted.answered && counted.saved_bytes > 500,
        "{counted:?}"
    );
}

#[test]
fn the_last_four_former_versions_are_kept() {
    let folder = Folder::new();
    let versions: Vec<_> = (0..7).map(|number| page(&format!("version {number}"))).collect();
    let mut peer = own(&folder);
    for version in &versions {
        folder.write("page.html", version);
        difference(&mut peer, "/page.html", version, version);
    }
    let current = versions.last().unwrap();
    for former in &versions[2..] {
        difference(&mut peer, "/page.html", former, current);
    }
    peer.settle();
    let unknown = figures(&peer).dictionary.unwrap().unknown;
    for forgotten in &versions[..2] {
        assert!(!is_difference(&ask(&mut peer, "/page.html", forgotten, &[])));
    }
    assert_eq!(figures(&peer).dictionary.unwrap().unknown, unknown + 2);
}

#[test]
fn the_first_asker_gets_the_usual_answer_and_each_difference_is_made_once() {
    let folder = Folder::new();
    folder.write("page.html", &page("only"));
    let mut peer = own(&folder);
    peer.settle();
    assert_eq!(ask(&mut peer, "/page.html", &page("only"), &[]).field("Content-Encoding"), Some("br"));
    let told = difference(&mut peer, "/page.html", &page("only"), &page("only"));
    let held = figures(&peer).held_bytes;
    for _ in 0..20 {
        assert_eq!(ask(&mut peer, "/page.html", &page("only"), &[]), told);
    }
    assert_eq!(figures(&peer).held_bytes, held);
}

#[test]
fn bundles_of_a_pattern_are_dictionaries_for_each_other() {
    let folder = Folder::new();
    folder.write("assets/app.1.js", &page("one"));
    let path = "/assets/app.*.js";
    let said = PathRule {
        cache_control: Some("public, max-age=31536000, immutable".to_owned()),
        ..rule(path, Dictionary::Pattern(path.to_owned()))
    };
    let mut peer = Peer::with(config(&folder, vec![said]));
    let first = peer.get_with("/assets/app.1.js", &[ACCEPTED]);
    assert_eq!(first.field("Use-As-Dictionary"), Some("match=\"/assets/app.*.js\""));
    assert_eq!(first.field("Cache-Control"), Some("public, max-age=31536000, immutable"));
    folder.write("assets/app.2.js", &page("two"));
    difference(&mut peer, "/assets/app.2.js", &page("one"), &page("two"));
    // The former bundle stands no longer on the disk.
    std::fs::remove_file(folder.path().join("assets/app.1.js")).unwrap();
    while peer.get("/assets/app.1.js").code != 404 {
        // tidy: allow(clock): a test waits for background threads.
        std::thread::sleep(Duration::from_millis(5));
    }
    folder.write("assets/app.3.js", &page("three"));
    difference(&mut peer, "/assets/app.3.js", &page("one"), &page("three"));
    difference(&mut peer, "/assets/app.3.js", &page("two"), &page("three"));
    assert_eq!(peer.get("/other.js").field("Use-As-Dictionary"), None);
}

#[test]
fn refused_requests_get_the_usual_answer() {
    let folder = Folder::new();
    folder.write("page.html", &page("only"));
    folder.write("shared.html", &page("only"));
    let cors = Cors { origins: vec!["https://a.example".to_owned()], ..Cors::default() };
    let shared =
        PathRule { pattern: "/shared.html".to_owned(), cors: Some(Some(cors)), ..PathRule::default() };
    let mut peer = Peer::with(config(&folder, vec![rule("/*", Dictionary::Own), shared]));
    let body = page("only");
    peer.settle();
    difference(&mut peer, "/page.html", &body, &body);
    difference(&mut peer, "/shared.html", &body, &body);
    let cross = ("Sec-Fetch-Site", "cross-site");
    let cors = ("Sec-Fetch-Mode", "cors");
    let hash = Hash::of(&body).to_field();
    let (no_padding, twice) = (hash.replace("=:", ":"), format!("{hash}, {hash}"));
    let [hash, no_padding, twice] = [&hash, &no_padding, &twice].map(String::as_str);
    let refused: [&[(&str, &str)]; 12] = [
        &[("Accept-Encoding", "gzip, br, zstd")],
        &[("Accept-Encoding", "br, dcz;q=0")],
        &[("Accept-Encoding", "br, *")],
        &[("Accept-Encoding", "br, dcb")],
        &[("Available-Dictionary", no_padding)],
        &[("Available-Dictionary", twice)],
        &[("Available-Dictionary", hash), ("Available-Dictionary", hash)],
        &[("Available-Dictionary", "pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=")],
        &[cross, ("Sec-Fetch-Mode", "no-cors")],
        &[cross, cors],
        &[cross, cors, ("Origin", "https://a.example")],
        &[("Range", "bytes=0-9")],
    ];
    for fields in refused {
        let response = ask(&mut peer, "/page.html", &body, fields);
        assert!(
            !is_difference(&response) && matches!(response.code, 200 | 206),
            "{fields:?}: {}",
            response.head
        );
        assert!(response.code == 206 || response.field("Use-As-Dictionary").is_some());
        assert_eq!(response.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
    }
    let given: [(&str, &[(&str, &str)]); 3] = [
        ("/page.html", &[("Sec-Fetch-Site", "same-origin"), cors]),
        ("/page.html", &[cross, ("Sec-Fetch-Mode", "navigate")]),
        ("/shared.html", &[cross, cors, ("Origin", "https://a.example")]),
    ];
    for (target, fields) in given {
        assert!(is_difference(&ask(&mut peer, target, &body, fields)), "{fields:?}");
    }
    assert!(!is_difference(&ask(
        &mut peer,
        "/shared.html",
        &body,
        &[cross, cors, ("Origin", "https://b.example")]
    )));
    let fields = [ACCEPTED, ("Available-Dictionary", hash)];
    assert!(
        !is_difference(&peer.ask_host("example", "GET", "/page.html", &fields)),
        "plain HTTP to another host"
    );
}

#[test]
fn what_is_not_for_everybody_is_no_dictionary() {
    let folder = Folder::new();
    for name in ["secret.html", "inside.html", "fresh.html", "off.html"] {
        folder.write(name, &page("only"));
    }
    let for_path = |pattern: &str| PathRule { pattern: pattern.to_owned(), ..PathRule::default() };
    let auth = BasicAuth {
        realm: "r".to_owned(),
        users: [("a".to_owned(), HASH.to_owned())].into(),
        users_file: None,
    };
    let paths = vec![
        rule("/*", Dictionary::Own),
        PathRule { basic_auth: Some(Some(auth)), ..for_path("/secret.html") },
        PathRule { allow: Some(vec![("127.0.0.1".parse().unwrap(), 8)]), ..for_path("/inside.html") },
        PathRule { cache_control: Some("no-cache".to_owned()), ..for_path("/fresh.html") },
        PathRule { dictionary: Some(None), ..for_path("/off.html") },
    ];
    let mut peer = Peer::with(config(&folder, paths));
    for target in ["/secret.html", "/inside.html", "/fresh.html", "/off.html"] {
        let response = ask(&mut peer, target, &page("only"), &[("Authorization", "Basic YTpi")]);
        assert_eq!(response.field("Use-As-Dictionary"), None, "{target}");
        assert!(!response.head.contains("Available-Dictionary"), "{target}: {}", response.head);
    }
    assert_eq!(figures(&peer).dictionary.unwrap().asked, 0);
}

/// The bcrypt hash of the password `staunch`.
const HASH: &str = "$2b$04$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW";

#[test]
fn conditions_are_told_of_the_content() {
    let folder = Folder::new();
    let (first, second) = (page("first"), page("second"));
    folder.write("page.html", &first);
    let mut peer = own(&folder);
    let old_tag = ask(&mut peer, "/page.html", b"nothing", &[]).field("ETag").unwrap().to_owned();
    folder.write("page.html", &second);
    let told = difference(&mut peer, "/page.html", &first, &second);
    peer.settle();
    let tag = told.field("ETag").unwrap().to_owned();
    let usual = peer.get_with("/page.html", &[ACCEPTED]);
    let usual_tag = usual.field("ETag").unwrap().to_owned();
    assert!(tag.contains("-dcz-") && tag != usual_tag);
    // A client that has the content has it, whichever dictionary is at hand, and whether any is.
    for tag in [tag.as_str(), usual_tag.as_str()] {
        for dictionary in [&first, &second] {
            let unchanged = ask(&mut peer, "/page.html", dictionary, &[("If-None-Match", tag)]);
            assert_eq!((unchanged.code, unchanged.field("ETag")), (304, Some(tag)), "{}", unchanged.head);
            assert_eq!(unchanged.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
            assert_eq!(unchanged.field("Use-As-Dictionary"), None);
        }
        assert_eq!(peer.get_with("/page.html", &[ACCEPTED, ("If-None-Match", tag)]).code, 304);
    }
    let changed = ask(&mut peer, "/page.html", &first, &[("If-None-Match", &old_tag)]);
    assert!(is_difference(&changed) && changed.code == 200);
    let hash = Hash::of(&first).to_field();
    let head = peer.ask_host("localhost", "HEAD", "/page.html", &[ACCEPTED, ("Available-Dictionary", &hash)]);
    assert_eq!((head.field("Content-Encoding"), head.body.len()), (Some("dcz"), 0));
    assert_eq!(head.field("Content-Length"), told.field("Content-Length"));
}

#[test]
fn a_folder_page_is_a_dictionary_for_both_its_paths() {
    let folder = Folder::new();
    folder.write("index.html", &page("first"));
    let mut peer = own(&folder);
    assert_eq!(peer.get("/").field("Use-As-Dictionary"), Some("match=\"/{index.html}?\""));
    folder.write("index.html", &page("second"));
    difference(&mut peer, "/", &page("first"), &page("second"));
    difference(&mut peer, "/index.html", &page("first"), &page("second"));
}

#[test]
fn what_gains_nothing_is_tried_once() {
    let folder = Folder::new();
    folder.write("short.txt", b"short");
    let mut peer = own(&folder);
    peer.settle();
    let before = figures(&peer).held_bytes;
    assert!(!is_difference(&ask(&mut peer, "/short.txt", b"short", &[])));
    peer.settle();
    let after = figures(&peer).held_bytes;
    assert!(after > before, "it is noted that it gains nothing");
    for _ in 0..10 {
        assert!(!is_difference(&ask(&mut peer, "/short.txt", b"short", &[])));
    }
    peer.settle();
    assert_eq!(figures(&peer).held_bytes, after);
}

#[test]
fn versions_give_way_before_what_is_asked_for() {
    let folder = Folder::new();
    let names: Vec<_> = (0..20).map(|number| format!("{number}.html")).collect();
    for name in &names {
        folder.write(name, &page("first"));
    }
    let said = || SiteConfig {
        encodings: vec![Encoding::Gzip],
        ..config(&folder, vec![rule("/*", Dictionary::Own)])
    };
    let roomy = Peer::with(said());
    roomy.settle();
    let pages = figures(&roomy);
    // Room for an eighth more, and versions may take a quarter of all.
    let budget = pages.held_bytes / 8 * 9;
    let mut peer = Peer::with(SiteConfig { cache_bytes_max: budget, ..said() });
    for round in ["first", "second", "third", "fourth", "fifth"] {
        for name in &names {
            folder.write(name, &page(round));
            let target = format!("/{name}");
            while peer.get(&target).body != page(round) {
                // tidy: allow(clock): a test waits for background threads.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        assert!(figures(&peer).held_bytes <= budget);
    }
    peer.settle();
    for name in &names {
        assert!(peer.get(&format!("/{name}")).body == page("fifth"));
    }
    assert!(figures(&peer).prepared >= 20, "no version took the place of a page");
}

#[test]
fn a_dictionary_that_nobody_keeps_is_refused() {
    let folder = Folder::new();
    let said = PathRule { cache_control: Some("no-cache".to_owned()), ..rule("/a", Dictionary::Own) };
    let error = crate::SitesShared::open(vec![config(&folder, vec![said])]).map(drop).unwrap_err();
    assert!(error.to_string().contains("path \"/a\": dictionary: no browser keeps one"), "{error}");
}

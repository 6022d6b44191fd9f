//! The demo site and the listings.
//!
//! It owns the tree that is served and the start of `check.mjs`, which opens the pages and judges them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use staunch_tests::process::{Server, binary};

use crate::chromium::{self, Browser, browser, repository};

/// Names that a listing could get wrong. Each is also the content of its file.
const NAMES: [&[u8]; 19] = [
    b"plain.txt",
    b"a b c.txt",
    b"?sort=size",
    b"#fragment.md",
    b"a:b",
    b"javascript:mistake=1",
    b"<img src=x onerror=mistake=1>.html",
    b"<script>mistake=1<%2fscript>",
    b"\"quotes\" & 'more'.txt",
    b"&amp;&lt;.txt",
    b"100%.txt",
    b"%2e%2e",
    b"back\\slash",
    b" spaces  here ",
    b"line\nbreak.txt",
    b"\xFF\xFE not text.bin",
    "Gr\u{FC}\u{DF}e.txt".as_bytes(),
    "turned\u{202E}gpj.exe".as_bytes(),
    b"a-name-without-any-place-to-break-it-that-is-longer-than-the-screen-of-a-telephone-is-wide.tar.gz",
];

#[test]
fn pages_in_a_browser() {
    let Some(browser) = browser() else { return };
    let tree = Tree::new("site").expect("a copy of the demo site");
    tree.add_names().expect("files of odd names");
    let count = NAMES.len().to_string();
    let what =
        ["--status", "--live", "--listing", "/files/", "--listing", "/names/", "--names", "/names/", &count];
    let verdict = check(&browser, &tree, "browser", &what);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stderr));
}

#[test]
fn pages_of_live_data_say_that_there_is_none() {
    let Some(browser) = browser() else { return };
    let tree = Tree::new("site").expect("a copy of the demo site");
    let verdict = check(&browser, &tree, "browser-without-live", &["--status"]);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stderr));
}

/// Visits of each engine, by tabs that share its one worker; `STAUNCH_VISITS` makes it a long run.
const VISITS: &str = "40";
const WANDERED: [&str; 7] =
    ["/", "/headers.html", "/files/", "/names/", "/names/?sort=size", "/files/old%20maps/", "/nothing-here"];

#[test]
fn a_page_never_shows_another() {
    let Some(browser) = browser() else { return };
    let visits = std::env::var("STAUNCH_VISITS").unwrap_or_else(|_| VISITS.to_owned());
    for io in ["epoll", "uring"] {
        let tree = Tree::new("site").expect("a copy of the demo site");
        tree.add_names().expect("files of odd names");
        let verdict = wander(&browser, &tree, io, &visits, &WANDERED);
        println!("{io}: {}", String::from_utf8_lossy(&verdict.stdout).trim());
        assert!(verdict.status.success(), "{io}: {}", String::from_utf8_lossy(&verdict.stderr));
    }
}

/// A page that is the same under two addresses, and one that is not what was fetched, are both found.
#[test]
fn wandering_finds_the_mistakes_of_a_canary() {
    let Some(browser) = browser() else { return };
    let tree = Tree::new("tests/browser/canary").expect("a copy of the canary");
    let hidden = "<title>one</title><!-- <a href=\"/\">a link that no browser shows</a> -->";
    fs::write(tree.root.join("hidden.html"), hidden).expect("a page");
    let verdict = wander(&browser, &tree, "epoll", "60", &["/", "/index.html", "/hidden.html"]);
    assert_eq!(verdict.status.code(), Some(1));
    let mistakes = String::from_utf8_lossy(&verdict.stderr);
    assert!(mistakes.contains("its picture is that of /"), "{mistakes}");
    assert!(mistakes.contains("/hidden.html: shows "), "{mistakes}");
}

fn wander(browser: &Browser, tree: &Tree, io: &str, visits: &str, paths: &[&str]) -> Output {
    let server = Server::start(&tree.root, &["--listing", "on", "--io", io]);
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let mut words: Vec<OsString> = vec![server.url().into(), tree.root.clone().into()];
    words.extend([visits, "1"].iter().chain(paths).map(OsString::from));
    browser.run("wander.mjs", &words)
}

#[test]
fn the_check_finds_the_mistakes_of_a_canary() {
    let Some(browser) = browser() else { return };
    let tree = Tree::new("tests/browser/canary").expect("a copy of the canary");
    let verdict = check(&browser, &tree, "browser-canary", &[]);
    assert_eq!(verdict.status.code(), Some(1));
    let mistakes = String::from_utf8_lossy(&verdict.stderr);
    for wanted in [
        "/ narrow-dark: is 7",
        "/ wide-light: faint text: P Faint text 1.6",
        "/ wide-light: console: a complaint",
        "/ wide-light: console: ReferenceError: nothing is not defined",
        "does not show that it has the focus",
        "the tabulator reached",
        "/dead is answered with 404",
        "does not tell its story",
    ] {
        assert!(mistakes.contains(wanted), "no word of `{wanted}` in:\n{mistakes}");
    }
}

/// Serves the tree and lets the script look at it; its pictures are put into `pictures`.
fn check(browser: &Browser, tree: &Tree, pictures: &str, what: &[&str]) -> Output {
    let mut arguments = vec!["--listing", "on"];
    if what.contains(&"--status") {
        arguments.extend(["--status", "/status.json"]);
    }
    if what.contains(&"--live") {
        arguments.extend(["--live", "on", "--publish-token", TOKEN]);
    }
    let server = Server::start(&tree.root, &arguments).unwrap_or_else(|error| panic!("{error}"));
    let _publisher = what.contains(&"--live").then(|| Publisher::start(&server.url()));
    let mut words = vec![server.url().into(), chromium::pictures(pictures).into_os_string()];
    words.extend(what.iter().map(OsString::from));
    browser.run("check.mjs", &words)
}

/// The secret of the demonstration's publisher.
const TOKEN: &str = "a-secret-of-at-least-thirty-two-bytes";

/// The demonstration; ended on drop.
struct Publisher(Child);

impl Publisher {
    fn start(url: &str) -> Self {
        let mut command = Command::new(binary());
        command.args(["publish", "--demo", "--to", url]).env("STAUNCH_PUBLISH_TOKEN", TOKEN);
        Self(command.stdin(Stdio::null()).spawn().expect("a publisher"))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A copy of a folder of the repository, to be served; gone at the end.
struct Tree {
    root: PathBuf,
}

impl Tree {
    fn new(from: &str) -> io::Result<Self> {
        // Tests of one process run at the same time, each with a tree of its own.
        static TREES: AtomicU32 = AtomicU32::new(0);
        let number = TREES.fetch_add(1, Relaxed);
        let name = format!("staunch-browser-{}-{}-{number}", from.replace('/', "-"), std::process::id());
        let tree = Self { root: std::env::temp_dir().join(name) };
        copy(&repository().join(from), &tree.root)?;
        Ok(tree)
    }

    fn add_names(&self) -> io::Result<()> {
        let names = self.root.join("names");
        fs::create_dir(&names)?;
        for name in NAMES {
            fs::write(names.join(OsStr::from_bytes(name)), name)?;
        }
        Ok(())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.root));
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

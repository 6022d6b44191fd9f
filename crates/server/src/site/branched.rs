//! A folder below a path, beside the rules that meet it: driven through real sessions, with a store and
//! without.

use std::path::Path;

use super::testing::Peer;
use crate::content::testing::Folder;
use crate::{Attempts, PathRule, Scripts, SiteConfig, SiteRules};

fn media(folder: &Path) -> PathRule {
    PathRule { pattern: "/media/*".into(), folder: Some(folder.into()), ..PathRule::default() }
}

fn site(root: &Folder, rules: SiteRules) -> SiteConfig {
    let hosts = vec!["example".to_owned()];
    SiteConfig { root: root.path().into(), hosts, rules, listing: false, ..SiteConfig::default() }
}

fn peers(config: SiteConfig) -> [Peer; 2] {
    [Peer::with(config.clone()), Peer::with(SiteConfig { no_cache: true, ..config })]
}

/// A root and the folder beside it.
fn folders() -> (Folder, Folder) {
    let (root, below) = (Folder::new(), Folder::new());
    root.write("index.html", b"home");
    root.write("media/a.html", b"never");
    below.write("a.html", b"a");
    below.write("sub/index.html", b"index");
    below.write("upload.php", b"<?php source");
    below.write("scripts/index.php", b"<?php source");
    below.write("scripts/index.html", b"page");
    (root, below)
}

#[test]
fn what_is_tried_and_what_answers_for_errors_is_found_in_it() {
    let (root, below) = folders();
    let paths = ["$path", "$path.html", "/media/a.html"].map(str::to_owned).to_vec();
    let rules = SiteRules {
        attempts: Some(Attempts { paths, status: 404 }),
        paths: vec![media(below.path())],
        ..SiteRules::default()
    };
    for mut peer in peers(site(&root, rules)) {
        for (target, text) in
            [("/media/a", "a"), ("/media/sub/", "index"), ("/nothing", "a"), ("/", "home"), ("/media/a", "a")]
        {
            assert_eq!(peer.get(target).text(), text, "{target}");
        }
    }
    let error_pages = [(404, "/media/a.html".to_owned())].into();
    let rules = SiteRules { error_pages, paths: vec![media(below.path())], ..SiteRules::default() };
    for mut peer in peers(site(&root, rules)) {
        let response = peer.get("/none");
        assert_eq!((response.code, response.text()), (404, "a"));
    }
}

#[test]
fn scripts_in_it_are_neither_run_nor_shown() {
    let (root, below) = folders();
    let scripts = Some(Scripts { index: "index.php".into(), far_root: None });
    let rules = SiteRules { scripts, paths: vec![media(below.path())], ..SiteRules::default() };
    let index = vec!["index.php".to_owned(), "index.html".to_owned()];
    for mut peer in peers(SiteConfig { index, ..site(&root, rules) }) {
        assert_eq!(peer.get("/media/upload.php").code, 404);
        assert_eq!(peer.get("/media/scripts/index.php").code, 404);
        assert_eq!(peer.get("/media/scripts/").text(), "page");
        assert_eq!(peer.get("/media/a.html").text(), "a");
    }
}

#[test]
fn its_files_are_prepared_before_they_are_asked_for() {
    let (root, below) = folders();
    let rules = SiteRules { paths: vec![media(below.path())], ..SiteRules::default() };
    let peer = Peer::with(site(&root, rules));
    peer.settle();
    // The home page, and all five files of the folder, though the root has one of that name.
    let progress = peer.shared.progress();
    assert_eq!(progress.files, 6, "{progress:?}");
}

#[test]
fn a_site_goes_on_while_its_folders_are_what_they_were() {
    let (root, below) = folders();
    let rules = SiteRules { paths: vec![media(below.path())], ..SiteRules::default() };
    let config = site(&root, rules);
    let mut peer = Peer::with(config.clone());
    assert_eq!(peer.get("/media/a.html").text(), "a");
    assert_eq!(peer.shared.prepare(vec![config.clone()]).unwrap().commit().kept, 1);
    let away = below.path().with_extension("away");
    std::fs::rename(below.path(), &away).unwrap();
    below.write("a.html", b"anew");
    assert_eq!(peer.shared.prepare(vec![config]).unwrap().commit().opened, 1);
    assert_eq!(peer.get("/media/a.html").text(), "anew");
    std::fs::remove_dir_all(away).unwrap();
}

#[test]
fn a_folder_that_is_not_there_closes_its_paths_alone() {
    let (root, below) = folders();
    let rules = SiteRules { paths: vec![media(&below.path().join("none"))], ..SiteRules::default() };
    for mut peer in peers(site(&root, rules)) {
        assert_eq!(peer.get("/").text(), "home");
        for target in ["/media/a.html", "/media/", "/media"] {
            assert_eq!(peer.get(target).code, 503, "{target}");
        }
        let troubles = peer.shared.troubles();
        assert!(
            matches!(&troubles[..], [one] if one.starts_with("site example: /media/*: ")),
            "{troubles:?}"
        );
    }
}

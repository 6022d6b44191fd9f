//! A page that changes, fetched by a browser that tells which version it has.
//!
//! This file owns the server and the start of `differences.mjs`, which changes the page and counts bytes.

use std::fs;

use staunch_tests::process::{Server, key_hash, serve_by};
use staunch_tests::tree::Tree;

use crate::chromium::browser;

#[test]
fn a_browser_gets_a_changed_page_as_the_difference() {
    let Some(browser) = browser() else { return };
    for io in ["epoll", "uring"] {
        let (tree, settings) = (Tree::new().expect("a folder"), Tree::new().expect("a folder"));
        let root = tree.root().display();
        let text = format!("root = \"{root}\"\n[[path]]\nmatch = \"/page.html\"\ndictionary = true\n");
        let config = settings.root().join("staunch.toml");
        fs::write(&config, text).expect("a file of ours");
        fs::write(tree.root().join("index.html"), "<title>fetches</title>").expect("a file of ours");
        let mut command = serve_by(&config);
        command.args([
            "--io",
            io,
            "--tls",
            "local",
            "--tls-listen",
            "127.0.0.1:0",
            "--https-redirect",
            "off",
        ]);
        command.arg("--state-folder").arg(settings.root().join("state"));
        let server = Server::spawn(&mut command).unwrap_or_else(|error| panic!("{error}"));
        let address = server.secured_address();
        let url = format!("https://localhost:{}", address.port());
        let words = [url.into(), tree.root().join("page.html").into_os_string(), key_hash(address).into()];
        let verdict = browser.run("differences.mjs", &words);
        println!("{io}: {}", String::from_utf8_lossy(&verdict.stdout).trim());
        assert!(verdict.status.success(), "{io}: {}", String::from_utf8_lossy(&verdict.stderr));
    }
}

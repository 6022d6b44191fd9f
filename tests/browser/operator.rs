//! The operator's page of a server, on its admin address.
//!
//! This file owns the server and the start of `operator.mjs`, which opens the page and judges it.

use std::process::Command;

use staunch_tests::process::{Server, binary};
use staunch_tests::tree::Tree;

use crate::chromium::{browser, pictures};

#[test]
fn the_operators_page_lives_and_loads_nothing_else() {
    let Some(browser) = browser() else { return };
    let tree = Tree::new().expect("a folder");
    let mut command = Command::new(binary());
    command.arg("serve").arg(tree.root()).args([
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--live",
        "on",
    ]);
    let server = Server::spawn(&mut command).expect("a server");
    let url = format!("http://{}", server.admin_address());
    let words = [url.into(), pictures("browser").into_os_string()];
    let verdict = browser.run("operator.mjs", &words);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stderr));
}

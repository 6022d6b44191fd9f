//! A real browser: a page with many objects over HTTPS.

use std::fs;
use std::process::Command;

use staunch_tests::process::is_installed;

use crate::world::{BACKENDS, House, run, text};

/// The hash by which a browser is told to trust a key.
fn key_hash(house: &House) -> String {
    let script = "openssl x509 -in \"$1\" -pubkey -noout | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -binary | base64";
    let mut command = Command::new("sh");
    text(run(command.args(["-c", script, "sh"]).arg(house.path("server.pem")))).trim().to_owned()
}

#[test]
fn a_browser_shows_a_page_of_a_hundred_objects() {
    let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    if !is_installed(&program) || !is_installed("openssl") {
        return;
    }
    let house = House::new();
    let mut page = String::from("<!doctype html><title>page</title><body>");
    for number in 0..100 {
        let script = format!("document.body.dataset.n = (document.body.dataset.n | 0) + 1; // {number}\n");
        fs::write(house.tree.root().join(format!("{number}.js")), script).expect("a file");
        page.push_str(&format!("<script src=\"/{number}.js\"></script>"));
    }
    fs::write(house.tree.root().join("index.html"), page).expect("a file");
    let hash = key_hash(&house);
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        let profile = house.path(&format!("profile-{backend}"));
        let mut command = Command::new(&program);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]);
        command.arg(format!("--ignore-certificate-errors-spki-list={hash}"));
        command.arg(format!("--user-data-dir={}", profile.display()));
        let dom = text(run(command.args(["--dump-dom", &secured.url("/")])));
        assert!(dom.contains("data-n=\"100\""), "{backend}: {dom}");
    }
}

//! A real browser: a page with many objects over HTTPS, with keys exchanged by X25519MLKEM768.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::is_installed;

use crate::world::{BACKENDS, House, Secured, curl, run, start, text};

/// The hash by which a browser is told to trust a key.
fn key_hash(house: &House) -> String {
    let script = "openssl x509 -in \"$1\" -pubkey -noout | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -binary | base64";
    let mut command = Command::new("sh");
    text(run(command.args(["-c", script, "sh"]).arg(house.path("server.pem")))).trim().to_owned()
}

fn program() -> String {
    std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned())
}

fn can_browse() -> bool {
    is_installed(&program()) && is_installed("openssl") && is_installed("curl")
}

/// The page at `/` as the browser has it in the end.
fn browse(house: &House, secured: &Secured, backend: &str) -> String {
    let profile = house.path(&format!("profile-{backend}"));
    let mut command = Command::new(program());
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ]);
    command.arg(format!("--ignore-certificate-errors-spki-list={}", key_hash(house)));
    command.arg(format!("--user-data-dir={}", profile.display()));
    text(run(command.args(["--dump-dom", &secured.url("/")])))
}

/// Full handshakes of TLS 1.3, and all those by X25519MLKEM768.
fn full_and_hybrid(house: &House, admin: SocketAddr) -> (u64, u64) {
    let metrics = text(run(curl(house).arg(format!("http://{admin}/metrics"))));
    let value_of = |name: &str| {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_else(|| panic!("{name}: {metrics}")).trim().parse().expect("a number")
    };
    let full = value_of("staunch_tls_handshakes_total{version=\"1.3\",kind=\"full\"}");
    (full, value_of("staunch_tls_handshakes_hybrid_total"))
}

#[test]
fn a_browser_shows_a_page_of_a_hundred_objects() {
    if !can_browse() {
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
    for backend in BACKENDS {
        let admin = reserved_address();
        let Some(secured) = house.serve(backend, &[&format!("--admin={admin}")]) else { continue };
        let dom = browse(&house, &secured, backend);
        assert!(dom.contains("data-n=\"100\""), "{backend}: {dom}");
        let (full, hybrid) = full_and_hybrid(&house, admin);
        assert!(full > 0 && hybrid >= full, "{backend}: {hybrid} of {full} by X25519MLKEM768");
    }
}

#[test]
fn a_browser_goes_on_by_another_group_where_the_hybrid_is_off() {
    if !can_browse() {
        return;
    }
    let house = House::new();
    fs::write(house.tree.root().join("index.html"), "<!doctype html><title>page</title>here")
        .expect("a file");
    let settings = house.path("staunch.toml");
    fs::write(&settings, "tls_hybrid = false\n").expect("a file");
    let admin = reserved_address();
    let mut command = house.command("epoll");
    command.arg("--config").arg(&settings).arg(format!("--admin={admin}"));
    let secured = start(&mut command).expect("epoll is everywhere");
    assert!(browse(&house, &secured, "off").contains("here"));
    let (full, hybrid) = full_and_hybrid(&house, admin);
    assert!(full > 0 && hybrid == 0, "{hybrid} of {full} by X25519MLKEM768");
}

//! A browser whose page has WebSockets: they come by the connection that the page came by.
//!
//! A missing program is named, and is a failure when `CI` is true.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use staunch_tests::house::waiting::{HANG, until};
use staunch_tests::process::{is_installed, key_hash};

use crate::client::{Client, DATA, END_STREAM, frame, request};
use crate::hints::Application;
use crate::world::{ENGINES, World};

const SETTINGS: &str =
    "live = true\nlive_echo = true\npublish_token = \"0123456789abcdef0123456789abcdef\"\n";

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("http2").join(name)
}

/// Arguments of a server that browsers can speak HTTP/2 with.
const SECURED: [&str; 8] = [
    "--tls",
    "local",
    "--tls-listen",
    "127.0.0.1:0",
    "--https-redirect",
    "off",
    "--state-folder",
    "{}/state",
];

/// The browser, if it is there with what drives it.
fn chromium() -> Option<String> {
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    (is_installed(&chromium) && is_installed("node") && is_installed("openssl")).then_some(chromium)
}

/// A browser that plays the page; it is ended on drop.
struct Player(Child);

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_page_with_websockets_uses_one_connection() {
    let Some(chromium) = chromium() else { return };
    for io in ENGINES {
        let world = World::with_settings(io, SETTINGS, &SECURED);
        std::fs::copy(script("sockets.html"), world.tree.root().join("sockets.html"))
            .expect("a file of ours");
        let url = format!("https://{}", world.secured_address());
        let mut node = Command::new("node");
        node.arg(script("browser.mjs"))
            .arg(url)
            .arg(key_hash(world.secured_address()))
            .env("CHROMIUM", &chromium);
        let child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node");
        let mut player = Player(child);
        let mut lines = BufReader::new(player.0.stdout.take().expect("a pipe")).lines();
        let mut line = || lines.next().expect("another line").expect("text");
        assert_eq!(line(), "loaded", "{io}");
        // The browser may have made a spare one for its page.
        let before = world.metric("staunch_http2_connections_total");
        writeln!(player.0.stdin.take().expect("a pipe"), "begin").expect("a page that waits");
        assert_eq!(line(), "open", "{io}");
        assert_eq!(world.metric("staunch_http2_websockets_total"), 2, "{io}");
        assert_eq!(world.metric("staunch_http2_connections_total"), before, "{io}: the page's own");
        let mut client = Client::new(world.address());
        let fields =
            [("authorization", "Bearer 0123456789abcdef0123456789abcdef"), ("content-type", "text/plain")];
        client.send(&request(1, false, "PUT", "/topics/a", &fields));
        client.send(&frame(DATA, END_STREAM, 1, b"news"));
        assert_eq!(client.reply(1).status, 200, "{io}");
        let sizes: Vec<String> = (0..16)
            .map(|number| if number == 0 { 0 } else { 1 << number })
            .map(|size: u32| size.to_string())
            .collect();
        assert_eq!(line(), format!("echoed {}", sizes.join(",")), "{io}");
        assert_eq!(line(), "seen news", "{io}");
        assert_eq!(line(), "closed 1000 true,1000 true", "{io}");
        world.until_metric("staunch_live_readers{transport=\"websocket\"}", 0);
        assert!(lines.next().is_none(), "{io}: complaints");
    }
}

/// The page is answered only when the browser has asked for the style that early hints told it of.
#[test]
fn a_browser_fetches_what_it_is_told_of_early() {
    const PAGE: &str = "<!doctype html><link rel=icon href=data:,><link rel=stylesheet href=/style.css>told";
    let Some(chromium) = chromium() else { return };
    for io in ENGINES {
        let application = Application::new("text/html", PAGE);
        let settings = format!(
            "[[path]]\nmatch = \"/page\"\nproxy = \"{}\"\n\
             early_hints = [\"</style.css>; rel=preload; as=style\"]\n",
            application.address
        );
        let world = World::with_settings(io, &settings, &SECURED);
        let style = world.tree.root().join("style.css");
        std::fs::write(style, "body { color: rgb(1, 2, 3) }").expect("a file of ours");
        let mut node = Command::new("node");
        let url = format!("https://{}/page", world.secured_address());
        node.arg(script("hinted.mjs"))
            .arg(url)
            .arg(key_hash(world.secured_address()))
            .env("CHROMIUM", &chromium);
        let child = node.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("node");
        let mut player = Player(child);
        application.asked.recv_timeout(HANG).expect("a request");
        until("the style is asked for", || world.metric("staunch_http2_requests_total") >= 2);
        application.go.send(()).expect("an application");
        let mut lines = BufReader::new(player.0.stdout.take().expect("a pipe")).lines();
        let line = lines.next().expect("a line").expect("text");
        assert_eq!(line, "rgb(1, 2, 3)", "{io}");
    }
}

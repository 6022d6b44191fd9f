//! Connections that khttpd hands over: to a small process at its device, and to the server as shipped.

use std::path::PathBuf;
use std::sync::OnceLock;

use staunch_tests::process::binary;

use crate::guest::{Guest, KHTTPD_MODES, compiled};
use crate::{is_possible, series_with_headers, series_with_modules};

/// The program that takes connections at the device. It is made once, because tests run side by side.
pub(crate) fn process() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("handover")).clone()
}

/// What the script says in each mode: first and last line of each answer. The process answers with what it
/// has read: the whole request, and nothing before it.
const SAID: [&str; 21] = [
    "nobody: HTTP/1.1 503 Service Unavailable||",
    "nobody, a file: HTTP/1.1 200 OK|hello|",
    "body: HTTP/1.1 200 OK|abc|",
    "/api: HTTP/1.1 200 OK||",
    "/api/x: HTTP/1.1 200 OK||",
    "/live/x: HTTP/1.1 200 OK||",
    "/x/../%%61pi/y: HTTP/1.1 200 OK||",
    "/apis: HTTP/1.1 404 Not Found|</html>|",
    "/live: HTTP/1.1 404 Not Found|</html>|",
    "/a.txt: HTTP/1.1 200 OK|hello|",
    "upgrade: HTTP/1.1 200 OK||",
    "behind: HTTP/1.1 200 OK|hello|HTTP/1.1 200 OK|POST /a.txt HTTP/1.1|abc|",
    "handed_over 8 ",
    "many: HTTP/1.1 200 OK||",
    "died: ",
    "is held",
    "nobody any more: HTTP/1.1 503 Service Unavailable||",
    "slowly: HTTP/1.1 200 OK||",
    "slowly, a file: HTTP/1.1 200 OK|hello|",
    "none took it: HTTP/1.1 503 Service Unavailable||",
    "unloaded",
];

/// Lines that `behind.sh` must print before anything is served.
const REFUSED: [&str; 3] = [
    "not loaded: behind_khttpd: khttpd is not loaded: load it by `staunch kernel load --root HERE/www \
     hand_over=`",
    "without hand_over: behind_khttpd: cannot open /dev/khttpd: khttpd hands nothing over: load it by \
     `staunch kernel load --root HERE/www hand_over=`",
    "another folder: behind_khttpd: khttpd serves HERE/other and this server HERE/www; both must give one \
     site",
];

/// Lines that it must print for each way of the server to the network. A connection that is handed over
/// brings its address along.
const SAID_BEHIND: [&str; 12] = [
    "nobody: HTTP/1.1 503 Service Unavailable||",
    "a file: HTTP/1.1 200 OK|hello|",
    "a body: HTTP/1.1 200 OK",
    "a path: HTTP/1.1 200 OK|abc|",
    "both: HTTP/1.1 200 OK|hello|HTTP/1.1 200 OK|abc|",
    "large: 0",
    "crowd: 40",
    "handed_over 44",
    "from 127.0.0.1",
    "upgraded: HTTP/1.1 200 OK",
    "nobody any more: HTTP/1.1 503 Service Unavailable||",
    "unloaded",
];

/// Ways to the network under a kernel, and the engine that serves by each.
fn ways(series: &str) -> &'static [(&'static str, &'static str)] {
    match series {
        "newest" => &[("auto", "io_uring"), ("epoll", "epoll")],
        _ => &[("auto", "epoll")],
    }
}

/// For `make soak`: each takes a minute of processors and more, for a server that is rarely asked for. In
/// each landing khttpd hands over under strain.
mod in_depth {
    use super::*;

    #[test]
    fn the_server_serves_what_khttpd_does_not() {
        if !is_possible() {
            return;
        }
        for series in series_with_modules("newest") {
            let guest = Guest { series, modules: &["khttpd"], programs: &[binary()], words: &[] };
            let names: Vec<&str> = ways(series).iter().map(|(way, _)| *way).collect();
            let script = format!("ways='{}'\n{}", names.join(" "), include_str!("behind.sh"));
            let said = guest.say(&script);
            said.has_all("", &REFUSED);
            said.has("  khttpd       what it does not serve, by /dev/khttpd");
            for (way, engine) in ways(series) {
                said.has(&format!("{way}: engine       {engine}"));
                said.has_all(&format!("{way} "), &SAID_BEHIND);
            }
        }
    }

    #[test]
    fn khttpd_hands_over_what_it_does_not_serve() {
        if !is_possible() {
            return;
        }
        for series in series_with_headers("6.12") {
            let guest = Guest { series, modules: &["khttpd"], programs: &[process()], words: &[] };
            let said = guest.say(include_str!("handover.sh"));
            said.has("plain: HTTP/1.1 405 Method Not Allowed|</html>|");
            said.has("no path: refused");
            for mode in KHTTPD_MODES {
                said.has_all(&format!("{mode} "), &SAID);
            }
            assert_eq!(said.count("none left: told"), 4, "{said}");
            for fault in ["a descriptor that", "nothing to read", "not written"] {
                assert!(!said.out.contains(fault), "{said}");
            }
        }
    }
}

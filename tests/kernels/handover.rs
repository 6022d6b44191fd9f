//! Connections that khttpd hands over: to a small process at its device, and to the server as shipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use staunch_tests::process::binary;

use crate::modules::{Guest, said};
use crate::{SERIES_WITH_HEADERS, is_possible};

/// The program that takes connections at the device: static, for the machine has no libraries.
pub(crate) fn process() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("handover");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-static"])
        .arg(format!("-I{}", here.join("../kernel/khttpd").display()))
        .arg(here.join("kernels/handover.c"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
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

#[test]
fn khttpd_hands_over_what_it_does_not_serve() {
    if !is_possible() {
        return;
    }
    for series in SERIES_WITH_HEADERS {
        let guest = Guest { series, modules: &["khttpd"], programs: &[process()], words: &[] };
        let output = guest.run(include_str!("handover.sh"));
        let (out, error) = said(&output);
        assert!(output.status.success(), "{series}: {out}{error}");
        let has = |line: &str| {
            assert!(out.lines().any(|said| said == line), "{series}: no {line:?} in\n{out}{error}")
        };
        has("plain: HTTP/1.1 405 Method Not Allowed|</html>|");
        has("no path: refused");
        for mode in ["kthread", "wq", "ready", "softirq"] {
            SAID.iter().for_each(|line| has(&format!("{mode} {line}")));
        }
        let told = out.lines().filter(|line| *line == "none left: told").count();
        assert_eq!(told, 4, "{series}: {out}{error}");
        for fault in ["a descriptor that blocks", "nothing to read", "not written"] {
            assert!(!out.contains(fault), "{series}: {out}{error}");
        }
    }
}

/// Lines that `behind.sh` must print.
const SAID_BEHIND: [&str; 13] = [
    "not loaded: behind_khttpd: khttpd is not loaded: load it by `staunch kernel load --root HERE/www \
     hand_over=`",
    "without hand_over: behind_khttpd: cannot open /dev/khttpd: khttpd hands nothing over: load it by \
     `staunch kernel load --root HERE/www hand_over=`",
    "another folder: behind_khttpd: khttpd serves HERE/other and this server HERE/www; both must give one \
     site",
    "io_uring: io: \"uring\" takes no connections from khttpd; with behind_khttpd, leave io out",
    "nobody: HTTP/1.1 503 Service Unavailable||",
    "  khttpd       what it does not serve, by /dev/khttpd",
    "a file: HTTP/1.1 200 OK|hello|",
    "a body: HTTP/1.1 200 OK",
    "a path: HTTP/1.1 200 OK|abc|",
    "both: HTTP/1.1 200 OK|hello|HTTP/1.1 200 OK|abc|",
    "handed_over 3",
    "upgraded: HTTP/1.1 200 OK",
    "nobody any more: HTTP/1.1 503 Service Unavailable||",
];

#[test]
fn the_server_serves_what_khttpd_does_not() {
    if !is_possible() {
        return;
    }
    for series in SERIES_WITH_HEADERS {
        let guest = Guest { series, modules: &["khttpd"], programs: &[binary()], words: &[] };
        let output = guest.run(include_str!("behind.sh"));
        let (out, error) = said(&output);
        assert!(output.status.success(), "{series}: {out}{error}");
        for line in SAID_BEHIND.into_iter().chain(["unloaded"]) {
            assert!(out.lines().any(|said| said == line), "{series}: no {line:?} in\n{out}{error}");
        }
    }
}

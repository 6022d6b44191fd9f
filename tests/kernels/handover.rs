//! Connections that khttpd hands over to a process.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::modules::{Guest, said};
use crate::{SERIES_WITH_HEADERS, is_possible};

/// The process at the device: static, for the machine has no libraries of its own.
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

//! The cache of khttpd: what empties it, what it charges and leaves out, and what is sent of a file that
//! changes. Its races, in a build that makes them wide.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::guest::{Guest, Said, compiled};
use crate::{is_possible, series_with_modules};

/// What `cache.sh` must say in each mode.
const SAID: [&str; 6] = [
    "before: 0",
    "beside renames: 11111111 8 from the cache",
    "spellings: 6 from the cache",
    "encoded: 1",
    "kept of parts: 0",
    "unloaded",
];

/// What it must say once.
const SAID_ONCE: [&str; 14] = [
    "charged: within",
    "taken: within",
    "kept again",
    "mv www/new www/big: 1500000 bytes, 0 others",
    "rm www/big: 1500000 bytes, 0 others",
    "ln www/big www/link: 1500000 bytes, 0 others",
    "chmod 640 www/big: 1500000 bytes, 0 others",
    "without a list: 200 1",
    "denied: 403 0",
    "10000: 0",
    "10001: 1",
    "beside listings: 200 within",
    "before: <p>old",
    "after: <p>new, and longer 0",
];

/// The program of `cache.c`. It is made once, because tests run side by side.
fn peer() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("cache")).clone()
}

/// A part of `races.sh` in a machine of so many processors.
fn race(part: &str, processors: &str) -> Said {
    let guest = Guest {
        series: "6.12",
        modules: &["khttpd+KHTTPD_WIDENED"],
        programs: &[peer()],
        words: &["--processors", processors, "--words", "softlockup_panic=1"],
    };
    guest.say(&format!("part={part} turns=3\n{}", include_str!("races.sh")))
}

/// For `make soak`: a minute of an emulated processor each, and what they show changes with `kernel/khttpd`
/// alone. Unloading under load, and changes of what the cache has, are in `strain`.
mod in_depth {
    use super::*;

    /// A folder may be none any more by the time it is looked at; another processor takes it away.
    #[test]
    fn a_folder_may_go_while_the_cache_looks() {
        if !is_possible() {
            return;
        }
        let said = race("moves", "2");
        assert_eq!(said.count("moved 10 times"), 2, "{said}");
        said.has_all("", &["ready unloaded", "softirq unloaded"]);
    }

    #[test]
    fn khttpd_keeps_what_is_still_true() {
        if !is_possible() {
            return;
        }
        let programs = [peer(), compiled("remote")];
        for series in series_with_modules("6.1") {
            // Later kernels of Debian's have it built in.
            let words: &[&str] = if series == "6.1" { &["--stock", "fuse"] } else { &[] };
            let guest = Guest { series, modules: &["khttpd"], programs: &programs, words };
            let said = guest.say(include_str!("cache.sh"));
            for mode in ["ready", "softirq"] {
                said.has_all(&format!("{mode} "), &SAID);
            }
            said.has_all("", &SAID_ONCE);
            // A file that is written to is not sent to its end, and nothing of the other content is sent.
            let written = said.out.lines().find_map(|line| line.strip_prefix("cp www/new www/big: "));
            let (bytes, others) = written.and_then(|line| line.split_once(" bytes, ")).unwrap_or_default();
            let is_cut = bytes.parse().is_ok_and(|bytes: u64| bytes < 1_500_000);
            assert!(is_cut && others == "0 others", "{said}");
            assert_eq!(said.count("unloaded"), 4, "{said}");
        }
    }

    /// Unloading the module waits for the contexts that close connections, on a processor that has to be left
    /// to them.
    #[test]
    fn unloading_leaves_the_processor_to_those_who_close() {
        if !is_possible() {
            return;
        }
        let said = race("closes", "1");
        said.has_all("", &["kthread closed", "wq closed", "ready closed", "softirq closed"]);
    }
}

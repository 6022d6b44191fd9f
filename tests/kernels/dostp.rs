//! The module `dostp` in an emulated machine, with keys and without: every golden frame has the outcome that
//! its words say, changed frames do no harm, and the module talks with the node of user space. The steps
//! stand in `dostp.sh` and `dostp_keys.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dostp_guest::{golden_frames, guest_program};
use crate::parts::{DOSTP_NEEDS, golden};
use crate::shared::SERVERS;
use crate::{is_possible, series_in_depth, series_with_headers};
use staunch_tests::process::{binary, is_installed};

/// What the script has to say, besides numbers that differ.
const SAID: [&str; 21] = [
    "told: family=2 is taken (error -17); 12, 19, 22 and 25 are mostly free",
    "calls: as UDP's",
    "golden: 486 frames of 68 files",
    "reflect: 0 conflicts, refused 0",
    "shared: each kind to whom it is for",
    "ask: 5 of 5 answers of 262144 bytes",
    "peers: known",
    "3 sent, 3 received, 0% loss",
    "ask: 10 of 10 answers of 8984 bytes",
    "large: a frame a message",
    "ask: 5 of 5 answers of 9001 bytes",
    "small: told",
    "ask: 1 of 1 answers of 20000 bytes",
    "ask: 5 of 5 answers of 31 bytes",
    "ask: 20 of 20 answers of 1485 bytes",
    "Address already in use",
    "refused 0",
    "told: 02:00:00:00:00:08 has it, 02:00:00:00:00:07 not",
    "storm: the module is gone",
    "frames left: few",
    "unloaded",
];

/// What a script says in a machine with the module.
fn said(series: &str, words: &[&str], programs: &[PathBuf], script: &str) -> String {
    let xtask = binary().with_file_name("xtask");
    assert!(xtask.exists(), "{} is missing: cargo build --workspace makes it", xtask.display());
    let mut guest = Command::new(&xtask);
    guest.args(["guest", "--kernel", series, "--seconds", "1800", "--words", "no_timer_check"]);
    guest.args(["--module", "pair", "--module", "dostp", "--stock", DOSTP_NEEDS]).args(words);
    programs.iter().for_each(|program| {
        guest.arg("--program").arg(program);
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(script);
    let output = guest.arg(script).output().expect("xtask runs");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{series}: {out}{error}");
    out
}

#[test]
fn dostp_takes_golden_frames_and_talks_with_user_space() {
    if !is_possible() || !is_installed("ip") {
        return;
    }
    for (series, processors) in series_in_depth("6.12").into_iter().zip(["1", "2"].into_iter().cycle()) {
        SERVERS.said(series, &golden(), &["--processors", processors]).has_all("", &SAID);
    }
}

/// Lines that `dostp_keys.sh` must print, besides those with numbers that differ. `MODE` is either mode.
const SAID_OF_KEYS: [&str; 15] = [
    "unprivileged: refused",
    "staunch: /proc/net/dostp/keys: Invalid argument (os error 22): the slot that is sent by would hold no \
     secret",
    "slot 0 set",
    "MODE: 1 peer",
    "replay: 4096 windows, 904 ports without one were not heard",
    "passed on: taken, and nobody moved",
    "MODE ask: 5 of 5 answers of 0 bytes",
    "MODE ask: 5 of 5 answers of 1461 bytes",
    "MODE ask: 5 of 5 answers of 262144 bytes",
    "MODE 3 sent, 3 received, 0% loss",
    "slot 0 set slot 1 set send 1 mode MODE ",
    "MODE ask: 4000 of 4000 answers of 100 bytes",
    "MODE: a stranger is not heard",
    "off",
    "unloaded",
];

/// Lines that `dostp_transact.sh` must print.
const SAID_OF_TRANSACTIONS: [&str; 9] = [
    "refusals: all",
    "called: 6 of 100000 bytes, some were sent again",
    "ring here: served: 24 requests, 0 of them twice",
    "ring there: served: 24 requests, 0 of them twice",
    "keys here: served: 24 requests, 0 of them twice",
    "keys there: served: 24 requests, 0 of them twice",
    "module here: served: 24 requests, 0 of them twice",
    "module there: served: 24 requests, 0 of them twice",
    "unloaded",
];

/// Of the instructions of a round trip of 64 bytes by UDP, so many percent by the module at most, by whether
/// sockets are connected. Counted with 6.1: 69 and 82; with 6.12: 67 and 80.
const COUNTS_MAX: [(&str, u64); 2] = [("", 71), (" connected", 84)];

/// For `make soak`: golden frames show in each landing what the module takes and refuses with keys;
/// transactions have their proof in user space; a count changes with the module alone.
mod in_depth {
    use super::*;

    #[test]
    fn dostp_with_keys_takes_what_user_space_seals_and_nothing_else() {
        if !is_possible() || !is_installed("ip") {
            return;
        }
        let programs = [PathBuf::from("/bin/ip"), guest_program(), golden_frames(), binary()];
        for (series, processors) in series_in_depth("6.1").into_iter().zip(["2", "1"].into_iter().cycle()) {
            let out = said(series, &["--processors", processors], &programs, "dostp_keys.sh");
            for (line, mode) in SAID_OF_KEYS.iter().flat_map(|line| ["mac", "aead"].map(|mode| (line, mode)))
            {
                let line = line.replace("MODE", mode);
                assert!(out.lines().any(|said| said == line), "{series}: no {line:?} in\n{out}");
            }
        }
    }

    #[test]
    fn dostp_carries_transactions() {
        if !is_possible() || !is_installed("ip") {
            return;
        }
        let programs = [PathBuf::from("/bin/ip"), binary().with_file_name("dostp-transact")];
        for (series, processors) in series_in_depth("6.12").into_iter().zip(["1", "2"].into_iter().cycle()) {
            let out = said(series, &["--processors", processors], &programs, "dostp_transact.sh");
            for line in SAID_OF_TRANSACTIONS {
                assert!(out.lines().any(|said| said == line), "{series}: no {line:?} in\n{out}");
            }
        }
    }

    #[test]
    fn a_round_trip_by_dostp_costs_less_than_by_udp() {
        if !is_possible() || !is_installed("ip") {
            return;
        }
        let programs = [PathBuf::from("/bin/ip"), guest_program()];
        for series in series_with_headers("6.12") {
            let out = said(series, &["--counted"], &programs, "dostp_count.sh");
            let count = |name: &str| -> u64 {
                let line =
                    out.lines().find_map(|line| line.strip_prefix(&format!("count: {name} 64 bytes: ")));
                line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name:?} in\n{out}"))
            };
            for (connected, percent_max) in COUNTS_MAX {
                let (ours, theirs) = (count(&format!("dostp{connected}")), count(&format!("udp{connected}")));
                assert!(ours * 100 <= theirs * percent_max, "{series}{connected}: {ours} of {theirs}");
            }
        }
    }
}

//! The module `dostp` in an emulated machine, with keys and without: every golden frame has the outcome that
//! its words say, changed frames do no harm, and the module talks with the node of user space. The steps
//! stand in `dostp.sh` and `dostp_keys.sh`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{is_possible, series_in_depth, series_with_headers};
use staunch_tests::process::{binary, is_installed};

/// The program that opens the module's sockets. It is made once, because tests run side by side.
fn guest_program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(make_guest_program).clone()
}

const GUEST_SOURCES: [&str; 5] =
    ["dostp.c", "dostp_frames.c", "dostp_hostile.c", "dostp_keys.c", "dostp_shared.c"];

/// Compiles the program for the guest. The program is static, for the machine has no libraries of its own.
fn make_guest_program() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dostp-guest");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-static"])
        .args(GUEST_SOURCES.map(|name| folder.join(name)))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The golden frames in the form that the program reads, written once.
fn golden_frames() -> PathBuf {
    static FRAMES: OnceLock<PathBuf> = OnceLock::new();
    FRAMES.get_or_init(write_golden_frames).clone()
}

fn write_golden_frames() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/dostp/vectors");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the vectors").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let mut all = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a file");
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        add_file(&mut all, &name, &text);
    }
    let bundle = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden-frames");
    std::fs::write(&bundle, all).expect("a file");
    bundle
}

/// The boot number of the receiver of golden frames.
const GOLDEN_BOOT: &str = "0x0102030405060708";

/// Adds the frames of a file: a line `receiver NAME CLUSTER`, for a receiver with keys a line
/// `keys MODE SECRET SECRET SOURCE BOOT` with the peer that it believes, and for each frame
/// `FROM HEX OUTCOME`.
fn add_file(all: &mut String, name: &str, text: &str) {
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let fields = lines.next_if(|line| line.starts_with("receiver ")).unwrap_or_default();
    let cluster = field(fields, "cluster").unwrap_or("0");
    writeln!(all, "receiver {name} {cluster}").expect("a string takes all");
    if let Some(secret) = field(fields, "secret0") {
        let other = field(fields, "secret1").unwrap_or("none");
        let mode = field(fields, "mode").expect("a mode");
        let (source, boot) =
            field(fields, "believes").and_then(|peer| peer.split_once(':')).expect("a peer that is believed");
        writeln!(all, "keys {mode} {secret} {other} {source} {boot}").expect("a string takes all");
    }
    while let (Some(words), Some(hexadecimal)) = (lines.next(), lines.next()) {
        // The module draws its boot number: its own frames are returned to it by `reflect`.
        if field(words, "boot") == Some(GOLDEN_BOOT) {
            continue;
        }
        let from = field(words, "from").unwrap_or("02:00:00:00:00:07").replace(':', "");
        let outcome = match words.strip_prefix("refuse ") {
            Some(fault) => format!("dropped {}", fault.split(' ').next().unwrap_or_default()),
            None => words.split_once(" -> ").expect("an outcome").1.to_owned(),
        };
        writeln!(all, "{from} {hexadecimal} {outcome}").expect("a string takes all");
    }
}

fn field<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

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

/// The module of the stock kernel that `dostp` needs; its own needs are loaded with it.
const NEEDED: &str = "libchacha20poly1305";

/// What a script says in a machine with the module.
fn said(series: &str, words: &[&str], programs: &[PathBuf], script: &str) -> String {
    let xtask = binary().with_file_name("xtask");
    assert!(xtask.exists(), "{} is missing: cargo build --workspace makes it", xtask.display());
    let mut guest = Command::new(&xtask);
    guest.args(["guest", "--kernel", series, "--seconds", "1800", "--words", "no_timer_check"]);
    guest.args(["--module", "pair", "--module", "dostp", "--stock", NEEDED]).args(words);
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
    let programs = [PathBuf::from("/bin/ip"), guest_program(), golden_frames(), binary()];
    for (series, processors) in series_in_depth("6.12").into_iter().zip(["1", "2"].into_iter().cycle()) {
        let out = said(series, &["--processors", processors], &programs, "dostp.sh");
        for line in SAID {
            assert!(out.lines().any(|said| said == line), "{series}: no {line:?} in\n{out}");
        }
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

//! The module `dostp` in an emulated machine: every golden frame has the outcome that its words say, changed
//! ones do no harm, and it talks with the node of user space. What happens there is told in `dostp.sh`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{SERIES_WITH_HEADERS, is_possible};
use staunch_tests::process::{binary, is_installed};

/// The program that opens the module's sockets: static, for the machine has no libraries of its own.
fn guest_program() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dostp-guest");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-static"])
        .args(["dostp.c", "dostp_frames.c"].map(|name| folder.join(name)))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The golden frames in the form that the program reads, without those of receivers that have keys.
fn golden_frames() -> PathBuf {
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

/// `receiver NAME CLUSTER`, and for each frame `FROM HEX OUTCOME`.
fn add_file(all: &mut String, name: &str, text: &str) {
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let mut cluster = "0";
    if let Some(fields) = lines.peek().and_then(|line| line.strip_prefix("receiver ")) {
        if fields.contains("secret") {
            return;
        }
        cluster = field(fields, "cluster").unwrap_or(cluster);
        lines.next();
    }
    writeln!(all, "receiver {name} {cluster}").expect("a string takes all");
    while let (Some(words), Some(hexadecimal)) = (lines.next(), lines.next()) {
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
const SAID: [&str; 17] = [
    "told: family=2 is taken (error -17); 12, 19, 22 and 25 are mostly free",
    "calls: as UDP's",
    "golden: 382 frames of 46 files",
    "ask: 5 of 5 answers of 262144 bytes",
    "peers: known",
    "3 sent, 3 received, 0% loss",
    "ask: 10 of 10 answers of 8984 bytes",
    "large: a frame a message",
    "ask: 5 of 5 answers of 9001 bytes",
    "small: told",
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
    guest.args(["--module", "pair", "--module", "dostp"]).args(words);
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
    for (series, processors) in SERIES_WITH_HEADERS.into_iter().zip(["1", "2"]) {
        let out = said(series, &["--processors", processors], &programs, "dostp.sh");
        for line in SAID {
            assert!(out.lines().any(|said| said == line), "{series}: no {line:?} in\n{out}");
        }
    }
}

/// Of the instructions of a round trip of 64 bytes by UDP, so many percent by the module at most, by whether
/// sockets are connected. Counted with 6.1: 69 and 81; with 6.12: 66 and 79.
const COUNTS_MAX: [(&str, u64); 2] = [("", 71), (" connected", 84)];

#[test]
fn a_round_trip_by_dostp_costs_less_than_by_udp() {
    if !is_possible() || !is_installed("ip") {
        return;
    }
    let programs = [PathBuf::from("/bin/ip"), guest_program()];
    for series in SERIES_WITH_HEADERS {
        let out = said(series, &["--counted"], &programs, "dostp_count.sh");
        let count = |name: &str| -> u64 {
            let line = out.lines().find_map(|line| line.strip_prefix(&format!("count: {name} 64 bytes: ")));
            line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name:?} in\n{out}"))
        };
        for (connected, percent_max) in COUNTS_MAX {
            let (ours, theirs) = (count(&format!("dostp{connected}")), count(&format!("udp{connected}")));
            assert!(ours * 100 <= theirs * percent_max, "{series}{connected}: {ours} of {theirs}");
        }
    }
}

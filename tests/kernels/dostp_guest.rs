//! Tools by which tests talk to the module `dostp` in the machine: a program that opens its sockets, and
//! the golden frames in the form that this reads.
//!
//! This module owns both files, each made once. It must never judge a frame.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program that opens the module's sockets. It is made once, because tests run side by side.
pub(crate) fn guest_program() -> PathBuf {
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
pub(crate) fn golden_frames() -> PathBuf {
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

//! The Wireshark dissector (`packaging/wireshark/dostp.lua`) says of every golden frame what its words say.

mod golden;

use std::path::{Path, PathBuf};
use std::process::Command;

use golden::{Pair, Said};
use staunch_dostp::Link;

/// Fields of the dissector beside those of the golden frames.
const FIELDS: [(&str, &str); 13] = [
    ("dostp.source", "source"),
    ("dostp.destination", "destination"),
    ("dostp.source_port", "source-port"),
    ("dostp.destination_port", "destination-port"),
    ("dostp.id", "id"),
    ("dostp.length", "length"),
    ("dostp.sequence", "sequence"),
    ("dostp.boot", "boot"),
    ("dostp.challenge", "challenge"),
    ("dostp.echo", "echo"),
    ("dostp.mtu", "mtu"),
    ("dostp.link", "link"),
    ("dostp.check.cluster", "cluster"),
];

const KINDS: [&str; 10] =
    ["", "DATA", "HELLO", "HELLO-REPLY", "PROBE", "BYE", "CONFLICT", "REQUEST", "REPLY", "ACK"];

#[test]
fn tshark_decodes_every_golden_frame() {
    if !is_installed() {
        return;
    }
    let files = golden::all();
    let mut frames: Vec<(&Pair, u8)> = Vec::new();
    for file in &files {
        frames.extend(
            file.pairs
                .iter()
                .filter(|pair| pair.frames[0].refused.is_none())
                .map(|pair| (pair, file.receiver.cluster)),
        );
    }
    let shown: Vec<(Link, &[u8])> = frames.iter().map(|(pair, _)| (pair.from, &pair.bytes[..])).collect();
    for ((pair, cluster), line) in frames.iter().zip(&dissect("golden", &shown)) {
        agrees(pair, *cluster, line);
    }
}

#[test]
fn tshark_tells_once_that_a_frame_with_keys_is_cut() {
    if !is_installed() {
        return;
    }
    let files = golden::all();
    let with_keys = files.iter().filter(|file| file.receiver.secrets[0].is_some());
    let sound = with_keys.flat_map(|file| &file.pairs).filter(|pair| {
        pair.frames.iter().all(|said| said.refused.is_none() && said.text("flags").contains("AUTH"))
            && pair.bytes.len() < 200
    });
    let cut: Vec<(Link, &[u8])> =
        sound.flat_map(|pair| (1..pair.bytes.len()).map(|end| (pair.from, &pair.bytes[..end]))).collect();
    assert!(!cut.is_empty());
    for ((_, bytes), line) in cut.iter().zip(&dissect("cut", &cut)) {
        let malformed = &line[FIELDS.len() + 2];
        assert!(!malformed.is_empty() && !malformed.contains(','), "{malformed:?}: {bytes:02x?}");
    }
}

fn is_installed() -> bool {
    let is_found = Command::new("tshark").arg("--version").output().is_ok();
    if !is_found {
        assert!(std::env::var("CI").is_err(), "tshark is missing");
        println!("skipped: tshark is not installed");
    }
    is_found
}

/// A field is shown once for each joined frame that has it, and of a frame with a fault as far as it goes.
fn agrees(pair: &Pair, cluster: u8, line: &[String]) {
    let sound: Vec<&Said> = pair.frames.iter().take_while(|said| said.refused.is_none()).collect();
    let kinds: Vec<&str> = line[0].split(',').map(|number| KINDS[number.parse::<usize>().unwrap()]).collect();
    let wanted: Vec<String> = sound.iter().map(|said| said.text("kind")).collect();
    let shown_max = |wanted: usize| wanted + pair.frames.len() - sound.len();
    assert_eq!(kinds[..wanted.len()], wanted, "{line:?}");
    assert!(kinds.len() <= shown_max(wanted.len()), "{line:?}");
    for ((_, name), shown) in FIELDS.iter().zip(&line[1..]) {
        let wanted: Vec<String> = sound
            .iter()
            .filter_map(|said| match *name {
                "cluster" => Some(cluster.to_string()),
                name => said.has(name).then(|| said.text(name)),
            })
            .collect();
        let shown: Vec<&str> = shown.split(',').filter(|value| !value.is_empty()).collect();
        let is_same = |(shown, wanted): (&&str, &String)| {
            if *name == "link" { *shown == *wanted } else { value(shown) == value(wanted) }
        };
        let is_right = (wanted.len()..=shown_max(wanted.len())).contains(&shown.len())
            && shown.iter().zip(&wanted).all(is_same);
        assert!(is_right, "{name}: {shown:?}, not {wanted:?} ({line:?})");
    }
    let is_wrong = !line[FIELDS.len() + 1].is_empty();
    assert_eq!(is_wrong, pair.outcome[0] == "dropped sum", "{line:?}");
    let is_malformed = !line[FIELDS.len() + 2].is_empty();
    assert_eq!(is_malformed, sound.len() < pair.frames.len(), "{line:?}");
}

fn value(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A line of fields for each frame. The name is that of the capture, for tests run side by side.
fn dissect(name: &str, frames: &[(Link, &[u8])]) -> Vec<Vec<String>> {
    let capture = std::env::temp_dir().join(format!("staunch-dostp-{name}-{}.pcap", std::process::id()));
    std::fs::write(&capture, pcap(frames)).unwrap();
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/wireshark/dostp.lua");
    let mut command = Command::new("tshark");
    command.arg("-X").arg(format!("lua_script:{}", script.display())).arg("-r").arg(&capture);
    command.args(["-T", "fields", "-E", "separator=;", "-e", "dostp.type"]);
    for (field, _) in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.args(["-e", "dostp.wrong", "-e", "dostp.malformed"]).output().unwrap();
    std::fs::remove_file(&capture).ok();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complaints.contains("Lua"), "{complaints}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect();
    assert_eq!(lines.len(), frames.len());
    lines
}

/// A capture file (draft-ietf-opsawg-pcap) of Ethernet frames.
fn pcap(frames: &[(Link, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 262_144, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (from, payload) in frames {
        let length = 14 + payload.len() as u32;
        for word in [0, 0, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([2, 0, 0, 0, 0, 8]);
        bytes.extend(from.0);
        bytes.extend([0x88, 0xb5]);
        bytes.extend(*payload);
    }
    bytes
}

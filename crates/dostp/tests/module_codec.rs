//! The files of `kernel/dostp` that call nothing of the kernel, compiled for user space with sanitizers: they
//! understand every frame as this crate does.
//!
//! A machine without the sanitizers' libraries says so and skips; with CI=true it fails.

mod golden;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use proptest::prelude::*;
use staunch_dostp::{FlowIds, Frame, Header, JoinedFrames, sum};

/// Builds a program; says what the compiler says if it cannot.
fn compile(program: &Path, arguments: &[PathBuf]) -> Result<(), String> {
    let output = Command::new("cc")
        .args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .args(arguments)
        .arg("-o")
        .arg(program)
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The program, built once. `None` where there are no sanitizers, which is said.
fn program() -> Option<&'static PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let probe = folder.join("dostp-sanitizers.c");
        std::fs::write(&probe, "int main(void) { return 0; }\n").map_err(|error| error.to_string())?;
        compile(&folder.join("dostp-sanitizers"), &[probe])?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = root.join("../../kernel/dostp");
        let program = folder.join("dostp-driver");
        let include = PathBuf::from(format!("-I{}", sources.display()));
        let files = [sources.join("header.c"), sources.join("window.c"), root.join("tests/module/driver.c")];
        // What does not compile is a fault, wherever it is found.
        compile(&program, &[&[include][..], &files].concat()).unwrap_or_else(|said| panic!("{said}"));
        Ok(program)
    });
    match built {
        Ok(program) => Some(program),
        Err(reason) if std::env::var_os("CI").is_none_or(|ci| ci != "true") => {
            println!("skipped: {reason}");
            None
        }
        Err(reason) => panic!("{reason}"),
    }
}

/// The answers to these questions, line by line; `None` where there is no program.
fn answers(questions: &str) -> Option<Vec<String>> {
    let mut child = Command::new(program()?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("piped");
    let asked = questions.to_owned();
    let writing = std::thread::spawn(move || input.write_all(asked.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    writing.join().expect("no panic").expect("all was read");
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes all");
        digits
    })
}

/// This crate's answer, in the driver's words.
fn expected(bytes: &[u8], cluster: u8) -> String {
    let mut bytes = bytes.to_vec();
    let mut joined = JoinedFrames::new(&mut bytes);
    let mut words = Vec::new();
    while let Some(found) = joined.next_frame(cluster) {
        words.push(match found {
            Ok((_, bytes)) => accepted(bytes, cluster),
            Err(fault) => format!("refuse {}", fault.name()),
        });
    }
    words.join(" + ")
}

/// The driver's words for a sound frame.
fn accepted(bytes: &[u8], cluster: u8) -> String {
    let frame = Frame::decode(bytes, cluster).expect("it is sound");
    let Header { kind, flags, source, destination, source_port, destination_port, .. } = frame.header;
    let Header { message_id, length, sequence, .. } = frame.header;
    let encoded = frame.header.encode(cluster);
    let greeting = frame.greeting().map_or("-".to_owned(), |greeting| hex(&greeting.encode()));
    format!(
        "accept {} {} {source} {destination} {source_port} {destination_port} {message_id} {length} \
         {sequence} {} {} {greeting}",
        kind as u8,
        flags.bits(),
        hex(&encoded),
        hex(&sum(&encoded, frame.payload)),
    )
}

/// Both understand all these frames alike.
fn agree(frames: &[(Vec<u8>, u8)]) {
    let mut questions = String::new();
    for (bytes, cluster) in frames {
        let digits = if bytes.is_empty() { "-".to_owned() } else { hex(bytes) };
        writeln!(questions, "f {cluster} {digits}").expect("a string takes all");
    }
    let Some(answers) = answers(&questions) else { return };
    assert_eq!(answers.len(), frames.len());
    for ((bytes, cluster), answer) in frames.iter().zip(&answers) {
        assert_eq!(*answer, expected(bytes, *cluster), "{} of cluster {cluster}", hex(bytes));
    }
}

#[test]
fn golden_frames_mean_the_same_to_the_module() {
    let files = golden::all();
    let frames: Vec<_> = files
        .iter()
        .flat_map(|file| file.pairs.iter().map(|pair| (pair.bytes.clone(), file.receiver.cluster)))
        .collect();
    assert!(frames.len() > 400, "{}", frames.len());
    agree(&frames);
}

/// Every bit of every golden frame's first bytes changed, and the frame cut at each place.
#[test]
fn changed_golden_frames_mean_the_same_to_the_module() {
    let mut frames = Vec::new();
    for file in golden::all() {
        // The fragments of one message are alike.
        for pair in file.pairs.iter().take(8) {
            for at in 0..pair.bytes.len().min(64) {
                frames.push((pair.bytes[..at].to_vec(), file.receiver.cluster));
                for bit in 0..8 {
                    let mut bytes = pair.bytes.clone();
                    bytes[at] ^= 1 << bit;
                    frames.push((bytes, file.receiver.cluster));
                }
            }
        }
    }
    agree(&frames);
}

/// A header whose check is right whatever it says, and something behind it.
fn checked(mut bytes: Vec<u8>, cluster: u8) -> Vec<u8> {
    if bytes.len() >= 16 {
        // Of the 256 checks one is right: with it the decoder goes on to judge the version, and so on.
        let is_right = |bytes: &[u8]| Frame::decode(bytes, cluster) != Err(staunch_dostp::Fault::Check);
        bytes[15] = (0..=255).find(|&check| is_right(&[&bytes[..15], &[check]].concat())).unwrap_or(0);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_frame_means_the_same_to_the_module(
        seeds in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..80), 0_u8..12, 0_u8..64, 0_u8..40), 200,
        ),
        cluster: u8,
    ) {
        let frame = |(mut bytes, kind, flags, length): (Vec<u8>, u8, u8, u8)| {
            if bytes.len() >= 16 {
                // Most are nearly right: then each check is reached.
                bytes[0] = 0x10 | kind;
                bytes[1] = flags;
                bytes[12..14].copy_from_slice(&[0, length]);
                bytes[14] &= 1;
                if (2..=6).contains(&kind) {
                    bytes[6..12].fill(0);
                }
            }
            (checked(bytes, cluster), cluster)
        };
        agree(&seeds.into_iter().map(frame).collect::<Vec<_>>());
    }

    /// Frames with MORE and without, behind each other: right and wrong ones, those that must not be joined,
    /// and the last one cut.
    #[test]
    fn joined_frames_mean_the_same_to_the_module(
        seeds in prop::collection::vec(
            (
                prop::collection::vec((0_u8..24, 0_u8..64, 0_u8..20, any::<u8>()), 1..6),
                any::<prop::sample::Index>(),
            ),
            100,
        ),
        cluster: u8,
    ) {
        let frame = |(kind, flags, length, other): (u8, u8, u8, u8)| {
            let flags = if kind < 18 { flags & 0x38 | 3 } else { flags };
            let mut bytes = vec![0x11, flags, 0, 7, 0, 8, 3, 0xe8, 7, 0xd0, 0, 1, 0, length, 0, 0];
            match kind {
                18 => bytes[0] = 0x17,
                19 => bytes[4..6].fill(0xff),
                20 => bytes[usize::from(other % 15)] ^= 1,
                _ => {}
            }
            let trailer = if flags & 0xc == 8 { 4 } else if flags & 4 == 4 { 16 } else { 0 };
            bytes.resize(16 + usize::from(length) + trailer, 0);
            checked(bytes, cluster)
        };
        let frames = |(parts, cut): (Vec<(u8, u8, u8, u8)>, prop::sample::Index)| {
            let mut bytes = parts.into_iter().map(frame).collect::<Vec<_>>().concat();
            let cut = cut.index(2 * bytes.len());
            bytes.truncate(cut.max(16));
            (bytes, cluster)
        };
        agree(&seeds.into_iter().map(frames).collect::<Vec<_>>());
    }

    /// Messages are remembered as by this crate, as long as its table has room.
    #[test]
    fn messages_come_once_to_the_module(
        steps in prop::collection::vec(
            (1_u16..4, 1_u16..4, 65_500_u32..65_700, 0_u64..100, 0_u8..40), 1..400,
        ),
    ) {
        let mut flows = FlowIds::new(1);
        let (mut questions, mut expected, mut now) = (String::new(), Vec::new(), 5_000);
        for (source, port, id, later, forget) in steps {
            let id = (id & 0xffff) as u16;
            now += if later > 97 { 1_000 } else { later };
            if forget == 0 {
                writeln!(questions, "x {source}").expect("a string takes all");
                flows.forget(source);
            }
            writeln!(questions, "m {source} {port} {id} {now}").expect("a string takes all");
            let flow = (source, port, 1);
            let came = flows.has(flow, id, now);
            expected.push(format!("{} {}", u8::from(came), u8::from(flows.note(flow, id, now))));
        }
        if let Some(answers) = answers(&questions) {
            prop_assert_eq!(answers, expected);
        }
    }
}

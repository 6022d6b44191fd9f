//! Conversations of `tests/wire` with khttpd. The program that holds them has the server's own reading of
//! answers.

use std::path::PathBuf;

use crate::modules::{Guest, program, said};
use crate::{is_in_depth, is_possible};

/// So many conversations khttpd holds, and of those whose names have this part; the others need further
/// encodings, rules or hosts, which it has not. Neither may fall.
const HELD_MIN: (&str, usize) = ("", 289);
/// Hostile heads, which `make test` has: the rest is held in depth, and what khttpd understands is tested
/// without a kernel as well (`tests/khttpd`).
const HOSTILE_HELD_MIN: (&str, usize) = ("f000", 98);

#[test]
fn conversations_are_held_with_khttpd() {
    if !is_possible() {
        return;
    }
    let bundle = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conversations");
    std::fs::write(&bundle, staunch_tests::suite::bundle(&staunch_tests::suite::wire_folder()))
        .expect("a file");
    let programs = [program("kernel-wire"), bundle];
    let guest = Guest { series: "6.12", modules: &["khttpd"], programs: &programs, words: &[] };
    let (part, held_min) = if is_in_depth() { HELD_MIN } else { HOSTILE_HELD_MIN };
    let output = guest.run(&format!("kernel-wire ready /bin/conversations {part}"));
    let (out, error) = said(&output);
    assert!(output.status.success(), "{out}{error}");
    let held = out.lines().find_map(|line| line.strip_prefix("held ")?.split(' ').next()?.parse().ok());
    println!("{}", out.lines().last().unwrap_or_default());
    assert!(held.is_some_and(|held: usize| held >= held_min), "{out}{error}");
}

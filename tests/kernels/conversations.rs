//! Conversations of `tests/wire` with khttpd. The program that holds them has the server's own reading of
//! answers.

use crate::parts::{self, HOSTILE};
use crate::shared::SERVERS;
use crate::{is_in_depth, is_possible};

/// So many conversations khttpd holds, and of those whose names have this part; the others need further
/// encodings, rules or hosts, which it has not. Neither may fall.
const HELD_MIN: (&str, usize) = ("", 289);
/// Hostile heads, which `make test` has: the rest is held in depth, and what khttpd understands is tested
/// without a kernel as well (`tests/khttpd`).
const HOSTILE_HELD_MIN: (&str, usize) = (HOSTILE, 98);

#[test]
fn conversations_are_held_with_khttpd() {
    if !is_possible() {
        return;
    }
    let (word, held_min) = if is_in_depth() { HELD_MIN } else { HOSTILE_HELD_MIN };
    let said = SERVERS.said("6.12", &parts::conversations(word), &[]);
    let last = said.out.lines().find(|line| line.starts_with("held ")).unwrap_or_default();
    println!("{last}");
    let held = last.split(' ').nth(1).and_then(|number| number.parse().ok());
    assert!(held.is_some_and(|held: usize| held >= held_min), "{said}");
}

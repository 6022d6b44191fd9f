//! Answers that khttpd sends in pieces, to be compared: the same bytes, a call for the head and each line.

use crate::guest::{Guest, Said};
use crate::is_possible;

/// The calls and the lines that the script counted for an answer, the peer's own call left out.
fn counted(said: &Said, mode: &str, send: &str, name: &str) -> (u32, u32) {
    let beginning = format!("{mode} {send} {name}: ");
    let line = said.out.lines().find_map(|line| line.strip_prefix(&beginning));
    let words: Vec<&str> = line.unwrap_or_else(|| panic!("no {beginning:?} in {said}")).split(' ').collect();
    let number = |at: usize| words[at].parse::<u32>().expect("a number");
    (number(0) - 1, number(2))
}

/// For `make soak`: a way of sending that is there to be compared with, and served by nobody.
mod in_depth {
    use super::*;

    #[test]
    fn an_answer_in_pieces_is_a_call_for_each_line() {
        if !is_possible() {
            return;
        }
        let said = Guest { series: "6.12", modules: &["khttpd"], programs: &[], words: &[] }
            .say(include_str!("pieces.sh"));
        said.has_all("refused: ", &["odd", "softirq"]);
        said.has_all("told: send=", &["odd: not one of whole, pieces", "pieces: not in mode softirq"]);
        for mode in ["kthread", "wq", "ready"] {
            for name in ["lines", "listed/"] {
                let (calls, lines) = counted(&said, mode, "pieces", name);
                assert_eq!(calls, 1 + lines, "{mode} {name}: {said}");
                let (calls, same) = counted(&said, mode, "whole", name);
                assert_eq!((calls, same), (1, lines), "{mode} {name}: {said}");
            }
            said.has_all(&format!("{mode} "), &["whole unloaded", "pieces unloaded"]);
        }
        assert!(!said.out.contains("differ"), "{said}");
    }
}

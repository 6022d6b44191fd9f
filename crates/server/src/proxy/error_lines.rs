//! Errors that an application writes while it answers, as lines for the operator.
//!
//! A line must never hold a byte that a terminal would obey, and an application that complains of each
//! request must never fill a log: it has one line a second.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Between two lines about one server, in milliseconds.
const LINE_MS: u64 = 1_000;
/// The longest line, in characters.
const LINE_CHARACTERS_MAX: usize = 1_000;

/// When the operator was told of a server's errors, and how many of its complaints were left out since.
#[derive(Debug, Default)]
pub(super) struct ErrorLines {
    /// In milliseconds of the workers' clock; 0: never.
    told_ms: AtomicU64,
    left_out: AtomicU64,
}

impl ErrorLines {
    /// The line for what a server said while it answered; `None` if it said nothing, or was told of within
    /// the last second.
    pub(super) fn line(&self, said: &[u8], now_ms: u64) -> Option<String> {
        let said = said.trim_ascii();
        if said.is_empty() {
            return None;
        }
        let told_ms = self.told_ms.load(Relaxed);
        let is_due = told_ms == 0 || now_ms.saturating_sub(told_ms) >= LINE_MS;
        if !is_due || self.told_ms.compare_exchange(told_ms, now_ms.max(1), Relaxed, Relaxed).is_err() {
            self.left_out.fetch_add(1, Relaxed);
            return None;
        }
        let plain = |one: char| if one.is_control() { ' ' } else { one };
        let text = String::from_utf8_lossy(said);
        let mut line: String = text.chars().map(plain).take(LINE_CHARACTERS_MAX).collect();
        match self.left_out.swap(0, Relaxed) {
            0 => {}
            1 => line.push_str(" (and 1 request before it with errors)"),
            count => line.push_str(&format!(" (and {count} requests before it with errors)")),
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_and_how_many_are_missing() {
        let lines = ErrorLines::default();
        assert_eq!(lines.line(b" \n", 0), None);
        assert_eq!(lines.line(b"PHP Warning:  a\n\x1b[2Jb\n", 0).as_deref(), Some("PHP Warning:  a  [2Jb"));
        assert_eq!((lines.line(b"b", 500), lines.line(b"c", 900)), (None, None));
        let told = lines.line(b"d\xff", 1_001);
        assert_eq!(told.as_deref(), Some("d\u{fffd} (and 2 requests before it with errors)"));
        assert_eq!(lines.line(&[b'x'; 4_000], 3_000).map(|line| line.len()), Some(LINE_CHARACTERS_MAX));
    }
}

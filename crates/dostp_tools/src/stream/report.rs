//! The report about a stream, as its receiver tells it to the sender and to people.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use staunch_program::output;

use super::super::ping::time;

/// The counts of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StreamReport {
    /// The receiver's word for the sender: its address and its port.
    pub(super) from: String,
    /// Messages that were sent: as the sender says, or at least so many where it did not say.
    pub(super) sent: u64,
    /// Whether the sender said so.
    pub(super) is_whole: bool,
    pub(super) in_time: u64,
    pub(super) late: u64,
    pub(super) lost: u64,
    /// Messages that came behind one that was sent after them.
    pub(super) out_of_order: u64,
    /// Messages that had come before.
    #[serde(default)]
    pub(super) copies: u64,
    /// The jitter of RFC 3550, section 6.4.1, at the end.
    pub(super) jitter_us: f64,
    /// The longest time that a message took beyond the quickest before it.
    pub(super) held_us_most: u64,
    /// The one-way times of messages, where both ends have one clock.
    pub(super) one_way_us: Option<OneWay>,
}

/// The one-way times of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OneWay {
    pub(super) least: u64,
    pub(super) mean: f64,
    pub(super) most: u64,
}

impl StreamReport {
    /// A line for people, or of JSON.
    pub(super) fn shown(&self, json: bool) -> String {
        if !json {
            return self.line();
        }
        let report = Self { from: output::printable(&self.from), ..self.clone() };
        serde_json::to_string(&report).unwrap_or_default() + "\n"
    }

    /// A line for people.
    pub(super) fn line(&self) -> String {
        let from = output::printable(&self.from);
        let Self { sent, in_time, late, lost, out_of_order, jitter_us, held_us_most, .. } = self;
        let copies = if self.copies > 0 { format!(", {} copies", self.copies) } else { String::new() };
        let so_far = if self.is_whole { "" } else { " or more" };
        let mut text = format!(
            "from {from}: {sent}{so_far} sent, {in_time} in time, {late} too late, {lost} lost, \
             {out_of_order} out of order{copies}; jitter {} (RFC 3550), held up {} at most",
            time((jitter_us * 1_000.0) as u64),
            time(held_us_most.saturating_mul(1_000))
        );
        if let Some(OneWay { least, mean, most }) = self.one_way_us {
            let [least, mean, most] = [least as f64, mean, most as f64].map(|us| time((us * 1_000.0) as u64));
            write!(text, "; one way {least} least, {mean} mean, {most} most").ok();
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_the_other_end_steer_no_terminal() {
        let report = StreamReport { from: "a\u{1b}[2J\n\u{9b}b".into(), ..StreamReport::default() };
        for json in [false, true] {
            let shown = report.shown(json);
            let line = shown.strip_suffix('\n').expect("a line");
            assert!(!line.contains(char::is_control) && line.contains("[2J"), "{line:?}");
        }
    }
}

//! The summary at the end of a run, read in ten seconds: what was offered, what became of it, how long it
//! took.
//!
//! Warnings stand first, because they say whether the rest can be believed. It must never print a control
//! character that came from outside.
use staunch_figures::style::{BAD, CARE, GOOD, LOUD, QUIET, paint};
use staunch_figures::table::{Align, lines, wrap};
use staunch_figures::words;

use crate::outcome::{Counts, RunOutcome};
use crate::report::document::{Document, Figures, LaneDocument, Percentiles};
use crate::report::drift_note;
use crate::report::fields::{CountField, ENDS, is_error};

/// The narrowest terminal that lines are broken for.
const WIDTH_MIN: usize = 40;

/// The summary, its last line break included, in lines of at most `width` characters as far as words allow.
pub fn summary(outcome: &RunOutcome, colour: bool, width: usize) -> String {
    let document = Document::new(outcome);
    let pen = Pen { colour, width: width.max(WIDTH_MIN) };
    let mut text = Vec::new();
    text.extend(pen.heading(&document));
    text.extend(pen.warnings(&document.warnings));
    text.push(String::new());
    text.extend(pen.ends(&document));
    text.push(String::new());
    text.extend(pen.times(&document.main));
    text.extend(drift_note(&document.main).iter().flat_map(|note| pen.quiet(note)));
    text.push(String::new());
    text.extend(pen.rest(&document));
    if document.lanes.len() > 1 {
        text.push(String::new());
        text.extend(pen.beside(&document.lanes[1..]));
    }
    text.extend(document.floods.iter().map(|flood| format!("flood        {flood}")));
    text.push(String::new());
    text.join("\n")
}

struct Pen {
    colour: bool,
    width: usize,
}

impl Pen {
    fn paint(&self, words: &str, code: &str) -> String {
        paint(words, code, self.colour)
    }

    fn heading(&self, document: &Document) -> Vec<String> {
        let target = words::harmless(&document.target);
        let length = match document.seconds {
            short if short < 1.0 => words::time_ns(short * 1e9),
            seconds => format!("{seconds:.1} s"),
        };
        let mut text = vec![self.paint(&format!("{target}, {length}"), LOUD)];
        let mut rest: Vec<String> = match &document.lanes[..] {
            [main, ..] => vec![words::harmless(&main.description)],
            [] => Vec::new(),
        };
        rest.push(words::harmless(&document.engine));
        text.extend(wrap(&rest.join("; "), self.width).iter().map(|line| self.paint(line, QUIET)));
        text
    }

    fn warnings(&self, warnings: &[String]) -> Vec<String> {
        let mut text = Vec::new();
        for warning in warnings {
            text.push(String::new());
            let wrapped = wrap(&format!("WARNING: {}", words::harmless(warning)), self.width);
            text.extend(wrapped.iter().map(|line| self.paint(line, BAD)));
        }
        text
    }

    /// What was offered, and every way in which some of it ended.
    fn ends(&self, document: &Document) -> Vec<String> {
        let counts = document.main.counts;
        let rate = |count: u64| {
            if document.seconds > 0.0 { words::per_s(count as f64 / document.seconds) } else { String::new() }
        };
        let mut rows = vec![vec!["offered".to_owned(), words::count(counts.offered), rate(counts.offered)]];
        let mut codes = vec![LOUD];
        for end in ENDS.iter().filter(|end| end.get(&counts) > 0 || end.name == "in_time") {
            let count = end.get(&counts);
            let share = words::share(count, counts.offered);
            rows.push(vec![end.words.to_owned(), words::count(count), rate(count), share]);
            codes.push(code(end));
        }
        let aligns = [Align::Left, Align::Right, Align::Right, Align::Right];
        let table = lines(&rows, &aligns);
        let mut text: Vec<String> =
            table.iter().zip(codes).map(|(line, code)| self.paint(line, code)).collect();
        text.extend(does_not_add_up(&counts).iter().map(|words| self.paint(words, BAD)));
        text
    }

    fn times(&self, figures: &Figures) -> Vec<String> {
        let mut rows = vec![["", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned).to_vec()];
        let kinds = [
            ("latency", &figures.latency_ms),
            ("first byte", &figures.first_byte_ms),
            ("connect", &figures.connect_ms),
            ("handshake", &figures.handshake_ms),
            ("drift", &figures.drift_ms),
        ];
        for (name, percentiles) in kinds {
            if percentiles.max.is_some() || name == "latency" {
                rows.push(percentile_row(name, percentiles));
            }
        }
        let aligns = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];
        let table = lines(&rows, &aligns);
        let code = |index: usize| match index {
            1 => LOUD,
            _ => QUIET,
        };
        table.iter().enumerate().map(|(index, line)| self.paint(line, code(index))).collect()
    }

    /// Answers by status, connections and bytes.
    fn rest(&self, document: &Document) -> Vec<String> {
        let main = &document.main;
        let per_s = |bytes: u64| words::bytes(bytes as f64 / document.seconds.max(f64::MIN_POSITIVE));
        let mut parts = vec![("answers", statuses(main))];
        let again = match main.syn_retransmitted {
            0 => String::new(),
            again => format!("; {} SYN sent again", words::count(again)),
        };
        parts.push((
            "connections",
            format!(
                "{} begun, {} made{again}",
                words::count(main.connections_begun),
                words::count(main.connections_made)
            ),
        ));
        if main.handshakes + main.handshakes_failed > 0 {
            parts.push(("handshakes", handshakes(main)));
        }
        parts.push((
            "bytes",
            format!(
                "{} received ({}/s), {} sent",
                words::bytes(main.received_bytes as f64),
                per_s(main.received_bytes),
                words::bytes(main.sent_bytes as f64)
            ),
        ));
        parts.iter().flat_map(|(name, words)| self.named(name, words)).collect()
    }

    /// A name, and words beside it in as many lines as they need.
    fn named(&self, name: &str, words: &str) -> Vec<String> {
        let indent = "connections".len() + 2;
        let wrapped = wrap(words, self.width - indent);
        let name = |index: usize| if index == 0 { name } else { "" };
        wrapped.iter().enumerate().map(|(index, line)| format!("{:<indent$}{line}", name(index))).collect()
    }

    fn quiet(&self, words: &str) -> Vec<String> {
        wrap(words, self.width).iter().map(|line| self.paint(line, QUIET)).collect()
    }

    /// The lanes beside the main one. Their ends are in no figure above.
    fn beside(&self, lanes: &[LaneDocument]) -> Vec<String> {
        let header = ["beside it", "offered", "in time", "", "errors", "waiting", "held", "p50", "p99"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for lane in lanes {
            let counts = lane.figures.counts;
            let latency = &lane.figures.latency_ms;
            rows.push(vec![
                words::harmless(&lane.name),
                words::count(counts.offered),
                words::count(counts.in_time),
                words::share(counts.in_time, counts.offered),
                words::count(counts.errors()),
                words::count(counts.unfinished),
                lane.held.map_or_else(|| "-".to_owned(), words::count),
                words::time_ms_or_dash(latency.p50),
                words::time_ms_or_dash(latency.p99),
            ]);
        }
        let right = [Align::Right; 8];
        let aligns: Vec<Align> = [Align::Left].into_iter().chain(right).collect();
        let mut text = lines(&rows, &aligns);
        text[0] = self.paint(&text[0], QUIET);
        text
    }
}

/// How an end is coloured.
fn code(end: &CountField) -> &'static str {
    match end.name {
        "in_time" => GOOD,
        _ if is_error(end) => BAD,
        _ => CARE,
    }
}

/// What is said when ends are missing or counted twice: then no figure can be believed.
fn does_not_add_up(counts: &Counts) -> Option<String> {
    let settled = counts.settled();
    (settled != counts.offered).then(|| {
        format!(
            "These do not add up: {} offered, {} settled. This is a fault of the generator.",
            words::count(counts.offered),
            words::count(settled)
        )
    })
}

fn percentile_row(name: &str, percentiles: &Percentiles) -> Vec<String> {
    let Percentiles { p50, p90, p99, p999, max, .. } = *percentiles;
    let times = [p50, p90, p99, p999, max].map(words::time_ms_or_dash);
    [name.to_owned()].into_iter().chain(times).collect()
}

/// Handshakes of TLS, how many resumed a session, and what they came to.
fn handshakes(main: &Figures) -> String {
    let failed = match main.handshakes_failed {
        0 => String::new(),
        failed => format!(", {} failed", words::count(failed)),
    };
    let suites: Vec<String> = main.tls.suites.keys().map(|suite| words::harmless(suite)).collect();
    let suites = if suites.is_empty() { String::new() } else { format!("; {}", suites.join(", ")) };
    format!(
        "{} made, {} of them resumed{failed}{suites}",
        words::count(main.handshakes),
        words::count(main.handshakes_resumed)
    )
}

fn statuses(figures: &Figures) -> String {
    if figures.statuses.is_empty() {
        return "none".to_owned();
    }
    let words = |(status, count): (&String, &u64)| format!("{status}: {}", words::count(*count));
    figures.statuses.iter().map(words).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn warnings_stand_first_and_colour_only_when_asked() {
        let outcome = made_up::overload();
        let plain = summary(&outcome, false, 80);
        assert!(!plain.contains('\u{1b}'));
        let warning = plain.find("WARNING: The generator was behind").unwrap();
        assert!(warning < plain.find("offered").unwrap());
        let coloured = summary(&outcome, true, 80);
        assert!(coloured.contains("\u{1b}[31;1mWARNING"));
        assert_eq!(console::strip_ansi_codes(&coloured), plain);
    }

    #[test]
    fn lines_fit_and_every_end_that_happened_is_named() {
        let outcome = made_up::overload();
        for width in [60, 80, 200] {
            let text = summary(&outcome, false, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width.max(76), "{width}: {line}");
            }
            let counts = outcome.counts();
            for end in ENDS.iter().filter(|end| end.get(&counts) > 0) {
                let line = text.lines().find(|line| line.starts_with(end.words)).unwrap();
                assert!(line.contains(&words::count(end.get(&counts))), "{line}");
            }
            assert!(!text.contains("unsent") && !text.contains("add up"));
        }
    }

    #[test]
    fn what_does_not_add_up_is_said_and_words_from_outside_are_harmless() {
        let mut outcome = made_up::overload();
        outcome.lanes[0].counts.offered += 1;
        outcome.target = "http://x/\u{1b}[2J".to_owned();
        outcome.lanes[0].name = "a\u{7}".to_owned();
        let text = summary(&outcome, false, 80);
        assert!(text.contains("These do not add up: "));
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
    }

    #[test]
    fn lanes_beside_are_in_no_figure_of_the_main_one() {
        let mut outcome = made_up::overload();
        let alone = outcome.lanes[0].clone();
        (outcome.lanes[1].name, outcome.lanes[1].held) = ("hold:20".to_owned(), Some(17));
        let text = summary(&outcome, false, 80);
        let (upper, lower) = text.split_at(text.find("beside it").unwrap());
        outcome.lanes = vec![alone];
        assert_eq!(summary(&outcome, false, 80).trim_end(), upper.trim_end());
        let line = lower.lines().find(|line| line.starts_with("hold:20")).unwrap();
        assert!(line.split_whitespace().any(|cell| cell == "17"), "{line}");
    }

    #[test]
    fn late_starts_that_concern_the_highest_percentiles_alone_are_said_there() {
        let mut outcome = made_up::overload();
        let times = &mut outcome.lanes[0].times;
        (0..200).for_each(|_| times.drift.record(1_500_000_000));
        let text = summary(&outcome, false, 200);
        assert!(text.contains("p99.9 and max are partly the generator's"), "{text}");
    }

    #[test]
    fn a_run_without_an_answer_has_no_latency() {
        let mut outcome = made_up::overload();
        outcome.lanes.clear();
        let text = summary(&outcome, false, 80);
        assert!(
            text.lines().any(|line| line.split_whitespace().eq(["latency", "-", "-", "-", "-", "-"])),
            "{text}"
        );
        assert!(text.contains("answers      none"));
    }
}

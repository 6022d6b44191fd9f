//! The summary at the end of a run with readers: what was published, what became of it, how long it took.
//!
//! Warnings stand first, because they say whether the rest can be believed. It must never print a control
//! character that came from outside.

use staunch_figures::style::{BAD, CARE, GOOD, LOUD, QUIET, paint};
use staunch_figures::table::{Align, lines, wrap};
use staunch_figures::words;

use super::outcome::LiveOutcome;
use crate::histogram::Histogram;
use crate::report::document::Percentiles;

/// The narrowest terminal that lines are broken for.
const WIDTH_MIN: usize = 40;

/// Width of a line's name and the blanks behind it.
const NAME_WIDTH: usize = 13;

/// The summary, its last line break included, in lines of at most `width` characters as far as words allow.
pub fn summary(outcome: &LiveOutcome, colour: bool, width: usize) -> String {
    let pen = Pen { outcome, colour, width: width.max(WIDTH_MIN) };
    let mut text = pen.heading();
    text.extend(pen.warnings());
    text.push(String::new());
    text.extend(pen.deliveries());
    text.push(String::new());
    text.extend(pen.times());
    text.push(String::new());
    text.extend(pen.rest());
    text.push(String::new());
    text.join("\n")
}

struct Pen<'a> {
    outcome: &'a LiveOutcome,
    colour: bool,
    width: usize,
}

impl Pen<'_> {
    fn paint(&self, words: &str, code: &str) -> String {
        paint(words, code, self.colour)
    }

    fn heading(&self) -> Vec<String> {
        let outcome = self.outcome;
        let target = words::harmless(&outcome.target);
        let done = if outcome.published { "published" } else { "listened" };
        let heading = format!("{target}, {done} for {}", words::time_ns(outcome.lasted.as_nanos() as f64));
        let engine = words::harmless(&outcome.engine);
        let rest = format!("{} readers, {}; {engine}", words::count(outcome.readers), outcome.way.name());
        let mut text = vec![self.paint(&heading, LOUD)];
        text.extend(wrap(&rest, self.width).iter().map(|line| self.paint(line, QUIET)));
        text
    }

    fn warnings(&self) -> Vec<String> {
        let mut text = Vec::new();
        for warning in &self.outcome.warnings {
            text.push(String::new());
            let wrapped = wrap(&format!("WARNING: {}", words::harmless(warning)), self.width);
            text.extend(wrapped.iter().map(|line| self.paint(line, BAD)));
        }
        text
    }

    /// What was published, and what became of it at all readers together.
    fn deliveries(&self) -> Vec<String> {
        let outcome = self.outcome;
        let counts = &outcome.counts;
        let seconds = outcome.lasted.as_secs_f64();
        let rate = |count: u64| {
            if seconds > 0.0 { words::per_s(count as f64 / seconds) } else { String::new() }
        };
        let mut rows = Vec::new();
        let mut codes = Vec::new();
        if outcome.published {
            let published = outcome.publications.published;
            rows.push(vec!["published".to_owned(), words::count(published), rate(published)]);
            codes.push(LOUD);
        }
        rows.push(vec!["due".to_owned(), words::count(counts.due), rate(counts.due)]);
        codes.push(QUIET);
        let ends = [
            ("delivered", counts.delivered, true, GOOD),
            ("lost", counts.lost, true, if counts.lost > 0 { BAD } else { GOOD }),
            ("skipped", counts.skipped, outcome.may_skip, CARE),
            ("out of order", counts.out_of_order, true, if counts.out_of_order > 0 { BAD } else { GOOD }),
            ("duplicated", counts.duplicated, true, if counts.duplicated > 0 { BAD } else { GOOD }),
        ];
        for (name, count, is_shown, code) in ends {
            if is_shown {
                let share = words::share(count, counts.due);
                rows.push(vec![name.to_owned(), words::count(count), rate(count), share]);
                codes.push(code);
            }
        }
        let aligns = [Align::Left, Align::Right, Align::Right, Align::Right];
        let table = lines(&rows, &aligns);
        table.iter().zip(codes).map(|(line, code)| self.paint(line, code)).collect()
    }

    fn times(&self) -> Vec<String> {
        let mut rows = vec![["", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned).to_vec()];
        let times = &self.outcome.times;
        let kinds = [
            ("delay", &times.delay),
            ("publish", &times.publish),
            ("open", &times.open),
            ("drift", &times.drift),
        ];
        let measured = kinds.into_iter().filter(|(name, times)| times.count() > 0 || *name == "delay");
        rows.extend(measured.map(|(name, times)| times_row(name, times)));
        let mut aligns = [Align::Right; 6];
        aligns[0] = Align::Left;
        let code = |index: usize| if index == 1 { LOUD } else { QUIET };
        let table = lines(&rows, &aligns);
        table.iter().enumerate().map(|(index, line)| self.paint(line, code(index))).collect()
    }

    /// Readers, connections and bytes.
    fn rest(&self) -> Vec<String> {
        let outcome = self.outcome;
        let counts = &outcome.counts;
        let mut parts = vec![(
            "readers",
            format!(
                "{} there after {}, {}; {} at the end",
                words::count(outcome.gathered),
                words::time_ns(outcome.gathering.as_nanos() as f64),
                words::per_s(outcome.opened_per_s().round()),
                words::count(outcome.open_at_end)
            ),
        )];
        let ends = [
            ("cut", counts.cut),
            ("ended by the server", counts.ended),
            ("reset", counts.reset),
            ("refused", counts.refused),
            ("wrong answers", counts.wrong_answer),
            ("broken", counts.broken),
            ("failed", counts.failed),
            ("without descriptor or port", counts.unsent),
            ("returned", counts.returned),
            ("resumed", counts.resumed),
        ];
        let streams = named(&[("opened", counts.opened)], true).into_iter().chain(named(&ends, false));
        parts.push(("streams", streams.collect::<Vec<_>>().join(", ")));
        let beside = [
            ("without the last update", counts.without_last),
            ("of other runs", counts.foreign),
            ("without a mark", counts.unmarked),
            ("gap marks", counts.gap_marks),
            ("signs of life", counts.signs_of_life),
        ];
        let beside = named(&beside, false);
        if !beside.is_empty() {
            parts.push(("beside", beside.join(", ")));
        }
        let each = outcome.bytes_per_update().map(|bytes| format!("; {} an update", words::bytes(bytes)));
        let received = words::bytes(counts.received_bytes as f64);
        parts.push(("bytes", format!("{received} received{}", each.unwrap_or_default())));
        if let (Some((user, system)), Some(each)) = (outcome.server_ms, outcome.server_us_per_delivery()) {
            let text = format!("{user} ms outside the kernel, {system} ms in it; {each:.2} us a delivery");
            parts.push(("server", text));
        }
        parts.iter().flat_map(|(name, text)| self.part(name, text)).collect()
    }

    fn part(&self, name: &str, text: &str) -> Vec<String> {
        let wrapped = wrap(text, self.width.saturating_sub(NAME_WIDTH));
        let name = |index: usize| if index == 0 { name } else { "" };
        wrapped.iter().enumerate().map(|(at, line)| format!("{:<NAME_WIDTH$}{line}", name(at))).collect()
    }
}

fn named(counts: &[(&str, u64)], with_none: bool) -> Vec<String> {
    let shown = counts.iter().filter(|(_, count)| *count > 0 || with_none);
    shown.map(|(name, count)| format!("{} {name}", words::count(*count))).collect()
}

fn times_row(name: &str, histogram: &Histogram) -> Vec<String> {
    let Percentiles { p50, p90, p99, p999, max, .. } = Percentiles::of(histogram);
    let times = [p50, p90, p99, p999, max].map(words::time_ms_or_dash);
    std::iter::once(name.to_owned()).chain(times).collect()
}

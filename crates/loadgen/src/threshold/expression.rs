//! How a threshold is written, and what is said of one that is written otherwise.
//!
//! It must never guess: a time has a unit, a unit fits its metric, and a number without one has one meaning.

use crate::fault::Fault;
use crate::report::{CountField, find_count};

/// A threshold, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expression {
    /// What is measured.
    pub(super) metric: Metric,
    /// How it is compared.
    pub(super) operator: Operator,
    /// With what, in the base unit: nanoseconds, percent, a number, a number a second.
    pub(super) limit: f64,
    /// The unit's kind.
    pub(super) unit: Unit,
}

/// What is measured.
#[derive(Debug, Clone)]
pub(super) enum Metric {
    /// A duration.
    Time {
        /// Of which histogram.
        kind: TermKind,
        /// Which figure of it.
        figure: Figure,
    },
    /// Requests that did not end well.
    Errors,
    /// A field of the lane's counts.
    Count(&'static CountField),
    /// Answers with that status.
    Status(u16),
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Time { kind, figure }, Self::Time { kind: other_kind, figure: other_figure }) => {
                kind == other_kind && figure == other_figure
            }
            (Self::Errors, Self::Errors) => true,
            (Self::Count(one), Self::Count(other)) => one.name == other.name,
            (Self::Status(one), Self::Status(other)) => one == other,
            _ => false,
        }
    }
}

/// Of which histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TermKind {
    /// To the last byte of right answers.
    Complete,
    /// Until connected.
    Connect,
    /// From connected until the handshake of TLS is over.
    Handshake,
    /// To the first byte.
    FirstByte,
    /// The generator behind its schedule.
    Drift,
}

/// Which figure of a histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Figure {
    /// A percentile, 0 to 100.
    Percentile(f64),
    /// The longest.
    Max,
    /// The arithmetic mean.
    Mean,
}

/// How a measured value is compared with the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

/// In what a limit is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// `us`, `ms`, `s`.
    Nanoseconds,
    /// `%` of what was offered.
    Percent,
    /// `/s`.
    PerSecond,
    /// None.
    Number,
}

const METRICS: &str = "`p99` (or `max`, `mean`; also with `connect.`, `handshake.`, `first_byte.` or \
     `drift.` before it), `errors`, `goodput`, `rate`, a count such as `refused`, or `status.503`";

/// Reads `metric operator value`.
pub(super) fn parse(text: &str) -> Result<Expression, Fault> {
    let Some(operator_at) = text.find(['<', '>', '=', '!']) else {
        return Err(at(text, text.len(), "an operator is missing: `>`, `>=`, `<` or `<=`, as in `p99>20ms`"));
    };
    let (operator, value_at) = operator(text, operator_at)?;
    let metric_words = text[..operator_at].trim();
    let metric = metric(metric_words).ok_or_else(|| {
        at(text, start(text, 0), &format!("`{metric_words}` is not measured; there is {METRICS}"))
    })?;
    let (limit, unit) = match (limit(text, start(text, value_at))?, metric_words) {
        // A rate is a second, and a share in percent: a number alone has no other meaning.
        ((limit, Unit::Number), "rate") => (limit, Unit::PerSecond),
        ((limit, Unit::Number), "error_share") => (limit, Unit::Percent),
        (other, _) => other,
    };
    fit(text, value_at, metric_words, &metric, unit)?;
    Ok(Expression { metric, operator, limit, unit })
}

/// The operator at a place, and where it ends.
fn operator(text: &str, place: usize) -> Result<(Operator, usize), Fault> {
    let (operator, length) = match &text[place..] {
        rest if rest.starts_with(">=") => (Operator::AtLeast, 2),
        rest if rest.starts_with("<=") => (Operator::AtMost, 2),
        rest if rest.starts_with('>') => (Operator::Above, 1),
        rest if rest.starts_with('<') => (Operator::Below, 1),
        _ => return Err(at(text, place, "the operator has to be `>`, `>=`, `<` or `<=`")),
    };
    Ok((operator, place + length))
}

fn metric(words: &str) -> Option<Metric> {
    match words {
        "errors" | "error_share" => return Some(Metric::Errors),
        "rate" | "goodput" => return find_count("in_time").map(Metric::Count),
        _ => {}
    }
    if let Some(field) = find_count(words) {
        return Some(Metric::Count(field));
    }
    if let Some(status) = words.strip_prefix("status.") {
        let status = status.parse().ok().filter(|status| (100..=999).contains(status))?;
        return Some(Metric::Status(status));
    }
    let kinds = [
        ("connect.", TermKind::Connect),
        ("handshake.", TermKind::Handshake),
        ("first_byte.", TermKind::FirstByte),
        ("drift.", TermKind::Drift),
        ("", TermKind::Complete),
    ];
    let (rest, kind) =
        kinds.into_iter().find_map(|(prefix, kind)| Some((words.strip_prefix(prefix)?, kind)))?;
    let figure = match rest {
        "max" => Figure::Max,
        "mean" => Figure::Mean,
        _ => Figure::Percentile(percentile(rest.strip_prefix('p')?)?),
    };
    Some(Metric::Time { kind, figure })
}

/// Digits with at most one point, above 0 and up to 100.
fn percentile(words: &str) -> Option<f64> {
    let is_plain = words.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    words.parse().ok().filter(|percentile| is_plain && *percentile > 0.0 && *percentile <= 100.0)
}

/// The limit at a place, in its base unit.
fn limit(text: &str, place: usize) -> Result<(f64, Unit), Fault> {
    let words = text[place..].trim_end();
    let is_of_number = |one: char| one.is_ascii_digit() || one == '.';
    let digits = words.find(|one| !is_of_number(one)).unwrap_or(words.len());
    let number = words[..digits]
        .parse::<f64>()
        .map_err(|_| at(text, place, "a number has to stand here, as in `20ms`"))?;
    let unit_words = words[digits..].trim_start();
    let (factor, unit) = match unit_words {
        "us" => (1e3, Unit::Nanoseconds),
        "ms" => (1e6, Unit::Nanoseconds),
        "s" => (1e9, Unit::Nanoseconds),
        "%" => (1.0, Unit::Percent),
        "/s" => (1.0, Unit::PerSecond),
        "" => (1.0, Unit::Number),
        _ => {
            let words = format!("`{unit_words}` is no unit; there is `us`, `ms`, `s`, `%` and `/s`");
            return Err(at(text, place + words_end(&text[place..], unit_words), &words));
        }
    };
    Ok((number * factor, unit))
}

/// Where a part of a text begins that stands at its end.
fn words_end(text: &str, part: &str) -> usize {
    text.trim_end().len() - part.len()
}

/// Whether the limit can be compared with the metric.
fn fit(text: &str, value_at: usize, words: &str, metric: &Metric, unit: Unit) -> Result<(), Fault> {
    let fault =
        |wanted: &str| Err(at(text, start(text, value_at), &format!("`{words}` is compared with {wanted}")));
    let is_bytes_or_else = matches!(metric, Metric::Count(field) if field.unit != "requests");
    match (metric, unit) {
        (Metric::Time { .. }, Unit::Nanoseconds) => Ok(()),
        (Metric::Time { .. }, _) => fault("a time in `us`, `ms` or `s`"),
        (_, Unit::Nanoseconds) => fault("a number, alone or with `%` or `/s`"),
        (_, Unit::Percent) if words == "rate" => fault("a number with `/s`"),
        (_, Unit::PerSecond) if words == "error_share" => fault("a number with `%`"),
        (_, Unit::Percent) if is_bytes_or_else => fault("a number, alone or with `/s`"),
        _ => Ok(()),
    }
}

/// The first place from `from` on that is not blank.
fn start(text: &str, from: usize) -> usize {
    from + text[from..].len() - text[from..].trim_start().len()
}

fn at(text: &str, place: usize, words: &str) -> Fault {
    let column = text[..place].chars().count() + 1;
    Fault::new(format!("threshold `{text}`, character {column}: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read() {
        let time = |kind, figure| Metric::Time { kind, figure };
        let cases = [
            (
                "p99>20ms",
                time(TermKind::Complete, Figure::Percentile(99.0)),
                Operator::Above,
                20e6,
                Unit::Nanoseconds,
            ),
            (
                " connect.p99.9 >= 1.5 s ",
                time(TermKind::Connect, Figure::Percentile(99.9)),
                Operator::AtLeast,
                1.5e9,
                Unit::Nanoseconds,
            ),
            (
                "first_byte.mean<5us",
                time(TermKind::FirstByte, Figure::Mean),
                Operator::Below,
                5e3,
                Unit::Nanoseconds,
            ),
            ("drift.max<=1ms", time(TermKind::Drift, Figure::Max), Operator::AtMost, 1e6, Unit::Nanoseconds),
            ("errors > 1%", Metric::Errors, Operator::Above, 1.0, Unit::Percent),
            (
                "refused>10",
                Metric::Count(find_count("refused").unwrap()),
                Operator::Above,
                10.0,
                Unit::Number,
            ),
            (
                "rate<1000/s",
                Metric::Count(find_count("in_time").unwrap()),
                Operator::Below,
                1e3,
                Unit::PerSecond,
            ),
            (
                "rate<1000",
                Metric::Count(find_count("in_time").unwrap()),
                Operator::Below,
                1e3,
                Unit::PerSecond,
            ),
            ("error_share>3", Metric::Errors, Operator::Above, 3.0, Unit::Percent),
            ("status.503>0", Metric::Status(503), Operator::Above, 0.0, Unit::Number),
        ];
        for (text, metric, operator, limit, unit) in cases {
            assert_eq!(parse(text).unwrap(), Expression { metric, operator, limit, unit }, "{text}");
        }
    }

    #[test]
    fn what_is_written_otherwise_is_named_with_its_place() {
        let cases = [
            ("p99", 4, "an operator is missing"),
            ("", 1, "an operator is missing"),
            ("p99=20ms", 4, "the operator has to be"),
            ("p99>=", 6, "a number has to stand here"),
            ("p99 > fast", 7, "a number has to stand here"),
            ("p99>1.2.3ms", 5, "a number has to stand here"),
            ("p99>20", 5, "`p99` is compared with a time"),
            ("p99>20%", 5, "`p99` is compared with a time"),
            ("p99>20 minutes", 8, "`minutes` is no unit"),
            ("  p101>1ms", 3, "`p101` is not measured; there is `p99`"),
            ("p0>1ms", 1, "`p0` is not measured"),
            ("pinf>1ms", 1, "`pinf` is not measured"),
            ("status.7>1", 1, "`status.7` is not measured"),
            ("größe>1", 1, "`größe` is not measured"),
            (">1", 1, "`` is not measured"),
            ("errors>1ms", 8, "`errors` is compared with a number"),
            ("rate<1%", 6, "`rate` is compared with a number with `/s`"),
            ("error_share>3/s", 13, "`error_share` is compared with a number with `%`"),
            ("received_bytes<1%", 16, "`received_bytes` is compared with a number, alone"),
            ("p99>-1ms", 5, "a number has to stand here"),
        ];
        for (text, column, words) in cases {
            let error = parse(text).unwrap_err().to_string();
            let expected = format!("threshold `{text}`, character {column}: {words}");
            assert!(error.starts_with(&expected), "{error}\n{expected}");
        }
    }
}

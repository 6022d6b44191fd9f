//! A trace file: the times at which arrivals were recorded, one per line.
//!
//! It must never round up: what is finer than a nanosecond is dropped.

use std::sync::Arc;

use crate::Fault;

/// Times from here on are no longer exact in the arithmetic of a schedule: 2^53 ns, 104 days.
const TIME_NS_MAX: u64 = 1 << 53;

const FORM: &str = "write the time since the beginning, as `12.5` (seconds), `12500ms` or `12500000us`";

/// Reads a trace: a line has the time of one arrival since the beginning, in seconds (`0.0125`), with `ms` or
/// `us` (`12.5ms`) otherwise. What follows a `#` is a comment; empty lines do not count. Times never go back.
///
/// # Errors
/// Names line and column of the first word that is wrong. A trace without arrivals is one, too.
pub fn parse_trace(text: &str) -> Result<Arc<[u64]>, Fault> {
    let mut times: Vec<u64> = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let content = content.split('#').next().unwrap_or_default();
        let word = content.trim();
        if word.is_empty() {
            continue;
        }
        let indent = content.chars().take_while(|letter| letter.is_whitespace()).count();
        let fault = |place: usize, what: &str| {
            Fault::new(format!("trace, line {}, column {}: {what}", line + 1, indent + place + 1))
        };
        let time_ns = parse_time(word).map_err(|(place, what)| fault(place, what))?;
        if times.last().is_some_and(|last| *last > time_ns) {
            return Err(fault(0, "earlier than the arrival before: times must not go back"));
        }
        times.push(time_ns);
    }
    if times.is_empty() {
        return Err(Fault::new(format!("the trace has no arrivals: {FORM}, one a line")));
    }
    Ok(times.into())
}

/// The nanoseconds of one word; or in which of its characters what is wrong.
fn parse_time(word: &str) -> Result<u64, (usize, &'static str)> {
    const WRONG: &str =
        "not a time: write seconds since the beginning, as `12.5`, or `12500ms`, or `12500000us`";
    const LATE: &str = "later than 104 days";
    let letters = |end: usize| word[..end].chars().count();
    let end = word.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(word.len());
    let decimals = match &word[end..] {
        "" | "s" => 9,
        "ms" => 6,
        "us" => 3,
        _ => return Err((letters(end), WRONG)),
    };
    let (whole, fraction) = word[..end].split_once('.').unwrap_or((&word[..end], ""));
    if let Some(second) = fraction.find('.') {
        return Err((whole.len() + 1 + second, WRONG));
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err((0, WRONG));
    }
    let mut digits = whole.bytes().chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(decimals));
    let append = |value: u64, digit: u8| value.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let time_ns = digits.try_fold(0, append);
    time_ns.filter(|time_ns| *time_ns < TIME_NS_MAX).ok_or((0, LATE))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "# a Monday\n0\n0.000001\n  1.5ms # the same\n\n1500us\r\n.25\n1.\n1.0000000019\n60s\n";
        let times =
            [0, 1000, 1_500_000, 1_500_000, 250_000_000, 1_000_000_000, 1_000_000_001, 60_000_000_000];
        assert_eq!(parse_trace(text).as_deref(), Ok(&times[..]));
    }

    #[test]
    fn faults_name_line_and_column() {
        let table = [
            ("0\n1.5\n 1,5\n", "line 3, column 3: not a time"),
            ("x", "line 1, column 1: not a time"),
            ("1.5.2", "line 1, column 4: not a time"),
            (".", "line 1, column 1: not a time"),
            ("0\n-1", "line 2, column 1: not a time"),
            ("1 2", "line 1, column 2: not a time"),
            ("1e5", "line 1, column 2: not a time"),
            ("12min", "line 1, column 3: not a time"),
            ("2\n\n  1", "line 3, column 3: earlier"),
            ("9007200", "line 1, column 1: later than 104 days"),
            ("99999999999999999999999", "later than 104 days"),
            ("# nothing\n\n", "no arrivals"),
            ("", "no arrivals"),
        ];
        for (text, part) in table {
            let fault = parse_trace(text).expect_err(text).to_string();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }

    proptest! {
        #[test]
        fn seconds_with_nine_decimals_are_exact(mut times in prop::collection::vec(0..TIME_NS_MAX, 1..50)) {
            times.sort_unstable();
            let line = |time: &u64| format!("{}.{:09}\n", time / 1_000_000_000, time % 1_000_000_000);
            let text: String = times.iter().map(line).collect();
            prop_assert_eq!(parse_trace(&text), Ok(times.into()));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.mus #\\n\u{e9}-]{0,60}") {
            if let Ok(times) = parse_trace(&text) {
                prop_assert!(times.is_sorted());
            }
        }
    }
}

//! Figures as words, for people: three digits that matter, and a unit.
//!
//! It must never flatter: a share that is not whole is never rounded to 100 %, and one that is not 0 never to
//! 0.

/// A whole number with its digits in groups of three: `1 234 567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut words = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            words.push(' ');
        }
        words.push(digit);
    }
    words
}

/// A number with three digits that matter: `0.0123`, `1.23`, `12.3`, `123`, `12 345`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        _ if size >= 99.95 || size == 0.0 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.09995 => 3,
        _ if size >= 0.0005 => 4,
        _ => 6,
    };
    if decimals > 0 {
        return format!("{value:.decimals$}");
    }
    let sign = if value <= -0.5 { "-" } else { "" };
    format!("{sign}{}", count(size.round() as u64))
}

/// Something a second: `12 345/s`.
pub fn per_s(value: f64) -> String {
    format!("{}/s", number(value))
}

/// Nanoseconds in the unit that suits them: `812 us`, `1.30 ms`, `12.3 s`.
pub fn time_ns(ns: f64) -> String {
    match ns {
        _ if !ns.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        _ if ns < 999.5 => format!("{} ns", number(ns)),
        _ if ns < 999.5e3 => format!("{} us", number(ns / 1e3)),
        _ if ns < 999.5e6 => format!("{} ms", number(ns / 1e6)),
        _ => format!("{} s", number(ns / 1e9)),
    }
}

/// Milliseconds in the unit that suits them.
pub fn time_ms(ms: f64) -> String {
    time_ns(ms * 1e6)
}

/// Milliseconds that may not have been measured.
pub fn time_ms_or_dash(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), time_ms)
}

/// Bytes in the decimal unit that suits them.
pub fn bytes(value: f64) -> String {
    let (value, unit) = match value {
        _ if value < 999.5 => (value, "B"),
        _ if value < 999.5e3 => (value / 1e3, "kB"),
        _ if value < 999.5e6 => (value / 1e6, "MB"),
        _ if value < 999.5e9 => (value / 1e9, "GB"),
        _ => (value / 1e12, "TB"),
    };
    format!("{} {unit}", number(value))
}

/// A part of a whole in percent. Nothing when there is no whole.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        _ if part == 0 || part == whole => format!("{percent:.0} %"),
        _ if percent < 0.001 => "<0.001 %".to_owned(),
        _ if percent > 99.999 && percent < 100.0 => ">99.999 %".to_owned(),
        _ if percent > 100.0 => format!("{percent:.1} %"),
        _ if !(0.1..99.9).contains(&percent) => format!("{percent:.3} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// A share of 1 in percent, for an axis.
pub fn percent(share: f64) -> String {
    format!("{} %", trimmed(share * 100.0))
}

/// A number short enough for an axis: `250`, `10k`, `2.5M`.
pub fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size < 1e3 => (value, ""),
        size if size < 1e6 => (value / 1e3, "k"),
        size if size < 1e9 => (value / 1e6, "M"),
        _ => (value / 1e9, "G"),
    };
    format!("{}{unit}", trimmed(value))
}

/// A length of time for an axis: `0.1 ms`, `10 s`.
pub fn short_ms(ms: f64) -> String {
    let (value, unit) = match ms {
        0.0 => return "0".to_owned(),
        _ if ms < 0.000_999_9 => (ms * 1e6, "ns"),
        _ if ms < 0.999_9 => (ms * 1e3, "us"),
        _ if ms < 999.9 => (ms, "ms"),
        _ => (ms / 1e3, "s"),
    };
    format!("{} {unit}", trimmed(value))
}

/// Bytes for an axis.
pub fn short_bytes(value: f64) -> String {
    let words = short(value);
    let digits = words.trim_end_matches(char::is_alphabetic);
    format!("{digits} {}B", &words[digits.len()..])
}

/// Seconds for an axis.
pub fn seconds(value: f64) -> String {
    format!("{} s", trimmed(value))
}

fn trimmed(value: f64) -> String {
    let digits = if value.abs() < 0.1 { format!("{value:.4}") } else { format!("{value:.2}") };
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits,
    }
}

/// A figure so that no line breaks in it.
pub fn unbroken(words: &str) -> String {
    words.replace(' ', "\u{a0}")
}

/// Words that may go to a terminal: a control character could move its cursor or change its colours.
pub fn harmless(words: &str) -> String {
    words.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_that_matter() {
        let numbers = [
            (0.0, "0"),
            (0.00012, "0.000120"),
            (0.0123, "0.0123"),
            (0.123, "0.123"),
            (0.9996, "1.00"),
            (1.234, "1.23"),
            (9.996, "10.0"),
            (99.96, "100"),
            (12345.6, "12 346"),
            (-1234.0, "-1 234"),
            (-0.3, "-0.300"),
        ];
        for (value, expected) in numbers {
            assert_eq!(number(value), expected);
        }
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(u64::MAX), "18 446 744 073 709 551 615");
        let times =
            [(0.0, "0"), (812e3, "812 us"), (999.6e3, "1.00 ms"), (1.3e6, "1.30 ms"), (61e9, "61.0 s")];
        for (value, expected) in times {
            assert_eq!(time_ns(value), expected);
        }
        assert_eq!(bytes(1_234_567.0), "1.23 MB");
        assert_eq!(bytes(0.0), "0 B");
    }

    #[test]
    fn shares_do_not_flatter() {
        let shares = [
            (0, 10, "0 %"),
            (10, 10, "100 %"),
            (1, 1_000_000_000, "<0.001 %"),
            (999_999_999, 1_000_000_000, ">99.999 %"),
            (9_999, 10_000, "99.990 %"),
            (1, 2_000, "0.050 %"),
            (1, 3, "33.3 %"),
            (11, 10, "110.0 %"),
            (1, 0, ""),
        ];
        for (part, whole, expected) in shares {
            assert_eq!(share(part, whole), expected);
        }
    }

    #[test]
    fn axis_words_are_short() {
        let words: Vec<String> = [0.0, 0.5, 250.0, 2_500.0, 10_000.0, 1e6].map(short).to_vec();
        assert_eq!(words, ["0", "0.5", "250", "2.5k", "10k", "1M"]);
        let words: Vec<String> = [0.001, 0.1, 1.0, 100.0, 1_000.0, 10_000.0].map(short_ms).to_vec();
        assert_eq!(words, ["1 us", "100 us", "1 ms", "100 ms", "1 s", "10 s"]);
        assert_eq!([0.0, 500.0, 2e7].map(short_bytes), ["0 B", "500 B", "20 MB"]);
        assert_eq!([0.0, 0.2, 1.0].map(percent), ["0 %", "20 %", "100 %"]);
        assert_eq!(seconds(2.5), "2.5 s");
        assert_eq!(unbroken("1 000 ms"), "1\u{a0}000\u{a0}ms");
        assert_eq!(harmless("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}

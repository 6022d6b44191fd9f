//! A profile as people write it: `10k/s`, `100/s..10k/s over 30s`, `100/s for 10s, 1000/s for 10s`.
//!
//! It must never guess: a number without its unit is a rate a second or a time in seconds, nothing else.

use super::Profile;
use crate::Fault;

const FORMS: &str =
    "write `10k/s` or `600/m`, a ramp `100/s..10k/s over 30s`, or steps `100/s for 10s, 1k/s for 1m`";

/// Reads a rate (`10000/s`, `10k/s`, `1M/s`, `600/m`, `10/h`; without a unit it is a second), a ramp
/// (`RATE..RATE over TIME`) or steps (`RATE for TIME, RATE for TIME`). A time is `500ms`, `30s`, `1.5m` or
/// `2h`; without a unit it is seconds.
///
/// # Errors
/// Anything else; the sentence names the word and shows the right form. And a rate or a time that cannot be
/// offered.
pub fn parse_profile(text: &str) -> Result<Profile, Fault> {
    let profile = if let Some((from, rest)) = text.split_once("..") {
        let (to, over) = halves(rest, " over ", text)?;
        Profile::Ramp { from: rate(from, text)?, to: rate(to, text)?, over_s: time(over, text)? }
    } else if text.contains(" for ") || text.contains(',') {
        Profile::Steps(text.split(',').map(|step| parse_step(step, text)).collect::<Result<_, _>>()?)
    } else {
        Profile::Steady { rate_per_s: rate(text, text)? }
    };
    profile.check()?;
    Ok(profile)
}

fn parse_step(step: &str, text: &str) -> Result<(f64, f64), Fault> {
    let (left, right) = halves(step, " for ", text)?;
    Ok((rate(left, text)?, time(right, text)?))
}

fn halves<'a>(part: &'a str, word: &str, text: &str) -> Result<(&'a str, &'a str), Fault> {
    let missing = || fault(text, &format!("`{}` has no `{}` and a time", part.trim(), word.trim()));
    part.split_once(word).ok_or_else(missing)
}

/// Arrivals a second.
fn rate(word: &str, text: &str) -> Result<f64, Fault> {
    let word = word.trim();
    let wrong = || fault(text, &format!("`{word}` is not a rate"));
    let (count, unit) = word.split_once('/').unwrap_or((word, "s"));
    let per_s = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let (digits, thousands) = match count.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => count.strip_suffix('M').map_or((count, 1.0), |digits| (digits, 1e6)),
    };
    Ok(number(digits).ok_or_else(wrong)? * thousands / per_s)
}

/// Seconds.
fn time(word: &str, text: &str) -> Result<f64, Fault> {
    let word = word.trim();
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let read = units.iter().find_map(|(unit, seconds)| Some(number(word.strip_suffix(unit)?)? * seconds));
    read.ok_or_else(|| fault(text, &format!("`{word}` is not a time")))
}

/// A plain decimal number: what Rust reads as a number otherwise (`inf`, `1e5`, `-1`) has no place in a rate.
fn number(digits: &str) -> Option<f64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { digits.parse().ok() } else { None }
}

fn fault(text: &str, what: &str) -> Fault {
    Fault::new(format!("rate `{}`: {what}: {FORMS}", text.trim()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steady(rate_per_s: f64) -> Profile {
        Profile::Steady { rate_per_s }
    }

    #[test]
    fn what_is_written_is_read() {
        let table = [
            ("10000/s", steady(10_000.0)),
            (" 10k/s ", steady(10_000.0)),
            ("1.5M/s", steady(1.5e6)),
            ("600/m", steady(10.0)),
            ("100", steady(100.0)),
            ("10k", steady(10_000.0)),
            ("100..10k over 30", Profile::Ramp { from: 100.0, to: 10_000.0, over_s: 30.0 }),
            ("5 for 2, 7/s for 500ms", Profile::Steps(vec![(5.0, 2.0), (7.0, 0.5)])),
            ("36/h", steady(0.01)),
            ("0.001/s", steady(0.001)),
            ("100/s..10k/s over 30s", Profile::Ramp { from: 100.0, to: 10_000.0, over_s: 30.0 }),
            ("0/s .. 60/m over 500ms", Profile::Ramp { from: 0.0, to: 1.0, over_s: 0.5 }),
            ("100/s for 10s, 1k/s for 1.5m", Profile::Steps(vec![(100.0, 10.0), (1000.0, 90.0)])),
            ("5/s for 2h", Profile::Steps(vec![(5.0, 7200.0)])),
        ];
        for (text, profile) in table {
            assert_eq!(parse_profile(text), Ok(profile), "{text}");
        }
    }

    #[test]
    fn faults_name_the_word_and_the_right_form() {
        let table = [
            ("", "`` is not a rate"),
            ("100/d", "`100/d` is not a rate"),
            ("/s", "`/s` is not a rate"),
            ("1e5/s", "`1e5/s` is not a rate"),
            ("-5/s", "`-5/s` is not a rate"),
            ("inf/s", "`inf/s` is not a rate"),
            ("1..2/s", "`2/s` has no `over`"),
            ("1/s..2/s", "`2/s` has no `over`"),
            ("1/s..2/s over 5x", "`5x` is not a time"),
            ("1/s for s", "`s` is not a time"),
            ("1/s for 1s, 2/s", "`2/s` has no `for`"),
            ("1/s for 1s,", "`` has no `for`"),
        ];
        for (text, part) in table {
            let fault = parse_profile(text).expect_err(text).to_string();
            assert!(fault.contains(part) && fault.contains("10k/s"), "{text}: {fault}");
        }
        let senseless = [
            ("0/s", "no rate is above 0"),
            ("0/s for 5s, 0/s for 1s", "no rate is above 0"),
            ("2000M/s", "2000000000 arrivals a second"),
            ("1/s..2/s over 0s", "cannot last 0 s"),
        ];
        for (text, part) in senseless {
            let fault = parse_profile(text).expect_err(text).to_string();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }

    fn profiles() -> impl Strategy<Value = Profile> {
        let rate = || 0.001..1e7;
        let time = || 0.001..1e5;
        prop_oneof![
            rate().prop_map(steady),
            (rate(), rate(), time()).prop_map(|(from, to, over_s)| Profile::Ramp { from, to, over_s }),
            prop::collection::vec((rate(), time()), 1..5).prop_map(Profile::Steps),
        ]
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read_again(profile in profiles()) {
            prop_assert_eq!(parse_profile(&profile.to_string()), Ok(profile));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9kMsmh./, forve]{0,30}") {
            if let Ok(profile) = parse_profile(&text) {
                prop_assert_eq!(parse_profile(&profile.to_string()), Ok(profile));
            }
        }
    }
}

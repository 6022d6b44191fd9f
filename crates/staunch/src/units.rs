//! Rates, short times and arrivals as people write them, beside the durations that the configuration
//! knows too.

use staunch_loadgen::schedule::{self, Arrivals, Profile};

pub(crate) use staunch_config::units::{CpuList, count, cpu_list, duration};

/// A rate such as `1000/s`, `10k/s` or `600/m`, as so many a second.
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match profile(text) {
        Ok(Profile::Steady { rate_per_s }) => Ok(rate_per_s),
        _ => Err("write a rate such as 1000/s, 10k/s or 600/m".into()),
    }
}

/// A rate, a ramp or steps, see [`schedule::parse_profile`].
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn profile(text: &str) -> Result<Profile, String> {
    schedule::parse_profile(text).map_err(|fault| fault.to_string())
}

/// How starts are spread, see [`schedule::parse_arrivals`].
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn arrivals(text: &str) -> Result<Arrivals, String> {
    schedule::parse_arrivals(text).map_err(|fault| fault.to_string())
}

/// A short time such as `0.6us`, `50us`, `2ms` or `1s`, in seconds.
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn span_s(text: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let factor = match &text[digits.len()..] {
        "ns" => Some(1e-9),
        "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        _ => None,
    };
    let number = digits.trim().parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    factor
        .zip(number)
        .map(|(factor, number)| factor * number)
        .ok_or_else(|| "write a time above 0 such as 600ns, 0.6us, 2ms or 1s".to_owned())
}

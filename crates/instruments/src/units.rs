//! Rates and arrivals as people write them, beside the durations that the configuration knows too.

use staunch_loadgen::schedule::{self, Arrivals, Profile};

pub(crate) use staunch_config::units::{CpuList, count, cpu_list, duration, span_s};

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

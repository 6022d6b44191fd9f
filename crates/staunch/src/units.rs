//! Sizes, durations and addresses as people write them.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use staunch_loadgen::schedule::{self, Arrivals, Profile};

/// A size such as `256MiB`, `64k` or `0`, in bytes. `k`, `m`, `g`, `t` alone are binary, as with nginx.
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn size_bytes(text: &str) -> Result<u64, String> {
    let factor = |unit: &str| match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "t" | "tib" => Some(1u64 << 40),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "tb" => Some(1_000_000_000_000),
        _ => None,
    };
    quantity(text, factor).ok_or_else(|| "write a size such as 256MiB, 64KiB or 0".into())
}

/// A duration such as `15s`, `500ms`, `2m` or `1h`; a bare number is seconds.
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let factor = |unit: &str| match unit.to_ascii_lowercase().as_str() {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    match quantity(text, factor) {
        Some(0) => Err("a deadline of zero would close every connection at once".into()),
        Some(milliseconds) if milliseconds <= u64::from(u32::MAX) => Ok(Duration::from_millis(milliseconds)),
        Some(_) => Err("at most 49 days".into()),
        None => Err("write a duration such as 15s, 500ms, 2m or 1h".into()),
    }
}

/// A number with `k` or `m` (thousands, millions), or `auto`.
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn count_or_auto(text: &str) -> Result<Option<u64>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let factor = |unit: &str| match unit.to_ascii_lowercase().as_str() {
        "" => Some(1),
        "k" => Some(1_000),
        "m" => Some(1_000_000),
        _ => None,
    };
    match quantity(text, factor) {
        Some(count) if count > 0 => Ok(Some(count)),
        _ => Err("write auto, or a number such as 2, 20000 or 100k".into()),
    }
}

/// A number with `k` or `m` (thousands, millions).
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match count_or_auto(text) {
        Ok(Some(count)) => Ok(count),
        _ => Err("write a number such as 64, 10k or 1m".into()),
    }
}

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

/// An address such as `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, or a port alone (`8080`, `:8080`),
/// which means every IPv4 address of this host.
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::from(([0, 0, 0, 0], port)));
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let right = "write an address such as 127.0.0.1:8080, [::1]:8080 or a port such as 8080";
    text.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| right.into())
}

/// A list of processors such as `0,2-5`.
///
/// # Errors
/// A sentence that shows the right form.
pub(crate) fn cpu_list(text: &str) -> Result<CpuList, String> {
    let mut cpus = Vec::new();
    for piece in text.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            (Ok(first), Ok(last)) if first <= last && last < 4096 => cpus.extend(first..=last),
            _ => return Err("write processors such as 0,2 or 0-3".into()),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(CpuList(cpus))
}

/// Processors by number, in order. A type of its own so that the flag is one value, not a list of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuList(pub(crate) Vec<usize>);

fn quantity(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    number.parse::<u64>().ok()?.checked_mul(factor(unit.trim())?)
}

/// A size for people: 1536 is "1.5 KiB".
pub(crate) fn show_size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value.fract() >= 0.05);
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("0", 0), ("1", 1), ("64k", 65_536), ("256MiB", 256 << 20), ("2 GB", 2_000_000_000)]
        {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "1.5MiB", "12 parsecs", "99999999999999999999"] {
            assert!(size_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, ms) in [("15s", 15_000), ("500ms", 500), ("2m", 120_000), ("7", 7_000), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0s", "1y", "100d", "-3s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_and_lists() {
        assert_eq!(address("8080").unwrap().to_string(), "0.0.0.0:8080");
        assert_eq!(address(":8080").unwrap().to_string(), "0.0.0.0:8080");
        assert_eq!(address("[::1]:80").unwrap().to_string(), "[::1]:80");
        assert!(address("127.0.0.1").is_err());
        assert_eq!(cpu_list("0,2-4"), Ok(CpuList(vec![0, 2, 3, 4])));
        assert!(cpu_list("4-2").is_err() && cpu_list("a").is_err() && cpu_list("").is_err());
        assert_eq!(count_or_auto("auto"), Ok(None));
        assert_eq!(count_or_auto("100k"), Ok(Some(100_000)));
        assert!(count_or_auto("0").is_err());
    }

    #[test]
    fn shown_sizes() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (256 << 20, "256 MiB")] {
            assert_eq!(show_size(bytes), text);
        }
    }
}

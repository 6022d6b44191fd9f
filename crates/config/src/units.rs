//! Sizes, durations, counts and addresses as people write them. It must never look up a
//! name.

mod application;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use application::{Application, ServerAddress, Wire, WiredServer, wired_server};

/// Longer times than this are mistakes.
const TEN_YEARS_MS: u64 = 3_650 * 86_400_000;

/// A size such as `256MiB`, `64k` or `0`, in bytes. `k`, `m`, `g`, `t` alone are binary, as with nginx.
///
/// # Errors
/// A sentence that shows the right form.
pub fn size_bytes(text: &str) -> Result<u64, String> {
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
pub fn duration(text: &str) -> Result<Duration, String> {
    match quantity(text, unit_ms) {
        Some(0) => Err("a time of zero leaves no time for anything: write one above 0, such as 500ms".into()),
        Some(milliseconds) if milliseconds <= u64::from(u32::MAX) => Ok(Duration::from_millis(milliseconds)),
        Some(_) => Err("at most 49 days".into()),
        None => Err("write a duration such as 15s, 500ms, 2m or 1h".into()),
    }
}

/// A time that others keep, such as `1d`, `365d` or `0`: ten years at most.
///
/// # Errors
/// A sentence that shows the right form.
pub fn long_duration(text: &str) -> Result<Duration, String> {
    match quantity(text, unit_ms) {
        Some(milliseconds) if milliseconds <= TEN_YEARS_MS => Ok(Duration::from_millis(milliseconds)),
        Some(_) => Err("at most 3650 days".into()),
        None => Err("write a time such as 1d, 365d or 0".into()),
    }
}

/// A short time such as `0.6us`, `50us`, `2ms` or `1s`, in seconds.
///
/// # Errors
/// A sentence that shows the right form.
pub fn span_s(text: &str) -> Result<f64, String> {
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

/// A unit of time in milliseconds; none is a second.
fn unit_ms(unit: &str) -> Option<u64> {
    match unit.to_ascii_lowercase().as_str() {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    }
}

/// A number with `k` or `m` (thousands, millions), or `auto`.
///
/// # Errors
/// A sentence that shows the right form.
pub fn count_or_auto(text: &str) -> Result<Option<u64>, String> {
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
pub fn count(text: &str) -> Result<u64, String> {
    match count_or_auto(text) {
        Ok(Some(count)) => Ok(count),
        _ => Err("write a number such as 64, 10k or 1m".into()),
    }
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddress {
    /// A port at every address of this host, IPv4 and IPv6.
    Every(u16),
    /// An address of this host and a port; port 0 takes a free one.
    Socket(SocketAddr),
    /// A name and a port, to be looked up at start: `localhost:8080`.
    Name(String),
    /// The whole name of a socket file: `unix:/run/staunch.sock`.
    Unix(PathBuf),
    /// A socket that was handed over by the one who started the server, by name or number: `fd:http`, `fd:3`.
    Handed(String),
}

impl std::fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Every(port) => port.fmt(formatter),
            Self::Socket(address) => address.fmt(formatter),
            Self::Name(name) => formatter.write_str(name),
            Self::Unix(file) => write!(formatter, "unix:{}", file.display()),
            Self::Handed(name) => write!(formatter, "fd:{name}"),
        }
    }
}

/// An address such as `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, a port alone (`8080`, `:8080`), which
/// means every address of this host, a socket file (`unix:/run/staunch.sock`), or a socket handed over
/// (`fd:http`).
///
/// # Errors
/// A sentence that shows the right form.
pub fn address(text: &str) -> Result<ListenAddress, String> {
    if let Some(file) = text.strip_prefix("unix:") {
        return socket_file(file).map(ListenAddress::Unix);
    }
    if text.starts_with('/') {
        return Err(format!("write unix:{text} for a socket file"));
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(ListenAddress::Every(port));
    }
    if let Ok(address) = text.parse() {
        return Ok(ListenAddress::Socket(address));
    }
    let is_name = |name: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        !name.is_empty() && name.bytes().all(inside)
    };
    match text.rsplit_once(':') {
        Some(("fd", name)) if is_name(name) => Ok(ListenAddress::Handed(name.into())),
        Some((name, port))
            if is_name(name) && name.parse::<u64>().is_err() && port.parse::<u16>().is_ok() =>
        {
            Ok(ListenAddress::Name(text.into()))
        }
        _ => Err("write an address such as 127.0.0.1:8080, [::1]:8080 or a port such as 8080".into()),
    }
}

/// The longest name of a socket file (sun_path of unix(7), which ends with a NUL).
const SOCKET_NAME_BYTES_MAX: usize = 107;

/// The whole name of a socket file.
///
/// # Errors
/// A sentence that shows the right form, or says how long it may be.
pub(crate) fn socket_file(text: &str) -> Result<PathBuf, String> {
    // A socket is made beside its name, under a longer one.
    let most = SOCKET_NAME_BYTES_MAX - ".4294967295".len();
    if !text.starts_with('/') || text.ends_with('/') || text.contains('\0') {
        return Err("write the whole name of a socket file, such as unix:/run/staunch/http.sock".into());
    }
    if text.len() > most {
        return Err(format!("a socket's name has at most {most} bytes"));
    }
    Ok(text.into())
}

/// A mode of a file, as chmod(1) takes it: `0660`, `666`.
///
/// # Errors
/// A sentence that shows the right form.
pub fn mode(text: &str) -> Result<u32, String> {
    let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| is_octal && *mode <= 0o777);
    mode.ok_or_else(|| "write a mode in quotes, as for chmod: \"0660\" or \"0666\"".into())
}

/// A list of processors such as `0,2-5`.
///
/// # Errors
/// A sentence that shows the right form.
pub fn cpu_list(text: &str) -> Result<CpuList, String> {
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
pub struct CpuList(
    /// The numbers.
    pub Vec<usize>,
);

fn quantity(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    number.parse::<u64>().ok()?.checked_mul(factor(unit.trim())?)
}

/// A size for people: 1536 is "1.5 KiB".
pub fn show_size(bytes: u64) -> String {
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

/// A duration as [`duration`] reads it, in the largest unit that is exact.
pub fn write_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let exact = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match exact.iter().find(|(length, _)| milliseconds >= *length && milliseconds.is_multiple_of(*length)) {
        Some((length, unit)) => format!("{}{unit}", milliseconds / length),
        None => format!("{milliseconds}ms"),
    }
}

/// A size as [`size_bytes`] reads it, in the largest unit that is exact.
pub fn write_size(bytes: u64) -> String {
    let exact = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match exact.iter().find(|(length, _)| bytes >= *length && bytes.is_multiple_of(*length)) {
        Some((length, unit)) => format!("{}{unit}", bytes / length),
        None => bytes.to_string(),
    }
}

/// A list of processors as [`cpu_list`] reads it.
pub fn write_cpu_list(list: &CpuList) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in &list.0 {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let run = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(run).collect::<Vec<String>>().join(",")
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
        for (text, seconds) in [("0", 0), ("1d", 86_400), ("365d", 31_536_000)] {
            assert_eq!(long_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "1y", "3651d", "-1"] {
            assert!(long_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn short_times() {
        let written = ["600ns", "0.6us", "2ms", "1s"].map(|text| span_s(text).unwrap());
        for (read, expected) in written.into_iter().zip([6e-7, 6e-7, 2e-3, 1.0]) {
            assert!((read - expected).abs() < 1e-12, "{read}");
        }
        for wrong in ["", "0s", "-1ms", "5", "1m", "inf s", "nan s"] {
            assert!(span_s(wrong).unwrap_err().contains("600ns"), "{wrong}");
        }
    }

    #[test]
    fn addresses_and_lists() {
        let socket = |text: &str| Ok(ListenAddress::Socket(text.parse().expect("an address")));
        assert_eq!(address("8080"), Ok(ListenAddress::Every(8080)));
        assert_eq!(address(":8080"), Ok(ListenAddress::Every(8080)));
        assert_eq!(address("[::1]:80"), socket("[::1]:80"));
        assert_eq!(address("localhost:80"), Ok(ListenAddress::Name("localhost:80".into())));
        assert_eq!(address("fd:http"), Ok(ListenAddress::Handed("http".into())));
        for text in ["", "127.0.0.1", "127.0.0.1:99999", "nowhere", "a b:80", "fd:", "::1:80x", "1:2"] {
            assert!(address(text).is_err(), "{text}");
        }
        assert_eq!(cpu_list("0,2-4"), Ok(CpuList(vec![0, 2, 3, 4])));
        assert!(cpu_list("4-2").is_err() && cpu_list("a").is_err() && cpu_list("").is_err());
        assert_eq!(count_or_auto("auto"), Ok(None));
        assert_eq!(count_or_auto("100k"), Ok(Some(100_000)));
        assert!(count_or_auto("0").is_err());
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["1500ms", "15s", "2m", "36h", "7d"] {
            assert_eq!(write_duration(duration(text).unwrap()), text);
        }
        for text in ["0", "100", "1000001", "64KiB", "256MiB", "3TiB"] {
            assert_eq!(write_size(size_bytes(text).unwrap()), text);
        }
        for text in ["0", "0,2-5", "1,3,5-6"] {
            assert_eq!(write_cpu_list(&cpu_list(text).unwrap()), text);
        }
    }

    #[test]
    fn shown_sizes() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (256 << 20, "256 MiB")] {
            assert_eq!(show_size(bytes), text);
        }
    }
}

//! What load generators print, read into figures.
//!
//! It owns the words of wrk, ab, oha, `staunch load hold` and `staunch load flood`. It must never run
//! anything, and never make a number of something that was not said.

use serde::Deserialize;

use crate::load::parse_wrk;

/// What a load generator says that a run was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Said {
    /// Requests answered in full.
    pub(crate) answered: u64,
    /// Of them, a second.
    pub(crate) per_second: f64,
    /// Half of the answers took at most so long, in ms; ab tells it in whole ones.
    pub(crate) p50_ms: f64,
    /// All but one of a hundred did.
    pub(crate) p99_ms: f64,
    /// All but one of a thousand did; wrk does not say.
    pub(crate) p999_ms: Option<f64>,
}

/// What `staunch load hold --json` writes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Held {
    pub(crate) wanted: u64,
    pub(crate) held: u64,
    /// When all stood; none if they never did.
    pub(crate) seconds: Option<f64>,
    pub(crate) ended: u64,
    pub(crate) client_bytes_each: f64,
    pub(crate) machine_bytes_each: f64,
}

impl Held {
    /// Reads it.
    ///
    /// # Errors
    /// Text that is something else.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("staunch load hold wrote no report: {error}"))
    }
}

/// What `staunch load flood --json` writes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Flooded {
    pub(crate) sent: u64,
    pub(crate) seconds: f64,
    pub(crate) rate_per_s: f64,
    pub(crate) method: String,
}

impl Flooded {
    /// Reads it.
    ///
    /// # Errors
    /// Text that is something else.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("staunch load flood wrote no report: {error}"))
    }
}

/// Reads what `wrk --latency` prints.
///
/// # Errors
/// A request that failed, or output that is not wrk's.
pub(crate) fn wrk(text: &str) -> Result<Said, String> {
    let answered = parse_wrk(text)?;
    let percentile = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line.and_then(|time| milliseconds(time.trim())).ok_or_else(|| format!("wrk printed no {name}"))
    };
    Ok(Said {
        answered: answered.requests,
        per_second: answered.per_second,
        p50_ms: percentile("50%")?,
        p99_ms: percentile("99%")?,
        p999_ms: None,
    })
}

/// Reads what `ab -q` prints.
///
/// # Errors
/// A request that failed, another status than 2xx, or output that is not ab's.
pub(crate) fn ab(text: &str) -> Result<Said, String> {
    let number = |name: &str| {
        let rest = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    let said = |name: &str| number(name).ok_or_else(|| format!("ab printed no {name}"));
    let lost = said("Failed requests:")? + number("Non-2xx responses:").unwrap_or(0.0);
    if lost > 0.0 {
        return Err(format!("ab: {lost} requests lost"));
    }
    Ok(Said {
        answered: said("Complete requests:")? as u64,
        per_second: said("Requests per second:")?,
        p50_ms: said("50%")?,
        p99_ms: said("99%")?,
        p999_ms: None,
    })
}

/// A time as wrk writes it.
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("us", 0.001), ("ms", 1.0), ("s", 1000.0), ("m", 60_000.0), ("h", 3_600_000.0)];
    units.iter().find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
}

/// Reads what `oha --output-format json` prints. Requests under way at the end are no failure.
///
/// # Errors
/// A request that failed, another status than 200, or output that is not oha's.
pub(crate) fn oha(text: &str) -> Result<Said, String> {
    const UNDER_WAY: &str = "aborted due to deadline";
    let document: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("oha wrote no JSON: {error}"))?;
    let counts = |pointer: &str| -> Vec<(String, u64)> {
        let object = document.pointer(pointer).and_then(serde_json::Value::as_object);
        let entries = object.into_iter().flatten();
        entries.map(|(name, count)| (name.clone(), count.as_u64().unwrap_or(0))).collect()
    };
    let faults = counts("/errorDistribution").into_iter().filter(|(name, _)| name != UNDER_WAY);
    let strangers = counts("/statusCodeDistribution").into_iter().filter(|(status, _)| status != "200");
    if let Some((name, count)) = faults.chain(strangers).next() {
        return Err(format!("oha: {name}: {count} times"));
    }
    let number = |pointer: &str| {
        let value = document.pointer(pointer).and_then(serde_json::Value::as_f64);
        value.ok_or_else(|| format!("oha wrote no {pointer}"))
    };
    Ok(Said {
        answered: counts("/statusCodeDistribution").iter().map(|(_, count)| count).sum(),
        per_second: number("/summary/requestsPerSec")?,
        p50_ms: 1000.0 * number("/latencyPercentiles/p50")?,
        p99_ms: 1000.0 * number("/latencyPercentiles/p99")?,
        p999_ms: Some(1000.0 * number("/latencyPercentiles/p99.9")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "Running 2s test @ http://127.0.0.1:1/\n  1 threads and 64 connections\n\
        \x20 Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
        \x20   Latency   573.32us  140.55us   4.97ms   91%\n\
        \x20 Latency Distribution\n     50%  549.00us\n     75%  590.00us\n\
        \x20    90%  658.00us\n     99%    1.16ms\n\
        \x20 89250 requests in 2.01s, 446.09MB read\nRequests/sec:  44402.98\n";

    #[test]
    fn what_wrk_prints_is_read() {
        let said = wrk(WRK).expect("wrk's words");
        assert_eq!((said.answered, said.per_second), (89_250, 44_402.98));
        assert!((said.p50_ms - 0.549).abs() < 1e-9 && (said.p99_ms - 1.16).abs() < 1e-9);
        let error = wrk(&WRK.replace("99%", "98%")).expect_err("no 99%");
        assert_eq!(error, "wrk printed no 99%");
    }

    #[test]
    fn what_ab_prints_is_read() {
        let text = "Concurrency Level:      8\nTime taken for tests:   0.051 seconds\n\
            Complete requests:      100\nFailed requests:        0\nKeep-Alive requests:    100\n\
            Requests per second:    1957.64 [#/sec] (mean)\n\
            Percentage of the requests served within a certain time (ms)\n  50%      4\n  99%      5\n";
        let read = ab(text).expect("ab's words");
        assert_eq!((read.answered, read.per_second, read.p99_ms), (100, 1957.64, 5.0));
        let failed = text.replace("Failed requests:        0", "Failed requests:        2");
        assert_eq!(ab(&failed), Err("ab: 2 requests lost".to_owned()));
        let other = text.replace("Failed requests:        0", "Failed requests: 0\nNon-2xx responses: 100");
        assert!(ab(&other).is_err() && ab("nothing").is_err());
    }

    #[test]
    fn times_of_every_unit() {
        let times = ["250us", "1.50ms", "2s", "1m", "x"].map(milliseconds);
        assert_eq!(times, [Some(0.25), Some(1.5), Some(2000.0), Some(60_000.0), None]);
    }

    #[test]
    fn what_oha_prints_is_read_and_no_failure_is_hidden() {
        let json = |status: &str, fault: &str| {
            format!(
                r#"{{"summary":{{"requestsPerSec":50.5}},
                 "latencyPercentiles":{{"p50":0.001,"p99":0.002,"p99.9":0.003}},
                 "statusCodeDistribution":{{"200":99,"{status}":1}},"errorDistribution":{{"{fault}":7}}}}"#
            )
        };
        let said =
            oha(&json("200", "aborted due to deadline").replace(",\"200\":1", "")).expect("oha's words");
        assert_eq!((said.answered, said.per_second, said.p50_ms), (99, 50.5, 1.0));
        assert_eq!(said.p999_ms, Some(3.0));
        assert_eq!(oha(&json("404", "aborted due to deadline")), Err("oha: 404: 1 times".to_owned()));
        assert!(oha(&json("200", "connection refused")).is_err());
        assert!(oha("{}").is_err());
    }

    #[test]
    fn reports_of_holding_and_flooding_are_read() {
        let held = r#"{"wanted":10,"held":9,"seconds":1.5,"ended":1,"client_bytes_each":80.0,
            "machine_bytes_each":5000.0,"run":{}}"#;
        assert_eq!(Held::read(held).map(|held| held.held), Ok(9));
        let flooded = r#"{"sent":10,"seconds":2.0,"rate_per_s":5.0,"method":"XDP"}"#;
        assert_eq!(Flooded::read(flooded).map(|flooded| flooded.method), Ok("XDP".to_owned()));
        assert!(Held::read(flooded).is_err() && Flooded::read(held).is_err());
    }
}

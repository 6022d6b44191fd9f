//! What load generators print, read into figures.
//!
//! It owns the words of wrk, ab, oha and `staunch load`. It must never run anything, and never make a number
//! of something that was not said.

use serde::Deserialize;

use crate::load::parse_wrk;

/// What a load generator says that a run was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Said {
    /// Requests answered in full.
    pub(super) answered: u64,
    /// Of them, a second.
    pub(super) per_second: f64,
    /// Half of the answers took at most so long, in ms; ab tells it in whole ones.
    pub(super) p50_ms: f64,
    /// All but one of a hundred did.
    pub(super) p99_ms: f64,
    /// All but one of a thousand did; wrk does not say.
    pub(super) p999_ms: Option<f64>,
}

/// The top of what `staunch load --json` writes; see `docs/load.md`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Report {
    pub(super) offered: u64,
    pub(super) attempted: u64,
    pub(super) in_time: u64,
    pub(super) late: u64,
    pub(super) refused: u64,
    pub(super) reset: u64,
    pub(super) wrong_answer: u64,
    pub(super) timed_out: u64,
    pub(super) failed: u64,
    pub(super) unsent: u64,
    pub(super) unfinished: u64,
    #[serde(default)]
    pub(super) connections_begun: u64,
    #[serde(default)]
    pub(super) connections_ended: u64,
    pub(super) rate_per_s: f64,
    pub(super) latency_ms: Percentiles,
    pub(super) drift_ms: Percentiles,
    pub(super) warnings: Vec<String>,
    #[serde(default)]
    pub(super) moments: Moments,
}

/// The run in steps.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Moments {
    /// The end of each step, in ms since the beginning.
    at_ms: Vec<u64>,
    counts: MomentCounts,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct MomentCounts {
    in_time: Vec<u64>,
}

impl Moments {
    /// Right answers in time, a second, of the steps between two times in ms.
    pub(super) fn in_time_per_s(&self, from_ms: u64, to_ms: u64) -> f64 {
        let steps = self.at_ms.iter().zip(&self.counts.in_time);
        let answered: u64 =
            steps.filter(|(at, _)| (from_ms + 1..=to_ms).contains(at)).map(|step| step.1).sum();
        answered as f64 * 1000.0 / (to_ms - from_ms) as f64
    }
}

/// Percentiles in ms; none when nothing was measured.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Percentiles {
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) p999: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Report {
    /// Reads it.
    ///
    /// # Errors
    /// Text that is not such a report; says which field is missing.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("staunch load wrote no report: {error}"))
    }

    /// All ends of requests. Equals `offered` in a report that is right.
    pub(super) fn settled(&self) -> u64 {
        self.in_time + self.late + self.lost() + self.unsent + self.unfinished
    }

    /// Requests that were sent, and ended otherwise than by a right answer.
    pub(super) fn lost(&self) -> u64 {
        self.refused + self.reset + self.wrong_answer + self.timed_out + self.failed
    }

    /// The ends of requests that were not answered rightly, in words.
    pub(super) fn other_ends(&self) -> String {
        format!(
            "refused {}, reset {}, wrong answer {}, timed out {}, failed {}, unsent {}",
            self.refused, self.reset, self.wrong_answer, self.timed_out, self.failed, self.unsent
        )
    }

    /// What it says of the answers, whatever became of the other requests.
    ///
    /// # Errors
    /// There was no answer.
    pub(super) fn answers(&self) -> Result<Said, String> {
        let said = |percentile: Option<f64>| percentile.ok_or("staunch load got no answer");
        Ok(Said {
            answered: self.in_time + self.late,
            per_second: self.rate_per_s,
            p50_ms: said(self.latency_ms.p50)?,
            p99_ms: said(self.latency_ms.p99)?,
            p999_ms: self.latency_ms.p999,
        })
    }

    /// What it says of a run in which every request must be answered.
    ///
    /// # Errors
    /// A request that was lost or never sent.
    pub(super) fn said(&self) -> Result<Said, String> {
        let (lost, unsent) = (self.lost(), self.unsent);
        if lost + unsent > 0 {
            return Err(format!("staunch load: {lost} requests lost, {unsent} not sent"));
        }
        self.answers()
    }
}

/// What `staunch load hold --json` writes.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Held {
    pub(super) wanted: u64,
    pub(super) held: u64,
    /// When all stood; none if they never did.
    pub(super) seconds: Option<f64>,
    pub(super) ended: u64,
    pub(super) client_bytes_each: f64,
    pub(super) machine_bytes_each: f64,
}

impl Held {
    /// Reads it.
    ///
    /// # Errors
    /// Text that is something else.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("staunch load hold wrote no report: {error}"))
    }
}

/// What `staunch load flood --json` writes.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Flooded {
    pub(super) sent: u64,
    pub(super) seconds: f64,
    pub(super) rate_per_s: f64,
    pub(super) method: String,
}

impl Flooded {
    /// Reads it.
    ///
    /// # Errors
    /// Text that is something else.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("staunch load flood wrote no report: {error}"))
    }
}

/// Reads what `wrk --latency` prints.
///
/// # Errors
/// A request that failed, or output that is not wrk's.
pub(super) fn wrk(text: &str) -> Result<Said, String> {
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
pub(super) fn ab(text: &str) -> Result<Said, String> {
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
pub(super) fn oha(text: &str) -> Result<Said, String> {
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

    #[test]
    fn only_steps_between_the_two_times_count() {
        let moments = Moments {
            at_ms: vec![500, 1000, 1500, 2000, 2500],
            counts: MomentCounts { in_time: vec![1000, 1, 2, 3, 1000] },
        };
        assert!((moments.in_time_per_s(500, 2000) - 4.0).abs() < 1e-9);
    }

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
    fn a_report_of_ours_is_read_and_added_up() {
        let text = r#"{"command":"staunch load","offered":45,"attempted":44,"in_time":1,"late":2,"refused":3,
            "reset":4,"wrong_answer":5,"timed_out":6,"failed":7,"unsent":8,"unfinished":9,"rate_per_s":0.5,
            "latency_ms":{"p50":1.5,"p90":2.0,"p99":2.5,"p999":3.5,"max":4.5,"mean":null},
            "drift_ms":{"p50":null,"p90":null,"p99":null,"p999":0.25,"max":1.0,"mean":null},
            "warnings":["slow"]}"#;
        let report = Report::read(text).expect("a report");
        assert_eq!((report.settled(), report.lost()), (45, 25));
        assert_eq!((report.drift_ms.p999, report.drift_ms.p50), (Some(0.25), None));
        assert_eq!(report.said(), Err("staunch load: 25 requests lost, 8 not sent".to_owned()));
        assert_eq!(report.answers().map(|said| said.answered), Ok(3));
        let error = Report::read(&text.replace("unsent", "unset")).expect_err("a field is missing");
        assert!(error.contains("unsent"), "{error}");
    }

    #[test]
    fn a_report_without_losses_says_its_figures() {
        let latency_ms = Percentiles { p50: Some(1.0), p99: Some(2.0), p999: Some(3.0), max: Some(4.0) };
        let report = Report { in_time: 5, late: 1, rate_per_s: 2.5, latency_ms, ..Report::default() };
        let said = report.said().expect("no losses");
        assert_eq!((said.answered, said.per_second, said.p99_ms), (6, 2.5, 2.0));
        assert!(Report::default().said().is_err());
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

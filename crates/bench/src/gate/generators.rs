//! Load generators of others, in the clients' namespace: each request has a connection of its own, and is
//! good when it is rightly answered within a second.
//!
//! This file owns each generator's command line and the reading of its output. It must never judge, and
//! never take what a generator could not offer for what it did. Their account begins with their first
//! request: the beginning of an overload is in it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::bed::{Bed, WITH_PARENT};
use super::subject::url;
use crate::machine;

/// The client of Go, built for each run.
const CLIENT: &str = include_str!("../../../../bench/client.go");
/// Virtual users of k6, each of which has at most one request under way and takes a megabyte or two.
const USERS: u32 = 500;
/// Clients of ab, which ask again as soon as they were answered.
const CLIENTS: &str = "256";
/// More than ab can ask in a measurement; it keeps 40 bytes for each.
const ASKED_MAX: &str = "500000";
/// How long is waited for an answer, in milliseconds.
const PATIENCE_MS: f64 = 1000.0;
/// A generator has so many seconds more than it is meant to take: who does not end then is made to.
const LIMIT_MORE_S: f64 = 30.0;

/// Which generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generator {
    /// vegeta, by Go's net/http.
    Vegeta,
    /// k6, whose users are scripts.
    K6,
    /// Go's net/http as programs have it.
    Go,
    /// ab, which offers no rate: its clients are many and patient.
    Ab,
}

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CrowdSaid {
    /// Requests a second that it began.
    pub(crate) offered_per_s: f64,
    /// Right answers a second, within a second each.
    pub(crate) good_per_s: f64,
}

impl Generator {
    /// All, in the order of results.
    pub(crate) const ALL: [Self; 4] = [Self::Vegeta, Self::K6, Self::Go, Self::Ab];

    /// In files and plots.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Vegeta => "vegeta",
            Self::K6 => "k6",
            Self::Go => "net/http",
            Self::Ab => "ab",
        }
    }

    /// Whether it comes by the clock, whatever becomes of those before.
    pub(crate) fn keeps_rate(self) -> bool {
        self != Self::Ab
    }

    /// Whether it is on this machine; `tools` is where those stand that are built for measurements.
    pub(crate) fn is_installed(self, tools: &Path) -> bool {
        match self {
            Self::Vegeta => tools.join("vegeta").is_file(),
            Self::K6 => tools.join("k6").is_file(),
            Self::Go => machine::has("go"),
            Self::Ab => machine::has("ab"),
        }
    }

    /// Lets a crowd come at this rate for so long.
    ///
    /// # Errors
    /// A generator that fails, or prints something else.
    pub(crate) fn offer(
        self,
        bed: &Bed,
        tools: &Path,
        scratch: &Path,
        per_second: f64,
        seconds: f64,
    ) -> Result<CrowdSaid, String> {
        let folder = scratch.join("gate").join("generators");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let words = self.words(tools, &folder, per_second, seconds)?;
        let printed = run(bed, &words, seconds + LIMIT_MORE_S)?;
        match self {
            Self::Vegeta => {
                let report =
                    [&text(&tools.join("vegeta")), "report", "-type=json", &in_folder(&folder, RESULTS)];
                read_vegeta(&run(bed, &report.map(str::to_owned), LIMIT_MORE_S)?)
            }
            Self::K6 | Self::Go => counted(&printed),
            Self::Ab => ab(&printed, &read(&folder.join(TIMES))?),
        }
        .map_err(|error| format!("{}: {error}", self.text()))
    }

    fn words(
        self,
        tools: &Path,
        folder: &Path,
        per_second: f64,
        seconds: f64,
    ) -> Result<Vec<String>, String> {
        let (rate, length) = (format!("{per_second:.0}"), format!("{seconds:.0}"));
        let words = match self {
            Self::Vegeta => {
                let targets = in_folder(folder, "targets.txt");
                write(&folder.join("targets.txt"), &format!("GET {}\nAccept-Encoding: gzip\n", url()))?;
                vec![
                    text(&tools.join("vegeta")),
                    "attack".to_owned(),
                    format!("-rate={rate}/1s"),
                    format!("-duration={length}s"),
                    "-timeout=1s".to_owned(),
                    "-keepalive=false".to_owned(),
                    format!("-targets={targets}"),
                    format!("-output={}", in_folder(folder, RESULTS)),
                ]
            }
            Self::K6 => {
                write(&folder.join("crowd.js"), &k6_script(per_second, seconds))?;
                let words = ["run", "--quiet", "--no-usage-report", "--address", "", "--log-output", "none"];
                let program = [text(&tools.join("k6"))];
                let script = [in_folder(folder, "crowd.js")];
                program.into_iter().chain(words.map(str::to_owned)).chain(script).collect()
            }
            Self::Go => vec![built(folder)?, url(), rate, length],
            Self::Ab => {
                let words = ["ab", "-q", "-r", "-t", &length, "-n", ASKED_MAX, "-c", CLIENTS, "-s", "10"];
                let more = ["-H", "Accept-Encoding: gzip", "-g", &in_folder(folder, TIMES), &url()];
                words.iter().chain(&more).map(|word| (*word).to_owned()).collect()
            }
        };
        Ok(words)
    }
}

const RESULTS: &str = "vegeta.bin";
const TIMES: &str = "ab.tsv";

/// Each iteration is one request; those for which no user is free are counted by k6 as dropped, and are not
/// begun.
fn k6_script(per_second: f64, seconds: f64) -> String {
    let url = url();
    format!(
        r#"import http from "k6/http";
import {{ Counter }} from "k6/metrics";
const good = new Counter("good");
export const options = {{
    discardResponseBodies: true,
    noConnectionReuse: true,
    scenarios: {{ crowd: {{
        executor: "constant-arrival-rate", rate: {per_second:.0}, timeUnit: "1s", duration: "{seconds:.0}s",
        preAllocatedVUs: {USERS}, maxVUs: {USERS}, gracefulStop: "2s",
    }} }},
}};
export default function () {{
    const answer = http.get("{url}", {{ timeout: "1s", headers: {{ "Accept-Encoding": "gzip" }} }});
    if (answer.status === 200) good.add(1);
}}
export function handleSummary(data) {{
    const count = (name) => (data.metrics[name] ? data.metrics[name].values.count : 0);
    const summary = {{ offered: count("iterations"), good: count("good"), seconds: {seconds:.0} }};
    return {{ stdout: JSON.stringify(summary) + "\n" }};
}}
"#
    )
}

/// Builds the client of Go, and says where it is.
fn built(folder: &Path) -> Result<String, String> {
    let (source, program) = (folder.join("client.go"), folder.join("go-client"));
    write(&source, CLIENT)?;
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(&program).arg(&source).current_dir(folder);
    // A file of its own belongs to no module.
    let output = command.env("GO111MODULE", "off").env("GOFLAGS", "").output();
    let output = output.map_err(|error| format!("go: {error}"))?;
    if !output.status.success() {
        return Err(format!("go build: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(text(&program))
}

/// What a command prints that runs as clients do.
fn run(bed: &Bed, words: &[String], seconds: f64) -> Result<String, String> {
    let name = words.first().map_or("", String::as_str);
    let limit = format!("{seconds:.0}s");
    let mut command = bed.at_client(bed.reception.client_processors().0);
    command.args(["timeout", "--foreground", "--kill-after", "5s", &limit]).args(WITH_PARENT).args(words);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name}: {}: {}", output.status, errors.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads `vegeta report -type=json`: its duration is that of the attack, in nanoseconds; who was not answered
/// within the timeout has the status 0.
///
/// # Errors
/// Text that is no such report.
pub(crate) fn read_vegeta(printed: &str) -> Result<CrowdSaid, String> {
    let report: Value = serde_json::from_str(printed).map_err(|error| format!("no JSON: {error}"))?;
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64);
    let seconds = number("/duration").ok_or("no duration")? / 1e9;
    let asked = number("/requests").ok_or("no number of requests")?;
    let good = number("/status_codes/200").unwrap_or(0.0);
    Ok(CrowdSaid { offered_per_s: asked / seconds.max(1e-3), good_per_s: good / seconds.max(1e-3) })
}

/// Reads three counts: `offered`, `good`, `seconds`.
fn counted(printed: &str) -> Result<CrowdSaid, String> {
    let line = printed.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    let counts: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    let number = |name: &str| counts[name].as_f64().ok_or_else(|| format!("no `{name}`"));
    let seconds = number("seconds")?.max(1e-3);
    Ok(CrowdSaid { offered_per_s: number("offered")? / seconds, good_per_s: number("good")? / seconds })
}

/// Reads what ab prints, and its table of times: a line a request, the fifth column its time in milliseconds.
fn ab(printed: &str, table: &str) -> Result<CrowdSaid, String> {
    let number = |name: &str| {
        let rest = printed.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    let said = |name: &str| number(name).ok_or_else(|| format!("no `{name}`"));
    let seconds = said("Time taken for tests:")?.max(1e-3);
    let wrong = number("Non-2xx responses:").unwrap_or(0.0);
    let times = table.lines().skip(1).filter_map(|line| line.split('\t').nth(4)?.trim().parse::<f64>().ok());
    let in_time = times.filter(|ms| *ms <= PATIENCE_MS).count() as f64;
    Ok(CrowdSaid {
        offered_per_s: said("Complete requests:")? / seconds,
        good_per_s: (in_time - wrong).max(0.0) / seconds,
    })
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn in_folder(folder: &Path, name: &str) -> String {
    text(&folder.join(name))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_they_print_is_read() {
        let report = r#"{"requests": 400, "duration": 2000000000, "status_codes": {"0": 100, "200": 300}}"#;
        assert_eq!(read_vegeta(report), Ok(CrowdSaid { offered_per_s: 200.0, good_per_s: 150.0 }));
        let counts = "something else\n{\"offered\": 50, \"good\": 20, \"seconds\": 2}\n";
        assert_eq!(counted(counts), Ok(CrowdSaid { offered_per_s: 25.0, good_per_s: 10.0 }));
        let printed = "Time taken for tests:   2.000 seconds\nComplete requests:      4\n";
        let row = |ms: u32| format!("Tue Nov 24 23:00:00 2026\t1790000000\t1\t{}\t{ms}\t{ms}\n", ms - 1);
        let table =
            format!("starttime\tseconds\tctime\tdtime\tttime\twait\n{}{}{}", row(5), row(1000), row(1001));
        assert_eq!(ab(printed, &table), Ok(CrowdSaid { offered_per_s: 2.0, good_per_s: 1.0 }));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(read_vegeta("{}"), Err("no duration".to_owned()));
        assert!(counted("nothing").is_err_and(|error| error.starts_with("no JSON")));
        assert_eq!(counted("{\"seconds\": 1}"), Err("no `offered`".to_owned()));
        assert_eq!(ab("", ""), Err("no `Time taken for tests:`".to_owned()));
    }

    #[test]
    fn nothing_is_installed_in_no_folder() {
        let nowhere = Path::new("/no such folder");
        assert!(!Generator::Vegeta.is_installed(nowhere) && !Generator::K6.is_installed(nowhere));
        assert!(!Generator::Ab.keeps_rate() && Generator::Go.keeps_rate());
    }
}

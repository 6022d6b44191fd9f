//! Figures of ours, read from the files of runs.
//!
//! The module owns what is known of those files: reports of benchmarks, results of the laboratory, counts. It
//! must never make up a figure: what a file does not have is an error, and a run without a file was not run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::sheet::{FigurePlace, Run};

/// Times the laboratory writes are in seconds; a connection takes microseconds.
const US_PER_S: f64 = 1e6;

/// A figure of ours: the median of its samples, and how far they reach.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OurFigure {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    /// The unit that the file names, if it does.
    pub(super) unit: String,
}

/// The files of runs, by the runs' names. A run without a file is not in it.
#[derive(Debug, Default)]
pub(super) struct RunFiles(pub(super) BTreeMap<String, Value>);

impl RunFiles {
    /// The kept files.
    ///
    /// # Errors
    /// A file that is not there or is no JSON.
    pub(super) fn kept(root: &Path, runs: &BTreeMap<String, Run>) -> Result<Self, String> {
        let mut documents = BTreeMap::new();
        for (name, run) in runs {
            if let Some(kept) = &run.kept {
                documents.insert(name.clone(), document(&root.join(kept))?);
            }
        }
        Ok(Self(documents))
    }

    /// The figure at a place; `None` if its run, or one it is divided by, was not run.
    ///
    /// # Errors
    /// A run that has not what the place names.
    pub(super) fn read(&self, place: &FigurePlace) -> Result<Option<OurFigure>, String> {
        let mut readings = Vec::new();
        for place in place.all() {
            let Some(document) = self.0.get(&place.run) else { return Ok(None) };
            let (samples, unit) =
                samples(document, place).map_err(|error| format!("run `{}`: {error}", place.run))?;
            readings.push(
                OurFigure::of(&samples, unit).ok_or_else(|| format!("run `{}`: no sample", place.run))?,
            );
        }
        Ok(readings.into_iter().reduce(|figure, divisor| figure.over(&divisor)))
    }

    /// Machine and moment of a run, as its file has them.
    pub(super) fn machine(&self, name: &str) -> Option<String> {
        let document = self.0.get(name)?;
        let words = |at: &str| document.pointer(at).and_then(Value::as_str).map(str::to_owned);
        if let Some(processor) = words("/machine/processor") {
            let processors = document.pointer("/machine/processors")?;
            let (kernel, began) = (words("/machine/kernel")?, words("/machine/began")?);
            return Some(format!("{processor}, {processors} cores, Linux {kernel}, {}", day(&began)));
        }
        let listed = |key: &str| {
            let pairs = document.get("machine")?.as_array()?;
            pairs.iter().find(|pair| pair[0] == key)?.get(1)?.as_str()
        };
        let (cpu, cores, kernel) = (listed("CPU")?, listed("cores")?, listed("kernel")?);
        Some(format!("{cpu}, {cores} cores, Linux {kernel}, {}", day(&words("/began")?)))
    }

    /// The command that made a run, as its file has it.
    pub(super) fn command(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.get("command")?.as_str()
    }
}

impl OurFigure {
    fn of(samples: &[f64], unit: String) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, least, most, unit })
    }

    /// This figure divided by another; a ratio of medians has no range.
    fn over(&self, divisor: &Self) -> Self {
        let ratio = self.median / divisor.median;
        Self { median: ratio, least: ratio, most: ratio, unit: String::new() }
    }
}

/// A file of JSON.
///
/// # Errors
/// A file that is not there, or is no JSON.
pub(super) fn document(file: &Path) -> Result<Value, String> {
    let fault = |error: String| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| fault(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| fault(error.to_string()))
}

/// Scenarios of a report that were skipped or went wrong, each with what it says.
pub(super) fn faults(document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for outcome in document.get("outcomes").and_then(Value::as_array).into_iter().flatten() {
        let name = outcome["name"].as_str().unwrap_or_default();
        faults.extend(outcome["skipped"].as_str().map(|reason| format!("`{name}` was skipped: {reason}")));
        let errors = outcome["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        faults.extend(errors.map(|error| format!("`{name}` went wrong: {error}")));
    }
    faults
}

/// Samples at a place of its run, and their unit.
fn samples(document: &Value, place: &FigurePlace) -> Result<(Vec<f64>, String), String> {
    if let Some(pointer) = &place.pointer {
        let found = document.pointer(pointer).and_then(Value::as_f64);
        let figure = found.ok_or_else(|| format!("no number at `{pointer}`"))?;
        return Ok((vec![figure], String::new()));
    }
    if let Some(model) = &place.model {
        let (children, loops) = (place.children.unwrap_or(1), place.loops.unwrap_or(1));
        let rounds = lab_rounds(document, &LabRow { model, children, loops, bytes: 4000, pool: place.pool })?;
        let each = rounds.iter().map(|(user, system)| user + system).collect();
        return Ok((each, "us".to_owned()));
    }
    listed(document, place)
}

/// Samples of a figure or a bar of a report.
fn listed(document: &Value, place: &FigurePlace) -> Result<(Vec<f64>, String), String> {
    let (list, key, name) = match (&place.measure, &place.promise) {
        (Some(measure), None) => ("figures", "measure", measure),
        (None, Some(promise)) => ("bars", "promise", promise),
        _ => return Err("a place has one of `measure`, `promise`, `pointer` and `model`".to_owned()),
    };
    let server = place.server.as_deref().unwrap_or_default();
    let is_asked =
        |outcome: &&Value| place.scenario.as_ref().is_none_or(|name| outcome["name"] == name.as_str());
    let outcomes = document.get("outcomes").and_then(Value::as_array).into_iter().flatten().filter(is_asked);
    let entries = outcomes.filter_map(|outcome| outcome.get(list)?.as_array()).flatten();
    let found: Vec<_> =
        entries.filter(|entry| entry["server"] == server && entry[key] == name.as_str()).collect();
    let [found] = found[..] else {
        let how_many = if found.is_empty() { "no" } else { "in several scenarios: " };
        return Err(format!("{how_many} {key} `{name}` of server `{server}`"));
    };
    let samples = found["samples"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    Ok((samples, found["unit"].as_str().unwrap_or_default().to_owned()))
}

/// A row of the paper's plan; its connections of each child are the paper's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LabRow<'a> {
    pub(super) model: &'a str,
    pub(super) children: u64,
    pub(super) loops: u64,
    pub(super) bytes: u64,
    pub(super) pool: u64,
}

/// User and system time of the server for each answer of a row, in microseconds, round by round.
///
/// # Errors
/// A row that was not asked.
pub(super) fn lab_rounds(document: &Value, row: &LabRow) -> Result<Vec<(f64, f64)>, String> {
    let scale = document.get("scale").and_then(Value::as_f64).unwrap_or(1.0);
    let loops = (row.loops as f64 * scale).round();
    let is_meant = |asked: &Value| {
        asked["model"] == row.model
            && asked["protocol"] == "paper"
            && asked["children"] == row.children
            && asked["loops"].as_f64() == Some(loops)
            && asked["bytes"] == row.bytes
            && asked["pool"] == row.pool
    };
    let mut rows = document.get("rows").and_then(Value::as_array).into_iter().flatten();
    let found = rows.find(|measured| is_meant(&measured["row"]));
    let found = found.ok_or_else(|| format!("no row of {row:?}, {loops} connections a child"))?;
    let each = |round: &Value| {
        let answered = round["client"]["answered"].as_f64()?;
        let of = |name: &str| Some(round["server"][name].as_f64()? / answered * US_PER_S);
        Some((of("user_s")?, of("system_s")?))
    };
    Ok(found["rounds"].as_array().into_iter().flatten().filter_map(each).collect())
}

/// The day of a moment, whose hours say nothing.
fn day(moment: &str) -> &str {
    moment.split([' ', 'T']).next().unwrap_or(moment)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results() -> RunFiles {
        let figure = |measure: &str, samples: &[f64]| {
            json!({"server": "s", "measure": measure, "unit": "us",
            "samples": samples})
        };
        let bar = json!({"server": "s", "promise": "p", "unit": "", "samples": [2.0]});
        let report = json!({"began": "2026-11-20 12:40", "command": "cargo xtask bench one",
            "machine": [["CPU", "A"], ["cores", "2"], ["kernel", "6.1"]],
            "outcomes": [
                {"name": "one", "figures": [figure("m", &[3.0, 1.0, 2.0, 4.0]), figure("n", &[])],
                    "bars": [bar]},
                {"name": "two", "figures": [figure("o", &[5.0])]},
                {"name": "three", "figures": [figure("o", &[6.0])]}]});
        let round = |user: f64| {
            json!({"server": {"user_s": user, "system_s": 0.001},
            "client": {"answered": 100}})
        };
        let lab = json!({"scale": 0.5, "rows": [{"row": {"model": "fork", "protocol": "paper", "children": 2,
            "loops": 50, "bytes": 4000, "pool": 0}, "rounds": [round(0.001), round(0.003)]}]});
        let counts = json!({"6.1": {"a b": 30.0, "c": 10}});
        let all = [("report", report), ("lab", lab), ("counts", counts)];
        RunFiles(all.map(|(name, document)| (name.to_owned(), document)).into())
    }

    fn place(text: &str) -> FigurePlace {
        toml::from_str(text).expect("a place")
    }

    #[test]
    fn a_report_is_read_by_server_and_measure_or_promise() {
        let results = results();
        let found = results.read(&place("run = 'report'\nserver = 's'\nmeasure = 'm'")).expect("there");
        assert_eq!(found, Some(OurFigure { median: 2.5, least: 1.0, most: 4.0, unit: "us".to_owned() }));
        let found = results.read(&place("run = 'report'\nserver = 's'\npromise = 'p'")).expect("there");
        assert_eq!(found.map(|figure| figure.median), Some(2.0));
        let found = results.read(&place("run = 'report'\nscenario = 'two'\nserver = 's'\nmeasure = 'o'"));
        assert_eq!(found.expect("there").map(|figure| figure.median), Some(5.0));
        assert_eq!(results.machine("report").as_deref(), Some("A, 2 cores, Linux 6.1, 2026-11-20"));
        assert_eq!(results.command("report"), Some("cargo xtask bench one"));
    }

    #[test]
    fn a_ratio_is_that_of_two_places() {
        let text = "run = 'counts'\npointer = '/6.1/a b'\nover = { run = 'counts', pointer = '/6.1/c' }";
        let found = results().read(&place(text)).expect("there");
        assert_eq!(found.map(|figure| figure.median), Some(3.0));
    }

    #[test]
    fn the_laboratory_is_read_by_the_papers_row() {
        let text = "run = 'lab'\nmodel = 'fork'\nchildren = 2\nloops = 100";
        let found = results().read(&place(text)).expect("there").expect("run");
        assert!((found.least - 20.0).abs() < 1e-9 && (found.most - 40.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn nothing_is_made_up() {
        let results = results();
        assert_eq!(results.read(&place("run = 'not run'\npointer = '/a'")), Ok(None));
        let fault = |text: &str| results.read(&place(text)).expect_err("not there");
        assert!(fault("run = 'report'\nserver = 's'\nmeasure = 'n'").contains("no sample"));
        assert!(
            fault("run = 'report'\nserver = 't'\nmeasure = 'm'").contains("no measure `m` of server `t`")
        );
        assert!(fault("run = 'counts'\npointer = '/6.1/d'").contains("no number at `/6.1/d`"));
        assert!(fault("run = 'lab'\nmodel = 'fork'\nchildren = 3\nloops = 100").contains("no row of"));
        assert!(fault("run = 'report'\nserver = 's'\nmeasure = 'o'").contains("in several scenarios"));
        assert!(fault("run = 'report'").contains("one of `measure`"));
    }
}

//! The scenario without a clock: instructions per request or record, counted by callgrind.
//!
//! The scenario owns `bench/instructions.json`, what was recorded last. The program `counted` does one thing
//! again and again without any input or output: it feeds request heads to a session and its handler, a
//! browser's to a session of HTTP/2 alone, records to the record layer, or frames to DOSTP. Each case runs
//! for N and for 2 N: the difference, divided by N, knows nothing of its start. Starts differ by a million
//! instructions, so only the function that answers is counted where no other thread takes part.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::setting::Setting;
use crate::report::{Bar, Direction, ScenarioOutcome};

/// Instructions may rise by this factor before the bar is missed.
const GROWTH_MAX: f64 = 1.02;
const HTTP2_MAX: f64 = 2000.0;
const RECORD_MAX: f64 = 400.0;
/// So many that what two starts differ by, a million instructions or two, stays below the growth allowed.
const REQUESTS: u64 = 60_000;
/// Where starts are not counted: whole rounds of six browsers, and of sixteen in one piece.
const REQUESTS_OF_A_FUNCTION: u64 = 12_000;
const MEASURE: &str = "instructions each";
const RECORD: &str = "bench/instructions.json";

/// A piece of work that `counted` repeats.
struct Work {
    /// Its words before the number.
    words: &'static [&'static str],
    /// The function whose instructions count, as callgrind names it; `None` for all of the process.
    function: Option<&'static str>,
}

impl Work {
    /// How often it is done by the shorter of two runs.
    fn times(&self) -> u64 {
        if self.function.is_some() { REQUESTS_OF_A_FUNCTION } else { REQUESTS }
    }
}

/// A count that is recorded.
struct Case {
    name: &'static str,
    work: Work,
    /// What is taken off: the cipher's part.
    without: Option<Work>,
    /// A promise beside what was recorded.
    limit: Option<f64>,
}

/// A plain head, a browser's, those of six browsers in turn, a browser's of which none is like another and
/// which have to be read, sixteen small ones in one piece, and the first two with an access log, whose thread
/// is counted with the rest. Over HTTP/2 a browser's head whose fields the table of its connection knows,
/// from its frame to its answer's, without a handler. A record of 500 bytes opened, and one sealed, without
/// the cipher; and one of 5 200 bytes, most of which is the copy to where the cipher works. A header of
/// DOSTP read and written, a message of one frame through a node, and a fragment of 1 484 bytes of twelve.
const CASES: [Case; 15] = [
    session("plain", &["session", "plain"]),
    session("browser", &["session", "browser"]),
    session("browsers", &["session", "browsers"]),
    session("unlike", &["session", "unlike"]),
    session("pipelined", &["session", "pipelined"]),
    logged("logged", &["session", "logged"]),
    logged("logged-browser", &["session", "logged-browser"]),
    Case {
        name: "http2",
        work: work(&["http2"], "staunch_counted::http2::answer_all"),
        without: None,
        limit: Some(HTTP2_MAX),
    },
    Case {
        name: "record-opened",
        work: work(&["record", "open", "500"], "staunch_counted::record::open_records"),
        without: Some(work(&["record", "open-cipher", "500"], "staunch_counted::record::open_alone")),
        limit: Some(RECORD_MAX),
    },
    Case {
        name: "record-sealed",
        work: work(&["record", "seal", "500"], "staunch_counted::record::seal_answers"),
        without: Some(work(&["record", "seal-cipher", "500"], "staunch_counted::record::seal_alone")),
        limit: Some(RECORD_MAX),
    },
    Case {
        name: "record-sealed-long",
        work: work(&["record", "seal", "5200"], "staunch_counted::record::seal_answers"),
        without: Some(work(&["record", "seal-cipher", "5200"], "staunch_counted::record::seal_alone")),
        limit: None,
    },
    dostp("dostp-decode", &["dostp", "decode"], "staunch_counted::dostp::decode"),
    dostp("dostp-encode", &["dostp", "encode"], "staunch_counted::dostp::encode"),
    dostp("dostp-receive", &["dostp", "receive"], "staunch_counted::dostp::receive"),
    dostp("dostp-reassemble", &["dostp", "reassemble"], "staunch_counted::dostp::reassemble"),
];

const fn session(name: &'static str, words: &'static [&'static str]) -> Case {
    Case { name, work: work(words, "staunch_counted::session::answer_all"), without: None, limit: None }
}

const fn logged(name: &'static str, words: &'static [&'static str]) -> Case {
    Case { name, work: Work { words, function: None }, without: None, limit: None }
}

const fn dostp(name: &'static str, words: &'static [&'static str], function: &'static str) -> Case {
    Case { name, work: work(words, function), without: None, limit: None }
}

const fn work(words: &'static [&'static str], function: &'static str) -> Work {
    Work { words, function: Some(function) }
}

/// Runs the scenario; with `setting.record` the counts become what later runs are judged by.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome =
        ScenarioOutcome::new("instructions", "the paths of requests and records alone, counted by callgrind");
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    setting.expect_steps(1 + CASES.len());
    setting.step("building what is counted");
    let program = Counted::build(setting)?;
    let recorded = read_record(&setting.root)?;
    let mut counted = BTreeMap::new();
    for case in CASES {
        let name = case.name;
        setting.step(name);
        let limit = recorded.get(name).map(|recorded| (recorded * GROWTH_MAX).ceil());
        let mut each = program.each_of(&case, setting)?;
        if !setting.record && limit.is_some_and(|limit| each > limit) {
            // Starts that differ by much are rare: of three counts at most one has them.
            let mut counts = [each, program.each_of(&case, setting)?, program.each_of(&case, setting)?];
            counts.sort_by(f64::total_cmp);
            each = counts[1];
        }
        outcome.add(name, MEASURE, "", each);
        counted.insert(name.to_owned(), each.round());
        let words = format!("{MEASURE}, {name}");
        if let Some(limit) = case.limit {
            let promise = format!("{words}, whatever was recorded");
            outcome.bars.push(Bar::judge("staunch", &promise, Direction::AtMost, limit, "", vec![each]));
        }
        let samples = if limit.is_some() || setting.record { vec![each] } else { Vec::new() };
        let limit = if setting.record { each * GROWTH_MAX } else { limit.unwrap_or(0.0) };
        outcome.bars.push(Bar::judge("staunch", &words, Direction::AtMost, limit.ceil(), "", samples));
    }
    if setting.record {
        let text = serde_json::to_string_pretty(&counted).map_err(|error| error.to_string())?;
        fs::write(setting.root.join(RECORD), text + "\n").map_err(|error| format!("{RECORD}: {error}"))?;
    }
    Ok(())
}

/// The program that is counted, as built, and the library that is preloaded into it.
struct Counted {
    program: PathBuf,
    preload: PathBuf,
}

impl Counted {
    /// Builds it with its system calls through the C library, where `bench/openat2.c` can stand in for the
    /// one that valgrind may not know.
    fn build(setting: &Setting) -> Result<Self, String> {
        let preload = setting.scratch.join("openat2.so");
        let source = setting.root.join("bench/openat2.c");
        let flags = ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"];
        succeed(Command::new("cc").args(flags).arg(&preload).arg(source))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let mut command = Command::new(&cargo);
        command.args(["build", "--quiet", "--release", "--package", "staunch-counted"]);
        succeed(command.args(["--features", "calls-by-libc"]).current_dir(&setting.root))?;
        Ok(Self { program: setting.root.join(target).join("release/staunch-counted"), preload })
    }

    /// Instructions of one piece of a case's work, without the cipher's part.
    fn each_of(&self, case: &Case, setting: &Setting) -> Result<f64, String> {
        let without = case.without.as_ref().map_or(Ok(0.0), |work| self.each(work, case.name, setting))?;
        Ok(self.each(&case.work, case.name, setting)? - without)
    }

    /// Instructions of one piece of work, whatever its start took. Both counts are made at the same time, for
    /// what runs beside them does not change them.
    fn each(&self, work: &Work, name: &str, setting: &Setting) -> Result<f64, String> {
        let times = work.times();
        let count = |times| self.count(work, times, setting).map_err(|error| format!("{name}: {error}"));
        let (twice, once) = thread::scope(|scope| {
            let twice = scope.spawn(|| count(2 * times));
            let once = count(times);
            (twice.join().unwrap_or_else(|_| Err(format!("{name}: the count ended early"))), once)
        });
        match twice?.saturating_sub(once?) {
            0 => Err(format!("{name}: nothing was counted; is the function still there?")),
            count => Ok(count as f64 / times as f64),
        }
    }

    /// Instructions of one whole run.
    fn count(&self, work: &Work, times: u64, setting: &Setting) -> Result<u64, String> {
        let file = setting.scratch.join(format!("callgrind-{times}.out"));
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--tool=callgrind"]);
        command.arg(format!("--callgrind-out-file={}", file.display()));
        command.args(work.function.map(|function| format!("--toggle-collect={function}")));
        command.arg(&self.program).args(work.words).arg(times.to_string());
        succeed(command.env("LD_PRELOAD", &self.preload))?;
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        parse_total(&text).ok_or_else(|| format!("{}: no total", file.display()))
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn parse_total(text: &str) -> Option<u64> {
    let line =
        text.lines().find_map(|line| line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:")));
    line?.split_ascii_whitespace().next()?.parse().ok()
}

fn read_record(root: &Path) -> Result<BTreeMap<String, f64>, String> {
    match fs::read_to_string(root.join(RECORD)) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{RECORD}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(format!("{RECORD}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_callgrind_file_is_found() {
        assert_eq!(parse_total("version: 1\nevents: Ir\nsummary: 1234\n\nfn=x\n1 2\n"), Some(1234));
        assert_eq!(parse_total("fn=x\n\ntotals: 99\n"), Some(99));
        assert_eq!(parse_total(""), None);
    }
}

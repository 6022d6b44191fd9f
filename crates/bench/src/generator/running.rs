//! A run of a load generator, watched from outside until it ends.
//!
//! It owns the process. It must never read what the generator says of itself: see `reading.rs`.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::machine::CpuTimes;
use crate::process::{self, ProcessMemory};
use crate::servers::pinned;

/// The processor that generators run on.
pub(super) const CPU: u32 = 1;
/// How much longer than meant a run may take before it is ended.
const GRACE: Duration = Duration::from_secs(60);
/// How soon the end of a run is seen.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);
/// Above this share of its CPU taken by others, in percent, a run was disturbed.
const FOREIGN_PERCENT_MAX: f64 = 5.0;

/// A run that has ended well.
#[derive(Debug, Default)]
pub(crate) struct WatchedRun {
    /// Its standard output.
    pub(crate) output: String,
    /// Processor time of all its threads and of the children that it waited for, in ns; to the tick of 10 ms.
    pub(super) spent_ns: u64,
    /// Resident memory, a sample a second, the first after one second.
    pub(super) resident_bytes: Vec<u64>,
    /// What others took of its CPUs meanwhile, in percent of one.
    pub(super) foreign_percent: f64,
}

impl WatchedRun {
    /// Processor time for each of some requests, in us.
    pub(super) fn cost_us(&self, requests: u64) -> f64 {
        self.spent_ns as f64 / 1000.0 / requests.max(1) as f64
    }

    /// What a reader must know when others have used the generator's CPU.
    pub(super) fn disturbance(&self, name: &str) -> Option<String> {
        let percent = self.foreign_percent;
        let disturbed = percent > FOREIGN_PERCENT_MAX;
        disturbed
            .then(|| format!("{name} was disturbed: others used {percent:.0} % of its CPU in some round"))
    }
}

/// Runs a command on CPU 1 to its end. Its output goes through files in `scratch`, so that a long one cannot
/// stop it.
///
/// # Errors
/// A program that cannot be started, fails, or takes much longer than it is meant to.
pub(super) fn run(words: &[String], meant: Duration, scratch: &Path) -> Result<WatchedRun, String> {
    run_on(&CPU.to_string(), words, meant, scratch)
}

/// As [`run`], on these CPUs, as `taskset` names them.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_on(
    cpus: &str,
    words: &[String],
    meant: Duration,
    scratch: &Path,
) -> Result<WatchedRun, String> {
    let folder = scratch.join("run").join("generator");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (output, errors) = (folder.join("output"), folder.join("errors"));
    let create = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
    let started = Instant::now();
    let cpus_before = CpuTimes::read();
    let mut child = pinned(cpus)
        .args(words)
        .stdin(Stdio::null())
        .stdout(create(&output)?)
        .stderr(create(&errors)?)
        .spawn()
        .map_err(|error| format!("{}: {error}", words.join(" ")))?;
    let (resident_bytes, in_time) = watch(child.id(), started, meant + GRACE);
    // An ended process that was not collected still has its times.
    let spent_ns = process::spent_ns(child.id()).unwrap_or(0);
    let taken = started.elapsed();
    let now = CpuTimes::read();
    let busy_percent: f64 = listed(cpus).into_iter().map(|cpu| now.busy_since(&cpus_before, cpu)).sum();
    finish(&mut child, in_time)
        .map_err(|how| format!("{}: {how}: {}", words.join(" "), fault(&read(&errors))))?;
    Ok(WatchedRun {
        output: read(&output),
        spent_ns,
        resident_bytes,
        foreign_percent: busy_percent - 100.0 * spent_ns as f64 / taken.as_nanos() as f64,
    })
}

/// The processors from a generator's first to this one, as `taskset` names them.
pub(super) fn up_to(last: usize) -> String {
    if last == CPU as usize { last.to_string() } else { format!("{CPU}-{last}") }
}

/// Processors from a list such as `0,2-5`.
pub(super) fn listed(cpus: &str) -> Vec<usize> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    };
    cpus.split(',').filter_map(part).flatten().collect()
}

/// Waits for the end of a process and samples its memory. Also says whether it ended in time.
fn watch(process: u32, started: Instant, time_max: Duration) -> (Vec<u64>, bool) {
    let mut resident_bytes = Vec::new();
    while process::is_running(process) {
        if started.elapsed() > time_max {
            return (resident_bytes, false);
        }
        if started.elapsed() >= MEMORY_INTERVAL * (resident_bytes.len() as u32 + 1) {
            resident_bytes.push(ProcessMemory::of(process).resident_bytes);
        }
        sleep(LOOK_INTERVAL);
    }
    (resident_bytes, true)
}

fn finish(child: &mut Child, in_time: bool) -> Result<(), String> {
    if !in_time {
        process::end(&process::descendants(child.id()));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    match (in_time, status.success()) {
        (false, _) => Err("did not end".to_owned()),
        (true, false) => Err(status.to_string()),
        (true, true) => Ok(()),
    }
}

fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The line that says what was wrong: the one marked as an error, else the last.
fn fault(text: &str) -> &str {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let marked = lines().find(|line| line.starts_with("error"));
    marked.or_else(|| lines().next_back()).unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, name: &str) -> Result<WatchedRun, String> {
        let folder = std::env::temp_dir().join(format!("staunch-{name}-{}", std::process::id()));
        let words = ["sh", "-c", script].map(str::to_owned);
        let watched = run(&words, Duration::from_secs(1), &folder);
        fs::remove_dir_all(&folder).expect("removed");
        watched
    }

    #[test]
    fn a_run_is_watched_to_its_end() {
        let spin = "n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; echo done; sleep 1.2";
        let watched = shell(spin, "watched").expect("a run");
        assert_eq!(watched.output, "done\n");
        assert!(watched.spent_ns > 0 && watched.cost_us(2) > 0.0);
        assert!(watched.resident_bytes[0] > 100_000);
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(listed("0,2-4,7"), [0, 2, 3, 4, 7]);
        assert!(listed("").is_empty() && listed("x-y").is_empty());
        assert_eq!([up_to(1), up_to(2)], ["1", "1-2"]);
    }

    #[test]
    fn a_failure_is_told_in_its_own_words() {
        let error = shell("echo one >&2; echo two >&2; exit 3", "failed").expect_err("it failed");
        assert!(error.ends_with("exit status: 3: two"), "{error}");
        assert_eq!(fault("error: no such option\n\nFor more, try --help\n"), "error: no such option");
        assert_eq!(fault(""), "it said nothing");
    }
}

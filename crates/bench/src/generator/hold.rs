//! The scenarios `load-hold` and `load-hold-million`: idle connections held by one process against ours.
//!
//! It owns the bars on reaching the number, and on what the server itself keeps for a connection that is
//! idle. What the machine needs for it is shown, and not judged: the kernel's part of it is the largest.
use std::fs;
use std::thread;
use std::time::Duration;

use super::running;
use crate::content;
use crate::process::ProcessMemory;
use crate::reading::Held;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::{ServerKind, Setup};

/// Connections of the short scenario.
const FEW: u64 = 100_000;
/// Connections of the long one.
const MILLION: u64 = 1_000_000;
/// As many as one process of the server has places for.
const PLACES_MAX: u64 = 1 << 20;
/// How long gathering may take.
const TIME_MAX: Duration = Duration::from_secs(300);
/// What two ends of an idle connection cost the kernel and both programs at most: below that much free
/// memory nothing is begun. Measured on Linux 6.18: some 6 KiB.
const MACHINE_BYTES_EACH: u64 = 10 * 1024;
const FILE: &str = "100.txt";
const FILE_BYTES: usize = 100;
const NAME: &str = "staunch uring";
const HELD: &str = "connections held";
const EACH: &str = "server's memory each";
/// What the server may keep for an idle connection, some time after all have come.
const BYTES_EACH_MAX: f64 = 130.0;
/// How often the server's memory is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Holds 100 000.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    hold("load-hold", "100 000 connections held by one thread against staunch serve", FEW, setting)
}

/// Holds a million.
pub(crate) fn run_million(setting: &Setting) -> ScenarioOutcome {
    let title = "1 000 000 connections held by one thread against staunch serve";
    hold("load-hold-million", title, MILLION, setting)
}

fn hold(name: &str, title: &str, count: u64, setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(name, title);
    if let Some(reason) = too_small(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), count) {
        return outcome.skip(reason);
    }
    if let Err(error) = measure(count, setting, &mut outcome) {
        outcome.errors.push(error);
    }
    outcome.judge(NAME, HELD, Direction::AtLeast, count as f64, "");
    outcome.judge(NAME, EACH, Direction::AtMost, BYTES_EACH_MAX, "");
    outcome
}

fn measure(count: u64, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("idle");
    let body = content::small_file(&folder, FILE, FILE_BYTES)?;
    let path = format!("/{FILE}");
    let limit = (count + count / 10).min(PLACES_MAX).to_string();
    // Otherwise the server closes idle ones for others as soon as four in five of its places are taken.
    let arguments = ["--max-connections", &limit, "--soft-connections", &limit];
    let setup = Setup { arguments: &arguments, ..Setup::new(ServerKind::Uring, &folder, FILE) };
    let server = setting.start(&setup, &path, &body)?;
    setting.step("holding");
    let program = setting.programs.staunch.to_string_lossy();
    let url = server.url(&path);
    let words = words(&program, &url, &count.to_string());
    let before = ProcessMemory::of(server.id());
    let (id, scratch) = (server.id(), setting.scratch.as_path());
    let (run, looks) = thread::scope(|scope| {
        let run = scope.spawn(|| running::run(&words, TIME_MAX, scratch));
        let mut looks = vec![before];
        while !run.is_finished() {
            thread::sleep(LOOK_INTERVAL);
            looks.push(ProcessMemory::of(id));
        }
        (run.join().unwrap_or_else(|_| Err("the run was not watched to its end".into())), looks)
    });
    let watched = run.map_err(|error| format!("{error}; the server: {}", server.last_words()))?;
    let held = Held::read(&watched.output)?;
    // The last looks may be after the end.
    let last = looks[looks.len().saturating_sub(4)];
    let each = |bytes: u64| bytes.saturating_sub(before.resident_bytes) as f64 / held.held.max(1) as f64;
    outcome.add(NAME, HELD, "", held.held as f64);
    if let Some(seconds) = held.seconds {
        outcome.add(NAME, "seconds", "s", seconds);
    }
    outcome.add(NAME, "ended by the server", "", held.ended as f64);
    outcome.add(NAME, "client's memory each", "B", held.client_bytes_each);
    outcome.add(NAME, EACH, "B", each(last.resident_bytes));
    outcome.add(NAME, "server's memory each at most", "B", each(last.peak_bytes));
    outcome.add(NAME, "machine's memory each", "B", held.machine_bytes_each);
    outcome.add(NAME, "generator's CPU each", "us", watched.cost_us(held.held));
    outcome.note(format!("generator: {}", words.join(" ")));
    outcome.note(format!("server: {}", server.command));
    outcome.note(format!(
        "machine's memory is of both ends, kernel and programs; {} of {} were held",
        held.held, held.wanted
    ));
    Ok(())
}

/// Each connection makes one request first: the server's deadline for heads closes one that never asks.
fn words(program: &str, url: &str, count: &str) -> Vec<String> {
    let work = ["load", "hold", url, "--connections", count, "--request-first", "--for", "20s", "-d", "5m"];
    let engine = ["-t", "1", "--cpus", "1", "--io", "uring", "--quiet", "--json", "-"];
    [&[program], &work[..], &engine[..]].concat().into_iter().map(str::to_owned).collect()
}

/// Why this machine cannot hold so many, if it cannot.
pub(crate) fn too_small(meminfo: &str, count: u64) -> Option<String> {
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let free_kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let needed_kib = count * MACHINE_BYTES_EACH / 1024;
    (free_kib < needed_kib).then(|| {
        format!(
            "{count} connections may need {} MiB of memory, {} are free",
            needed_kib / 1024,
            free_kib / 1024
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_is_spared() {
        let meminfo = "MemTotal:  9000000 kB\nMemAvailable:  2000000 kB\n";
        assert_eq!(too_small(meminfo, FEW), None);
        let reason = too_small(meminfo, MILLION).expect("ten GB are not there");
        assert_eq!(reason, "1000000 connections may need 9765 MiB of memory, 1953 are free");
        assert_eq!(too_small("", MILLION), None);
    }
}

//! The scenario `pressure`: every server offered up to ten times what it can do, a connection per request.
//!
//! It owns the bars on goodput and on the time of those who are served. Each answer is made to cost the same
//! processor time, as that of an application behind the server would, so that all have about the same peak
//! and one core can offer ten times of it. The peak of a server is what it answers to eight patient clients.
//! Memory is flat when it does not grow during the worst overload, after tables and buffers have filled; how
//! much it has grown since the start is reported beside it.
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use staunch_figures::plot::{Axis, Plot, Series};
use staunch_figures::words;

use super::configuration::caddy_work;
use super::content;
use super::generator::{self, Offered};
use super::process::{ProcessMemory, growth};
use super::servers::Server;
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use crate::report::{Bar, Direction, ScenarioOutcome};

/// Processor time of each answer.
const WORK_US: u32 = 300;
/// What is offered, as multiples of the server's peak.
const MULTIPLES: [f64; 6] = [0.5, 0.9, 1.5, 3.0, 6.0, WORST];
const WORST: f64 = 10.0;
/// Length of the worst overload, in which memory is watched.
const WORST_SECONDS: u32 = 10;
const MEMORY_INTERVAL: Duration = Duration::from_millis(100);
/// Ours are told that a request is not worth answering after this.
const PATIENCE_MS: f64 = 250.0;
const PATIENCE: &str = "250ms";
/// Between two loads, so that what waits in a server is over.
const REST: Duration = Duration::from_secs(2);
const FILE: &str = "5000.txt";
const FILE_BYTES: usize = 5000;

const NAME: &str = "pressure";
const PEAK: &str = "peak per second";
const P99: &str = "latency p99 at 10 x";
const GROWTH: &str = "memory during 10 x, last third of the middle one";
const GROWTH_WHOLE: &str = "memory after all, of at the start";
const RESIDENT: &str = "memory after all";

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        NAME,
        "goodput, of the peak, when more is offered: a connection a request, 300 us of work, 1 s of patience",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge(&mut outcome);
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let body = content::small_file(&folder, FILE, FILE_BYTES)?;
    let template = [caddy_work(WORK_US).into_bytes(), body.clone()].concat();
    fs::create_dir_all(folder.join("template")).map_err(|error| error.to_string())?;
    fs::write(folder.join("template").join(FILE), template).map_err(|error| error.to_string())?;
    let mut kinds = setting.kinds.clone();
    kinds.retain(|kind| !matches!(kind, ServerKind::Floor | ServerKind::Haproxy));
    outcome.note(format!("patience of staunch: {PATIENCE}"));
    setting.expect_steps(setting.rounds as usize * kinds.len() * (1 + MULTIPLES.len()));
    for round in 1..=setting.rounds {
        for kind in &kinds {
            let measured = measure_one(*kind, round, setting, &body, outcome);
            measured.unwrap_or_else(|error| {
                outcome.errors.push(format!("{}, round {round}: {error}", kind.name()));
            });
        }
    }
    Ok(())
}

/// The whole curve of one server, from a fresh start.
fn measure_one(
    kind: ServerKind,
    round: u32,
    setting: &Setting,
    body: &[u8],
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let name = kind.name();
    let folder = setting.scratch.join(if kind == ServerKind::Caddy { "files/template" } else { "files" });
    let setup = Setup {
        work_us: WORK_US,
        connections_max: 16_000,
        arguments: &["--patience", PATIENCE],
        ..Setup::new(kind, &folder, FILE)
    };
    let path = format!("/{FILE}");
    let server = setting.start(&setup, &path, body)?;
    let resident_at_start = ProcessMemory::of(server.id()).resident_bytes;
    setting.step(&format!("round {round}, {name}, peak"));
    let url = server.url(&path);
    let peak = generator::strangers_peak(setting, &url)?;
    outcome.add(name, PEAK, "", peak);
    if round == 1 {
        outcome.note(format!("{name}: {}", server.command));
    }
    for multiple in MULTIPLES {
        sleep(REST);
        setting.step(&format!("round {round}, {name}, {multiple} times"));
        let rate = (peak * multiple) as u32;
        let offered = if multiple < WORST {
            generator::strangers(setting, &url, rate)?
        } else {
            let worst = Setting { seconds: setting.seconds.max(WORST_SECONDS), ..setting.clone() };
            let (offered, resident) = watched(server.id(), || generator::strangers(&worst, &url, rate));
            outcome.add(name, GROWTH, "", growth(&resident).ok_or("too short to see memory grow")?);
            offered?
        };
        add_point(name, multiple, peak, &offered, outcome);
    }
    let resident = ProcessMemory::of(server.id()).resident_bytes;
    outcome.add(name, GROWTH_WHOLE, "", resident as f64 / resident_at_start.max(1) as f64);
    outcome.add(name, RESIDENT, "MiB", resident as f64 / f64::from(1 << 20));
    check_alive(&server, &path, body)
}

/// Does something, and samples the resident memory of a process meanwhile.
fn watched<T>(process: u32, work: impl FnOnce() -> T) -> (T, Vec<u64>) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut resident_bytes = Vec::new();
            while !over.load(Ordering::Relaxed) {
                resident_bytes.push(ProcessMemory::of(process).resident_bytes);
                sleep(MEMORY_INTERVAL);
            }
            resident_bytes
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        (done, watcher.join().unwrap_or_default())
    })
}

fn add_point(name: &str, multiple: f64, peak: f64, offered: &Offered, outcome: &mut ScenarioOutcome) {
    outcome.add(name, &goodput_words(multiple), "", offered.in_time_per_s / peak);
    if multiple == WORST
        && let Some(p99_ms) = offered.p99_ms
    {
        outcome.add(name, P99, "ms", p99_ms);
    }
    outcome.note(format!("load offered by CPUs {}", offered.cpus));
    outcome.note(format!("{name}, {multiple} times: {}", offered.words));
}

fn check_alive(server: &Server, path: &str, body: &[u8]) -> Result<(), String> {
    sleep(REST);
    server.check(path, body).map_err(|error| format!("after the overload: {error}"))
}

fn goodput_words(multiple: f64) -> String {
    format!("goodput at {multiple} x")
}

fn judge(outcome: &mut ScenarioOutcome) {
    for kind in ServerKind::OURS {
        let name = kind.name();
        let mut bar = |measure: &str, direction, limit, unit| {
            let samples = outcome.samples(name, measure).to_vec();
            outcome.bars.push(Bar::judge(name, measure, direction, limit, unit, samples));
        };
        bar(&goodput_words(WORST), Direction::AtLeast, 0.9, "");
        bar(P99, Direction::AtMost, 2.0 * PATIENCE_MS, "ms");
        bar(GROWTH, Direction::AtMost, 1.05, "");
    }
}

/// Goodput against offered load, all servers in one plot; `None` of another scenario.
pub(super) fn plot(outcome: &ScenarioOutcome) -> Option<Plot> {
    if outcome.name != NAME {
        return None;
    }
    let line = |kind: &ServerKind, class| {
        let at = |multiple: &f64| outcome.spread(kind.name(), &goodput_words(*multiple));
        let spreads = MULTIPLES.iter().map(at);
        let values: Vec<Option<f64>> = spreads.map(|spread| spread.map(|spread| spread.median)).collect();
        Series::line(class, kind.name(), values)
    };
    let classes =
        [(ServerKind::Uring, "ours"), (ServerKind::Epoll, "ours-too"), (ServerKind::Nginx, "peer-1")];
    let others =
        [(ServerKind::Lighttpd, "peer-2"), (ServerKind::H2o, "peer-3"), (ServerKind::Caddy, "peer-4")];
    let series = classes.iter().chain(&others).map(|(kind, class)| line(kind, class));
    let series: Vec<Series> = series.filter(|one| one.values.iter().any(Option::is_some)).collect();
    let values = series.iter().flat_map(|one| &one.values).flatten().copied();
    let ticks = (0..=5).map(|fifths| f64::from(fifths) / 5.0).map(|share| (share, words::percent(share)));
    let label = "answered in time, of the peak";
    let y = Axis::ticked(0.0, values.fold(1.1, f64::max), ticks.collect(), label, words::percent);
    let x =
        Axis::fitted(MULTIPLES.into_iter(), "offered, in multiples of the peak (logarithmic)", words::short);
    Some(Plot {
        title: "Goodput against offered load".to_owned(),
        note: String::new(),
        x,
        y,
        places: MULTIPLES.to_vec(),
        series,
    })
}

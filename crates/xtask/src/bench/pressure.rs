//! The scenario `pressure`: every server offered up to ten times what it can do, a connection a request.
//!
//! It owns the bars on goodput and on the time of those who are served. Each answer is made to cost the same
//! processor time, as that of an application behind the server would, so that all have about the same peak
//! and one core can offer ten times of it. The peak of a server is what it answers to eight patient clients.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use super::configuration::caddy_work;
use super::content;
use super::curve::{self, Line};
use super::figures::{Bar, Direction, Outcome, Summary};
use super::generator::{self, Offered};
use super::process::Memory;
use super::servers::Server;
use super::setting::Setting;
use super::setup::{Kind, Setup};

/// Processor time of each answer.
const WORK_US: u32 = 300;
/// What is offered, as multiples of the server's peak.
const MULTIPLES: [f64; 6] = [0.5, 0.9, 1.5, 3.0, 6.0, 10.0];
/// The first overload fills tables and buffers, which then stay; further ones must not need more.
const FIRST_OVERLOAD: f64 = 3.0;
/// Ours are told that a request is not worth answering after this.
const PATIENCE_MS: f64 = 250.0;
const PATIENCE: &str = "250ms";
/// Between two loads, so that what waits in a server is over.
const REST: Duration = Duration::from_secs(2);
const FILE: &str = "5000.txt";
const FILE_BYTES: usize = 5000;

const PEAK: &str = "peak per second";
const P99: &str = "latency p99 at 10 x";
const GROWTH: &str = "memory after 10 x, of after 3 x";

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> Outcome {
    let mut outcome = Outcome::new(
        "pressure",
        "goodput, of the peak, when more is offered: a connection a request, 300 us of work, 1 s of patience",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge(&mut outcome);
    if let Err(error) = draw(setting, &outcome) {
        outcome.errors.push(error);
    }
    outcome
}

fn measure(setting: &Setting, outcome: &mut Outcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let body = content::small_file(&folder, FILE, FILE_BYTES)?;
    let template = [caddy_work(WORK_US).into_bytes(), body.clone()].concat();
    fs::create_dir_all(folder.join("template")).map_err(|error| error.to_string())?;
    fs::write(folder.join("template").join(FILE), template).map_err(|error| error.to_string())?;
    let mut kinds = setting.kinds.clone();
    kinds.retain(|kind| *kind != Kind::Floor);
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
    kind: Kind,
    round: u32,
    setting: &Setting,
    body: &[u8],
    outcome: &mut Outcome,
) -> Result<(), String> {
    let name = kind.name();
    let folder = setting.scratch.join(if kind == Kind::Caddy { "files/template" } else { "files" });
    let setup = Setup {
        work_us: WORK_US,
        connections_max: 16_000,
        arguments: &["--patience", PATIENCE],
        ..Setup::new(kind, &folder, FILE)
    };
    let path = format!("/{FILE}");
    let server = setting.start(&setup, &path, body)?;
    setting.step(&format!("round {round}, {name}, peak"));
    let url = server.url(&path);
    let peak = generator::strangers_peak(setting, &url)?;
    outcome.add(name, PEAK, "", peak);
    if round == 1 {
        outcome.note(format!("{name}: {}", server.command));
    }
    let mut resident_before = 0;
    for multiple in MULTIPLES {
        sleep(REST);
        setting.step(&format!("round {round}, {name}, {multiple} times"));
        let offered = generator::strangers(setting, &url, (peak * multiple) as u32)?;
        add_point(name, multiple, peak, &offered, outcome);
        if multiple <= FIRST_OVERLOAD {
            resident_before = Memory::of(server.id()).resident_bytes;
        }
    }
    let resident = Memory::of(server.id()).resident_bytes;
    outcome.add(name, GROWTH, "", resident as f64 / resident_before.max(1) as f64);
    check_alive(&server, &path, body)
}

fn add_point(name: &str, multiple: f64, peak: f64, offered: &Offered, outcome: &mut Outcome) {
    outcome.add(name, &goodput_words(multiple), "", offered.in_time_per_s / peak);
    if multiple == MULTIPLES[MULTIPLES.len() - 1]
        && let Some(p99_ms) = offered.p99_ms
    {
        outcome.add(name, P99, "ms", p99_ms);
    }
    outcome.note(format!("{name}, {multiple} times: {}", offered.words));
}

fn check_alive(server: &Server, path: &str, body: &[u8]) -> Result<(), String> {
    sleep(REST);
    server.check(path, body).map_err(|error| format!("after the overload: {error}"))
}

fn goodput_words(multiple: f64) -> String {
    format!("goodput at {multiple} x")
}

fn judge(outcome: &mut Outcome) {
    for kind in Kind::OURS {
        let name = kind.name();
        let mut bar = |measure: &str, direction, limit, unit| {
            let samples = outcome.samples(name, measure).to_vec();
            outcome.bars.push(Bar::judge(name, measure, direction, limit, unit, samples));
        };
        bar(&goodput_words(10.0), Direction::AtLeast, 0.9, "");
        bar(P99, Direction::AtMost, 2.0 * PATIENCE_MS, "ms");
        bar(GROWTH, Direction::AtMost, 1.1, "");
    }
}

/// Draws goodput against offered load, all servers in one plot.
fn draw(setting: &Setting, outcome: &Outcome) -> Result<(), String> {
    let lines: Vec<Line<'_>> = setting
        .kinds
        .iter()
        .filter_map(|kind| {
            let points: Vec<(f64, f64)> = MULTIPLES
                .iter()
                .filter_map(|multiple| {
                    let samples = outcome.samples(kind.name(), &goodput_words(*multiple));
                    Some((*multiple, Summary::of(samples)?.median))
                })
                .collect();
            (!points.is_empty()).then(|| Line { name: kind.name(), points })
        })
        .collect();
    let path = setting.root.join("bench/results/pressure.svg");
    fs::write(&path, curve::svg(&lines)).map_err(|error| format!("{}: {error}", path.display()))
}

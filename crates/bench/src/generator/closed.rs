//! The scenario `load-closed`: as many requests as 64 connections give, by wrk and by ours.
//!
//! It owns the comparison with wrk. All generators meet the same running server in turn, round by round, so
//! that a slow change of the machine meets them all. nginx is slower than a generator; the floor is faster
//! than one thread of any. Where there is a third processor each gets two of them, so that the servers are
//! the limit: of a generator that is its own limit one learns another rate and latency of the same server.
use std::time::Duration;

use staunch_figures::statistics::median;

use super::running;
use super::tool::Tool;
use crate::content;
use crate::load;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::servers::Server;
use crate::setting::Setting;
use crate::setup::{ServerKind, Setup};

const TOOLS: [Tool; 3] = [Tool::Wrk, Tool::Uring, Tool::Epoll];
const CONNECTIONS: u32 = 64;
const FILE: &str = "5000.txt";
const FILE_BYTES: usize = 5000;
/// Each server is loaded this long before the first measurement.
const WARM_UP_S: u32 = 1;

const RATE: &str = "requests per second";
const P50: &str = "latency p50";
const P99: &str = "latency p99";
const COST: &str = "generator's CPU per request";

/// A measure, which side of wrk's is good, and where the limit is, as a share of wrk's.
const PROMISES: [(&str, Direction, f64); 4] = [
    (RATE, Direction::AtLeast, 0.97),
    (P50, Direction::AtMost, 1.03),
    (P99, Direction::AtMost, 1.03),
    (COST, Direction::AtMost, 1.0),
];

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "load-closed",
        "closed loop, a file of 5 000 bytes, 64 kept connections: the generator beside wrk",
    );
    let kinds = setting.chosen(&[ServerKind::Nginx, ServerKind::Floor]);
    if let Err(error) = measure(setting, &kinds, &mut outcome) {
        outcome.errors.push(error);
    }
    for kind in kinds {
        judge(kind.name(), &mut outcome);
    }
    outcome.note(
        "wrk counts latency from the moment a request is written and adds the requests that a slow one held \
         up (coordinated omission); staunch load counts from the moment the loop could begin the request"
            .to_owned(),
    );
    outcome
}

fn measure(setting: &Setting, kinds: &[ServerKind], outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let (path, body) = (format!("/{FILE}"), content::small_file(&folder, FILE, FILE_BYTES)?);
    setting.expect_steps(kinds.len() + kinds.len() * TOOLS.len() * setting.rounds as usize);
    let mut servers = Vec::new();
    for kind in kinds {
        setting.step(&format!("starting {}", kind.name()));
        match setting.start(&Setup::new(*kind, &folder, FILE), &path, &body) {
            Ok(server) => servers.push(server),
            Err(error) => outcome.errors.push(error),
        }
    }
    let cpus = running::up_to(last());
    for server in &servers {
        let warm_up = Tool::Wrk.closed(&setting.programs, last(), CONNECTIONS, WARM_UP_S, &server.url(&path));
        running::run_on(&cpus, &warm_up, Duration::from_secs(WARM_UP_S.into()), &setting.scratch)?;
        outcome.note(format!("{}: {}", server.kind.name(), server.command));
    }
    for round in 1..=setting.rounds {
        // Each goes first in its turn, so that no place in a round favours one.
        let first = (round as usize - 1) % TOOLS.len();
        for server in &servers {
            for tool in TOOLS.into_iter().cycle().skip(first).take(TOOLS.len()) {
                let name = row(tool, server.kind.name());
                setting.step(&format!("round {round}, {name}"));
                if let Err(error) = measure_once(tool, server, &path, setting, outcome) {
                    outcome.errors.push(format!("{name}, round {round}: {error}"));
                }
            }
        }
    }
    for server in &servers {
        server.check(&path, &body).unwrap_or_else(|error| outcome.errors.push(error));
    }
    Ok(())
}

fn measure_once(
    tool: Tool,
    server: &Server,
    path: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let name = row(tool, server.kind.name());
    let words = tool.closed(&setting.programs, last(), CONNECTIONS, setting.seconds, &server.url(path));
    let meant = Duration::from_secs(setting.seconds.into());
    let watched = running::run_on(&running::up_to(last()), &words, meant, &setting.scratch)?;
    let said = tool.read(&watched.output)?;
    outcome.add(&name, RATE, "", said.per_second);
    outcome.add(&name, P50, "ms", said.p50_ms);
    outcome.add(&name, P99, "ms", said.p99_ms);
    outcome.add(&name, COST, "us", watched.cost_us(said.answered));
    outcome.note(format!("{name}: {}", words.join(" ")));
    watched.disturbance(&name).into_iter().for_each(|note| outcome.note(note));
    Ok(())
}

/// The last processor of a generator.
fn last() -> usize {
    *load::processors().end()
}

fn judge(server: &str, outcome: &mut ScenarioOutcome) {
    let rival = row(Tool::Wrk, server);
    for tool in Tool::OURS {
        let name = row(tool, server);
        for (measure, direction, limit) in PROMISES {
            let ratios = outcome.ratios(&name, &rival, measure);
            better(&name, measure, direction, &ratios).into_iter().for_each(|note| outcome.note(note));
            let words = format!("{measure}, of wrk");
            outcome.bars.push(Bar::judge(&name, &words, direction, limit, "", ratios));
        }
    }
}

/// A generator that is further than 3 % from wrk on the good side is told too: it may be the other that is
/// wrong.
fn better(name: &str, measure: &str, direction: Direction, ratios: &[f64]) -> Option<String> {
    let median = median(ratios)?;
    let is_better = match direction {
        Direction::AtMost => median < 0.97,
        Direction::AtLeast => median > 1.03,
    };
    is_better.then(|| {
        format!("{name}: {measure} is {median:.2} of wrk's: further than 3 % from it, to the better side")
    })
}

fn row(tool: Tool, server: &str) -> String {
    format!("{}, {server}", tool.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_the_measure_on_the_same_server() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for (server, wrk, ours) in [("nginx", 100.0, 98.0), ("floor", 200.0, 190.0)] {
            outcome.add(&row(Tool::Wrk, server), RATE, "", wrk);
            outcome.add(&row(Tool::Uring, server), RATE, "", ours);
            judge(server, &mut outcome);
        }
        let measured: Vec<_> = outcome.bars.iter().filter(|bar| !bar.samples.is_empty()).collect();
        assert_eq!(measured.len(), 2);
        assert_eq!((measured[0].server.as_str(), measured[0].samples[0]), ("staunch uring, nginx", 0.98));
        assert_eq!(measured[1].samples[0], 0.95);
        assert!(!outcome.passed());
    }

    #[test]
    fn the_better_side_is_told_too() {
        let told = |direction, ratio| better("ours", "measure", direction, &[ratio]).is_some();
        assert!(
            told(Direction::AtMost, 0.9) && !told(Direction::AtMost, 0.98) && !told(Direction::AtMost, 1.2)
        );
        assert!(told(Direction::AtLeast, 1.1) && !told(Direction::AtLeast, 1.0));
        assert!(better("ours", "measure", Direction::AtMost, &[]).is_none());
    }
}

//! The scenario `load-count`: the rate of so many requests, by ab and by ours.
//!
//! It owns the comparison of what "elapsed" means, in short runs above all. A truth server is busy for a
//! known time with each request, one at a time, so it alone sets the rate and both generators have the same
//! to tell. What they say of themselves is compared: it is the only figure of a run that is over in some
//! milliseconds.
use std::time::Duration;

use super::running;
use super::tool::Tool;
use super::truth::TruthServer;
use crate::reading::{self, Said};
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

/// Requests of a run.
const REQUESTS: [u32; 3] = [100, 1_000, 5_000];
/// Some wait at the server at any time, so that a generator's own time is not in the rate.
const CONNECTIONS: u32 = 8;
/// Of the server, for each request: 2 000 a second at most.
const SERVICE_TIME: &str = "500us";
const SECONDS_MAX: u64 = 10;

const RATE: &str = "requests per second";
const AB: &str = "ab";
/// How far from ab's a rate may be, as a share of it.
const DISTANCE_MAX: f64 = 0.03;

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "so many requests of a server that takes 500 us for each: the rate, beside ab's";
    let mut outcome = ScenarioOutcome::new("load-count", title);
    setting.expect_steps(REQUESTS.len() * setting.rounds as usize);
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge(&mut outcome);
    outcome.note(
        "ab's \"Time taken for tests\" is from before its first connect until its last answer; that of \
         staunch load -n is from the first start until the last answer"
            .to_owned(),
    );
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let server = TruthServer::start_shared(&setting.programs, SERVICE_TIME)?;
    outcome.note(format!("server: {}", server.command));
    let url = format!("{}/ok", server.url);
    for round in 1..=setting.rounds {
        for requests in REQUESTS {
            setting.step(&format!("round {round}, {requests} requests"));
            let ours = Tool::OURS
                .map(|tool| (tool.name(), tool.counted(&setting.programs, requests, CONNECTIONS, &url)));
            let mut all: Vec<(&str, Vec<String>)> = vec![(AB, ab(requests, &url))];
            all.extend(ours);
            // Each goes first in its turn, so that no place in a round favours one.
            let first = (round as usize - 1) % all.len();
            all.rotate_left(first);
            for (name, words) in all {
                let watched = running::run(&words, Duration::from_secs(SECONDS_MAX), &setting.scratch)?;
                let said = read(name, &watched.output)?;
                if said.answered != u64::from(requests) {
                    return Err(format!("{name}: {} of {requests} requests answered", said.answered));
                }
                outcome.add(&row(name, requests), RATE, "", said.per_second);
                outcome.note(format!("{}: {}", row(name, requests), words.join(" ")));
            }
        }
    }
    Ok(())
}

fn ab(requests: u32, url: &str) -> Vec<String> {
    let (requests, connections) = (requests.to_string(), CONNECTIONS.to_string());
    ["ab", "-q", "-n", &requests, "-c", &connections, url].map(str::to_owned).to_vec()
}

fn read(name: &str, output: &str) -> Result<Said, String> {
    let tool = Tool::OURS.into_iter().find(|tool| tool.name() == name);
    tool.map_or_else(|| reading::ab(output), |tool| tool.read(output))
}

fn judge(outcome: &mut ScenarioOutcome) {
    for tool in Tool::OURS {
        for requests in REQUESTS {
            let name = row(tool.name(), requests);
            let ratios = outcome.ratios(&name, &row(AB, requests), RATE);
            let words = format!("{RATE}, of ab");
            for (direction, limit) in
                [(Direction::AtLeast, 1.0 - DISTANCE_MAX), (Direction::AtMost, 1.0 + DISTANCE_MAX)]
            {
                outcome.bars.push(Bar::judge(&name, &words, direction, limit, "", ratios.clone()));
            }
        }
    }
}

fn row(name: &str, requests: u32) -> String {
    format!("{name}, {requests}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_judged_on_both_sides_of_abs() {
        for (rate, passes) in [(98.0, true), (102.0, true), (20.0, false), (104.0, false)] {
            let mut outcome = ScenarioOutcome::new("name", "title");
            for requests in REQUESTS {
                outcome.add(&row(AB, requests), RATE, "", 100.0);
                Tool::OURS.iter().for_each(|tool| outcome.add(&row(tool.name(), requests), RATE, "", rate));
            }
            judge(&mut outcome);
            assert_eq!(outcome.bars.len(), 12);
            assert_eq!(outcome.passed(), passes, "{rate}");
        }
    }

    #[test]
    fn ab_is_asked_for_the_same() {
        assert_eq!(ab(100, "http://a/ok").join(" "), "ab -q -n 100 -c 8 http://a/ok");
    }
}

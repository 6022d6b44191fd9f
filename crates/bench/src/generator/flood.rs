//! The scenario `load-flood`: forged SYN segments into a network namespace, by one core, paced and unpaced.
//!
//! It owns the bars on rate and pace. What is judged is what arrived at the other end of the cable, counted
//! there, and not what the generator says it sent.
use std::time::Duration;

use super::namespaces::{CLIENT_INTERFACE, Namespaces, SERVER_ADDRESS};
use super::running;
use crate::reading::Flooded;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

/// The rates that are paced, a second.
const RATES: [u32; 3] = [10_000, 100_000, 400_000];
const RATE_MIN: f64 = 800_000.0;
const ERROR_PERCENT_MAX: f64 = 2.0;

const ARRIVED: &str = "SYN segments arrived per second";
const SENT: &str = "sent per second, by its own count";
const ERROR: &str = "error of the pace";
const UNPACED: &str = "as fast as it can";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "load-flood",
        "SYN segments from forged addresses into a network namespace, by one core; what arrives is counted",
    );
    let namespaces = match Namespaces::make() {
        Ok(namespaces) => namespaces,
        Err(error) => return outcome.skip(format!("no network namespaces here (root is needed): {error}")),
    };
    setting.expect_steps((1 + RATES.len()) * setting.rounds as usize);
    for round in 1..=setting.rounds {
        for rate in RATES.map(Some).into_iter().chain([None]) {
            setting.step(&format!("round {round}, {}", row(rate)));
            if let Err(error) = measure(rate, &namespaces, setting, &mut outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", row(rate)));
            }
        }
    }
    judge(&mut outcome);
    outcome
}

fn measure(
    rate: Option<u32>,
    namespaces: &Namespaces,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let name = row(rate);
    let program = setting.programs.staunch.to_string_lossy();
    let (to, duration) = (format!("{SERVER_ADDRESS}:80"), format!("{}s", setting.seconds));
    let pace = rate.map(|rate| format!("{rate}/s"));
    let mut words = vec!["ip", "netns", "exec", &namespaces.client, &program, "load", "flood"];
    words.extend(["--interface", CLIENT_INTERFACE, "--to", &to, "-d", &duration, "--json", "-"]);
    words.extend(pace.as_deref().map(|pace| ["--rate", pace]).into_iter().flatten());
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let before = namespaces.arrived()?;
    let watched = running::run(&words, Duration::from_secs(setting.seconds.into()), &setting.scratch)?;
    let arrived = namespaces.arrived()?.saturating_sub(before);
    let flooded = Flooded::read(&watched.output)?;
    add(&name, rate, arrived, &flooded, outcome);
    outcome.note(format!("{name}: {}", words.join(" ").replace(&namespaces.client, "CLIENT")));
    outcome.note(format!("{name}: sent by {}", flooded.method));
    watched.disturbance(&name).into_iter().for_each(|note| outcome.note(note));
    Ok(())
}

fn add(name: &str, rate: Option<u32>, arrived: u64, flooded: &Flooded, outcome: &mut ScenarioOutcome) {
    let per_second = arrived as f64 / flooded.seconds;
    outcome.add(name, ARRIVED, "", per_second);
    outcome.add(name, SENT, "", flooded.rate_per_s);
    outcome.add(name, "arrived, of sent", "", arrived as f64 / flooded.sent.max(1) as f64);
    if let Some(rate) = rate {
        let error = (per_second / f64::from(rate) - 1.0).abs();
        outcome.add(name, ERROR, "%", 100.0 * error);
    }
}

fn judge(outcome: &mut ScenarioOutcome) {
    let fastest = outcome.samples(UNPACED, ARRIVED).to_vec();
    outcome.bars.push(Bar::judge(UNPACED, ARRIVED, Direction::AtLeast, RATE_MIN, "", fastest));
    for rate in RATES {
        let name = row(Some(rate));
        let errors = outcome.samples(&name, ERROR).to_vec();
        outcome.bars.push(Bar::judge(&name, ERROR, Direction::AtMost, ERROR_PERCENT_MAX, "%", errors));
    }
}

fn row(rate: Option<u32>) -> String {
    rate.map_or_else(|| UNPACED.to_owned(), |rate| format!("{rate}/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_is_judged_and_not_what_was_said() {
        let flooded = |sent: u64| Flooded {
            sent,
            seconds: 2.0,
            rate_per_s: sent as f64 / 2.0,
            method: "live_frames".to_owned(),
        };
        let mut outcome = ScenarioOutcome::new("name", "title");
        add(UNPACED, None, 1_400_000, &flooded(1_800_000), &mut outcome);
        add("10000/s", Some(10_000), 19_700, &flooded(20_000), &mut outcome);
        add("100000/s", Some(100_000), 195_000, &flooded(200_000), &mut outcome);
        add("400000/s", Some(400_000), 810_000, &flooded(800_000), &mut outcome);
        judge(&mut outcome);
        let passed = outcome.bars.iter().map(|bar| bar.samples[0].round() as u64).collect::<Vec<_>>();
        assert_eq!(passed, [700_000, 2, 3, 1]);
        let verdicts: Vec<bool> =
            outcome.bars.iter().map(|bar| bar.verdict == crate::report::BarVerdict::Pass).collect();
        assert_eq!(verdicts, [false, true, false, true]);
    }
}

//! The scenario `proxy-cost-requests`: processor time of a proxied request over kept connections.
//!
//! This scenario owns the bar on processor time a request. The application is the floor, so that the answer
//! is there at once; wrk asks over kept connections, and the proxies keep theirs to the application.

use super::super::front::{Front, FrontPlan};
use super::backing::Backing;
use super::judging::{in_rounds, judge_by_best, start_all};
use crate::content;
use crate::load::{Answered, WrkLoad};
use crate::process::Usage;
use crate::report::ScenarioOutcome;
use crate::setting::Setting;

const FILE: &str = "1000.txt";
const FILE_BYTES: usize = 1000;
const CONNECTIONS: u32 = 64;
const COST: &str = "CPU per request";
/// Of the best peer.
const COST_MAX: f64 = 0.75;
/// Each measurement is preceded by this much unmeasured load, again and again while any of it is refused: a
/// limit that finds itself begins at 1.
const WARM_UP_S: u32 = 1;
const WARM_UPS_MAX: usize = 15;
/// Attempts of a measurement.
const ATTEMPTS_MAX: u32 = 3;
const PLAN: FrontPlan =
    FrontPlan { kept: true, haproxy: &["http-reuse always"], ready: "/1000.txt", ..FrontPlan::PLAIN };

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "proxy-cost-requests",
        "answers of 1 000 bytes through proxies, 64 kept connections, kept to the application too",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge_by_best(COST, COST_MAX, &mut outcome);
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    content::small_file(&folder, FILE, FILE_BYTES)?;
    let application = Backing::floor(&folder.join(FILE), setting)?;
    outcome.note(format!("application: {}", application.command));
    let fronts = start_all(application.address, &PLAN, setting, outcome);
    setting.expect_steps(fronts.len() * (setting.rounds as usize + 1));
    let load = WrkLoad { connections: CONNECTIONS, seconds: setting.seconds, headers: &[], script: None };
    in_rounds(fronts, setting, outcome, |front, outcome| measure_once(front, &load, outcome));
    Ok(())
}

fn measure_once(front: &Front, load: &WrkLoad<'_>, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let (url, name) = (format!("http://{}/{FILE}", front.address), front.proxy.name());
    let (answered, spent_ns) = loaded(front, load, &url, outcome)?;
    outcome.add(name, COST, "us", spent_ns as f64 / 1000.0 / answered.requests as f64);
    outcome.add(name, "requests per second", "", answered.per_second);
    // Below the whole of it the proxy was not what limits the rate, and may have slept between requests.
    let seconds = answered.requests as f64 / answered.per_second;
    outcome.add(name, "proxy's CPU busy", "%", spent_ns as f64 / 1e7 / seconds);
    Ok(())
}

/// A load that is answered whole, and the proxy's processor time. One of which something is refused is made
/// again, and noted.
fn loaded(
    front: &Front,
    load: &WrkLoad<'_>,
    url: &str,
    outcome: &mut ScenarioOutcome,
) -> Result<(Answered, u64), String> {
    let once = || {
        warm_up(load, url)?;
        let before = Usage::of(front.id());
        let answered = load.run(url)?;
        Ok((answered, Usage::of(front.id()).since_ns(&before)))
    };
    for _ in 1..ATTEMPTS_MAX {
        match once() {
            Ok(measured) => return Ok(measured),
            Err::<_, String>(error) => {
                outcome.note(format!("{}, measured again: {error}", front.proxy.name()));
            }
        }
    }
    once()
}

/// Loads until everything is answered.
fn warm_up(load: &WrkLoad<'_>, url: &str) -> Result<(), String> {
    let load = WrkLoad { seconds: WARM_UP_S, ..load.clone() };
    let mut ended = load.run(url);
    for _ in 1..WARM_UPS_MAX {
        if ended.is_ok() {
            break;
        }
        ended = load.run(url);
    }
    ended.map(|_| ()).map_err(|error| format!("still not warm after {WARM_UPS_MAX} s: {error}"))
}

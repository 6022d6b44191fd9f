//! The scenario `proxy-vegeta`: an application behind our proxy, asked by `staunch load` and by vegeta.
//!
//! The scenario owns the bar on their agreement: a second open-loop generator, of other hands and another
//! language, has to find the same goodput, below the peak and beyond it. It must never judge the proxy.

use std::time::Duration;

use super::front::Proxy;
use super::proxied::{APPLICATIONS, SleepingApplication, stage};
use super::running;
use super::tool::Tool;
use crate::account::{self, Account as _};
use crate::gate::generators::read_vegeta;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;

/// The application that does a request at a time: of its answers there are most.
const APPLICATION: SleepingApplication = APPLICATIONS[0];
/// Offered loads, in percent of the application's peak.
const LOADS_PERCENT: [u32; 2] = [80, 300];
/// Seconds of a run: so long that those in which the proxy learns weigh little.
const SECONDS: u32 = 30;

const AGREEMENT: &str = "answered in time by vegeta's account, of ours";
const AGREEMENT_MIN: f64 = 0.97;
const AGREEMENT_MAX: f64 = 1.03;
const OURS: &str = "answered in time, staunch load";
const VEGETA: &str = "answered in time, vegeta";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let outcome = ScenarioOutcome::new(
        "proxy-vegeta",
        "an application behind our proxy, asked by staunch load and by vegeta: a connection for each \
         request, 1 s of patience",
    );
    if !setting.programs.tools.join("vegeta").is_file() {
        return outcome.skip("vegeta is not installed (`cargo xtask install --for bench`)");
    }
    measure_all(setting, outcome)
}

fn measure_all(setting: &Setting, mut outcome: ScenarioOutcome) -> ScenarioOutcome {
    let rows = || Proxy::OURS.into_iter().flat_map(|proxy| LOADS_PERCENT.map(|percent| (proxy, percent)));
    setting.expect_steps(rows().count() * setting.rounds as usize);
    for _ in 0..setting.rounds {
        for (proxy, percent) in rows() {
            let row = row(proxy, percent);
            setting.step(&row);
            let per_s = APPLICATION.peak_per_s * percent / 100;
            let both =
                ours(proxy, per_s, setting).and_then(|ours| Ok((ours, vegeta(proxy, per_s, setting)?)));
            match both {
                Ok((ours, vegeta)) => {
                    outcome.add(&row, OURS, "1/s", ours);
                    outcome.add(&row, VEGETA, "1/s", vegeta);
                    outcome.add(&row, AGREEMENT, "", vegeta / ours.max(1.0));
                }
                Err(error) => outcome.errors.push(format!("{row}: {error}")),
            }
        }
    }
    for (proxy, percent) in rows() {
        let row = row(proxy, percent);
        outcome.judge(&row, AGREEMENT, Direction::AtLeast, AGREEMENT_MIN, "");
        outcome.judge(&row, AGREEMENT, Direction::AtMost, AGREEMENT_MAX, "");
    }
    outcome
}

fn row(proxy: Proxy, percent: u32) -> String {
    format!("{}, {percent} % of the peak", proxy.name())
}

/// Right answers in time, a second, by the account of `staunch load`.
fn ours(proxy: Proxy, per_s: u32, setting: &Setting) -> Result<f64, String> {
    let (_server, front) = stage(proxy, &APPLICATION, &[], setting)?;
    let url = format!("http://{}/ok", front.address);
    let words = Tool::Uring.strangers(&setting.programs, per_s, SECONDS, &url);
    let watched = running::run(&words, Duration::from_secs(SECONDS.into()), &setting.scratch)?;
    account::read(&watched.output).map(|report| report.goodput_per_s())
}

/// Right answers in time, a second, by vegeta's account.
fn vegeta(proxy: Proxy, per_s: u32, setting: &Setting) -> Result<f64, String> {
    let (_server, front) = stage(proxy, &APPLICATION, &[], setting)?;
    let folder = setting.scratch.join("proxied");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (targets, results) = (file("targets.txt"), file("vegeta.bin"));
    let target = format!("GET http://{}/ok\n", front.address);
    std::fs::write(&targets, target).map_err(|error| format!("{targets}: {error}"))?;
    let program = setting.programs.tools.join("vegeta").to_string_lossy().into_owned();
    let attack = [
        program.clone(),
        "attack".to_owned(),
        format!("-rate={per_s}/1s"),
        format!("-duration={SECONDS}s"),
        "-timeout=1s".to_owned(),
        "-keepalive=false".to_owned(),
        format!("-targets={targets}"),
        format!("-output={results}"),
    ];
    running::run(&attack, Duration::from_secs(SECONDS.into()), &setting.scratch)?;
    let report = [program, "report".to_owned(), "-type=json".to_owned(), results];
    let said = running::run(&report, Duration::from_secs(1), &setting.scratch)?;
    read_vegeta(&said.output).map(|said| said.good_per_s)
}

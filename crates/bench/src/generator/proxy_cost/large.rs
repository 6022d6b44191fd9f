//! The scenario `proxy-cost-large`: processor time of 1 GiB through a proxy.
//!
//! This scenario owns the bar on that processor time. HAProxy may splice; the application is ours with a
//! file in the page cache, and curl reads as fast as it can.

use super::super::front::{Front, FrontPlan};
use super::backing::Backing;
use super::judging::{in_rounds, judge_by_best, start_all};
use crate::content::{self, BIG_BYTES};
use crate::load::download;
use crate::process::{ProcessMemory, Usage};
use crate::report::ScenarioOutcome;
use crate::setting::Setting;

const FILE: &str = "big.bin";
const READY: &str = "100.txt";
const COST: &str = "CPU of 1 GiB";
/// Of the best peer.
const COST_MAX: f64 = 1.0;
const PLAN: FrontPlan = FrontPlan {
    kept: true,
    // Without it a slow moment of the reader makes nginx write to its disk.
    nginx: "proxy_max_temp_file_size 0;",
    haproxy: &["http-reuse always", "option splice-auto"],
    ready: "/100.txt",
    ..FrontPlan::PLAIN
};

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "an answer of 1 GiB through proxies, read by curl; HAProxy may splice";
    let mut outcome = ScenarioOutcome::new("proxy-cost-large", title);
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge_by_best(COST, COST_MAX, &mut outcome);
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    setting.step("making the file");
    content::big_file(&folder, FILE)?;
    content::small_file(&folder, READY, 100)?;
    let application = Backing::files(&folder, PLAN.ready, setting)?;
    outcome.note(format!("application: {}", application.command));
    let fronts = start_all(application.address, &PLAN, setting, outcome);
    setting.expect_steps(1 + fronts.len() * (setting.rounds as usize + 1));
    in_rounds(fronts, setting, outcome, measure_once);
    Ok(())
}

fn measure_once(front: &Front, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let (url, name) = (format!("http://{}/{FILE}", front.address), front.proxy.name());
    let before = Usage::of(front.id());
    download(&url, &[], 1, 1, BIG_BYTES)?;
    let spent_ns = Usage::of(front.id()).since_ns(&before);
    outcome.add(name, COST, "s", spent_ns as f64 / 1e9);
    let memory = ProcessMemory::of(front.id());
    outcome.add(name, "resident memory, peak", "MiB", memory.peak_bytes as f64 / f64::from(1 << 20));
    Ok(())
}

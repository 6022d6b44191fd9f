//! The scenario `gate-steady`: ten minutes below nine tenths of the capacity, in which nobody is shed. It
//! runs only when it is named.
//!
//! It owns the bar on shedding without need. How many were shed is what the gate counts in the kernel.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use staunch_loadgen::report::document::Percentiles;

use super::bed::Reception;
use super::daemon;
use super::stage::Stage;
use super::subject::Name;
use crate::gate::clients::Crowd;
use crate::machine::CpuTimes;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

const BACKLOG: u32 = 4096;
const MULTIPLE: f64 = 0.88;
/// The peak is measured so often and the least taken: the host that this runs on is not equally quick for ten
/// minutes, and nine tenths of its best moment may be more than it can do later.
const PEAKS: usize = 5;
const SECONDS: u32 = 600;
/// A tick of each second may be idle.
const FULL_PERCENT: f64 = 98.9;
const ROW: &str = "nginx";
const SHED: &str = "SYN shed in ten minutes";
const LOST: &str = "requests not answered in time";

/// Runs the scenario, once.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "gate-steady",
        "nginx offered 0.88 times the least of five peaks for ten minutes",
    );
    if let Some(reason) = super::obstacle().or_else(|| daemon::absence(&setting.programs.staunch)) {
        return outcome.skip(reason);
    }
    setting.expect_steps(1);
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    let samples = outcome.samples(ROW, SHED).to_vec();
    outcome.bars.push(Bar::judge(ROW, SHED, Direction::AtMost, 0.0, "", samples));
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let staunch = &setting.programs.staunch;
    let stage = Stage::set(Name::Nginx, Reception::OwnCore, BACKLOG, staunch, &setting.scratch)?;
    let peaks =
        (0..PEAKS).map(|_| stage.peak(f64::from(setting.seconds))).collect::<Result<Vec<f64>, _>>()?;
    let peak = peaks.iter().copied().fold(f64::INFINITY, f64::min);
    outcome.note(format!(
        "peaks a second: {}",
        peaks.iter().map(|peak| format!("{peak:.0}")).collect::<Vec<_>>().join(", ")
    ));
    let gate = stage.gate(&[])?;
    setting.step("ten minutes below capacity");
    let spent = stage.spent(Some(&gate))?;
    let stop = AtomicBool::new(false);
    let (answers, full) = thread::scope(|scope| {
        let watch = scope.spawn(|| full_seconds(&stop));
        let answers = stage.offer(&Crowd::steps(&[(MULTIPLE * peak, SECONDS)]));
        stop.store(true, Ordering::Relaxed);
        answers.map(|answers| (answers, watch.join().unwrap_or_default()))
    })?;
    outcome.note(format!("of the server's processor: {}", spent.told()));
    outcome.note(lateness(&answers.main.drift_ms));
    outcome.note(format!("seconds in which it had no time to spare: {}", words(&full)));
    let status = gate.status()?;
    let shed =
        shed(&status).ok_or_else(|| format!("the gate's status has no count of what was shed: {status}"))?;
    outcome.add(ROW, SHED, "", shed as f64);
    outcome.add(ROW, LOST, "", answers.main.offered.saturating_sub(answers.main.in_time) as f64);
    gate.said().into_iter().for_each(|(_, line)| outcome.note(line));
    Ok(())
}

/// A generator that stands still sends afterwards what it could not, all at once.
fn lateness(drift: &Percentiles) -> String {
    let ms = |time: Option<f64>| time.map_or("?".to_owned(), |time| format!("{time:.2}"));
    let Percentiles { p99, p999, max, .. } = *drift;
    format!("requests begun late by: p99 {}, p99.9 {}, at most {} ms", ms(p99), ms(p999), ms(max))
}

/// Seconds from the beginning in which the server's processor was never idle, until it is to stop: in these
/// the host was slower than when the peak was measured, and what was offered was no nine tenths.
fn full_seconds(stop: &AtomicBool) -> Vec<u32> {
    let mut full = Vec::new();
    let mut before = CpuTimes::read();
    for second in 1.. {
        sleep(Duration::from_secs(1));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let now = CpuTimes::read();
        if now.busy_since(&before, 0) >= FULL_PERCENT {
            full.push(second);
        }
        before = now;
    }
    full
}

fn words(seconds: &[u32]) -> String {
    let all: Vec<String> = seconds.iter().map(u32::to_string).collect();
    if all.is_empty() { "none".to_owned() } else { format!("{} ({})", all.len(), all.join(", ")) }
}

/// How many SYN segments the gate has shed, of any class and for any reason.
fn shed(status: &serde_json::Value) -> Option<u64> {
    let classes = ["known", "verified", "unknown"];
    let reasons = ["shed_credit", "shed_fair", "shed_deny"];
    let count = |class: &str, reason: &str| status.pointer(&format!("/syn/{class}/{reason}"))?.as_u64();
    classes.iter().flat_map(|class| reasons.map(|reason| count(class, reason))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_without_a_count_is_no_zero() {
        let class = serde_json::json!({"passed": 9, "shed_credit": 3, "shed_fair": 1, "shed_deny": 0});
        let whole = serde_json::json!({"syn": {"known": class, "verified": class, "unknown": class}});
        assert_eq!(shed(&whole), Some(12));
        assert_eq!(shed(&serde_json::json!({"syn": {"known": class}})), None);
    }
}

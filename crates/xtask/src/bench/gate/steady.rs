//! The scenario `gate-steady`: ten minutes below nine tenths of the capacity, in which nobody is shed. It
//! runs only when it is named.
//!
//! It owns the bar on shedding without need. How many were shed is what the gate counts in the kernel. Who is
//! shed because the host of this machine took the processor away is counted, too, but not judged: what was
//! offered was then more than could be done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, SystemTime};

use super::bed::Reception;
use super::clients::{Crowd, Drift};
use super::door::{self, Said};
use super::stage::Stage;
use super::subject::Name;
use crate::bench::figures::{Bar, Direction, Outcome};
use crate::bench::machine::CpuTimes;
use crate::bench::setting::Setting;

const BACKLOG: u32 = 4096;
const MULTIPLE: f64 = 0.88;
/// The peak is measured so often and the least taken: the host that this runs on is not equally quick for ten
/// minutes, and nine tenths of its best moment may be more than it can do later.
const PEAKS: usize = 5;
const SECONDS: u32 = 600;
/// A tick of each second may be idle.
const FULL_PERCENT: f64 = 98.9;
/// A lack of time is answered after so many seconds at most, and so long may it take until nearly nobody was
/// shed for a minute.
const ANSWERED_S: f64 = 5.0;
const RELEASED_S: f64 = 75.0;
const ROW: &str = "nginx";
const SHED: &str = "SYN shed";
const NEEDLESS: &str = "SYN shed though there was time to spare";
const LOST: &str = "requests not answered in time";

/// Runs the scenario, once.
pub(in crate::bench) fn run(setting: &Setting) -> Outcome {
    let mut outcome =
        Outcome::new("gate-steady", "nginx offered 0.88 times the least of five peaks for ten minutes");
    if let Some(reason) = super::obstacle().or_else(|| door::absence(&setting.programs.staunch)) {
        return outcome.skip(reason);
    }
    setting.expect_steps(1);
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    let samples = outcome.samples(ROW, NEEDLESS).to_vec();
    outcome.bars.push(Bar::judge(ROW, NEEDLESS, Direction::AtMost, 0.0, "", samples));
    outcome
}

fn measure(setting: &Setting, outcome: &mut Outcome) -> Result<(), String> {
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
    let (stop, began) = (AtomicBool::new(false), SystemTime::now());
    let (answers, full) = thread::scope(|scope| {
        let watch = scope.spawn(|| full_seconds(&stop));
        let answers = stage.offer(&Crowd::steps(&[(MULTIPLE * peak, SECONDS)]));
        stop.store(true, Ordering::Relaxed);
        answers.map(|answers| (answers, watch.join().unwrap_or_default()))
    })?;
    outcome.note(format!("of the server's processor: {}", spent.told()));
    outcome.note(lateness(&answers.drift_ms));
    outcome.note(format!("seconds in which it had no time to spare: {}", words(&full)));
    let status = gate.status()?;
    let shed =
        shed(&status).ok_or_else(|| format!("the gate's status has no count of what was shed: {status}"))?;
    let times = times(&gate.said(), began, shed);
    outcome.add(ROW, SHED, "", shed as f64);
    outcome.add(ROW, NEEDLESS, "", needless(&times, &full, shed) as f64);
    outcome.add(ROW, LOST, "", answers.offered.saturating_sub(answers.in_time) as f64);
    gate.said().into_iter().for_each(|(_, line)| outcome.note(line));
    Ok(())
}

/// A generator that stands still sends afterwards what it could not, all at once.
fn lateness(drift: &Drift) -> String {
    let ms = |time: Option<f64>| time.map_or("?".to_owned(), |time| format!("{time:.2}"));
    let Drift { p99, p999, max } = *drift;
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

/// A time in which the gate shed: from when to when, in seconds from the beginning, and how many SYN.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Time {
    from_s: f64,
    to_s: f64,
    shed: u64,
}

/// These times by what the gate said; of all that were shed the last one has what was not said.
fn times(said: &[Said], began: SystemTime, shed: u64) -> Vec<Time> {
    let mut times: Vec<Time> = Vec::new();
    for (at, line) in said {
        let at_s = at.duration_since(began).unwrap_or_default().as_secs_f64();
        if line.contains("open -> shedding") {
            times.push(Time { from_s: at_s, to_s: f64::INFINITY, shed: 0 });
        } else if let (Some(last), Some(count)) = (times.last_mut(), shed_until_open(line)) {
            (last.to_s, last.shed) = (at_s, count);
        }
    }
    let told: u64 = times.iter().map(|time| time.shed).sum();
    times.last_mut().into_iter().for_each(|last| last.shed += shed.saturating_sub(told));
    times
}

/// `shedding -> open after 8.4 s and 9213 SYN shed: ...`
fn shed_until_open(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("shedding -> open after ")?;
    rest.split_once(" and ")?.1.split(' ').next()?.parse().ok()
}

/// How many of those shed were shed in times that no second without time to spare (the n-th is from n - 1 to
/// n) began, or that lasted longer than they had to after the last of these.
fn needless(times: &[Time], full: &[u32], shed: u64) -> u64 {
    let full = || full.iter().map(|second| f64::from(*second));
    let had_to = |time: &&Time| {
        let begun = full().any(|second| (second - 1.0..=second + ANSWERED_S).contains(&time.from_s));
        let last = full().filter(|second| *second <= time.to_s).fold(0.0, f64::max);
        begun && time.to_s - last <= RELEASED_S
    };
    shed - times.iter().filter(had_to).map(|time| time.shed).sum::<u64>()
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
    fn who_was_shed_without_need() {
        let began = SystemTime::UNIX_EPOCH;
        let said = |at_s: f64, line: &str| (began + Duration::from_secs_f64(at_s), format!("gate: {line}"));
        let lines = [
            said(0.5, "port 80"),
            said(33.5, "open -> shedding after 33.5 s: 152 connections wait"),
            said(41.5, "shedding -> open after 8.0 s and 20 SYN shed: 900 come"),
            said(99.0, "open -> shedding after 57.5 s: 152 connections wait"),
        ];
        let times = times(&lines, began, 27);
        let told: Vec<_> = times.iter().map(|time| (time.from_s, time.to_s, time.shed)).collect();
        assert_eq!(told, [(33.5, 41.5, 20), (99.0, f64::INFINITY, 7)]);
        // The second before the first time began had none to spare; the other lasted too long.
        assert_eq!(needless(&times, &[33, 99], 27), 7);
        assert_eq!(needless(&times, &[20, 35, 120], 27), 27);
        assert_eq!(needless(&[], &[33], 3), 3);
        let long = [Time { from_s: 66.2, to_s: 186.2, shed: 5 }];
        assert_eq!((needless(&long, &[66, 73], 5), needless(&long, &[66, 116], 5)), (5, 0));
    }

    #[test]
    fn a_status_without_a_count_is_no_zero() {
        let class = serde_json::json!({"passed": 9, "shed_credit": 3, "shed_fair": 1, "shed_deny": 0});
        let whole = serde_json::json!({"syn": {"known": class, "verified": class, "unknown": class}});
        assert_eq!(shed(&whole), Some(12));
        assert_eq!(shed(&serde_json::json!({"syn": {"known": class}})), None);
    }
}

//! The scenario `gate-reaction`: how soon the gate sheds when too many come, and lets all in when they go;
//! how often it changes its mind when just as many come as can be served.
//!
//! It owns the bars on these times. They are read from the moments at which the daemon's lines come, and from
//! what clients see; the daemon's own word on times is not taken.
use std::time::{Duration, SystemTime};

use staunch_loadgen::report::Document;

use super::bed::Reception;
use super::daemon::{self, Said};
use super::stage::Stage;
use super::subject::Name;
use crate::gate::clients::Crowd;
use crate::process::Usage;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

const BACKLOG: u32 = 4096;
const ROW: &str = "nginx";
/// Before, during and after the crowd: multiples of the peak, and for how many seconds.
const STEPS: [(f64, u32); 3] = [(0.5, 2), (10.0, 3), (0.5, 3)];
/// A crowd of just the capacity, in seconds: changes are counted by the minute.
const EVEN_S: u32 = 60;
/// A time of those let in up to which the gate has settled, in ms.
const SETTLED_P99_MS: f64 = 100.0;
const IDLE: Duration = Duration::from_secs(5);

const SHEDDING: &str = "overload to shedding";
const SETTLED: &str = "overload to settled";
const RELEASE: &str = "end of overload to open";
const CHANGES: &str = "changes of state a minute at 1.0 x";
const BUSY: &str = "processor of the idle daemon";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "gate-reaction",
        "nginx offered 0.5, 10, 0.5 times its peak; then its peak for a minute; then nothing",
    );
    if let Some(reason) = super::obstacle().or_else(|| daemon::absence(&setting.programs.staunch)) {
        return outcome.skip(reason);
    }
    setting.expect_steps(setting.rounds as usize * 3);
    for round in 1..=setting.rounds {
        if let Err(error) = measure(round, setting, &mut outcome) {
            outcome.errors.push(format!("round {round}: {error}"));
        }
    }
    let mut bar = |measure: &str, limit, unit| {
        let samples = outcome.samples(ROW, measure).to_vec();
        outcome.bars.push(Bar::judge(ROW, measure, Direction::AtMost, limit, unit, samples));
    };
    bar(SHEDDING, 20.0, "ms");
    bar(SETTLED, 100.0, "ms");
    bar(RELEASE, 1000.0, "ms");
    bar(CHANGES, 1.0, "");
    bar(BUSY, 0.6, "%");
    outcome
}

fn measure(round: u32, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let staunch = &setting.programs.staunch;
    let stage = Stage::set(Name::Nginx, Reception::OwnCore, BACKLOG, staunch, &setting.scratch)?;
    let peak = stage.peak(f64::from(setting.seconds))?;
    let gate = stage.gate(&[])?;
    setting.step(&format!("round {round}, idle"));
    let before = Usage::of(gate.id());
    std::thread::sleep(IDLE);
    let spent_ns = Usage::of(gate.id()).since_ns(&before);
    outcome.add(ROW, BUSY, "%", 100.0 * spent_ns as f64 / IDLE.as_nanos() as f64);
    setting.step(&format!("round {round}, a crowd comes and goes"));
    let answers = stage.offer(&Crowd::steps(&STEPS.map(|(multiple, seconds)| (multiple * peak, seconds))))?;
    let said = gate.said();
    add_reaction(&answers, &said, outcome)?;
    setting.step(&format!("round {round}, as many as can be served"));
    let answers = stage.offer(&Crowd::steps(&[(peak, EVEN_S)]))?;
    let end = moment(&answers.began).ok_or_else(|| format!("no time: {}", answers.began))?
        + Duration::from_secs(EVEN_S.into());
    // That it opens when the crowd has gone is no change of mind.
    let changes: Vec<Said> = gate.said().into_iter().skip(said.len()).filter(|(at, _)| *at < end).collect();
    changes.iter().for_each(|(_, line)| outcome.note(format!("at 1.0 x: {line}")));
    outcome.add(ROW, CHANGES, "", changes.iter().filter(|(_, line)| change(line).is_some()).count() as f64);
    Ok(())
}

fn add_reaction(answers: &Document, said: &[Said], outcome: &mut ScenarioOutcome) -> Result<(), String> {
    said.iter().for_each(|(_, line)| outcome.note(line.clone()));
    let began = moment(&answers.began).ok_or_else(|| format!("no time: {}", answers.began))?;
    let step = began + Duration::from_secs(STEPS[0].1.into());
    let end = step + Duration::from_secs(STEPS[1].1.into());
    let first = |state: State, after: SystemTime| {
        let line = said.iter().find(|(at, line)| *at >= after && change(line) == Some(state));
        line.and_then(|(at, _)| at.duration_since(after).ok()).map(|time| time.as_secs_f64() * 1000.0)
    };
    outcome.add(ROW, SHEDDING, "ms", first(State::Shedding, step).ok_or("it did not shed")?);
    outcome.add(ROW, RELEASE, "ms", first(State::Open, end).ok_or("it did not open again")?);
    let step_ms = u64::from(STEPS[0].1) * 1000;
    let end_ms = step_ms + u64::from(STEPS[1].1) * 1000;
    outcome.add(ROW, SETTLED, "ms", settled_ms(answers, step_ms, end_ms));
    Ok(())
}

/// From a step until those who are let in are answered soon, for good; in whole steps of the report.
fn settled_ms(answers: &Document, from_ms: u64, to_ms: u64) -> f64 {
    let steps = answers.moments.at_ms.iter().zip(&answers.moments.latency_ms.p99);
    let slow = steps
        .filter(|(at, p99)| (from_ms + 1..=to_ms).contains(at) && p99.is_none_or(|ms| ms > SETTLED_P99_MS));
    slow.map(|(at, _)| at - from_ms).max().unwrap_or(0) as f64
}

/// What a gate does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Shedding,
}

/// The state a line says has begun: `open -> shedding after 2.0 s: ...`.
fn change(line: &str) -> Option<State> {
    let (_, after) = line.split_once(" -> ")?;
    match after.split(' ').next()? {
        "open" => Some(State::Open),
        "shedding" => Some(State::Shedding),
        _ => None,
    }
}

/// A time as RFC 3339 has it, in UTC.
fn moment(text: &str) -> Option<SystemTime> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut numbers = day.split('-').map(|word| word.parse::<i64>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let mut parts = time.split(':').map(|word| word.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    // Days since 1970 by the civil calendar, counted in years that begin in March.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = days as f64 * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_reports_are_read() {
        let since = |text: &str| moment(text)?.duration_since(SystemTime::UNIX_EPOCH).ok();
        assert_eq!(since("1970-01-01T00:00:00.000Z"), Some(Duration::ZERO));
        assert_eq!(since("2026-11-21T10:00:00.000Z"), Some(Duration::from_secs(1_795_255_200)));
        assert_eq!(since("2024-02-29T00:00:01.500Z"), Some(Duration::from_millis(1_709_164_801_500)));
        assert_eq!(since("yesterday"), None);
    }

    #[test]
    fn settled_is_when_answers_are_soon_for_good() {
        let mut answers = Document::default();
        answers.moments.at_ms = vec![2000, 2100, 2200, 2300, 2400];
        answers.moments.latency_ms.p99 = vec![Some(500.0), Some(300.0), Some(50.0), Some(60.0), None];
        assert!((settled_ms(&answers, 2000, 2300) - 100.0).abs() < 1e-9);
        // A moment without an answer is not settled.
        assert!((settled_ms(&answers, 2000, 2400) - 400.0).abs() < 1e-9);
    }

    #[test]
    fn changes_are_told_from_other_lines() {
        assert_eq!(change("staunch: gate: open -> shedding after 2.0 s: wait 60 ms"), Some(State::Shedding));
        assert_eq!(change("staunch: gate: shedding -> open after 3.1 s: 900 offered"), Some(State::Open));
        assert_eq!(change("attached to vs1"), None);
    }
}

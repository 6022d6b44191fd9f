//! The scenario `gate-honest`: everybody wants to be served, and up to ten times as many come as can be.
//!
//! It owns the bars on goodput and on the time of those who are let in, and on what the gate costs below
//! capacity, where people come as they like and where the load is steady. Beside the gate stands what people
//! do without one: a long queue, and a short one.
use staunch_loadgen::Counts;
use staunch_loadgen::report::Document;

use super::bed::Reception;
use super::daemon::{self, GateProcess};
use super::stage::Stage;
use super::subject::{Name, PageKind};
use crate::account::Account;
use crate::gate::clients::Crowd;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

/// What is offered, as multiples of the server's peak.
const MULTIPLES: [f64; 4] = [BELOW, 2.0, 5.0, 10.0];
const BELOW: f64 = 0.9;
/// What is offered steadily. On a quiet machine a server that has a tenth of its time to spare answers as
/// evenly as it is asked, with a gate and without.
const STEADY: f64 = 0.95;
/// Steps of 100 ms after which the generators have changed places.
const BEGINNING: usize = 5;
/// What the gate costs below capacity is less than a server differs from itself when it is started again: the
/// same one is measured without and with it, by turns, so often each round.
const TURNS: usize = 3;
/// The queue everybody is given, and the short one that is the cheapest remedy.
const BACKLOG: u32 = 4096;
const BACKLOG_SHORT: u32 = 128;
const P99_MS_MAX: f64 = 100.0;
/// What the paper reports of its own gate beyond capacity: +134.7 %.
const PAPER: f64 = 2.347;

/// Goodput of less than this share of the peak counts as so much: nothing can be divided by nothing.
const NOTHING: f64 = 0.01;

const PEAK: &str = "peak per second";
const SPREAD: &str = "steady 0.95 x, standard deviation of 100 ms";
const MEAN: &str = "steady 0.95 x, in time per second";

/// How a server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Short,
    Gate,
}

impl Way {
    const ALL: [Self; 3] = [Self::Bare, Self::Short, Self::Gate];

    fn row(self, name: Name) -> String {
        let way = match self {
            Self::Bare => "gate off",
            Self::Short => "backlog 128",
            Self::Gate => "gate on",
        };
        format!("{}, {way}", name.text())
    }

    fn backlog(self) -> u32 {
        if self == Self::Short { BACKLOG_SHORT } else { BACKLOG }
    }
}

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "gate-honest",
        "goodput, of the peak, when more is offered: a connection a request, 300 us of work, 1 s of patience",
    );
    if let Some(reason) = super::obstacle() {
        return outcome.skip(reason);
    }
    let absence = daemon::absence(&setting.programs.staunch);
    absence.iter().for_each(|reason| outcome.note(reason.clone()));
    let ways: Vec<Way> = Way::ALL.into_iter().filter(|way| *way != Way::Gate || absence.is_none()).collect();
    let names = chosen(setting);
    let steps = ways.len() * (1 + MULTIPLES.len()) + ways.iter().filter(|way| **way == Way::Gate).count();
    setting.expect_steps(setting.rounds as usize * names.len() * steps);
    for round in 1..=setting.rounds {
        for name in &names {
            for way in &ways {
                if let Err(error) = measure(*name, *way, round, setting, &mut outcome) {
                    outcome.errors.push(format!("{}, round {round}: {error}", way.row(*name)));
                }
            }
            if ways.contains(&Way::Gate)
                && let Err(error) = steadily(*name, round, setting, &mut outcome)
            {
                outcome.errors.push(format!("{}, steadily, round {round}: {error}", name.text()));
            }
        }
    }
    if absence.is_none() {
        names.iter().filter(|name| **name != Name::Apache).for_each(|name| judge(*name, &mut outcome));
    }
    outcome
}

/// The servers that were asked for; Apache when all were, and it is here.
pub(super) fn chosen(setting: &Setting) -> Vec<Name> {
    let is_chosen = |name: &Name| match name {
        Name::Nginx => setting.kinds.contains(&ServerKind::Nginx),
        Name::Staunch => ServerKind::OURS.iter().any(|kind| setting.kinds.contains(kind)),
        Name::Apache => setting.kinds.len() == ServerKind::ALL.len() && Name::Apache.is_installed(),
        _ => false,
    };
    Name::ALL.into_iter().filter(is_chosen).collect()
}

fn measure(
    name: Name,
    way: Way,
    round: u32,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let (row, seconds) = (way.row(name), f64::from(setting.seconds));
    setting.step(&format!("round {round}, {row}, peak"));
    let staunch = &setting.programs.staunch;
    let stage = Stage::set(name, Reception::OwnCore, way.backlog(), staunch, &setting.scratch)?;
    outcome.note(format!("{}: {}", name.text(), stage.subject.command));
    let peak = stage.peak(seconds)?;
    outcome.add(&row, PEAK, "", peak);
    let gate = if way == Way::Gate { Some(stage.gate(&[])?) } else { None };
    for multiple in MULTIPLES {
        setting.step(&format!("round {round}, {row}, {multiple} times"));
        let answers = stage.steady(peak * multiple, seconds)?;
        add(&row, multiple, peak, &answers, outcome);
    }
    let said = gate.iter().flat_map(GateProcess::said);
    said.for_each(|(_, line)| outcome.note(format!("{row}, round {round}: {line}")));
    Ok(())
}

/// A steady load without the gate and with it, of WebStone's files as in the paper, the same ones in the same
/// order. One that comes by chance would show nothing but its own deviation: the better a server keeps up
/// with it, the larger.
fn steadily(name: Name, round: u32, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let (seconds, staunch) = (f64::from(setting.seconds), &setting.programs.staunch);
    setting.step(&format!("round {round}, {}, steadily below capacity", name.text()));
    let (content, reception) = (PageKind::WebStone, Reception::OwnCore);
    let stage = Stage::set_with(content, name, reception, BACKLOG, staunch, &setting.scratch)?;
    let per_second = STEADY * stage.peak(seconds)?;
    let crowd = Crowd { by_chance: false, ..Crowd::regulars(per_second, seconds) };
    for turn in 0..TURNS {
        let mut ways = [Way::Bare, Way::Gate];
        ways.rotate_left(turn % 2);
        let mut pair = Vec::new();
        for way in ways {
            let gate = if way == Way::Gate { Some(stage.gate(&[])?) } else { None };
            pair.push((way.row(name), stage.lasting(&crowd)?));
            let said = gate.iter().flat_map(GateProcess::said);
            said.for_each(|(_, line)| outcome.note(format!("{}, steadily: {line}", way.row(name))));
        }
        pair.iter().for_each(|(row, answers)| add_turn(row, answers, outcome));
    }
    Ok(())
}

/// Every answer in time counts, also those that came after the last request was offered.
fn add_turn(row: &str, answers: &Document, outcome: &mut ScenarioOutcome) {
    let steps: Vec<f64> = answers.in_time_steps().iter().map(|count| *count as f64).collect();
    // The last steps are those after nothing is offered any more.
    let whole = ((answers.seconds * 10.0) as usize).min(steps.len());
    outcome.add(row, MEAN, "", answers.main.in_time as f64 / answers.seconds);
    outcome.add(row, SPREAD, "", 10.0 * deviation(steps.get(BEGINNING..whole).unwrap_or_default()));
    outcome.note(format!("{row}, steadily: {}", told(answers)));
}

fn add(row: &str, multiple: f64, peak: f64, answers: &Document, outcome: &mut ScenarioOutcome) {
    outcome.add(row, &goodput_words(multiple), "", answers.goodput_per_s() / peak);
    if let Some(p99_ms) = answers.main.latency_ms.p99 {
        outcome.add(row, &p99_words(multiple), "ms", p99_ms);
    }
    outcome.note(format!("{row}, {multiple} times: {}", told(answers)));
    answers.warnings.iter().for_each(|warning| outcome.note(format!("{row}: {warning}")));
    answers
        .shortfall()
        .into_iter()
        .for_each(|said| outcome.disturbed(format!("{row}, {multiple} times: {said}")));
}

fn told(answers: &Document) -> String {
    let Counts { offered, in_time, refused, reset, timed_out, unsent, .. } = answers.main.counts;
    let seconds = answers.seconds;
    format!(
        "offered {offered} in {seconds:.1} s, in time {in_time}, refused {refused}, reset {reset}, \
         timed out {timed_out}, unsent {unsent}"
    )
}

fn deviation(steps: &[f64]) -> f64 {
    let count = steps.len().max(1) as f64;
    let mean = steps.iter().sum::<f64>() / count;
    (steps.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / count).sqrt()
}

fn goodput_words(multiple: f64) -> String {
    format!("goodput at {multiple} x")
}

fn p99_words(multiple: f64) -> String {
    format!("latency p99 at {multiple} x")
}

fn judge(name: Name, outcome: &mut ScenarioOutcome) {
    let (gate, bare) = (Way::Gate.row(name), Way::Bare.row(name));
    let (goodput, p99) = (goodput_words(10.0), p99_words(10.0));
    let (kept, time) = (outcome.samples(&gate, &goodput).to_vec(), outcome.samples(&gate, &p99).to_vec());
    let pairs = outcome.samples(&gate, &goodput).iter().zip(outcome.samples(&bare, &goodput));
    let gain = pairs.map(|(on, off)| on / off.max(NOTHING)).collect();
    let below = outcome.ratios(&gate, &bare, &goodput_words(BELOW));
    let (mean, deviation) = (outcome.ratios(&gate, &bare, MEAN), outcome.ratios(&gate, &bare, SPREAD));
    let mut bar = |promise: &str, direction, limit, unit, samples: Vec<f64>| {
        outcome.bars.push(Bar::judge(&gate, promise, direction, limit, unit, samples));
    };
    bar(&goodput, Direction::AtLeast, 0.95, "", kept);
    bar(&p99, Direction::AtMost, P99_MS_MAX, "ms", time);
    if name == Name::Nginx {
        bar("goodput at 10 x, of that without", Direction::AtLeast, PAPER, "", gain);
    }
    bar("goodput at 0.9 x, of that without", Direction::AtLeast, 0.99, "", below);
    bar("in time at steady 0.95 x, of that without", Direction::AtLeast, 0.99, "", mean);
    bar("its standard deviation, of that without", Direction::AtMost, 1.0, "", deviation);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::made_up;

    #[test]
    fn the_deviation_of_steps() {
        assert_eq!((deviation(&[1.0, 3.0]), deviation(&[])), (1.0, 0.0));
    }

    #[test]
    fn the_gate_is_judged_against_the_same_round_without() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        let mut say = |way: Way, multiple: f64, in_time: u64, p99: f64| {
            let counts = Counts { offered: 1000, in_time, ..Counts::default() };
            let mut answers = made_up(1.0, counts, &[in_time / 10; 10]);
            answers.main.latency_ms.p99 = Some(p99);
            if multiple < 1.0 {
                add_turn(&way.row(Name::Nginx), &answers, &mut outcome);
            }
            add(&way.row(Name::Nginx), multiple, 100.0, &answers, &mut outcome);
        };
        say(Way::Bare, 0.9, 90, 5.0);
        say(Way::Gate, 0.9, 90, 5.0);
        say(Way::Bare, 10.0, 20, 900.0);
        say(Way::Gate, 10.0, 100, 90.0);
        judge(Name::Nginx, &mut outcome);
        assert_eq!(outcome.bars.len(), 6);
        // Without any deviation there is no ratio of it to judge.
        let passed = outcome.bars.iter().filter(|bar| bar.verdict == crate::report::BarVerdict::Pass);
        assert_eq!(passed.count(), 5);
    }
}

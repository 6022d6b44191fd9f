//! The scenario `gate-honest`: everybody wants to be served, and up to ten times as many come as can be.
//!
//! It owns the bars on goodput and on the time of those who are let in. Beside the gate stands what people do
//! without one: a long queue, and a short one.

use super::bed::Reception;
use super::clients::Answers;
use super::door::{self, Door};
use super::stage::Stage;
use super::subject::Name;
use crate::bench::figures::{Bar, Direction, Outcome};
use crate::bench::setting::Setting;
use crate::bench::setup::Kind;

/// What is offered, as multiples of the server's peak.
const MULTIPLES: [f64; 4] = [0.9, 2.0, 5.0, 10.0];
/// The queue everybody is given, and the short one that is the cheapest remedy.
const BACKLOG: u32 = 4096;
const BACKLOG_SHORT: u32 = 128;
const P99_MS_MAX: f64 = 100.0;
/// What the paper reports of its own gate beyond capacity: +134.7 %.
const PAPER: f64 = 2.347;

/// Goodput of less than this share of the peak counts as so much: nothing can be divided by nothing.
const NOTHING: f64 = 0.01;

const PEAK: &str = "peak per second";
const SPREAD: &str = "goodput at 0.9 x, standard deviation of 100 ms";
const MEAN: &str = "goodput at 0.9 x, mean";

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
pub(in crate::bench) fn run(setting: &Setting) -> Outcome {
    let mut outcome = Outcome::new(
        "gate-honest",
        "goodput, of the peak, when more is offered: a connection a request, 300 us of work, 1 s of patience",
    );
    if let Some(reason) = super::obstacle() {
        return outcome.skip(reason);
    }
    let absence = door::absence(&setting.programs.staunch);
    absence.iter().for_each(|reason| outcome.note(reason.clone()));
    let ways: Vec<Way> = Way::ALL.into_iter().filter(|way| *way != Way::Gate || absence.is_none()).collect();
    let names = chosen(setting);
    setting.expect_steps(setting.rounds as usize * names.len() * ways.len() * (1 + MULTIPLES.len()));
    for round in 1..=setting.rounds {
        for name in &names {
            let mut steady = None;
            for way in &ways {
                if let Err(error) = measure(*name, *way, round, &mut steady, setting, &mut outcome) {
                    outcome.errors.push(format!("{}, round {round}: {error}", way.row(*name)));
                }
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
        Name::Nginx => setting.kinds.contains(&Kind::Nginx),
        Name::Staunch => Kind::OURS.iter().any(|kind| setting.kinds.contains(kind)),
        Name::Apache => setting.kinds.len() == Kind::ALL.len() && Name::Apache.is_installed(),
    };
    Name::ALL.into_iter().filter(is_chosen).collect()
}

/// Below capacity the same requests are offered at the same times whatever the way, as many as the first
/// one's peak says (`steady`, a second): what differs then is not the crowd.
fn measure(
    name: Name,
    way: Way,
    round: u32,
    steady: &mut Option<f64>,
    setting: &Setting,
    outcome: &mut Outcome,
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
        let of = if multiple < 1.0 { *steady.get_or_insert(peak) } else { peak };
        let answers = stage.steady(of * multiple, seconds)?;
        add(&row, multiple, peak, &answers, outcome);
    }
    let said = gate.iter().flat_map(Door::said);
    said.for_each(|(_, line)| outcome.note(format!("{row}, round {round}: {line}")));
    Ok(())
}

fn add(row: &str, multiple: f64, peak: f64, answers: &Answers, outcome: &mut Outcome) {
    outcome.add(row, &goodput_words(multiple), "", answers.goodput_per_s() / peak);
    if let Some(p99_ms) = answers.latency_ms.p99 {
        outcome.add(row, &p99_words(multiple), "ms", p99_ms);
    }
    if multiple < 1.0 {
        let steps: Vec<f64> = answers.moments.counts.in_time.iter().map(|count| *count as f64).collect();
        // The last steps are those after nothing is offered any more.
        let whole = (answers.seconds * 10.0) as usize;
        let (mean, deviation) = spread(&steps[..whole.min(steps.len())]);
        outcome.add(row, MEAN, "", 10.0 * mean);
        outcome.add(row, SPREAD, "", 10.0 * deviation);
    }
    outcome.note(format!(
        "{row}, {multiple} times: offered {} in {:.1} s, in time {}, refused {}, reset {}, timed out {}, \
         unsent {}",
        answers.offered,
        answers.seconds,
        answers.in_time,
        answers.refused,
        answers.reset,
        answers.timed_out,
        answers.unsent
    ));
    answers.warnings.iter().for_each(|warning| outcome.note(format!("{row}: {warning}")));
}

/// Mean and standard deviation.
fn spread(steps: &[f64]) -> (f64, f64) {
    let count = steps.len().max(1) as f64;
    let mean = steps.iter().sum::<f64>() / count;
    let variance = steps.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

fn goodput_words(multiple: f64) -> String {
    format!("goodput at {multiple} x")
}

fn p99_words(multiple: f64) -> String {
    format!("latency p99 at {multiple} x")
}

fn judge(name: Name, outcome: &mut Outcome) {
    let (gate, bare) = (Way::Gate.row(name), Way::Bare.row(name));
    let (goodput, p99) = (goodput_words(10.0), p99_words(10.0));
    let (kept, time) = (outcome.samples(&gate, &goodput).to_vec(), outcome.samples(&gate, &p99).to_vec());
    let pairs = outcome.samples(&gate, &goodput).iter().zip(outcome.samples(&bare, &goodput));
    let gain = pairs.map(|(on, off)| on / off.max(NOTHING)).collect();
    let (mean, deviation) = (outcome.ratios(&gate, &bare, MEAN), outcome.ratios(&gate, &bare, SPREAD));
    let mut bar = |promise: &str, direction, limit, unit, samples: Vec<f64>| {
        outcome.bars.push(Bar::judge(&gate, promise, direction, limit, unit, samples));
    };
    bar(&goodput, Direction::AtLeast, 0.95, "", kept);
    bar(&p99, Direction::AtMost, P99_MS_MAX, "ms", time);
    if name == Name::Nginx {
        bar("goodput at 10 x, of that without", Direction::AtLeast, PAPER, "", gain);
    }
    bar("goodput at 0.9 x, of that without", Direction::AtLeast, 0.99, "", mean);
    bar("its standard deviation, of that without", Direction::AtMost, 1.0, "", deviation);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation() {
        assert_eq!(spread(&[1.0, 3.0]), (2.0, 1.0));
        assert_eq!(spread(&[]), (0.0, 0.0));
    }

    #[test]
    fn the_gate_is_judged_against_the_same_round_without() {
        let mut outcome = Outcome::new("name", "title");
        let mut say = |way: Way, multiple: f64, in_time: u64, p99: f64| {
            let mut answers = Answers { seconds: 1.0, offered: 1000, in_time, ..Answers::default() };
            answers.latency_ms.p99 = Some(p99);
            answers.moments.at_ms = (1..=10).map(|step| 100 * step).collect();
            answers.moments.counts.in_time = vec![in_time / 10; 10];
            add(&way.row(Name::Nginx), multiple, 100.0, &answers, &mut outcome);
        };
        say(Way::Bare, 0.9, 90, 5.0);
        say(Way::Gate, 0.9, 90, 5.0);
        say(Way::Bare, 10.0, 20, 900.0);
        say(Way::Gate, 10.0, 100, 90.0);
        judge(Name::Nginx, &mut outcome);
        assert_eq!(outcome.bars.len(), 5);
        // Without any deviation there is no ratio of it to judge.
        let passed = outcome.bars.iter().filter(|bar| bar.verdict == crate::bench::figures::Verdict::Pass);
        assert_eq!(passed.count(), 4);
    }
}

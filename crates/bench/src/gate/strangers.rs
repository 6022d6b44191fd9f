//! The scenario `gate-strangers`: servers that nobody here chose, overloaded with the gate and without,
//! alone and beside connections that say nothing, by our load generator and by those of others.
//!
//! It owns the bars on what is reached of min(capacity, offered) and of what the server does without the
//! gate. The capacity is measured in the same round, without a gate. It runs only when it is named: it
//! takes long.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::bed::{Bed, Reception, SERVER_ADDRESS};
use super::daemon::{self, GateProcess};
use super::generators::{CrowdSaid, Generator};
use super::stage::Stage;
use super::subject::Name;
use crate::account::Account as _;
use crate::process;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

/// What is offered, as multiples of the capacity.
const MULTIPLES: [f64; 4] = [BELOW, 2.0, 5.0, 10.0];
const BELOW: f64 = 0.5;
/// What generators of others offer, and what they must have offered of it to be judged.
const BY_OTHERS: f64 = 5.0;
const OFFERED_SHARE: f64 = 0.9;
/// Every server may ask for as many places as it likes; most ask for fewer.
const BACKLOG: u32 = 4096;
/// Connections that say nothing: so many stay, and so many come each second and leave after three.
const SILENT_EVER: u32 = 1000;
const SILENT_PER_S: u32 = 100;
/// Goodput of less than this share of the capacity counts as so much: nothing can be divided by nothing.
const NOTHING: f64 = 0.01;
/// Between two crowds, until what waits in the server is over, and who was shed has given up.
const REST: Duration = Duration::from_millis(2500);
const CAPACITY: &str = "capacity per second";
const SHED: &str = "SYN shed at 0.5 x";

/// Opens connections, says nothing on them, and closes those that come later after three seconds.
const SILENT: &str = r#"import collections, socket, sys, time
address, stay, rate = (sys.argv[1], 80), int(sys.argv[2]), int(sys.argv[3])
def connect():
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(address)
    return client
kept = [connect() for _ in range(stay)]
passing = collections.deque()
while True:
    passing.append((time.monotonic() + 3, connect()))
    while passing[0][0] < time.monotonic():
        passing.popleft()[1].close()
    time.sleep(1 / rate)
"#;

/// The clients that are there besides the crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    Silent,
}

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "gate-strangers",
        "goodput, of min(capacity, offered): servers and generators nobody here chose, 1 s of patience",
    );
    if let Some(reason) = super::obstacle().or_else(|| daemon::absence(&setting.programs.staunch)) {
        return outcome.skip(reason);
    }
    let (names, absent): (Vec<Name>, Vec<Name>) =
        Name::WITH_STRANGERS.into_iter().partition(|name| name.is_installed());
    absent.iter().for_each(|name| outcome.note(format!("{} is not installed, so left out", name.text())));
    let tools = &setting.programs.tools;
    let (generators, absent): (Vec<Generator>, Vec<Generator>) =
        Generator::ALL.into_iter().partition(|generator| generator.is_installed(tools));
    for generator in absent {
        let name = generator.text();
        outcome.note(format!("{name} is not here, so left out: cargo xtask install --for bench"));
    }
    let steps = 1 + 2 * MULTIPLES.len() + generators.len();
    setting.expect_steps(setting.rounds as usize * names.len() * 2 * steps);
    for round in 1..=setting.rounds {
        for name in &names {
            // The second measurement finds a host that is warm, or tired: so the gate is first by turns.
            let mut gates = [false, true];
            gates.rotate_left(round as usize % 2);
            for gate in gates {
                if let Err(error) = measure(*name, gate, &generators, round, setting, &mut outcome) {
                    outcome.errors.push(format!("{}, round {round}: {error}", row(*name, gate)));
                }
            }
        }
    }
    for name in &names {
        judge(*name, &mut outcome);
        generators.iter().for_each(|generator| judge_by(*name, *generator, setting.rounds, &mut outcome));
    }
    outcome
}

fn measure(
    name: Name,
    gate: bool,
    generators: &[Generator],
    round: u32,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let (row, seconds) = (row(name, gate), f64::from(setting.seconds));
    setting.step(&format!("round {round}, {row}, capacity"));
    let stage = Stage::set(name, Reception::OwnCore, BACKLOG, &setting.programs.staunch, &setting.scratch)?;
    outcome.note(format!("{}: {}", name.text(), stage.subject.command));
    let capacity = stage.peak(seconds)?;
    outcome.add(&row, CAPACITY, "", capacity);
    for beside in [Beside::Nobody, Beside::Silent] {
        let _silent = if beside == Beside::Silent { Some(Silent::begin(&stage.bed)?) } else { None };
        let daemon = if gate { Some(stage.gate(&[])?) } else { None };
        for multiple in MULTIPLES {
            setting.step(&format!("round {round}, {row}, {}", words(beside, multiple)));
            let answers = stage.steady(multiple * capacity, seconds)?;
            let reached = answers.goodput_per_s() / (capacity * multiple.min(1.0));
            outcome.add(&row, &words(beside, multiple), "", reached);
            if multiple < 1.0
                && let Some(daemon) = &daemon
            {
                outcome.add(&row, SHED, "", shed(&daemon.status()?) as f64);
            }
        }
        if beside == Beside::Nobody {
            for generator in generators {
                setting.step(&format!("round {round}, {row}, {}", generator.text()));
                measure_by(*generator, &stage, capacity, &row, setting, outcome)?;
            }
        }
        let said = daemon.iter().flat_map(GateProcess::said);
        said.for_each(|(_, line)| outcome.note(format!("{row}, round {round}: {line}")));
    }
    Ok(())
}

/// Lets another's generator come. What it could not offer is said, and nothing is concluded from it.
fn measure_by(
    generator: Generator,
    stage: &Stage,
    capacity: f64,
    row: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let (asked, seconds) = (BY_OTHERS * capacity, f64::from(setting.seconds));
    sleep(REST);
    let said = generator.offer(&stage.bed, &setting.programs.tools, &setting.scratch, asked, seconds)?;
    let CrowdSaid { offered_per_s, good_per_s } = said;
    if !generator.keeps_rate() || offered_per_s >= OFFERED_SHARE * asked {
        outcome.add(row, &by(generator), "", good_per_s / capacity);
        return Ok(());
    }
    let name = generator.text();
    outcome.note(format!(
        "{row}: {name} offered {offered_per_s:.0} of {asked:.0} a second, {good_per_s:.0} were answered in \
         time; not judged"
    ));
    Ok(())
}

/// Clients that say nothing. They end when this is dropped.
struct Silent(Child);

impl Silent {
    fn begin(bed: &Bed) -> Result<Self, String> {
        let mut command = bed.behind_clients(bed.reception.client_processors().0);
        command.args(["python3", "-c", SILENT, SERVER_ADDRESS]);
        command.args([SILENT_EVER.to_string(), SILENT_PER_S.to_string()]).stdin(Stdio::null());
        command.spawn().map(Self).map_err(|error| format!("python3: {error}"))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        process::end(&process::descendants(self.0.id()));
        process::collect(&mut self.0);
    }
}

fn row(name: Name, gate: bool) -> String {
    format!("{}, gate {}", name.text(), if gate { "on" } else { "off" })
}

fn words(beside: Beside, multiple: f64) -> String {
    let silent = if beside == Beside::Silent { " beside silent ones" } else { "" };
    format!("reached at {multiple} x{silent}")
}

fn by(generator: Generator) -> String {
    match generator.keeps_rate() {
        true => format!("reached at {BY_OTHERS} x by {}", generator.text()),
        false => format!("reached by {}", generator.text()),
    }
}

/// SYN the gate has shed, of any class.
fn shed(status: &serde_json::Value) -> u64 {
    let of = |class: &str, reason: &str| status["syn"][class][reason].as_u64().unwrap_or(0);
    ["known", "verified", "unknown"]
        .map(|class| of(class, "shed_credit") + of(class, "shed_fair"))
        .iter()
        .sum()
}

/// Python's queue of five bounds it by itself: of it only what it does without the gate is asked.
fn judge(name: Name, outcome: &mut ScenarioOutcome) {
    let (on, off) = (row(name, true), row(name, false));
    for beside in [Beside::Nobody, Beside::Silent] {
        for multiple in MULTIPLES.into_iter().filter(|multiple| *multiple > 1.0) {
            let measure = words(beside, multiple);
            let reached = outcome.samples(&on, &measure).to_vec();
            let pairs = outcome.samples(&on, &measure).iter().zip(outcome.samples(&off, &measure));
            let of_that = pairs.map(|(on, off)| on / off.max(NOTHING)).collect();
            if name != Name::Python {
                outcome.bars.push(Bar::judge(&on, &measure, Direction::AtLeast, 0.9, "", reached));
            }
            let promise = format!("{measure}, of that without");
            outcome.bars.push(Bar::judge(&on, &promise, Direction::AtLeast, 0.95, "", of_that));
        }
    }
    let shed = outcome.samples(&on, SHED).to_vec();
    outcome.bars.push(Bar::judge(&on, SHED, Direction::AtMost, 0.0, "", shed));
}

/// What others' generators find, where they offered what was asked of them in each round. ab offers no rate,
/// so of it nothing is asked.
fn judge_by(name: Name, generator: Generator, rounds: u32, outcome: &mut ScenarioOutcome) {
    let (on, off, measure) = (row(name, true), row(name, false), by(generator));
    let reached = outcome.samples(&on, &measure).to_vec();
    let without = outcome.samples(&off, &measure).to_vec();
    if !generator.keeps_rate() || reached.len() < rounds as usize || without.len() < rounds as usize {
        return;
    }
    let of_that = reached.iter().zip(&without).map(|(on, off)| on / off.max(NOTHING)).collect();
    if name != Name::Python {
        outcome.bars.push(Bar::judge(&on, &measure, Direction::AtLeast, 0.9, "", reached));
    }
    let promise = format!("{measure}, of that without");
    outcome.bars.push(Bar::judge(&on, &promise, Direction::AtLeast, 0.95, "", of_that));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_server_is_judged_against_its_capacity_and_itself() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for beside in [Beside::Nobody, Beside::Silent] {
            for multiple in MULTIPLES {
                outcome.add(&row(Name::Node, true), &words(beside, multiple), "", 0.95);
                outcome.add(&row(Name::Node, false), &words(beside, multiple), "", 1.2);
            }
        }
        outcome.add(&row(Name::Node, true), SHED, "", 0.0);
        judge(Name::Node, &mut outcome);
        let passed = outcome.bars.iter().filter(|bar| bar.verdict == crate::report::BarVerdict::Pass);
        assert_eq!((outcome.bars.len(), passed.count()), (13, 7), "reached, and worse than without");
    }

    #[test]
    fn a_generator_is_judged_by_where_it_offered_what_was_asked() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for generator in [Generator::Go, Generator::Ab] {
            outcome.add(&row(Name::Node, true), &by(generator), "", 0.95);
            outcome.add(&row(Name::Node, false), &by(generator), "", 0.5);
            judge_by(Name::Node, generator, 1, &mut outcome);
        }
        assert_eq!(outcome.bars.len(), 2, "ab offers no rate");
        judge_by(Name::Node, Generator::Go, 2, &mut outcome);
        judge_by(Name::Node, Generator::K6, 1, &mut outcome);
        assert_eq!(outcome.bars.len(), 2, "a round is missing, and another was not there");
    }

    /// Each server that is here starts and answers, and each generator that is here says how many it got.
    #[test]
    fn whoever_is_here_works() {
        let test = std::env::current_exe().expect("the path of this test");
        let folder = test.parent().and_then(Path::parent).expect("a folder of programs");
        let (staunch, tools) = (folder.join("staunch"), folder.with_file_name("tools").join("bin"));
        if let Some(reason) = super::super::obstacle() {
            return eprintln!("skipped: {reason}");
        }
        let scratch = std::env::temp_dir().join(format!("staunch-strangers-{}", std::process::id()));
        let is_here = |name: &Name| name.is_installed() && (*name != Name::Staunch || staunch.is_file());
        let (here, absent): (Vec<Name>, Vec<Name>) = Name::WITH_STRANGERS.into_iter().partition(is_here);
        absent.iter().for_each(|name| eprintln!("left out: {}", name.text()));
        let mut generators: Vec<Generator> = Generator::ALL.to_vec();
        for name in here {
            let stage = Stage::set(name, Reception::OwnCore, BACKLOG, &staunch, &scratch);
            let stage = stage.unwrap_or_else(|error| panic!("{}: {error}", name.text()));
            // The first server is asked by each generator; any would do.
            for generator in generators.drain(..) {
                if generator.is_installed(&tools) {
                    let said = generator.offer(&stage.bed, &tools, &scratch, 20.0, 1.0);
                    let said = said.unwrap_or_else(|error| panic!("{}: {error}", generator.text()));
                    assert!(said.offered_per_s > 0.0, "{}: {said:?}", generator.text());
                    eprintln!("{}: {said:?}", generator.text());
                } else {
                    eprintln!("left out: {}", generator.text());
                }
            }
        }
        std::fs::remove_dir_all(&scratch).expect("a folder of ours");
    }

    #[test]
    fn what_was_shed_is_of_all_classes() {
        let status = serde_json::json!({"syn": {"known": {"shed_credit": 1}, "unknown": {"shed_fair": 2}}});
        assert_eq!(shed(&status), 3);
    }
}

//! The scenario of a file beside waves: how many requests for it are answered, and how late, while updates to
//! many readers never end.
//!
//! This file owns the bars of the scenario. Where there are two processors both generators share one, so the
//! rate beside waves is less than the server would give: the bar is harder to reach there, never easier.
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::fan_server::{FanOut, name, readers_max, site};
use super::readers::{Readers, ReadersStanding, Reading};
use super::rounds::measure_ours;
use crate::account::{self, Account as _};
use crate::reading::Said;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;
use crate::{content, load};

const READERS: u32 = 200_000;
/// More deliveries a second than a processor can make.
const DELIVERIES_PER_S: u32 = 400_000;
const FILE: &str = "1400.txt";
const FILE_BYTES: usize = 1400;
/// The waves are under way by then.
const BEGINNING: Duration = Duration::from_secs(3);
const CLOSED: [&str; 2] = ["-c", "16"];
/// So many that a pause of the server makes none late to be sent.
const OPEN: [&str; 4] = ["--rate", "1000/s", "-c", "4000"];
const RATE: &str = "requests per second";
const P99: &str = "latency p99 at 1 000 requests a second";
const DELIVERIES: &str = "deliveries meanwhile";
const RATE_MIN: f64 = 0.4;
const P99_MORE_MS_MAX: f64 = 5.0;

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "a file of 1 400 bytes, without readers and while waves to 200 000 readers never end";
    let mut outcome = measure_ours("live-beside", title, setting, measure, judge);
    if load::processors().count() < 2 {
        outcome.note("both generators share one processor: see the rate as a lower bound".to_owned());
    }
    outcome
}

fn judge(kind: ServerKind, outcome: &mut ScenarioOutcome) {
    let beside = beside(kind);
    let ratios = outcome.ratios(&beside, name(kind), RATE);
    let promise = format!("{RATE}, beside waves, of without");
    outcome.bars.push(Bar::judge(name(kind), &promise, Direction::AtLeast, RATE_MIN, "", ratios));
    let pairs = outcome.samples(&beside, P99).iter().zip(outcome.samples(name(kind), P99));
    let more = pairs.map(|(beside, without)| beside - without).collect();
    let promise = format!("{P99}, beside waves, more than without");
    outcome.bars.push(Bar::judge(name(kind), &promise, Direction::AtMost, P99_MORE_MS_MAX, "ms", more));
}

fn beside(kind: ServerKind) -> String {
    format!("{}, beside waves", name(kind))
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    content::small_file(&site(setting), FILE, FILE_BYTES)?;
    let count = READERS.min(readers_max(kind));
    let server = FanOut::of_readers(kind, count, &[], setting)?;
    ask_both(&server, name(kind), setting, outcome)?;
    let rate = DELIVERIES_PER_S.div_ceil(count);
    let reading = Reading { count, rate: Some(rate), group: 1, ..Reading::default() };
    let mut readers = Readers::start(&server, &reading, setting)?;
    readers.wait()?;
    sleep(BEGINNING);
    let (began, before) = (Instant::now(), readers.standing());
    ask_both(&server, &beside(kind), setting, outcome)?;
    let (taken, after) = (began.elapsed(), readers.standing());
    let delivered = |standing: Option<ReadersStanding>| standing.map_or(0, |told| told.delivered);
    let deliveries = delivered(after).saturating_sub(delivered(before));
    if deliveries == 0 {
        return Err("nothing was delivered meanwhile".to_owned());
    }
    outcome.add(&beside(kind), DELIVERIES, "/s", deliveries as f64 / taken.as_secs_f64());
    outcome.note(format!("{}: {count} readers, {rate} updates a second; {}", name(kind), server.command));
    Ok(())
}

/// Asks as fast as answers come, then at a rate.
fn ask_both(
    server: &FanOut,
    label: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    outcome.add(label, RATE, "/s", ask(server, &CLOSED, setting)?.per_second);
    outcome.add(label, P99, "ms", ask(server, &OPEN, setting)?.p99_ms);
    Ok(())
}

fn ask(server: &FanOut, words: &[&str], setting: &Setting) -> Result<Said, String> {
    let mut command = Command::new("taskset");
    command.args(["-c", &format!("1-{}", load::processors().end())]).arg(&setting.programs.staunch);
    command.args(["load", &server.url(&format!("/{FILE}"))]).args(words);
    command.args(["--threads", "1", "--expect-status", "200", "--quiet", "--json", "-"]);
    command.args(["--duration", &format!("{}s", setting.seconds)]);
    let output = command.output().map_err(|error| format!("staunch load: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("staunch load ({}): {}", output.status, said.trim()));
    }
    account::read(&String::from_utf8_lossy(&output.stdout))?.said()
}

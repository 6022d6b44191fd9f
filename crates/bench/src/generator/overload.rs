//! The scenario `load-overload`: ten times what a server can do, a connection for each request, for 30 s.
//!
//! It owns the bars on honest accounting. The server's capacity is known (1 000 a second: one worker, 1 ms of
//! service), and it counts its own answers, which the generator's count is held against. nginx is offered ten
//! times its capacity too: that is more than one core can offer, so there the generator has to say so.
use std::time::Duration;

use staunch_loadgen::Counts;
use staunch_loadgen::report::Document;

use super::running::{self, WatchedRun};
use super::tool::Tool;
use super::truth::TruthServer;
use crate::account;
use crate::content;
use crate::load::WrkLoad;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::{ServerKind, Setup};

const SERVICE_TIME: &str = "1ms";
const CAPACITY_PER_S: u32 = 1000;
/// So many wait a tenth of a second at this capacity: those who are served are answered within their
/// patience, also where the server gets less of its processor than it should.
const BACKLOG: u32 = 100;
const OVERLOAD: u32 = 10;
const SECONDS: u32 = 30;
/// How long nginx is offered what one core cannot offer.
const NGINX_SECONDS: u32 = 5;
const FILE: &str = "5000.txt";
const FILE_BYTES: usize = 5000;

const OFFERED: &str = "offered, of ten times the capacity";
const UNSENT: &str = "not sent";
const GROWTH: &str = "memory, last third of the first";
const UNACCOUNTED: &str = "offered without a known end";
const INVENTED: &str = "answers beyond the server's count";

/// Runs the scenario: once for each of ours, because what is counted does not depend on the machine's speed.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "load-overload",
        "open loop at ten times the capacity, a connection for each request, 1 s of patience, 30 s",
    );
    setting.expect_steps(4);
    for tool in Tool::OURS {
        setting.step(&format!("{}, known server", tool.name()));
        if let Err(error) = measure_known(tool, setting, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", tool.name()));
        }
        judge(tool.name(), &mut outcome);
    }
    if setting.kinds.contains(&ServerKind::Nginx)
        && let Err(error) = measure_nginx(setting, &mut outcome)
    {
        outcome.errors.push(format!("nginx: {error}"));
    }
    outcome
}

fn measure_known(tool: Tool, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let server = TruthServer::start(&setting.programs, SERVICE_TIME, BACKLOG)?;
    let rate = CAPACITY_PER_S * OVERLOAD;
    let words = tool.strangers(&setting.programs, rate, SECONDS, &format!("{}/ok", server.url));
    outcome.note(format!("server: {}", server.command));
    let (report, watched) = offer(tool.name(), &words, SECONDS, setting, outcome)?;
    let answers: u64 = server.finish()?.answers.values().sum();
    let name = tool.name();
    let per_second = |count: u64| count as f64 / f64::from(SECONDS);
    outcome.add(name, OFFERED, "", per_second(report.main.offered) / f64::from(rate));
    add_ends(name, &report.main, outcome);
    outcome.add(name, "answered in time per second", "", per_second(report.main.in_time));
    outcome.add(name, "served per second, by the server", "", per_second(answers));
    outcome.add(name, INVENTED, "", (report.main.in_time + report.main.late).saturating_sub(answers) as f64);
    let growth = growth(&watched.resident_bytes).ok_or("too short to see memory grow")?;
    outcome.add(name, GROWTH, "", growth);
    let largest = watched.resident_bytes.iter().copied().max().unwrap_or(0);
    outcome.add(name, "memory, the most", "MiB", largest as f64 / f64::from(1 << 20));
    Ok(())
}

/// Finds what nginx can do, and offers ten times of it.
fn measure_nginx(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    setting.step("nginx's capacity");
    let folder = setting.scratch.join("files");
    let (path, body) = (format!("/{FILE}"), content::small_file(&folder, FILE, FILE_BYTES)?);
    let server = setting.start(&Setup::new(ServerKind::Nginx, &folder, FILE), &path, &body)?;
    let closing = WrkLoad { connections: 16, seconds: 2, headers: &["Connection: close"], script: None };
    let capacity = closing.run(&server.url(&path))?.per_second;
    let rate = (capacity * f64::from(OVERLOAD)) as u32;
    let name = "staunch uring, nginx";
    setting.step("nginx at ten times its capacity");
    let words = Tool::Uring.strangers(&setting.programs, rate, NGINX_SECONDS, &server.url(&path));
    let (report, _) = offer(name, &words, NGINX_SECONDS, setting, outcome)?;
    let per_second = |count: u64| count as f64 / f64::from(NGINX_SECONDS);
    outcome.add(name, OFFERED, "", per_second(report.main.offered) / f64::from(rate));
    add_ends(name, &report.main, outcome);
    outcome.add(name, "answered in time per second", "", per_second(report.main.in_time));
    let attempted = per_second(report.main.attempted);
    outcome.note(format!(
        "nginx answers {capacity:.0} connections a second; ten times that is {rate}/s, of which one core \
         could begin {attempted:.0}/s, so no bar is asked but the accounting and the warning"
    ));
    judge_ends(name, outcome);
    let silent = report.main.unsent > 0 && report.warnings.is_empty();
    let samples = vec![f64::from(u8::from(silent))];
    let words = "silent about its own limit";
    outcome.bars.push(Bar::judge(name, words, Direction::AtMost, 0.0, "", samples));
    Ok(())
}

fn offer(
    name: &str,
    words: &[String],
    seconds: u32,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(Document, WatchedRun), String> {
    let watched = running::run(words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let report = account::read(&watched.output)?;
    outcome.note(format!("{name}: {}", words.join(" ")));
    watched.disturbance(name).into_iter().for_each(|note| outcome.note(note));
    report.warnings.iter().for_each(|warning| outcome.note(format!("{name} warns: {warning}")));
    outcome.add(name, "generator's CPU per request", "us", watched.cost_us(report.main.attempted));
    Ok((report, watched))
}

/// What became of every request.
fn add_ends(name: &str, counts: &Counts, outcome: &mut ScenarioOutcome) {
    outcome.add(name, UNSENT, "", counts.unsent as f64);
    outcome.add(name, UNACCOUNTED, "", counts.offered.abs_diff(counts.settled()) as f64);
    let ends = [
        ("offered", counts.offered),
        ("in time", counts.in_time),
        ("late", counts.late),
        ("timed out", counts.timed_out),
        ("refused", counts.refused),
        ("reset", counts.reset),
        ("wrong", counts.wrong_answer),
        ("failed", counts.failed),
        ("unsent", counts.unsent),
        ("unfinished", counts.unfinished),
    ];
    let words: Vec<String> = ends.iter().map(|(end, count)| format!("{end} {count}")).collect();
    outcome.note(format!("{name}: {}", words.join(", ")));
}

/// Mean of the last third of the samples, as a share of the mean of the first. The first sample is left out:
/// until the clients' patience is over for the first time, more and more of them wait.
fn growth(resident_bytes: &[u64]) -> Option<f64> {
    let samples = resident_bytes.get(1..)?;
    let third = samples.len() / 3;
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
    (third > 0).then(|| mean(&samples[samples.len() - third..]) / mean(&samples[..third]))
}

fn judge(name: &str, outcome: &mut ScenarioOutcome) {
    outcome.judge(name, OFFERED, Direction::AtLeast, 0.98, "");
    outcome.judge(name, OFFERED, Direction::AtMost, 1.02, "");
    outcome.judge(name, GROWTH, Direction::AtMost, 1.05, "");
    outcome.judge(name, UNSENT, Direction::AtMost, 0.0, "");
    outcome.judge(name, INVENTED, Direction::AtMost, 0.0, "");
    judge_ends(name, outcome);
}

fn judge_ends(name: &str, outcome: &mut ScenarioOutcome) {
    outcome.judge(name, UNACCOUNTED, Direction::AtMost, 0.0, "");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_is_seen() {
        let flat = [1, 100, 100, 100, 100, 100, 100];
        let growing = [1, 100, 100, 110, 110, 120, 120];
        assert_eq!(growth(&flat), Some(1.0));
        assert_eq!(growth(&growing), Some(1.2));
        assert_eq!(growth(&[1, 2, 3]), None);
        assert_eq!(growth(&[]), None);
    }

    #[test]
    fn a_lost_request_and_an_invented_one_are_both_seen() {
        let report = Counts { offered: 10, in_time: 4, timed_out: 5, ..Counts::default() };
        let twice = Counts { offered: 10, in_time: 6, timed_out: 5, ..Counts::default() };
        let whole = Counts { offered: 10, in_time: 5, timed_out: 5, ..Counts::default() };
        for (report, passes) in [(report, false), (twice, false), (whole, true)] {
            let mut outcome = ScenarioOutcome::new("name", "title");
            add_ends("ours", &report, &mut outcome);
            judge_ends("ours", &mut outcome);
            assert_eq!(outcome.passed(), passes, "{report:?}");
        }
    }
}

//! The scenario of patterns: what 1 003 of them add to a publication, and how long readers who bring new ones
//! hold another client up.
//!
//! This file owns the bars of the scenario and its clients in this process: one that publishes or asks again
//! and again, and readers beside it. Times are of both ends, so a bar is on what is added to them.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::fan_server::{FanOut, TOKEN, name, site};
use super::pattern_readers::{PatternReader, TEMPLATES_PER_READER, topic};
use super::publishing::post;
use super::rounds::measure_ours;
use crate::client::HttpClient;
use crate::content;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

/// Readers with patterns: together they have 1 003 templates, as many as one client may have.
const READERS: u32 = 17;
const TOPICS: u32 = 10_000;
/// Topics of a publication by which they are made.
const BATCH: u32 = 500;
const FILE: &str = "1400.txt";
const FILE_BYTES: usize = 1400;
/// Publications of a kind, at most: new topics are not to come near the most that there may be.
const PUBLICATIONS_MAX: usize = 20_000;
/// Between two newcomers.
const PAUSE: Duration = Duration::from_millis(20);
const MORE_US_MAX: f64 = 20.0;
const HELD_UP_MS_MAX: f64 = 5.0;
const HELD_UP: &str = "a request's p99.9";

/// The publications of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Published {
    /// Another value of a topic that is there: its patterns are known.
    Known,
    /// A topic that is not there yet: it is compared with all patterns.
    New,
}

impl Published {
    const ALL: [Self; 2] = [Self::Known, Self::New];

    fn measure(self) -> &'static str {
        match self {
            Self::Known => "a publication, of a known topic",
            Self::New => "a publication, of a new topic",
        }
    }
}

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "publications beside 1 003 patterns, and requests beside new patterns over 10 000 topics";
    measure_ours("live-patterns", title, setting, measure, judge)
}

fn beside(kind: ServerKind) -> String {
    format!("{}, beside patterns", name(kind))
}

fn judge(kind: ServerKind, outcome: &mut ScenarioOutcome) {
    let bars = Published::ALL.map(|what| (what.measure(), MORE_US_MAX, "us"));
    for (measure, limit, unit) in bars.into_iter().chain([(HELD_UP, HELD_UP_MS_MAX, "ms")]) {
        let pairs = outcome.samples(&beside(kind), measure).iter().zip(outcome.samples(name(kind), measure));
        let more = pairs.map(|(beside, without)| beside - without).collect();
        let promise = format!("{measure}, beside patterns, more than without");
        outcome.bars.push(Bar::judge(name(kind), &promise, Direction::AtMost, limit, unit, more));
    }
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    content::small_file(&site(setting), FILE, FILE_BYTES)?;
    let time = Duration::from_secs(setting.seconds.into());
    let server = FanOut::start(kind, setting, &[])?;
    let mut numbers = 1..;
    publish_both(&server, &mut numbers, time, name(kind), outcome)?;
    let readers = (0..READERS).map(|reader| PatternReader::come(server.address(), "line", reader));
    let readers = readers.collect::<Result<Vec<_>, _>>()?;
    publish_both(&server, &mut numbers, time, &beside(kind), outcome)?;
    drop(readers);
    outcome.note(format!("{}: {}", name(kind), server.command));
    // Another one, so that topics are as many as is said.
    drop(server);
    let server = FanOut::start(kind, setting, &[])?;
    make_topics(&server)?;
    ask(&server, time, name(kind), outcome)?;
    let comers = beside_newcomers(&server, || ask(&server, time, &beside(kind), outcome))?;
    outcome.note(format!("{}: {comers} readers with {TEMPLATES_PER_READER} new patterns came", name(kind)));
    Ok(())
}

/// The median time of a publication of either kind, on a kept connection, until its answer.
fn publish_both(
    server: &FanOut,
    numbers: &mut impl Iterator<Item = u32>,
    time: Duration,
    label: &str,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let mut client = HttpClient::connect(server.address())?;
    for what in Published::ALL {
        let times = again_and_again(time / 2, PUBLICATIONS_MAX, || {
            let number = if what == Published::New { numbers.next().unwrap_or_default() } else { 0 };
            let reply = client.ask(&publication(&topic(number, "published")))?;
            if reply.status == 200 { Ok(()) } else { Err(format!("answered {}", reply.status)) }
        });
        let times = times.map_err(|error| format!("{}: {error}", what.measure()))?;
        outcome.add(label, what.measure(), "us", 1e6 * quantile(times, 0.5));
    }
    Ok(())
}

fn publication(topic: &str) -> String {
    let body = format!("{{\"topic\":\"{topic}\",\"data\":1}}");
    format!(
        "POST /publish HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn make_topics(server: &FanOut) -> Result<(), String> {
    for first in (0..TOPICS).step_by(BATCH as usize) {
        let line = |number| format!("{{\"topic\":\"{}\",\"data\":1}}\n", topic(number, "published"));
        let lines: String = (first..first + BATCH).map(line).collect();
        post(server.address(), "/publish?quiet", "application/x-ndjson", &lines)?;
    }
    Ok(())
}

/// How long requests for a file take that follow each other on one connection.
fn ask(server: &FanOut, time: Duration, label: &str, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let mut client = HttpClient::connect(server.address())?;
    let times = again_and_again(time, usize::MAX, || {
        let reply = client.get(&format!("/{FILE}"))?;
        if reply.body.len() == FILE_BYTES { Ok(()) } else { Err(format!("answered {}", reply.status)) }
    })?;
    outcome.add(label, "requests a second", "/s", times.len() as f64 / time.as_secs_f64());
    outcome.add(label, HELD_UP, "ms", 1e3 * quantile(times, 0.999));
    Ok(())
}

/// Does something while readers come and go, each with patterns that nobody had before. Gives how many came.
fn beside_newcomers(server: &FanOut, work: impl FnOnce() -> Result<(), String>) -> Result<u32, String> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let newcomers = scope.spawn(|| {
            let mut comers = 0;
            while !over.load(Ordering::Relaxed) {
                let reader = PatternReader::come(server.address(), "new", comers)?;
                comers += 1;
                sleep(PAUSE);
                drop(reader);
            }
            Ok::<u32, String>(comers)
        });
        let worked = work();
        over.store(true, Ordering::Relaxed);
        let comers = newcomers.join().map_err(|_| "a thread has panicked".to_owned())??;
        worked.map(|()| comers)
    })
}

/// The seconds that each turn took, of as many as there was time for.
fn again_and_again(
    time: Duration,
    turns_max: usize,
    mut turn: impl FnMut() -> Result<(), String>,
) -> Result<Vec<f64>, String> {
    let (began, mut times) = (Instant::now(), Vec::new());
    while began.elapsed() < time && times.len() < turns_max {
        let asked = Instant::now();
        turn()?;
        times.push(asked.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// The least of these that so many of all are not above; zero of none.
fn quantile(mut times: Vec<f64>, share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let place = (share * times.len() as f64).ceil() as usize;
    times.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BarVerdict;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let times: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(quantile(times.clone(), 0.5), 500.0);
        assert_eq!(quantile(times, 0.999), 999.0);
        assert_eq!(quantile(Vec::new(), 0.5), 0.0);
    }

    #[test]
    fn what_patterns_add_is_judged() {
        let (kind, mut outcome) = (ServerKind::Uring, ScenarioOutcome::new("name", "title"));
        for (measure, without, with) in [
            (Published::Known.measure(), 90.0, 100.0),
            (Published::New.measure(), 90.0, 150.0),
            (HELD_UP, 1.0, 2.0),
        ] {
            outcome.add(name(kind), measure, "", without);
            outcome.add(&beside(kind), measure, "", with);
        }
        judge(kind, &mut outcome);
        let verdicts: Vec<BarVerdict> = outcome.bars.iter().map(|bar| bar.verdict).collect();
        assert_eq!(verdicts, [BarVerdict::Pass, BarVerdict::Missed, BarVerdict::Pass]);
    }
}

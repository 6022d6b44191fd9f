//! Figures of applications, in a form for pages, metrics and `staunch top`.
//!
//! Figures must never keep a request waiting: of locks a server's desk alone is taken, for a copy.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};
use staunch_engine::{PlaceClass, Places, StandingFigures};

use super::application::{AppServer, ServerCounts};
use super::verdict::VerdictFigures;

/// Figures of all that is passed on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxyFigures {
    /// Each server of each application, in order of their names.
    pub servers: Vec<ProxyServerFigures>,
    /// Bytes that are held for slow clients.
    pub held_bytes: u64,
    /// Requests refused because their client held its share of the connections to servers.
    #[serde(default)]
    pub excess_connections: u64,
    /// Requests refused because their client held its share of the line of an application.
    #[serde(default)]
    pub excess_line: u64,
}

/// Figures of a server of an application. Counts are from the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxyServerFigures {
    /// The application, as it was configured.
    pub application: String,
    /// The server's address.
    pub server: String,
    /// Requests that it is given at once; `None`: any number.
    pub limit: Option<u32>,
    /// Requests that it works on.
    pub in_work: u32,
    /// Requests that wait for it.
    pub waiting: u32,
    /// Answers a second at the limit; 0 while it was never full.
    pub rate_per_s: f64,
    /// Seconds that it works on a request at the limit; 0 while it was never full.
    pub work_s: f64,
    /// Whether requests go there.
    pub is_well: bool,
    /// Checks of the server, if there were any.
    pub check: Option<ProxyCheckFigures>,
    /// Requests refused because they could not be answered in time.
    pub refused: u64,
    /// Requests that it was given and that no client got an answer to.
    pub unanswered: u64,
    /// Answers that it gave.
    pub answers: u64,
    /// Answers of 500 and above.
    pub errors: u64,
    /// Attempts to connect that have failed, and links that broke before an answer.
    pub unreachable: u64,
    /// Requests that were not answered in time.
    pub timed_out: u64,
    /// Answers that were not HTTP, or could be read in two ways.
    pub broken: u64,
    /// Answers that ended before their length.
    pub short: u64,
    /// Requests that were tried once more, elsewhere or anew.
    pub retried: u64,
    /// Links that were opened to it.
    pub links_opened: u64,
    /// Seconds that answers took, all together.
    pub in_work_s: f64,
    /// Steps of the last minute, the oldest first.
    pub steps: Vec<ProxyStep>,
    /// Requests by their standing, as far as any had it, in the order of a line.
    #[serde(default)]
    pub classes: Vec<ProxyClassFigures>,
}

/// Figures of the requests of one standing at a server. Counts are from the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxyClassFigures {
    /// The class: low, normal or high.
    pub class: String,
    /// Whether their clients were known.
    pub is_known: bool,
    /// Requests that asked for a place.
    pub asked: u64,
    /// Requests that were refused, of those that asked.
    pub refused: u64,
    /// Requests that wait.
    pub waiting: u32,
}

impl ProxyClassFigures {
    /// The figures of each standing that any request has had.
    fn of(places: &Places) -> Vec<Self> {
        let had = places.by_standing().into_iter().filter(|figures| figures.asked > 0);
        let told = had.map(|StandingFigures { standing, asked, refused, waiting }| Self {
            class: standing.class.name().to_owned(),
            is_known: standing.is_known,
            asked,
            refused,
            waiting,
        });
        told.collect()
    }

    fn is_plain(&self) -> bool {
        self.class == PlaceClass::Normal.name() && !self.is_known
    }
}

/// Figures of the checks of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxyCheckFigures {
    /// Whether they find it well.
    pub is_well: bool,
    /// Checks that have passed.
    pub passed: u64,
    /// Checks that have failed.
    pub failed: u64,
    /// The last one, in words.
    pub last: String,
}

/// A moment of a server's places.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxyStep {
    /// Seconds ago.
    pub ago_s: f64,
    /// Requests that the server was given at once.
    pub limit: u32,
    /// Requests that it worked on.
    pub in_work: u32,
    /// Requests that waited.
    pub waiting: u32,
    /// Answers a second at the limit.
    pub rate_per_s: f64,
    /// Seconds that it worked on a request.
    pub work_s: f64,
    /// The reason of the law's last step; empty where none sets the limit.
    pub reason: String,
}

impl ProxyServerFigures {
    /// Those of a server at this moment of the workers' clock.
    pub(super) fn of(application: &str, server: &AppServer, now_ms: u64) -> Self {
        let ServerCounts {
            answers,
            errors,
            unreachable,
            timed_out,
            broken,
            short,
            retried,
            links_opened,
            in_work_ms,
        } = &server.counts;
        let count = |count: &AtomicU64| count.load(Relaxed);
        let places = server.places.figures();
        Self {
            application: application.to_owned(),
            server: server.address.to_string(),
            limit: (places.limit != u32::MAX).then_some(places.limit),
            in_work: places.in_work,
            waiting: places.waiting,
            rate_per_s: places.rate,
            work_s: places.in_work_s,
            is_well: server.is_well(now_ms),
            check: server.verdict.figures().map(|figures| {
                let VerdictFigures { is_well, passed, failed, last } = figures;
                ProxyCheckFigures { is_well, passed, failed, last }
            }),
            refused: places.refused,
            unanswered: places.unanswered,
            answers: count(answers),
            errors: count(errors),
            unreachable: count(unreachable),
            timed_out: count(timed_out),
            broken: count(broken),
            short: count(short),
            retried: count(retried),
            links_opened: count(links_opened),
            in_work_s: count(in_work_ms) as f64 / 1e3,
            steps: steps(server, now_ms),
            classes: ProxyClassFigures::of(&server.places),
        }
    }
}

fn steps(server: &AppServer, now_ms: u64) -> Vec<ProxyStep> {
    let steps = server.places.steps().into_iter();
    let told = steps.map(|step| ProxyStep {
        ago_s: now_ms.saturating_sub(step.at_ms) as f64 / 1e3,
        limit: step.figures.limit,
        in_work: step.figures.in_work,
        waiting: step.figures.waiting,
        rate_per_s: step.figures.rate,
        work_s: step.figures.in_work_s,
        reason: step.reason.map(|reason| reason.to_string()).unwrap_or_default(),
    });
    told.collect()
}

impl ProxyFigures {
    /// Each server, and how its limit came to be in the last minute, for people.
    pub fn page(&self) -> String {
        let mut text = format!("{} bytes held for slow clients\n", self.held_bytes);
        let (connections, line) = (self.excess_connections, self.excess_line);
        if connections + line > 0 {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "requests refused because their client had its share: {connections} of connections, \
                 {line} of a line"
            );
        }
        for server in &self.servers {
            // Writing to a string does not fail.
            let _ = server.write(&mut text);
        }
        text
    }
}

impl ProxyServerFigures {
    /// The requests of each class in one line, if there were any but plain ones.
    pub fn classes_in_words(&self) -> Option<String> {
        if self.classes.iter().all(ProxyClassFigures::is_plain) {
            return None;
        }
        let words = self.classes.iter().map(|figures| {
            let ProxyClassFigures { class, is_known, asked, refused, waiting } = figures;
            let known = if *is_known { ", known clients" } else { "" };
            format!("{class}{known}: {asked} came, {refused} refused, {waiting} waiting")
        });
        Some(words.collect::<Vec<_>>().join("; "))
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let limit = self.limit.map_or("no limit".to_owned(), |limit| format!("limit {limit}"));
        let health = if self.is_well { "" } else { ", fails: requests go elsewhere" };
        writeln!(text, "\n{} of {}: {limit}{health}", self.server, self.application)?;
        writeln!(
            text,
            "  {} in work, {} waiting; {} answers, {} refused, {} retried; failed: {} unreachable, \
             {} timeout, {} broken, {} short",
            self.in_work,
            self.waiting,
            self.answers,
            self.refused,
            self.retried,
            self.unreachable,
            self.timed_out,
            self.broken,
            self.short
        )?;
        if let Some(classes) = self.classes_in_words() {
            writeln!(text, "  {classes}")?;
        }
        if let Some(ProxyCheckFigures { is_well, passed, failed, last }) = &self.check {
            let state = if *is_well { "well" } else { "ill" };
            writeln!(text, "  checks find it {state}: {last}; {passed} passed, {failed} failed")?;
        }
        if self.steps.is_empty() {
            return writeln!(text, "  it was never full: nothing had to be decided");
        }
        let (ago, limit, work, waiting) = ("s ago", "limit", "in work", "waiting");
        writeln!(text, "  {ago:>7} {limit:>6} {work:>8} {waiting:>8} {:>9} {:>8}", "answers/s", "ms each")?;
        for step in &self.steps {
            let ProxyStep { ago_s, limit, in_work, waiting, rate_per_s, work_s, reason } = step;
            let ms = work_s * 1e3;
            writeln!(
                text,
                "  {ago_s:>7.1} {limit:>6} {in_work:>8} {waiting:>8} {rate_per_s:>9.1} {ms:>8.1}  {reason}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_line_for_each_step() {
        let step = ProxyStep { ago_s: 1.25, limit: 8, reason: "tries more".into(), ..ProxyStep::default() };
        let server = ProxyServerFigures {
            application: "shop".into(),
            server: "127.0.0.1:1".into(),
            limit: Some(8),
            steps: vec![step],
            classes: vec![
                ProxyClassFigures { class: "normal".into(), asked: 7, ..ProxyClassFigures::default() },
                ProxyClassFigures { class: "low".into(), asked: 5, refused: 4, is_known: true, waiting: 1 },
            ],
            ..ProxyServerFigures::default()
        };
        let text =
            ProxyFigures { servers: vec![server], held_bytes: 3, excess_line: 4, ..ProxyFigures::default() }
                .page();
        assert!(text.contains("their client had its share: 0 of connections, 4 of a line"), "{text}");
        assert!(text.contains("127.0.0.1:1 of shop: limit 8, fails"), "{text}");
        let classes =
            "  normal: 7 came, 0 refused, 0 waiting; low, known clients: 5 came, 4 refused, 1 waiting\n";
        assert!(text.contains(classes), "{text}");
        let mut plain = ProxyServerFigures::default();
        plain.classes.push(ProxyClassFigures { class: "normal".into(), asked: 9, ..Default::default() });
        assert_eq!(plain.classes_in_words(), None);
        assert!(
            text.lines().any(|line| line.starts_with("      1.2") && line.ends_with("tries more")),
            "{text}"
        );
    }
}

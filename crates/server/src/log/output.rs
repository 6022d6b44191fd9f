//! The way of the lines of each site: their form, their condition, and the place that sites may share.
//!
//! This module owns lines that are not written yet. It must never look for a site where all sites log alike.

use std::sync::atomic::Ordering::Relaxed;

use staunch_protocol::http1::decode_path;

use super::Notice;
use super::counts::Counts;
use super::fields;
use super::lines::Lines;
use super::record::Record;
use super::settings::{LogCondition, LogPlan, LogSettings};
use super::sink::{Lost, Sink};
use crate::config::SiteConfig;
use crate::rules::glob::Glob;
use crate::sites::hosts::Hosts;

/// A write of this size costs hardly more than one of a line.
const CHUNK_BYTES: usize = 64 * 1024;

/// The logs of all sites, and the places that they are written to.
pub(super) struct Output {
    /// How a site is found; `None`: all log alike.
    hosts: Option<Hosts>,
    /// By site, or one for all.
    forms: Vec<Option<Form>>,
    pub(super) places: Vec<Place>,
}

/// How lines of a site look, which of them are written, and to which place.
struct Form {
    lines: Lines,
    condition: Condition,
    place: usize,
}

/// A condition, ready to be asked.
struct Condition {
    told: LogCondition,
    skipped: Vec<Glob>,
    scratch: Vec<u8>,
}

/// A place to which lines go, with those that are not written yet.
pub(super) struct Place {
    pub(super) sink: Sink,
    out: Vec<u8>,
    lines: u64,
    /// When something was last said of it. Time is that of the records.
    said_s: u64,
    /// Lines that could not be written since writing last went well.
    lost: u64,
    /// When it was last tried, if it is not open.
    tried_s: u64,
}

impl Output {
    /// The places of a plan, each opened once by `open`; `None` if nothing is logged.
    ///
    /// # Errors
    /// The error that `open` gives.
    pub(super) fn new<E>(
        plan: &LogPlan,
        mut open: impl FnMut(&LogSettings) -> Result<Sink, E>,
    ) -> Result<Option<Self>, E> {
        let (mut places, mut forms) = (Vec::<Place>::new(), Vec::new());
        let are_alike = plan.sites.iter().all(|site| site.log == plan.sites[0].log);
        let sites = if are_alike { plan.sites.get(..1).unwrap_or_default() } else { &plan.sites };
        for settings in sites.iter().map(|site| site.log.as_ref()) {
            let Some(settings) = settings else {
                forms.push(None);
                continue;
            };
            let known = places.iter().position(|place| *place.sink.target() == settings.target);
            let place = match known {
                Some(place) => place,
                None => {
                    places.push(Place::new(open(settings)?));
                    places.len() - 1
                }
            };
            let (lines, condition) =
                (Lines::new(settings.format.clone()), Condition::new(&settings.condition));
            forms.push(Some(Form { lines, condition, place }));
        }
        let hosts = if are_alike { None } else { hosts(plan) };
        Ok((!places.is_empty()).then_some(Self { hosts, forms, places }))
    }

    /// The parts of an exchange that lines need, as bits.
    pub(super) fn wanted(plan: &LogPlan) -> u32 {
        let logs = plan.sites.iter().filter_map(|site| site.log.as_ref());
        let of_lines = logs.map(|log| fields::wanted(&log.format)).fold(0, |all, one| all | one);
        let are_alike = plan.sites.iter().all(|site| site.log == plan.sites[0].log);
        if are_alike || of_lines == 0 { of_lines } else { of_lines | fields::HOST }
    }

    /// Places that are not open, and why.
    pub(super) fn absent(&self) -> Vec<(String, String)> {
        let absent =
            |place: &Place| Some((place.sink.target().to_string(), place.sink.absence()?.to_owned()));
        self.places.iter().filter_map(absent).collect()
    }

    /// Lines that former places have lost are spoken of once it goes on: by the place of that name, or the
    /// first.
    pub(super) fn take_losses(&mut self, former: &Self) {
        for old in &former.places {
            let known = self.places.iter().position(|place| place.sink.target() == old.sink.target());
            if let Some(place) = self.places.get_mut(known.unwrap_or(0)) {
                place.lost += old.lost;
                place.said_s = place.said_s.max(old.said_s);
            }
        }
    }

    /// Adds the line of a record to what is to be written. Gives the place that has enough for a chunk.
    pub(super) fn add(&mut self, record: &Record<'_>, worker: u16) -> Option<&mut Place> {
        let site = self.hosts.as_ref().map_or(0, |hosts| hosts.find(record.host).site);
        let form = self.forms.get_mut(site)?.as_mut()?;
        if !form.condition.is_met(record) {
            return None;
        }
        let place = self.places.get_mut(form.place)?;
        form.lines.write(record, worker, &mut place.out);
        place.lines += 1;
        (place.out.len() >= CHUNK_BYTES).then_some(place)
    }
}

/// Which site answers for a host; `None` where the hosts do not fit together, so that nothing is served by
/// them either.
fn hosts(plan: &LogPlan) -> Option<Hosts> {
    let site = |site: &super::SiteLog| SiteConfig {
        hosts: site.hosts.clone(),
        default: site.is_default,
        ..SiteConfig::default()
    };
    Hosts::new(&plan.sites.iter().map(site).collect::<Vec<_>>()).ok()
}

impl Condition {
    fn new(told: &LogCondition) -> Self {
        let skipped = told.skipped_paths.iter().map(|pattern| Glob::new(pattern)).collect();
        Self { told: told.clone(), skipped, scratch: Vec::new() }
    }

    #[inline]
    fn is_met(&mut self, record: &Record<'_>) -> bool {
        self.told.statuses.iter().all(|test| test.holds(record.status))
            && (self.skipped.is_empty() || !self.is_skipped(record.request_line))
    }

    fn is_skipped(&mut self, request_line: &[u8]) -> bool {
        let target = request_line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let path = path_of(target);
        let path = decode_path(path, &mut self.scratch).unwrap_or(path);
        self.skipped.iter().any(|glob| glob.matches(path))
    }
}

/// The path of a target, with a scheme and a host or without.
fn path_of(target: &[u8]) -> &[u8] {
    let target = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let Some(scheme) = memchr::memmem::find(target, b"://").filter(|_| !target.starts_with(b"/")) else {
        return target;
    };
    let behind = target.get(scheme + 3..).unwrap_or_default();
    let slash = behind.iter().position(|&byte| byte == b'/').unwrap_or(behind.len());
    behind.get(slash..).unwrap_or_default()
}

impl Place {
    fn new(sink: Sink) -> Self {
        Self { sink, out: Vec::new(), lines: 0, said_s: 0, lost: 0, tried_s: 0 }
    }

    /// Writes what there is to be written.
    pub(super) fn write(&mut self, now_s: u64, notice: &Notice, counts: &Counts) {
        if self.out.is_empty() {
            return;
        }
        if self.sink.would_overflow(self.out.len())
            && let Err(error) = self.sink.rotate()
        {
            let target = self.sink.target().clone();
            self.say(now_s, notice, || format!("{target}: cannot be rotated: {error}"));
        }
        if self.sink.absence().is_some() {
            self.try_again(now_s, counts);
        }
        let lost = match self.sink.write(&self.out) {
            Ok(()) => {
                self.recovered(notice, counts);
                0
            }
            Err(lost) => {
                self.failed(now_s, notice, counts, &lost);
                lost.lines
            }
        };
        counts.written.fetch_add(self.lines - lost, Relaxed);
        counts.failed.fetch_add(lost, Relaxed);
        self.out.clear();
        self.lines = 0;
    }

    /// Opens the file that now has the name. If that fails, the old one is kept, if there is one.
    pub(super) fn reopen(&mut self, notice: &Notice, counts: &Counts) {
        let was_absent = self.sink.absence().is_some();
        let name = self.sink.target().clone();
        match self.sink.reopen() {
            Ok(()) if was_absent => {
                counts.note(&name, None);
                notice(&format!("access_log: {name}: open now"));
            }
            Ok(()) => {}
            Err(error) if was_absent => {
                notice(&format!("access_log: {name}: still cannot be opened: {error}"));
            }
            Err(error) => {
                notice(&format!("{name}: cannot be opened again, so the old one is kept: {error}"));
            }
        }
    }

    /// Says something, but not more than once a second. Whether it was said.
    fn say(&mut self, now_s: u64, notice: &Notice, text: impl FnOnce() -> String) -> bool {
        let is_time = now_s > self.said_s;
        if is_time {
            self.said_s = now_s;
            notice(&text());
        }
        is_time
    }

    fn failed(&mut self, now_s: u64, notice: &Notice, counts: &Counts, lost: &Lost) {
        self.lost += lost.lines;
        let lines = self.lost;
        // A place that is not open names itself.
        let what = match self.sink.absence() {
            Some(why) => why.to_owned(),
            None => format!("{}: {}", self.sink.target(), lost.error),
        };
        let text = || format!("{what}; {lines} lines of the access log are lost");
        if self.say(now_s, notice, text) {
            counts.note(self.sink.target(), Some(text()));
        }
    }

    fn recovered(&mut self, notice: &Notice, counts: &Counts) {
        if self.lost > 0 {
            let target = self.sink.target();
            notice(&format!("{target}: written again; {} lines were lost", self.lost));
            self.lost = 0;
            counts.note(target, None);
        }
    }

    /// Tries to open a place that is not open, once a second at most.
    fn try_again(&mut self, now_s: u64, counts: &Counts) {
        if now_s > self.tried_s {
            self.tried_s = now_s;
            // A fault is told of with the lines that are lost for it.
            if self.sink.reopen().is_ok() {
                counts.note(self.sink.target(), None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::StatusTest;
    use super::*;

    #[test]
    fn paths_of_targets() {
        for (target, path) in [
            ("/a?b", "/a"),
            ("http://host/a/b?c", "/a/b"),
            ("http://host", ""),
            ("/x://y", "/x://y"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }

    #[test]
    fn conditions() {
        let skipped_paths = vec!["/healthz".to_owned(), "/assets/*".to_owned()];
        let errors = StatusTest { from: 400, to: u16::MAX, is_negated: false };
        let missing = StatusTest { from: 404, to: 404, is_negated: true };
        let told = LogCondition { statuses: vec![errors, missing], skipped_paths };
        let mut condition = Condition::new(&told);
        for (status, request_line, expected) in [
            (200, "GET / HTTP/1.1", false),
            (399, "GET / HTTP/1.1", false),
            (400, "GET / HTTP/1.1", true),
            (404, "GET / HTTP/1.1", false),
            (503, "GET /healthz HTTP/1.1", false),
            (503, "GET /healthz?x HTTP/1.1", false),
            (503, "GET /healthz/x HTTP/1.1", true),
            (503, "GET /%68ealthz HTTP/1.1", false),
            (503, "GET http://a/assets/x.js HTTP/1.1", false),
            (400, "GET /%zz HTTP/1.1", true),
            (400, "", true),
        ] {
            let record = Record { status, request_line: request_line.as_bytes(), ..Record::default() };
            assert_eq!(condition.is_met(&record), expected, "{status} {request_line}");
        }
    }
}

//! Checks: each server is asked for a page now and then, so that one that is ill is known before a client
//! meets it.
//!
//! A single thread makes all checks, on connections of their own: a check stands in no line, takes no place
//! and counts as no request. It must never have two under way at one server, nor tell a server anything of
//! a client.

mod server_check;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use staunch_engine::monotonic_ns;

use super::application::ServerName;
use super::shared::ProxyShared;
use super::verdict::Checked;
use server_check::ServerCheck;

/// Checks under way at a time: each has a descriptor.
pub const PROXY_CHECKS_MAX: u64 = 64;
/// The longest time in which nothing is looked at, in milliseconds: the end and other servers are seen then.
const LOOK_MS: u64 = 200;
/// The shortest time between two checks of a server, in milliseconds: they are to cost it nothing.
const INTERVAL_MS_MIN: u64 = 100;
/// The golden section, by which the first checks of any number of servers are spread over the interval.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The request by which servers are checked, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyCheck {
    /// The path that is asked for.
    pub path: String,
    /// Time between two checks of a server, and for one of them.
    pub interval: Duration,
}

/// A server that is checked.
struct Watched {
    server: ServerName,
    /// The moment of the next check, and the end of the one under way.
    due_ms: u64,
    check: Option<ServerCheck>,
}

/// The thread's servers.
struct Checks {
    shared: Arc<ProxyShared>,
    path: String,
    interval_ms: u64,
    watched: Vec<Watched>,
    /// Changes of the applications that were seen.
    changes_seen: Option<u64>,
    /// Servers that were watched so far.
    begun: u32,
}

impl ProxyCheck {
    /// Servers of applications in use are checked from now on, until the proxy ends.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self, shared: &Arc<ProxyShared>) -> io::Result<()> {
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("proxy-checks".into());
        thread.spawn(move || run(shared, self)).map(drop)
    }
}

fn run(shared: Arc<ProxyShared>, check: ProxyCheck) {
    let interval_ms = u64::try_from(check.interval.as_millis()).unwrap_or(u64::MAX).max(INTERVAL_MS_MIN);
    let (path, watched) = (check.path, Vec::new());
    let mut checks = Checks { shared, path, interval_ms, watched, changes_seen: None, begun: 0 };
    while !checks.shared.has_ended() {
        checks.watch(now_ms());
        checks.begin_due(now_ms());
        let ready = checks.wait(now_ms());
        checks.go_on(&ready, now_ms());
    }
}

fn now_ms() -> u64 {
    monotonic_ns() / 1_000_000
}

impl Checks {
    /// Watches the servers that are there now.
    fn watch(&mut self, now_ms: u64) {
        let changes = self.shared.changes();
        if self.changes_seen.replace(changes) == Some(changes) {
            return;
        }
        let mut before = std::mem::take(&mut self.watched);
        for server in self.shared.servers_in_use() {
            let known = before.iter().position(|one| one.server.is(&server));
            let one = known.map(|index| before.swap_remove(index));
            let one = one.map(|one| Watched { server: server.clone(), ..one });
            let one = one.unwrap_or_else(|| self.begin_watching(server, now_ms));
            self.watched.push(one);
        }
    }

    fn begin_watching(&mut self, server: ServerName, now_ms: u64) -> Watched {
        let part = (f64::from(self.begun) * GOLDEN).fract();
        self.begun = self.begun.wrapping_add(1);
        Watched { server, due_ms: now_ms + (self.interval_ms as f64 * part) as u64, check: None }
    }

    fn under_way(&self) -> usize {
        self.watched.iter().filter(|one| one.check.is_some()).count()
    }

    fn begin_due(&mut self, now_ms: u64) {
        let mut room = (PROXY_CHECKS_MAX as usize).saturating_sub(self.under_way());
        for one in &mut self.watched {
            if one.check.is_some() || one.due_ms > now_ms || room == 0 {
                continue;
            }
            one.due_ms = now_ms + self.interval_ms;
            match ServerCheck::begin(&one.server, &self.path, &self.shared) {
                Ok(check) => {
                    one.check = Some(check);
                    room -= 1;
                }
                Err(checked) => {
                    checked.into_iter().for_each(|checked| note(&self.shared, &one.server, checked));
                }
            }
        }
    }

    /// Waits until something happens, or something is due. Gives which servers' checks go on.
    fn wait(&self, now_ms: u64) -> Vec<bool> {
        let has_room = self.under_way() < PROXY_CHECKS_MAX as usize;
        let timed = self.watched.iter().filter(|one| one.check.is_some() || has_room);
        let due_ms = timed.map(|one| one.due_ms).min().unwrap_or(u64::MAX);
        let wait_ms = due_ms.saturating_sub(now_ms).min(LOOK_MS);
        let time = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait_ms * 1_000_000).unwrap_or(0) };
        let under_way = self.watched.iter().filter_map(|one| one.check.as_ref());
        let mut awaited: Vec<PollFd<'_>> =
            under_way.map(|check| PollFd::new(check, check.awaits())).collect();
        // EINTR is no news.
        let _ = poll(&mut awaited, Some(&time));
        let mut answers = awaited.iter().map(|one| !one.revents().is_empty());
        self.watched.iter().map(|one| one.check.is_some() && answers.next().unwrap_or(false)).collect()
    }

    fn go_on(&mut self, ready: &[bool], now_ms: u64) {
        for (one, is_ready) in self.watched.iter_mut().zip(ready) {
            let Some(check) = &mut one.check else { continue };
            let checked = if *is_ready { check.go_on() } else { None };
            let checked = checked.or_else(|| (one.due_ms <= now_ms).then(|| check.time_out()));
            if let Some(checked) = checked {
                one.check = None;
                note(&self.shared, &one.server, checked);
            }
        }
    }
}

/// Notes a check, and tells the operator if it changes where requests go.
fn note(shared: &ProxyShared, server: &ServerName, checked: Checked) {
    let words = checked.words.clone();
    let (place, name) = (&server.get().address, &server.application.name);
    match server.get().verdict.note(checked) {
        None => {}
        Some(true) => {
            // Whatever was known of it, it was away.
            server.get().places.begin_anew();
            shared.say(&format!("proxy: {place} of {name} is well again by its checks ({words})"));
        }
        Some(false) => shared.say(&format!(
            "proxy: {place} of {name} is ill by its checks ({words}): requests go elsewhere, if they can"
        )),
    }
}

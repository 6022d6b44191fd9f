//! The process that looks names up: confined before the first of them, and at it until its server has ended.
//!
//! It must never read a word of anybody but the answers that the system's library understands.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use staunch_acme::Line;
use staunch_config::syntax::Scalar as _;
use staunch_config::syntax::choice::Sandbox as Choice;
use staunch_engine::monotonic_ns;
use staunch_program::Failure;

use super::lookup::{Addresses, look_up};
use super::message::{Found, ToServer};
use super::plan::ResolverPlan;
use crate::confinement;

/// Names are shared by so many threads: a name whose servers of DNS are silent keeps the others of its thread
/// waiting for some seconds.
const THREADS_MAX: usize = 8;
/// Until a name that has failed is looked up again, at first, in milliseconds.
const FAILED_MS: u64 = 1_000;

/// A name that is looked up again and again.
struct Followed {
    name: String,
    /// The outcome that the server was told last; of failures one is as good as another.
    told: Option<Option<Addresses>>,
    due_ms: u64,
    failed_ms: u64,
}

/// Looks names up until the server has ended.
pub(super) fn run(plan: &ResolverPlan, line: Line) -> Result<(), Failure> {
    let sandbox = confinement::sandbox(Choice::parse(&plan.sandbox)?);
    let missing = staunch_confine::confine_resolver(sandbox).map_err(|missing| missing.to_string())?;
    let line = Arc::new(line);
    for what in missing {
        let text = format!("proxy: the resolver is not wholly confined: {what}");
        // Fails when the server has ended, of which the last lines of this function hear.
        let _ = line.tell(&ToServer::Say(text));
    }
    let threads = THREADS_MAX.min(plan.names.len());
    for number in 0..threads {
        let names = plan.names.iter().skip(number).step_by(threads).cloned();
        let (names, line, interval_ms) = (names.collect(), Arc::clone(&line), plan.interval_ms);
        let thread = std::thread::Builder::new().name("lookup".into());
        thread
            .spawn(move || follow(names, interval_ms, &line))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
    }
    await_end(&line).map_err(|error| format!("the line to the server: {error}").into())
}

/// Waits until the server has ended: it says nothing, so that is all that can be heard.
fn await_end(line: &Line) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(line, PollFlags::IN)], None) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn follow(names: Vec<String>, interval_ms: u64, line: &Line) {
    let fresh = |name| Followed { name, told: None, due_ms: 0, failed_ms: 0 };
    let mut names: Vec<Followed> = names.into_iter().map(fresh).collect();
    loop {
        for name in names.iter_mut().filter(|name| name.due_ms <= now_ms()) {
            if let Some(found) = name.look(interval_ms, look_up)
                && line.tell(&ToServer::Found(found)).is_err()
            {
                return;
            }
        }
        let due_ms = names.iter().map(|name| name.due_ms).min().unwrap_or(u64::MAX);
        // tidy: allow(clock): looking again is all this thread does.
        std::thread::sleep(Duration::from_millis(due_ms.saturating_sub(now_ms()).max(1)));
    }
}

fn now_ms() -> u64 {
    monotonic_ns() / 1_000_000
}

impl Followed {
    /// Looks it up. Gives what the server has to be told, if that is news.
    fn look(
        &mut self,
        interval_ms: u64,
        look_up: impl FnOnce(&str) -> Result<Addresses, String>,
    ) -> Option<Found> {
        let outcome = look_up(&self.name);
        self.failed_ms = match &outcome {
            Ok(_) => 0,
            Err(_) => (self.failed_ms * 2).max(FAILED_MS),
        };
        let pause_ms = if outcome.is_ok() { interval_ms } else { self.failed_ms.min(interval_ms) };
        self.due_ms = now_ms() + pause_ms;
        let told = outcome.as_ref().ok().cloned();
        let is_news = self.told.as_ref() != Some(&told);
        self.told = Some(told);
        is_news.then(|| Found { name: self.name.clone(), outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_told_of_changes_and_a_failing_name_is_looked_up_sooner() {
        let mut name = Followed { name: "app:80".into(), told: None, due_ms: 0, failed_ms: 0 };
        let at = |text: &str| Ok(Addresses { all: vec![text.parse().expect("an address")], left_out: 0 });
        let fails = |reason: &str| Err(reason.to_owned());
        let mut look = |outcome| {
            let news = name.look(30_000, |_| outcome).is_some();
            (news, name.failed_ms)
        };
        assert_eq!(look(at("10.0.0.1:80")), (true, 0));
        assert_eq!(look(at("10.0.0.1:80")), (false, 0));
        assert_eq!(look(at("10.0.0.2:80")), (true, 0));
        assert_eq!(look(fails("no answer")), (true, 1_000));
        assert_eq!(look(fails("no such name")), (false, 2_000));
        assert_eq!(look(at("10.0.0.2:80")), (true, 0));
    }
}

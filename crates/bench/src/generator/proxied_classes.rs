//! The scenario `proxy-classes`: users at half of an application's peak, and prefetch at twelve times beside.
//!
//! The scenario owns the bar on the users' answers, and that on the application's work: what users leave of
//! it is done for prefetch. Prefetch comes from a second generator, of which nothing is read: the
//! application counts what it has answered.

use std::process::{Child, Stdio};
use std::time::Duration;

use super::front::Proxy;
use super::proxied::{APPLICATIONS, SleepingApplication, row, stage};
use super::running;
use super::tool::Tool;
use crate::account::{self, Account as _};
use crate::report::{Direction, ScenarioOutcome};
use crate::servers::pinned;
use crate::setting::Setting;

/// Users, in percent of the peak, and prefetch as a multiple of it: what Netflix has published of its
/// gateway.
const USERS_PERCENT: u32 = 50;
const PREFETCH_TIMES: u32 = 12;
/// Seconds before those that count, in which a proxy may learn.
const LEARNING_S: u32 = 10;

/// The last one has no classes: what users get without them.
const PROXIES: [Proxy; 3] = [Proxy::Uring, Proxy::Epoll, Proxy::Nginx];

const IN_TIME: &str = "users answered in time";
const IN_TIME_MIN: f64 = 0.99;
const WORK: &str = "answers of the application, of the peak";
const WORK_MIN: f64 = 0.9;

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "proxy-classes",
        "applications behind proxies: users at half of the peak, prefetch at twelve times beside them, a \
         connection for each request, 1 s of patience",
    );
    let rows = || PROXIES.into_iter().flat_map(|proxy| APPLICATIONS.iter().map(move |one| (proxy, one)));
    setting.expect_steps(rows().count() * setting.rounds as usize);
    for _ in 0..setting.rounds {
        for (proxy, application) in rows() {
            let row = row(proxy, application);
            setting.step(&row);
            if let Err(error) = measure(proxy, application, setting, &mut outcome) {
                outcome.errors.push(format!("{row}: {error}"));
            }
        }
    }
    for (proxy, application) in rows().filter(|(proxy, _)| Proxy::OURS.contains(proxy)) {
        let row = row(proxy, application);
        outcome.judge(&row, IN_TIME, Direction::AtLeast, IN_TIME_MIN, "");
        outcome.judge(&row, WORK, Direction::AtLeast, WORK_MIN, "");
    }
    outcome
}

fn measure(
    proxy: Proxy,
    application: &SleepingApplication,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let seconds = LEARNING_S + setting.seconds.max(10);
    let (server, front) = stage(proxy, application, &[], setting)?;
    let url = format!("http://{}/ok", front.address);
    let strangers = |per_s| Tool::Uring.strangers(&setting.programs, per_s, seconds, &url);
    let ahead = [strangers(application.peak_per_s * PREFETCH_TIMES), prefetch_field()].concat();
    let prefetch = Beside::start(&ahead)?;
    let users_per_s = application.peak_per_s * USERS_PERCENT / 100;
    let watched =
        running::run(&strangers(users_per_s), Duration::from_secs(seconds.into()), &setting.scratch)?;
    drop(prefetch);
    let row = row(proxy, application);
    watched.disturbance(&row).into_iter().for_each(|note| outcome.note(note));
    let users = account::read(&watched.output)?;
    let good = users.in_time_between(f64::from(LEARNING_S), f64::from(seconds));
    outcome.add(&row, IN_TIME, "", good / f64::from(users_per_s));
    drop(front);
    let answers: u64 = server.finish()?.answers.values().sum();
    outcome.add(&row, WORK, "", answers as f64 / f64::from(application.peak_per_s * seconds));
    Ok(())
}

fn prefetch_field() -> Vec<String> {
    ["--header", "Sec-Purpose: prefetch"].map(str::to_owned).into()
}

/// A generator of which nothing is read, until it is dropped.
struct Beside(Child);

impl Beside {
    fn start(words: &[String]) -> Result<Self, String> {
        let mut command = pinned(running::CPU.to_string());
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{}: {error}", words.join(" ")))?;
        Ok(Self(child))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // A generator that has ended by itself cannot be ended any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! The scenario `proxy-overload`: applications of known capacity behind proxies, offered ten times of it.
//!
//! The scenario owns the bars on goodput and on work that was done for nobody. The applications sleep, so
//! that neither they nor the machine's speed decide what can be served; they count their own answers. Every
//! proxy has one configuration for all, as its package installs it.

use std::net::SocketAddr;
use std::time::Duration;

use staunch_loadgen::report::Document;

use super::front::{Front, FrontPlan, Proxy};
use super::running::{self, WatchedRun};
use super::tool::Tool;
use super::truth::TruthServer;
use crate::account::{self, Account as _};
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;

/// An application: so many at once, each for so long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SleepingApplication {
    /// Name in tables and plots.
    pub(crate) name: &'static str,
    workers: u32,
    service_time: &'static str,
    /// Answers a second at most.
    pub(crate) peak_per_s: u32,
}

/// The applications: with a request at a time, and with several.
pub(crate) const APPLICATIONS: [SleepingApplication; 2] = [
    SleepingApplication { name: "1 x 10 ms", workers: 1, service_time: "10ms", peak_per_s: 100 },
    SleepingApplication { name: "8 x 200 ms", workers: 8, service_time: "200ms", peak_per_s: 40 },
];
const OVERLOAD: u32 = 10;
/// Seconds before those that count, in which a proxy may learn.
const LEARNING_S: u32 = 10;
/// Connections that wait in the kernel for the application alone, as at servers with a process a request. One
/// that accepts all of them would need a thread for each until its turn comes.
const ALONE_BACKLOG: u32 = 4096;

const PROXIES: [Proxy; 6] =
    [Proxy::Nothing, Proxy::Nginx, Proxy::Haproxy, Proxy::Caddy, Proxy::Uring, Proxy::Epoll];

const GOODPUT: &str = "answered in time, of the peak";
const WASTED: &str = "answers of the application for nobody";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "proxy-overload",
        "applications behind proxies at ten times their peak, a connection for each request, 1 s of patience",
    );
    setting.expect_steps(PROXIES.len() * APPLICATIONS.len() * setting.rounds as usize);
    for _ in 0..setting.rounds {
        for application in &APPLICATIONS {
            for proxy in PROXIES {
                setting.step(&format!("{}, {}", proxy.name(), application.name));
                if let Err(error) = measure(proxy, application, setting, &mut outcome) {
                    outcome.errors.push(format!("{}, {}: {error}", proxy.name(), application.name));
                }
            }
        }
    }
    for (proxy, application) in
        [Proxy::Uring, Proxy::Epoll].iter().flat_map(|proxy| APPLICATIONS.iter().map(move |one| (proxy, one)))
    {
        let row = row(*proxy, application);
        outcome.judge(&row, GOODPUT, Direction::AtLeast, 0.97, "");
        outcome.judge(&row, WASTED, Direction::AtMost, 0.01, "");
    }
    outcome
}

pub(super) fn row(proxy: Proxy, application: &SleepingApplication) -> String {
    format!("{}, {}", proxy.name(), application.name)
}

fn measure(
    proxy: Proxy,
    application: &SleepingApplication,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let seconds = LEARNING_S + setting.seconds.max(10);
    let peak_per_s = application.peak_per_s;
    let served = serve(proxy, application, &[], peak_per_s * OVERLOAD, seconds, setting)?;
    let row = row(proxy, application);
    outcome.note(served.command.clone());
    served.run.disturbance(&row).into_iter().for_each(|note| outcome.note(note));
    let good = served.report.in_time_between(f64::from(LEARNING_S), f64::from(seconds));
    outcome.add(&row, GOODPUT, "", good / f64::from(peak_per_s));
    outcome.add(&row, WASTED, "", served.wasted());
    Ok(())
}

/// The end of a run.
pub(crate) struct ServedRun {
    /// The clients' account.
    pub(crate) report: Document,
    /// Answers of the application.
    answers: u64,
    /// The command of the proxy, and its version.
    pub(crate) command: String,
    run: WatchedRun,
}

impl ServedRun {
    /// The part of the application's answers that nobody waited for any more.
    pub(crate) fn wasted(&self) -> f64 {
        let in_time: u64 = self.report.in_time_steps().iter().sum();
        1.0 - in_time as f64 / self.answers.max(1) as f64
    }
}

/// Starts an application and the proxy before it. `changes`: further arguments of the application.
///
/// # Errors
/// A program that is not there or fails.
pub(super) fn stage(
    proxy: Proxy,
    application: &SleepingApplication,
    changes: &[&str],
    setting: &Setting,
) -> Result<(TruthServer, Front), String> {
    let SleepingApplication { workers, service_time, .. } = application;
    let backlog = (proxy == Proxy::Nothing).then_some(ALONE_BACKLOG);
    let server = TruthServer::start_sleeping(&setting.programs, service_time, *workers, backlog, changes)?;
    let behind: SocketAddr = server.address()?;
    let front = Front::start(proxy, behind, &FrontPlan::PLAIN, setting)?;
    Ok((server, front))
}

/// Offers an application behind a proxy so many requests a second, each of a stranger who waits one second.
/// `changes`: further arguments of the application.
///
/// # Errors
/// A program that is not there or fails.
pub(crate) fn serve(
    proxy: Proxy,
    application: &SleepingApplication,
    changes: &[&str],
    per_s: u32,
    seconds: u32,
    setting: &Setting,
) -> Result<ServedRun, String> {
    let (server, front) = stage(proxy, application, changes, setting)?;
    let url = format!("http://{}/ok", front.address);
    let words = Tool::Uring.strangers(&setting.programs, per_s, seconds, &url);
    let run = running::run(&words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let report = account::read(&run.output)?;
    let command = front.describe(&setting.programs);
    drop(front);
    let answers = server.finish()?.answers.values().sum();
    Ok(ServedRun { report, answers, command, run })
}

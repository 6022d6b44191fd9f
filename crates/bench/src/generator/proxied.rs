//! The scenario `proxy-overload`: applications of known capacity behind proxies, offered ten times of it.
//!
//! The scenario owns the bars on goodput and on work that was done for nobody. The applications sleep, so
//! that neither they nor the machine's speed decide what can be served; they count their own answers. Every
//! proxy has one configuration for all, as its package installs it.

use std::net::SocketAddr;
use std::time::Duration;

use super::front::{Front, FrontPlan, Proxy};
use super::running;
use super::tool::Tool;
use super::truth::TruthServer;
use crate::account::{self, Account as _};
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;

/// An application: so many at once, each for so long.
struct Application {
    name: &'static str,
    workers: u32,
    service_time: &'static str,
    peak_per_s: u32,
}

const APPLICATIONS: [Application; 2] = [
    Application { name: "1 x 10 ms", workers: 1, service_time: "10ms", peak_per_s: 100 },
    Application { name: "8 x 200 ms", workers: 8, service_time: "200ms", peak_per_s: 40 },
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

fn row(proxy: Proxy, application: &Application) -> String {
    format!("{}, {}", proxy.name(), application.name)
}

fn measure(
    proxy: Proxy,
    application: &Application,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let Application { workers, service_time, peak_per_s, .. } = application;
    let server = match proxy {
        Proxy::Nothing => {
            TruthServer::start_sleeping_alone(&setting.programs, service_time, *workers, ALONE_BACKLOG)
        }
        _ => TruthServer::start_sleeping(&setting.programs, service_time, *workers),
    }?;
    let behind: SocketAddr = server.address()?;
    let front = Front::start(proxy, behind, &FrontPlan::PLAIN, setting)?;
    let seconds = LEARNING_S + setting.seconds.max(10);
    let url = format!("http://{}/ok", front.address);
    let words = Tool::Uring.strangers(&setting.programs, peak_per_s * OVERLOAD, seconds, &url);
    let watched = running::run(&words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let report = account::read(&watched.output)?;
    let row = row(proxy, application);
    outcome.note(front.describe(&setting.programs));
    watched.disturbance(&row).into_iter().for_each(|note| outcome.note(note));
    drop(front);
    let answers: u64 = server.finish()?.answers.values().sum();
    let good = report.in_time_between(f64::from(LEARNING_S), f64::from(seconds));
    outcome.add(&row, GOODPUT, "", good / f64::from(*peak_per_s));
    let in_time: u64 = report.in_time_steps().iter().sum();
    outcome.add(&row, WASTED, "", 1.0 - in_time as f64 / answers.max(1) as f64);
    Ok(())
}

//! The scenario of handshakes: a connection for each request, with a full handshake and with a resumed one.
//!
//! It owns the clients: threads beside the server's CPU, so many that the server never waits for one. All
//! servers of the scenario run at once and are measured in turn, round by round; those not measured sleep.
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::judging::{compared, judge_by_best, judge_together};
use super::running::Running;
use crate::client::HttpClient;
use crate::load;
use crate::machine::CpuTimes;
use crate::pair::Pair;
use crate::process::Usage;
use crate::report::ScenarioOutcome;
use crate::servers::Server;
use crate::setting::Setting;
use crate::tls::{Dialer, Protocol};

const FULL: &str = "CPU per full handshake";
const RESUMED: &str = "CPU per resumed handshake";
const OF_BEST_MAX: f64 = 0.45;
const OF_FULL_MAX: f64 = 0.6;
const CLIENTS: usize = 16;
/// Each measurement is preceded by this much unmeasured load, in which each client gets its first ticket.
const WARM_UP: Duration = Duration::from_secs(1);
const FILE_BYTES: usize = 100;

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "tls-handshake",
        "a connection over TLS 1.3 for each request of 100 bytes: P-256, X25519, 16 clients at a time",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge_by_best(setting, &mut outcome, FULL, OF_BEST_MAX);
    judge_by_best(setting, &mut outcome, RESUMED, OF_BEST_MAX);
    let words = format!("{RESUMED}, of its own full one");
    judge_together(&mut outcome, (RESUMED, FULL), &words, (OF_FULL_MAX, ""), |one, full| one / full);
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let kinds = compared(setting);
    setting.expect_steps(kinds.len() * (2 * setting.rounds as usize + 1));
    let mut running = Running::start(&kinds, FILE_BYTES, setting, outcome)?;
    for round in 1..=setting.rounds {
        for server in &running.servers {
            for (measure, resumes) in [(FULL, false), (RESUMED, true)] {
                setting.step(&format!("round {round}, {}, {measure}", server.kind.name()));
                let measured = measure_once(server, (measure, resumes), &running, setting, outcome);
                if let Err(error) = measured {
                    outcome.errors.push(format!("{}, {measure}: {error}", server.kind.name()));
                }
            }
        }
        running.next_round();
    }
    Ok(())
}

fn measure_once(
    server: &Server,
    (measure, resumes): (&str, bool),
    running: &Running,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let clients = Clients::new(server.address, &running.path, &running.pair, resumes)?;
    clients.shake(WARM_UP)?;
    let (cpus_before, before) = (CpuTimes::read(), Usage::of(server.id()));
    let shaken = clients.shake(Duration::from_secs(setting.seconds.into()))?;
    let (spent_ns, cpus) = (Usage::of(server.id()).since_ns(&before), CpuTimes::read());
    let wanted = if resumes { shaken.all } else { 0 };
    if shaken.resumed != wanted {
        return Err(format!("{} of {} handshakes were resumed", shaken.resumed, shaken.all));
    }
    let name = server.kind.name();
    outcome.add(name, measure, "us", spent_ns as f64 / 1000.0 / shaken.all as f64);
    outcome.add(name, &format!("{measure}: server's CPU busy"), "%", cpus.busy_since(&cpus_before, 0));
    Ok(())
}

/// Handshakes that came to their answer.
#[derive(Debug, Clone, Copy, Default)]
struct Shaken {
    all: u64,
    resumed: u64,
}

/// Clients of one server, each of which keeps its own tickets.
struct Clients<'r> {
    dialers: Vec<Dialer>,
    address: SocketAddr,
    path: &'r str,
}

impl<'r> Clients<'r> {
    fn new(address: SocketAddr, path: &'r str, pair: &Pair, resumes: bool) -> Result<Self, String> {
        let dialer = |_| Dialer::new(&pair.certificate, Protocol::Http1, resumes);
        let dialers: Result<Vec<Dialer>, String> = (0..CLIENTS).map(dialer).collect();
        Ok(Self { dialers: dialers?, address, path })
    }

    /// Every client makes one connection after the other for so long.
    fn shake(&self, time: Duration) -> Result<Shaken, String> {
        let until = Instant::now() + time;
        let results: Vec<Result<Shaken, String>> = thread::scope(|scope| {
            let start = |dialer| scope.spawn(move || self.visit(dialer, until));
            let threads: Vec<_> = self.dialers.iter().map(start).collect();
            let end =
                |ended: thread::Result<_>| ended.unwrap_or_else(|_| Err("a client panicked".to_owned()));
            threads.into_iter().map(|thread| end(thread.join())).collect()
        });
        let mut sum = Shaken::default();
        for result in results {
            let one = result?;
            sum = Shaken { all: sum.all + one.all, resumed: sum.resumed + one.resumed };
        }
        Ok(sum)
    }

    /// One client, on the processors of the load.
    fn visit(&self, dialer: &Dialer, until: Instant) -> Result<Shaken, String> {
        let mut own = CpuSet::new();
        load::processors().for_each(|cpu| own.set(cpu));
        sched_setaffinity(None, &own).map_err(|error| format!("pinning a client: {error}"))?;
        let mut shaken = Shaken::default();
        while Instant::now() < until {
            let (stream, is_resumed) = dialer.dial(self.address)?;
            let reply = HttpClient::over(stream).get_last(self.path)?;
            if reply.status != 200 || reply.body.len() != FILE_BYTES {
                return Err(format!("status {}, {} bytes", reply.status, reply.body.len()));
            }
            shaken.all += 1;
            shaken.resumed += u64::from(is_resumed);
        }
        Ok(shaken)
    }
}

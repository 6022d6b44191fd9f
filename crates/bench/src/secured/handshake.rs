//! The scenario of handshakes: a connection for each request, with a full handshake and with a resumed one.
//!
//! It owns the clients: threads beside the server's CPU, so many that the server never waits for one. All
//! servers of the scenario run at once and are measured in turn, round by round; those not measured sleep.
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::judging::{compared, judge_by_best, judge_together, note_waiting};
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
            if let Err(error) = measure_once(server, round, &running, setting, outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", server.kind.name()));
            }
        }
        running.next_round();
    }
    Ok(())
}

/// Full handshakes, then resumed ones. A server may give no ticket with a resumed handshake, so that some of
/// these are full ones: what those cost is taken off.
fn measure_once(
    server: &Server,
    round: u32,
    running: &Running,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let name = server.kind.name();
    let mut spent = |measure: &str, resumes| {
        setting.step(&format!("round {round}, {name}, {measure}"));
        let clients = Clients::new(server.address, &running.path, &running.pair, resumes)?;
        clients.shake(WARM_UP)?;
        let (cpus_before, before) = (CpuTimes::read(), Usage::of(server.id()));
        let shaken = clients.shake(Duration::from_secs(setting.seconds.into()))?;
        let (spent_ns, cpus) = (Usage::of(server.id()).since_ns(&before), CpuTimes::read());
        note_waiting(outcome, name, measure, cpus.busy_since(&cpus_before, 0));
        Ok::<_, String>((spent_ns as f64 / 1000.0, shaken))
    };
    let (full_us, full) = spent(FULL, false)?;
    let (resumed_us, resumed) = spent(RESUMED, true)?;
    let full_us = full_us / full.all as f64;
    outcome.add(name, FULL, "us", full_us);
    outcome.add(name, RESUMED, "us", resumed.each_us(resumed_us, full_us)?);
    if resumed.resumed < resumed.all {
        outcome.note(format!("{name} gives no ticket with a resumed handshake, so some are full: taken off"));
    }
    Ok(())
}

/// Handshakes that came to their answer.
#[derive(Debug, Clone, Copy, Default)]
struct Shaken {
    all: u64,
    resumed: u64,
}

impl Shaken {
    /// What one that was resumed costs, if all together cost so much and a full one `full_us`.
    fn each_us(self, all_us: f64, full_us: f64) -> Result<f64, String> {
        if self.resumed * 2 < self.all {
            return Err(format!("only {} of {} handshakes were resumed", self.resumed, self.all));
        }
        Ok((all_us - (self.all - self.resumed) as f64 * full_us) / self.resumed as f64)
    }
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

    /// Makes handshakes until the time is over, as one client on the processors of the load.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_handshakes_among_resumed_ones_are_taken_off() {
        let each_us = |resumed, all| Shaken { all, resumed }.each_us(700.0, 100.0);
        assert_eq!(each_us(10, 10), Ok(70.0));
        assert_eq!(each_us(8, 10), Ok(62.5));
        assert!(each_us(4, 10).is_err());
    }
}

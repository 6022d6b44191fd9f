//! The scenario `lab-client`: the laboratory's client beside wrk, on the same server models.
//!
//! It owns the comparison. What the laboratory says of models it can only say if its client asks as a known
//! client does: as often, and so that it costs the server as much. Both ask the same running server in turns,
//! for as many answers, and each turn the other begins. It must never take processors but the first two that
//! it may use: the first serves, the second asks.
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Deserialize;
use staunch_figures::statistics::median;

use super::running;
use crate::client::fetch;
use crate::load::parse_wrk;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::servers::pinned;
use crate::setting::Setting;
use crate::{machine, process};

const MODELS: [&str; 2] = ["epoll-edge", "staunch-epoll"];
const CONNECTIONS: [u32; 2] = [10, 100];
/// How both ask: with a connection for each request or not, and the laboratory's word for it.
const WAYS: [(&str, &str); 2] = [("close", "--http"), ("keep-alive", "--keep-alive")];
/// The paper's answer.
const BYTES: &str = "4000";
/// Each case is loaded this long before it is measured, which says how many answers are to be asked for.
const WARM_UP_S: u32 = 1;
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

const RATE: &str = "requests per second";
const SERVER: &str = "server's CPU per request";
const CLIENT: &str = "client's CPU per request";
/// How far the laboratory's client may be from wrk.
const PROMISES: [(&str, Direction, f64); 2] =
    [(RATE, Direction::AtLeast, 0.95), (SERVER, Direction::AtMost, 1.05)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Wrk,
    Lab,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::Lab => "lab",
        }
    }
}

/// A server, and how it is asked.
struct Case<'a> {
    model: &'a Model,
    connections: u32,
    way: (&'static str, &'static str),
    /// What each connection asks for, one after the other.
    loops: u64,
}

/// What one run was.
#[derive(Debug, PartialEq)]
struct Run {
    answered: u64,
    per_second: f64,
}

/// The part of what `staunch lab client --json` says that is used here.
#[derive(Deserialize)]
struct Report {
    wall_s: f64,
    answered: u64,
    errors: Vec<(String, u64)>,
}

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "lab-client",
        "the laboratory's client beside wrk: 4 000 bytes by HTTP, closed loop, one thread",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    for (model, connections, (way, _)) in cases() {
        judge(&case_name(model, connections, way), &mut outcome);
    }
    outcome
}

fn cases() -> impl Iterator<Item = (&'static str, u32, (&'static str, &'static str))> {
    let of_model = |model| {
        CONNECTIONS.into_iter().flat_map(move |connections| WAYS.map(|way| (model, connections, way)))
    };
    MODELS.into_iter().flat_map(of_model)
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let (server_cpu, client_cpu) = processors()?;
    let models = MODELS.map(|name| Model::start(name, server_cpu, setting));
    let models = models.into_iter().collect::<Result<Vec<Model>, String>>()?;
    outcome.note(format!("servers on CPU {server_cpu}, clients on CPU {client_cpu}"));
    setting.expect_steps(cases().count() * (1 + 2 * setting.rounds as usize));
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (name, connections, way) in self::cases() {
        let Some(model) = models.iter().find(|model| model.name == name) else { continue };
        let mut case = Case { model, connections, way, loops: 1 };
        setting.step(&format!("warming {}", case.name()));
        let (warm, _) = case.ask(Tool::Wrk, WARM_UP_S, client_cpu, setting)?;
        let loops = warm.per_second * f64::from(setting.seconds) / f64::from(connections);
        case.loops = (loops as u64).max(1);
        for tool in [Tool::Wrk, Tool::Lab] {
            outcome.note(case.words(tool, setting.seconds, setting).join(" "));
        }
        cases.push(case);
    }
    for round in 1..=setting.rounds {
        for case in &cases {
            let tools = if round % 2 == 1 { [Tool::Wrk, Tool::Lab] } else { [Tool::Lab, Tool::Wrk] };
            for tool in tools {
                setting.step(&format!("round {round}, {}, {}", tool.name(), case.name()));
                case.measure(tool, client_cpu, setting, outcome)?;
            }
        }
    }
    Ok(())
}

impl Case<'_> {
    fn name(&self) -> String {
        case_name(self.model.name, self.connections, self.way.0)
    }

    fn measure(
        &self,
        tool: Tool,
        cpu: usize,
        setting: &Setting,
        outcome: &mut ScenarioOutcome,
    ) -> Result<(), String> {
        let row = row(tool, &self.name());
        let before = process::Usage::of(self.model.child.id());
        let (run, watched) = self.ask(tool, setting.seconds, cpu, setting)?;
        let spent_ns = process::Usage::of(self.model.child.id()).since_ns(&before);
        outcome.add(&row, RATE, "", run.per_second);
        outcome.add(&row, SERVER, "us", spent_ns as f64 / 1000.0 / run.answered as f64);
        outcome.add(&row, CLIENT, "us", watched.cost_us(run.answered));
        watched.disturbance(&row).into_iter().for_each(|note| outcome.note(note));
        Ok(())
    }

    fn ask(
        &self,
        tool: Tool,
        seconds: u32,
        cpu: usize,
        setting: &Setting,
    ) -> Result<(Run, running::WatchedRun), String> {
        let words = self.words(tool, seconds, setting);
        let meant = Duration::from_secs(seconds.into());
        let watched = running::run_on(&cpu.to_string(), &words, meant, &setting.scratch)?;
        let run = match tool {
            Tool::Wrk => parse_wrk(&watched.output)
                .map(|said| Run { answered: said.requests, per_second: said.per_second })?,
            Tool::Lab => read(&watched.output)?,
        };
        Ok((run, watched))
    }

    fn words(&self, tool: Tool, seconds: u32, setting: &Setting) -> Vec<String> {
        let (connections, address) = (self.connections.to_string(), self.model.address);
        let (host, port, loops) =
            (address.ip().to_string(), address.port().to_string(), self.loops.to_string());
        let program = setting.programs.staunch.to_string_lossy();
        let (way, flag) = self.way;
        let (duration, url) = (format!("{seconds}s"), format!("http://{address}/{BYTES}"));
        let close = ["-H", "Connection: close"];
        let words: Vec<&str> = match tool {
            Tool::Wrk => {
                let close = if way == "close" { &close[..] } else { &[] };
                [&["wrk", "-t", "1", "-c", &connections, "-d", &duration], close, &[&url]].concat()
            }
            Tool::Lab => {
                let asked = [&*host, &port, &connections, &loops, BYTES, flag, "--epoll", "--json", "-"];
                [&[&*program, "lab", "client"], &asked[..]].concat()
            }
        };
        words.into_iter().map(str::to_owned).collect()
    }
}

/// Reads what the laboratory's client says.
fn read(text: &str) -> Result<Run, String> {
    let report: Report =
        serde_json::from_str(text).map_err(|error| format!("staunch lab client wrote no report: {error}"))?;
    match (&report.errors[..], report.answered) {
        ([], 1..) => {
            Ok(Run { answered: report.answered, per_second: report.answered as f64 / report.wall_s })
        }
        (errors, answered) => Err(format!("staunch lab client: {answered} answered, failed {errors:?}")),
    }
}

fn judge(case: &str, outcome: &mut ScenarioOutcome) {
    let (ours, rival) = (row(Tool::Lab, case), row(Tool::Wrk, case));
    for (measure, direction, limit) in PROMISES {
        let ratios = outcome.ratios(&ours, &rival, measure);
        better(&ours, measure, direction, &ratios).into_iter().for_each(|note| outcome.note(note));
        outcome.bars.push(Bar::judge(&ours, &format!("{measure}, of wrk"), direction, limit, "", ratios));
    }
}

/// Further from wrk than 5 % on the good side is told too: a client that asks otherwise measures otherwise.
fn better(ours: &str, measure: &str, direction: Direction, ratios: &[f64]) -> Option<String> {
    let median = median(ratios)?;
    let is_better = match direction {
        Direction::AtMost => median < 0.95,
        Direction::AtLeast => median > 1.05,
    };
    is_better.then(|| format!("{ours}: {measure} is {median:.2} of wrk's: beyond 5 %, to the better side"))
}

fn case_name(model: &str, connections: u32, way: &str) -> String {
    format!("{model}, {connections} {way}")
}

fn row(tool: Tool, case: &str) -> String {
    format!("{}, {case}", tool.name())
}

/// A model that serves, until it is dropped.
struct Model {
    name: &'static str,
    address: SocketAddr,
    child: Child,
}

impl Model {
    fn start(name: &'static str, cpu: usize, setting: &Setting) -> Result<Self, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, machine::free_port()?));
        let child = pinned(cpu)
            .arg(&setting.programs.staunch)
            .args(["lab", "serve", name, "--port", &address.port().to_string(), "--cpus", &cpu.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let model = Self { name, address, child };
        let started = Instant::now();
        loop {
            match fetch(address, &format!("/{BYTES}")) {
                Ok(reply) if reply.status == 200 && reply.body.len().to_string() == BYTES => {
                    return Ok(model);
                }
                Ok(reply) => return Err(format!("{name} answers with status {}", reply.status)),
                Err(error) if started.elapsed() > PATIENCE => return Err(format!("{name}: {error}")),
                Err(_) => sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}

/// The first two processors that this process may use.
fn processors() -> Result<(usize, usize), String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    match running::listed(line.unwrap_or_default().trim())[..] {
        [first, second, ..] => Ok((first, second)),
        _ => Err("a server and a client need a processor each".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_the_measure_in_each_case() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        let case = case_name("poll", 10, "close");
        assert_eq!(case, "poll, 10 close");
        for (tool, rate, cost) in [(Tool::Wrk, 100.0, 20.0), (Tool::Lab, 94.0, 20.5)] {
            outcome.add(&row(tool, &case), RATE, "", rate);
            outcome.add(&row(tool, &case), SERVER, "us", cost);
        }
        judge(&case, &mut outcome);
        let judged: Vec<(f64, bool)> = outcome
            .bars
            .iter()
            .map(|bar| (bar.samples[0], bar.verdict == crate::report::BarVerdict::Pass))
            .collect();
        assert_eq!(judged, [(0.94, false), (1.025, true)]);
        assert!(outcome.notes.is_empty() && !outcome.passed());
    }

    #[test]
    fn what_is_far_to_the_better_side_is_told() {
        let told = |direction, ratio| better("lab", "measure", direction, &[ratio]).is_some();
        assert!(told(Direction::AtLeast, 1.2) && !told(Direction::AtLeast, 1.04));
        assert!(told(Direction::AtMost, 0.9) && !told(Direction::AtMost, 1.3));
    }

    #[test]
    fn a_report_is_read_and_no_failure_hidden() {
        let good = r#"{"wall_s": 0.5, "answered": 10, "connections": 1, "errors": []}"#;
        assert_eq!(read(good), Ok(Run { answered: 10, per_second: 20.0 }));
        for bad in [r#"{"wall_s": 1, "answered": 9, "errors": [["short answer", 1]]}"#, "{}", ""] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(read(r#"{"wall_s": 1, "answered": 0, "errors": []}"#).is_err());
    }
}

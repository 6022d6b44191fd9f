//! The scenario of kept connections: a small file asked for again and again, over HTTP/1.1 and HTTP/2.
//!
//! It owns what is asked for and how. All servers run at once and are measured in turn, round by round. The
//! load is h2load for each protocol, so that plain and secured requests of one server compare.
use super::judging::{compared, judge_by, judge_by_best, judge_together, note_waiting};
use super::running::Running;
use super::streams::StreamLoad;
use crate::machine::CpuTimes;
use crate::process::Usage;
use crate::report::ScenarioOutcome;
use crate::servers::Server;
use crate::setting::Setting;
use crate::setup::{ServerKind, Setup};

const HTTP1: &str = "HTTP/1.1: CPU per request";
const PLAIN: &str = "plain HTTP/1.1: CPU per request";
const HTTP2: &str = "HTTP/2: CPU per request";
const HTTP1_OF_BEST_MAX: f64 = 0.70;
const ABOVE_PLAIN_US_MAX: f64 = 2.0;
const HTTP2_OF_H2O_MAX: f64 = 0.80;
const HTTP2_OF_NGINX_MAX: f64 = 0.35;
const FILE_BYTES: usize = 5000;

/// HTTP/1.1: 32 connections with a request each. HTTP/2: 8 connections with 16 streams each.
const HTTP1_LOAD: StreamLoad = StreamLoad { connections: 32, streams: 1, is_http1: true };
const HTTP2_LOAD: StreamLoad = StreamLoad { connections: 8, streams: 16, is_http1: false };

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "tls-kept",
        "a file of 5 000 bytes over TLS 1.3 with AES-128-GCM: 32 kept connections of HTTP/1.1; 8 of HTTP/2 \
         with 16 streams each",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge_by_best(setting, &mut outcome, HTTP1, HTTP1_OF_BEST_MAX);
    let above = "HTTP/1.1: CPU per request above a plain one";
    let limit = (ABOVE_PLAIN_US_MAX, "us");
    judge_together(&mut outcome, (HTTP1, PLAIN), above, limit, |secured, plain| secured - plain);
    judge_by(&mut outcome, ServerKind::H2o, HTTP2, HTTP2_OF_H2O_MAX);
    judge_by(&mut outcome, ServerKind::Nginx, HTTP2, HTTP2_OF_NGINX_MAX);
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let kinds = compared(setting);
    let ours = setting.chosen(&ServerKind::OURS);
    let rounds = setting.rounds as usize;
    setting.expect_steps(kinds.len() * (2 * rounds + 1) + ours.len() * (rounds + 1));
    let mut running = Running::start(&kinds, FILE_BYTES, setting, outcome)?;
    let plain = start_plain(&ours, &running.path, setting, outcome);
    for round in 1..=setting.rounds {
        for server in &running.servers {
            let plain = plain.iter().find(|plain| plain.kind == server.kind);
            let works = [(server, HTTP1, HTTP1_LOAD), (server, HTTP2, HTTP2_LOAD)].into_iter();
            for (server, measure, load) in works.chain(plain.map(|plain| (plain, PLAIN, HTTP1_LOAD))) {
                setting.step(&format!("round {round}, {}, {measure}", server.kind.name()));
                if let Err(error) = measure_once(server, measure, &load, &running.path, setting, outcome) {
                    outcome.errors.push(format!("{}, {measure}: {error}", server.kind.name()));
                }
            }
        }
        running.next_round();
    }
    Ok(())
}

/// Ours once more, without TLS.
fn start_plain(
    kinds: &[ServerKind],
    path: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Vec<Server> {
    let folder = setting.scratch.join("files");
    let mut servers = Vec::new();
    for kind in kinds {
        setting.step(&format!("starting {}, plain", kind.name()));
        let body = std::fs::read(folder.join(&path[1..])).map_err(|error| error.to_string());
        let started =
            body.and_then(|body| setting.start(&Setup::new(*kind, &folder, &path[1..]), path, &body));
        match started {
            Ok(server) => servers.push(server),
            Err(error) => outcome.errors.push(error),
        }
    }
    servers
}

fn measure_once(
    server: &Server,
    measure: &str,
    load: &StreamLoad,
    path: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let url = server.url(path);
    let rate = load.rate(&url, server.address)?;
    let requests = ((rate * f64::from(setting.seconds)) as u64).max(1);
    let (cpus_before, before) = (CpuTimes::read(), Usage::of(server.id()));
    load.run(&url, server.address, requests)?;
    let (spent_ns, cpus) = (Usage::of(server.id()).since_ns(&before), CpuTimes::read());
    let name = server.kind.name();
    outcome.add(name, measure, "us", spent_ns as f64 / 1000.0 / requests as f64);
    note_waiting(outcome, name, measure, cpus.busy_since(&cpus_before, 0));
    outcome.note(format!("load: {}", load.command(&url, server.address, &["-n", "N"]).join(" ")));
    Ok(())
}

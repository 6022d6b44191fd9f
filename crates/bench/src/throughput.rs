//! The scenarios in which wrk asks for one small file as fast as it can.
//!
//! It owns what is asked for, how, and the promises about it. All servers of a scenario run at once and are
//! measured in turn, round by round, so that a slow change of the machine meets them all; those not measured
//! sleep.
use std::fs;
use std::path::PathBuf;

use super::content;
use super::load::{self, WrkLoad};
use super::machine::CpuTimes;
use super::process::Usage;
use super::servers::Server;
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use crate::report::{Bar, Direction, ScenarioOutcome};

const COST: &str = "CPU per request";
const RATE: &str = "requests per second";
const LOAD_BUSY: &str = "load's CPUs busy";
/// Above this share of CPU 0 taken by others, in percent, a note is made.
const FOREIGN_PERCENT_MAX: f64 = 5.0;
/// Each measurement is preceded by this much unmeasured load.
const WARM_UP_S: u32 = 1;

/// Header fields of a usual browser, about 500 bytes together.
const BROWSER_FIELDS: [&str; 10] = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language: en-GB,en;q=0.8,de;q=0.5",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Referer: http://localhost/start/index.html",
    "Sec-Fetch-Dest: document",
    "Sec-Fetch-Mode: navigate",
    "Sec-Fetch-Site: same-origin",
    "Upgrade-Insecure-Requests: 1",
    "Cookie: session=0f4a1b2c3d4e5f60718293a4b5c6d7e8; theme=dark",
];

/// With whom a server is compared.
#[derive(Debug, Clone, Copy)]
enum Rival {
    Nginx,
    BestPeer,
    Floor,
}

#[derive(Debug)]
struct Promise {
    measure: &'static str,
    rival: Rival,
    direction: Direction,
    limit: f64,
}

/// A scenario of this kind.
#[derive(Debug)]
pub(super) struct Work {
    name: &'static str,
    title: &'static str,
    file_bytes: usize,
    connections: u32,
    headers: &'static [&'static str],
    pipelined: u32,
    close: bool,
    promises: &'static [Promise],
}

/// A 5 000 byte file over kept connections.
pub(super) const KEEPALIVE: Work = Work {
    name: "keepalive",
    title: "a file of 5 000 bytes, 64 kept connections",
    file_bytes: 5000,
    connections: 64,
    headers: &[],
    pipelined: 1,
    close: false,
    promises: &[
        Promise { measure: COST, rival: Rival::Nginx, direction: Direction::AtMost, limit: 0.65 },
        Promise { measure: COST, rival: Rival::BestPeer, direction: Direction::AtMost, limit: 0.80 },
        Promise { measure: COST, rival: Rival::Floor, direction: Direction::AtMost, limit: 1.12 },
    ],
};

/// The small file, asked for as a browser asks.
pub(super) const BROWSER: Work = Work {
    name: "browser",
    title: "the same file, asked for with 500 bytes of a browser's header fields",
    headers: &BROWSER_FIELDS,
    promises: &[Promise { measure: COST, rival: Rival::Nginx, direction: Direction::AtMost, limit: 0.65 }],
    ..KEEPALIVE
};

/// Sixteen requests at a time. nginx is measured without sendfile here: see its configuration.
pub(super) const PIPELINED: Work = Work {
    name: "pipelined",
    title: "a file of 100 bytes, 16 requests in one piece, 64 kept connections",
    file_bytes: 100,
    pipelined: 16,
    promises: &[Promise { measure: RATE, rival: Rival::Nginx, direction: Direction::AtLeast, limit: 3.0 }],
    ..KEEPALIVE
};

/// A connection for each request. wrk is used here too, because it loads a server three times as hard as ab
/// does.
pub(super) const CONNECT: Work = Work {
    name: "connect",
    title: "a file of 5 000 bytes, a connection for each request, 16 at a time",
    connections: 16,
    headers: &["Connection: close"],
    close: true,
    promises: &[Promise { measure: COST, rival: Rival::BestPeer, direction: Direction::AtMost, limit: 0.95 }],
    ..KEEPALIVE
};

/// Runs one scenario.
pub(super) fn run(work: &Work, setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(work.name, work.title);
    if let Err(error) = measure(work, setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge(work, setting, &mut outcome);
    outcome
}

fn measure(work: &Work, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let file = format!("{}.txt", work.file_bytes);
    let (path, body) = (format!("/{file}"), content::small_file(&folder, &file, work.file_bytes)?);
    let script = pipelining_script(work, setting)?;
    let load = WrkLoad {
        connections: work.connections,
        seconds: setting.seconds,
        headers: work.headers,
        script: script.as_deref(),
    };
    let kinds = setting.for_files();
    setting.expect_steps(kinds.len() * (setting.rounds as usize + 1));
    let mut servers = Vec::new();
    for kind in &kinds {
        setting.step(&format!("starting {}", kind.name()));
        let mut setup = Setup::new(*kind, &folder, &file);
        (setup.pipelined, setup.close) = (work.pipelined, work.close);
        match setting.start(&setup, &path, &body) {
            Ok(server) => servers.push(server),
            Err(error) => outcome.errors.push(error),
        }
    }
    if let Some(server) = servers.first() {
        outcome.note(format!("load: {}", load.command(&server.url(&path)).join(" ")));
    }
    for round in 1..=setting.rounds {
        for server in &servers {
            setting.step(&format!("round {round}, {}", server.kind.name()));
            if let Err(error) = measure_once(server, &load, &path, outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", server.kind.name()));
            }
        }
        // Each goes first in its turn, so that no place in a round favours one.
        if !servers.is_empty() {
            servers.rotate_left(1);
        }
    }
    for server in &servers {
        server.check(&path, &body).unwrap_or_else(|error| outcome.errors.push(error));
        outcome.note(format!("{}: {}", server.kind.name(), server.command));
    }
    Ok(())
}

fn measure_once(
    server: &Server,
    load: &WrkLoad<'_>,
    path: &str,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let (url, name) = (server.url(path), server.kind.name());
    WrkLoad { seconds: WARM_UP_S, ..load.clone() }.run(&url)?;
    let (cpus_before, before) = (CpuTimes::read(), Usage::of(server.id()));
    let answered = load.run(&url)?;
    let (spent_ns, cpus) = (Usage::of(server.id()).since_ns(&before), CpuTimes::read());
    let requests = answered.requests as f64;
    outcome.add(name, COST, "us", spent_ns as f64 / 1000.0 / requests);
    outcome.add(name, RATE, "", answered.per_second);
    let load_on = load::processors();
    let busy: f64 = load_on.clone().map(|cpu| cpus.busy_since(&cpus_before, cpu)).sum();
    outcome.add(name, LOAD_BUSY, "%", busy / load_on.count() as f64);
    let own_percent = spent_ns as f64 / 1e7 / (requests / answered.per_second);
    let foreign_percent = cpus.busy_since(&cpus_before, 0) - own_percent;
    if foreign_percent > FOREIGN_PERCENT_MAX {
        outcome.note(format!(
            "{name} was disturbed: others used {foreign_percent:.0} % of its CPU in some round"
        ));
    }
    Ok(())
}

/// wrk makes pipelined requests by a script: the piece is built once, when the default fields are
/// already set, and sent again and again.
fn pipelining_script(work: &Work, setting: &Setting) -> Result<Option<PathBuf>, String> {
    if work.pipelined == 1 {
        return Ok(None);
    }
    let path = setting.scratch.join(format!("{}.lua", work.name));
    let script = format!(
        "init = function(arguments)\n  piece = wrk.format():rep({})\nend\n\
         request = function()\n  return piece\nend\n",
        work.pipelined
    );
    fs::write(&path, script).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Some(path))
}

fn judge(work: &Work, setting: &Setting, outcome: &mut ScenarioOutcome) {
    for kind in ServerKind::OURS {
        for promise in work.promises {
            let (rival, words) = rival(promise, setting, outcome);
            let samples =
                rival.map_or_else(Vec::new, |rival| outcome.ratios(kind.name(), rival, promise.measure));
            let words = format!("{}, of {words}", promise.measure);
            outcome.bars.push(Bar::judge(kind.name(), &words, promise.direction, promise.limit, "", samples));
        }
    }
}

fn rival(promise: &Promise, setting: &Setting, outcome: &ScenarioOutcome) -> (Option<&'static str>, String) {
    let peers: Vec<&'static str> =
        setting.chosen(&ServerKind::PEERS).into_iter().map(ServerKind::name).collect();
    match promise.rival {
        Rival::Nginx => (Some(ServerKind::Nginx.name()), "nginx".to_owned()),
        Rival::Floor => (Some(ServerKind::Floor.name()), "the floor".to_owned()),
        Rival::BestPeer => {
            let best = outcome.cheapest(&peers, promise.measure);
            (best, format!("the best peer{}", best.map_or_else(String::new, |name| format!(" ({name})"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_sends_about_500_bytes() {
        let bytes: usize = BROWSER_FIELDS.iter().map(|field| field.len() + 2).sum();
        assert!((480..=620).contains(&bytes), "{bytes}");
    }
}

//! The scenario of live data: updates to many readers of server-sent events, and what a delivery costs.
//!
//! This file owns how each server is started and asked, which differs from server to server. The floor is
//! `bench/fan.c`: one send for each reader and nothing else. Delays and counts are the generator's,
//! `staunch load live`.
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::setting::Setting;
use super::setup::ServerKind;
use super::{load, machine, process, servers};
use crate::report::{Bar, Direction, ScenarioOutcome};

/// Readers and updates a second.
const ROWS: [(u32, u32); 3] = [(100, 100), (1000, 20), (8000, 5)];
/// The servers that can fan out: those of files by the same names are others.
const KINDS: [ServerKind; 4] = [ServerKind::Floor, ServerKind::Nginx, ServerKind::Uring, ServerKind::Epoll];
const TOKEN: &str = "a-token-of-the-benchmark-alone-0123456789";
/// The module of nginx that fans out.
pub(super) const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";
/// How much more a delivery may cost than at the floor.
const OF_FLOOR_MAX: f64 = 1.15;
/// How much of nchan a delivery may cost on io_uring and on epoll.
const OF_NCHAN_MAX: [(ServerKind, f64); 2] = [(ServerKind::Uring, 0.45), (ServerKind::Epoll, 0.8)];
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome =
        ScenarioOutcome::new("live", "updates of 200 bytes to many readers of server-sent events");
    let mut kinds = setting.chosen(&KINDS);
    kinds.retain(|kind| match lacking(*kind, setting) {
        None => true,
        Some(reason) => {
            outcome.notes.push(format!("{} was not run: {reason}", name(*kind)));
            false
        }
    });
    setting.expect_steps(kinds.len() * ROWS.len() * setting.rounds as usize);
    for round in 1..=setting.rounds {
        for row in ROWS {
            for kind in &kinds {
                setting.step(&format!("{}, {} readers, round {round}", name(*kind), row.0));
                if let Err(error) = measure(*kind, row, setting, &mut outcome) {
                    outcome.errors.push(format!("{}, {} readers: {error}", name(*kind), row.0));
                }
            }
        }
    }
    for kind in kinds.iter().filter(|kind| kind.is_ours()) {
        for row in ROWS {
            judge(*kind, ServerKind::Floor, OF_FLOOR_MAX, row, &mut outcome);
            let of_nchan = OF_NCHAN_MAX.iter().find(|(own, _)| own == kind);
            of_nchan.into_iter().for_each(|(_, limit)| {
                judge(*kind, ServerKind::Nginx, *limit, row, &mut outcome);
            });
        }
    }
    outcome
}

fn name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Floor => "floor (fan.c)",
        ServerKind::Nginx => "nchan",
        other => other.name(),
    }
}

/// Why a server cannot be measured here.
fn lacking(kind: ServerKind, setting: &Setting) -> Option<String> {
    match kind {
        ServerKind::Nginx if !Path::new(NCHAN).exists() => {
            Some("libnginx-mod-nchan is not installed (cargo xtask install)".to_owned())
        }
        ServerKind::Uring | ServerKind::Epoll => {
            let help = Command::new(&setting.programs.staunch).args(["serve", "--help"]).output();
            let has_live = help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--live "));
            (!has_live).then(|| "this program has no `--live`".to_owned())
        }
        _ => None,
    }
}

/// Each measure of a row has the row in its name.
fn measure_name(what: &str, (readers, rate): (u32, u32)) -> String {
    format!("{what}, {readers} readers, {rate} updates/s")
}

fn measure(
    kind: ServerKind,
    row: (u32, u32),
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let server = FanOut::start(kind, setting)?;
    let (readers, rate) = row;
    let port = server.port;
    let probe = process::descendants(server.child.id()).last().copied().unwrap_or(server.child.id());
    let url = format!("http://127.0.0.1:{port}{}", server.events());
    let last = *load::processors().end();
    let mut command = Command::new("taskset");
    command.args(["-c", &format!("1-{last}")]).arg(&setting.programs.staunch);
    command.args(["load", "live", &url, "--quiet", "--json", "-", "--threads", "1"]);
    command.args(["--connections", &readers.to_string(), "--rate", &format!("{rate}/s")]);
    command.args(["--duration", &format!("{}s", setting.seconds), "--probe", &probe.to_string()]);
    command.args(server.publishing());
    let output = command.output().map_err(|error| format!("staunch load live: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("staunch load live ({}): {}", output.status, said.trim()));
    }
    let document: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let count = |name: &str| document["counts"][name].as_u64().unwrap_or(0);
    let faults = count("lost") + count("duplicated") + count("out_of_order");
    if faults > 0 || count("delivered") == 0 {
        return Err(format!("of {} due updates {faults} were lost, repeated or out of order", count("due")));
    }
    let measures = [
        ("CPU per delivery", "us", &document["server_us_per_delivery"]),
        ("delay p50", "ms", &document["delay_ms"]["p50"]),
        ("delay p99", "ms", &document["delay_ms"]["p99"]),
        ("deliveries", "/s", &document["deliveries_per_s"]),
        ("readers opened", "/s", &document["opened_per_s"]),
        ("bytes an update", "B", &document["bytes_per_update"]),
    ];
    for (what, unit, value) in measures {
        if let Some(sample) = value.as_f64() {
            outcome.add(name(kind), &measure_name(what, row), unit, sample);
        }
    }
    Ok(())
}

/// Judges the processor time of a delivery against that of a rival, round by round.
fn judge(kind: ServerKind, rival: ServerKind, limit: f64, row: (u32, u32), outcome: &mut ScenarioOutcome) {
    let measure = measure_name("CPU per delivery", row);
    let (ours, theirs) = (outcome.samples(name(kind), &measure), outcome.samples(name(rival), &measure));
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let promise = format!("{measure}, of {}", name(rival));
    outcome.bars.push(Bar::judge(kind.name(), &promise, Direction::AtMost, limit, "", ratios));
}

/// A running server, on CPU 0.
#[derive(Debug)]
struct FanOut {
    kind: ServerKind,
    port: u16,
    child: Child,
}

impl FanOut {
    /// Starts a server and waits until it listens.
    fn start(kind: ServerKind, setting: &Setting) -> Result<Self, String> {
        let port = machine::free_port()?;
        let folder = setting.scratch.join("run/live");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let words = words(kind, setting, &folder, port)?;
        let log = folder.join(format!("{}.log", kind.word()));
        let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let mut command = servers::pinned(0);
        command.args(&words).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().map_err(|error| format!("{}: {error}", words.join(" ")))?;
        let mut server = Self { kind, port, child };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait().is_ok_and(|status| status.is_some());
            if ended || began.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("{} does not listen: {}", name(kind), said.trim()));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Path and query by which readers subscribe.
    fn events(&self) -> &'static str {
        match self.kind {
            ServerKind::Nginx => "/sub?id=load",
            _ => "/events?topic=load&from=now",
        }
    }

    /// How the generator publishes there.
    fn publishing(&self) -> Vec<String> {
        let port = self.port;
        match self.kind {
            ServerKind::Nginx => {
                vec![
                    "--publish-as".to_owned(),
                    "post".to_owned(),
                    "--publish-to".to_owned(),
                    format!("http://127.0.0.1:{port}/pub?id=load"),
                ]
            }
            ServerKind::Floor => vec!["--publish-as".to_owned(), "post".to_owned()],
            _ => vec!["--token".to_owned(), TOKEN.to_owned()],
        }
    }
}

impl Drop for FanOut {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}

fn words(kind: ServerKind, setting: &Setting, folder: &Path, port: u16) -> Result<Vec<String>, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match kind {
        ServerKind::Floor => vec![text(&setting.programs.fan), "127.0.0.1".to_owned(), port.to_string()],
        ServerKind::Nginx => {
            let path = folder.join("nginx.conf");
            fs::write(&path, nchan(folder, port)).map_err(|error| format!("{}: {error}", path.display()))?;
            let log = text(&folder.join("error.log"));
            vec!["nginx".to_owned(), "-c".to_owned(), text(&path), "-e".to_owned(), log]
        }
        _ => {
            let io = if kind == ServerKind::Uring { "uring" } else { "epoll" };
            let (listen, folder) = (format!("127.0.0.1:{port}"), text(folder));
            let program = text(&setting.programs.staunch);
            let words = [
                &program,
                "serve",
                &folder,
                "--listen",
                &listen,
                "--workers",
                "1",
                "--cpus",
                "0",
                "--io",
                io,
                "--encodings",
                "off",
                "--listing",
                "off",
                "--live",
                "on",
                "--publish-token",
                TOKEN,
            ];
            words.map(str::to_owned).to_vec()
        }
    })
}

/// nchan: one worker, messages kept as its own defaults have it.
fn nchan(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        r#"load_module "{NCHAN}";
daemon off;
user root;
pid "{folder}/nginx.pid";
error_log "{folder}/error.log" warn;
worker_processes 1;
worker_rlimit_nofile 16384;
events {{
    use epoll;
    worker_connections 16000;
}}
http {{
    access_log off;
    nchan_shared_memory_size 256m;
    client_body_temp_path "{folder}/body";
    proxy_temp_path "{folder}/proxy";
    fastcgi_temp_path "{folder}/fastcgi";
    uwsgi_temp_path "{folder}/uwsgi";
    scgi_temp_path "{folder}/scgi";
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location /sub {{
            nchan_subscriber eventsource;
            nchan_channel_id $arg_id;
            nchan_subscriber_first_message newest;
        }}
        location /pub {{
            nchan_publisher;
            nchan_channel_id $arg_id;
        }}
    }}
}}
"#
    )
}

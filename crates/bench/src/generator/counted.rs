//! The scenario `lab-counted`: the server models by instructions instead of time, in an emulated machine
//! whose clocks count them.
//!
//! It owns the plan and the reading of what the laboratory says. On a real machine what a connection costs
//! changes by a fifth from one round to the next; here two runs differ by a few in a thousand. Caches and the
//! cost of entering the kernel are not in them.
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

/// Enough connections that the start of a pool is a small part.
const PLAN: &str = r#"
rounds = 1
[[row]]
model = ["iterative", "prefork", "prethread", "select", "poll", "epoll-level", "epoll-edge", "epoll-per-core",
  "sigio", "uring", "staunch-epoll", "staunch-uring"]
protocol = "http"
client = "epoll"
children = 20
loops = 100
bytes = 4000
pool = 10
[[row]]
model = ["iterative", "prefork", "prethread", "select", "poll", "epoll-level", "epoll-edge", "epoll-per-core",
  "sigio", "uring", "staunch-epoll", "staunch-uring"]
protocol = "keep-alive"
client = "epoll"
children = 20
loops = 500
bytes = 4000
pool = 10
[[row]]
model = ["prefork", "prethread", "select", "poll", "epoll-level", "epoll-edge", "epoll-per-core", "sigio",
  "uring", "staunch-epoll", "staunch-uring"]
protocol = "keep-alive"
client = "epoll"
children = 100
loops = 100
bytes = 4000
pool = 100
"#;
/// A process that is woken waits until its waker sleeps. Else the server would run for each connection by
/// itself, and what was counted would be its falling asleep and waking up.
const CHRT: &str = "/usr/bin/chrt";
const SCRIPT: &str = "chrt --batch 0 \
                      staunch lab run --plan plan.toml --server-cpus 0 --client-cpus 0 --json results \
                      >/dev/null 2>&1\nstatus=$?\ncat results\necho\nexit $status\n";
/// How long the machine may take; it needs two minutes.
const PATIENCE_S: u32 = 900;

const ENGINES: [&str; 2] = ["staunch-epoll", "staunch-uring"];
/// By protocol and children: what is counted, and how much the engine may cost of the best plain model.
const WAYS: [(&str, u32, &str, f64); 3] = [
    ("http", 20, "instructions, a connection for each request", 1.05),
    ("keep-alive", 20, "instructions, 20 kept connections", 1.0),
    ("keep-alive", 100, "instructions, 100 kept connections", 1.0),
];

/// The part of what `staunch lab run --json` says that is used here.
#[derive(Debug, Deserialize)]
struct Results {
    machine: Emulated,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Emulated {
    kernel: String,
}

#[derive(Debug, Deserialize)]
struct Row {
    row: Asked,
    rounds: Vec<Round>,
}

#[derive(Debug, Deserialize)]
struct Asked {
    model: String,
    protocol: String,
    children: u32,
}

#[derive(Debug, Deserialize)]
struct Round {
    server: Usage,
    client: Client,
}

#[derive(Debug, Deserialize)]
struct Usage {
    user_s: f64,
    system_s: f64,
}

#[derive(Debug, Deserialize)]
struct Client {
    answered: u64,
}

impl Row {
    /// Instructions the server spends on each answer: a nanosecond each.
    fn instructions(&self) -> Option<f64> {
        let Round { server, client } = self.rounds.first()?;
        (client.answered > 0).then(|| (server.user_s + server.system_s) * 1e9 / client.answered as f64)
    }
}

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome =
        ScenarioOutcome::new("lab-counted", "server models by instructions: 4 000 bytes by HTTP");
    match measure(setting) {
        Ok(results) => tell(&results, &mut outcome),
        Err(error) => outcome.errors.push(error),
    }
    outcome
}

fn measure(setting: &Setting) -> Result<Results, String> {
    setting.expect_steps(1);
    setting.step("in the emulated machine");
    let script = setting.scratch.join("counted.sh");
    let text = format!("cat >plan.toml <<'END'\n{PLAN}END\n{SCRIPT}");
    std::fs::write(&script, text).map_err(|error| format!("{}: {error}", script.display()))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut guest = Command::new(cargo);
    guest.args(["xtask", "guest", "--kernel", "newest", "--counted", "--seconds", &PATIENCE_S.to_string()]);
    let staunch = &setting.programs.staunch;
    for program in [staunch.clone(), staunch.with_file_name("staunch-load"), CHRT.into()] {
        guest.arg("--program").arg(program);
    }
    guest.arg(&script);
    let output = guest.current_dir(&setting.root).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cargo xtask guest: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    // Before the machine boots its kernel may have to be fetched, which tells of itself.
    let said: Vec<&str> = said.lines().skip_while(|line| !line.starts_with('{')).collect();
    let said = said.join("\n");
    serde_json::from_str(&said).map_err(|error| {
        let heard = String::from_utf8_lossy(&output.stderr);
        format!("the laboratory said nothing that can be read: {error}: {said}{heard}")
    })
}

fn tell(results: &Results, outcome: &mut ScenarioOutcome) {
    outcome.note(format!("Linux {} in QEMU, one processor", results.machine.kernel));
    for (protocol, children, measure, limit) in WAYS {
        let is_meant = |row: &&Row| row.row.protocol == protocol && row.row.children == children;
        let rows = results.rows.iter().filter(is_meant);
        let counts: Vec<(&str, f64)> =
            rows.filter_map(|row| Some((row.row.model.as_str(), row.instructions()?))).collect();
        for (model, count) in &counts {
            outcome.add(model, measure, "", *count);
        }
        let plain = counts.iter().filter(|(model, _)| !ENGINES.contains(model));
        let best = plain.min_by(|one, other| one.1.total_cmp(&other.1));
        let promise = format!("{measure}, of the best plain model ({})", best.map_or("none", |best| best.0));
        for engine in ENGINES {
            let ours = counts.iter().find(|(model, _)| *model == engine);
            let samples = ours.zip(best).map(|(ours, best)| ours.1 / best.1).into_iter().collect();
            outcome.bars.push(Bar::judge(engine, &promise, Direction::AtMost, limit, "", samples));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(model: &str, protocol: &str, server_s: f64) -> Row {
        Row {
            row: Asked { model: model.to_owned(), protocol: protocol.to_owned(), children: 20 },
            rounds: vec![Round {
                server: Usage { user_s: 0.0, system_s: server_s },
                client: Client { answered: 1000 },
            }],
        }
    }

    #[test]
    fn the_engine_is_held_against_the_best_of_the_others() {
        let rows = vec![
            row("select", "http", 0.06),
            row("iterative", "http", 0.05),
            row("staunch-epoll", "http", 0.04),
            row("select", "keep-alive", 0.03),
            row("staunch-uring", "keep-alive", 0.033),
        ];
        let mut outcome = ScenarioOutcome::new("", "");
        tell(&Results { machine: Emulated { kernel: "6".to_owned() }, rows }, &mut outcome);
        let ratios: Vec<f64> = outcome.bars.iter().flat_map(|bar| bar.samples.clone()).collect();
        assert!((ratios[0] - 0.8).abs() < 1e-9 && (ratios[1] - 1.1).abs() < 1e-9, "{ratios:?}");
        assert_eq!(ratios.len(), 2, "one engine was measured with each protocol");
        assert!(outcome.bars[0].promise.contains("iterative"), "{}", outcome.bars[0].promise);
        assert!((outcome.figures[0].samples[0] - 60_000.0).abs() < 1e-6);
    }
}

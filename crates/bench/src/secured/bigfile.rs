//! The scenario of one big file over TLS: processor time per GiB with one reader.
//!
//! It owns the downloads. The file is that of the scenario `bigfile`, read by curl.
use super::judging::{compared, judge_by_best};
use super::running::Running;
use crate::content::{self, BIG_BYTES};
use crate::load::download;
use crate::pair::Pair;
use crate::process::Usage;
use crate::report::ScenarioOutcome;
use crate::servers::Server;
use crate::setting::Setting;
use crate::setup::ServerKind;

const COST: &str = "CPU per GiB";
const OF_BEST_MAX: f64 = 1.0;
const FILE: &str = "big.bin";
/// Of the file by which a server is checked.
const CHECK_BYTES: usize = 100;

/// Runs the scenario. HAProxy is left out: it holds what it answers with, 16 KiB at most.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "tls-bigfile",
        "a file of 1 GiB, read by one curl over HTTP/1.1 and TLS 1.3 with AES-128-GCM",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge_by_best(setting, &mut outcome, COST, OF_BEST_MAX);
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let mut kinds = compared(setting);
    kinds.retain(|kind| *kind != ServerKind::Haproxy);
    setting.expect_steps(1 + kinds.len() * (1 + setting.rounds as usize));
    setting.step("making the file");
    content::big_file(&setting.scratch.join("files"), FILE)?;
    let mut running = Running::start(&kinds, CHECK_BYTES, setting, outcome)?;
    for round in 1..=setting.rounds {
        for server in &running.servers {
            setting.step(&format!("round {round}, {}", server.kind.name()));
            match measure_once(server, &running.pair) {
                Ok(seconds) => outcome.add(server.kind.name(), COST, "s", seconds),
                Err(error) => outcome.errors.push(format!("{}, round {round}: {error}", server.kind.name())),
            }
        }
        running.next_round();
    }
    Ok(())
}

/// Seconds of the server's processor for one GiB.
fn measure_once(server: &Server, pair: &Pair) -> Result<f64, String> {
    let certificate = pair.certificate.to_string_lossy();
    let here = format!("localhost:{}:{}", server.address.port(), server.address.ip());
    let options =
        ["--http1.1", "--tlsv1.3", "--tls13-ciphers", "TLS_AES_128_GCM_SHA256", "--curves", "X25519"];
    let options = [&options[..], &["--cacert", &certificate, "--resolve", &here]].concat();
    let before = Usage::of(server.id());
    download(&server.url(&format!("/{FILE}")), &options, 1, 1, BIG_BYTES)?;
    let spent_ns = Usage::of(server.id()).since_ns(&before);
    Ok(spent_ns as f64 / 1e9 / (BIG_BYTES as f64 / (1_u64 << 30) as f64))
}

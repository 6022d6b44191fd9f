//! The scenario of idle connections over TLS: private memory for each, after one request.
//!
//! It owns no connection: a [`Crowd`] does. Each measurement has a fresh server. Memory is what /proc calls
//! private and dirty, of all processes of a server; the kernel's own for a socket is the same for every
//! server and is not counted.
use std::thread::sleep;
use std::time::Duration;

use super::judging::{best_peer, compared};
use crate::content;
use crate::crowd::{Crowd, Speech};
use crate::pair::Pair;
use crate::process::private_dirty_bytes;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::{ServerKind, Setup};

const HTTP1: &str = "HTTP/1.1: private memory a connection";
const HTTP2: &str = "HTTP/2: private memory a connection";
const COOKIE: &str = "HTTP/2, a cookie each: private memory a connection";
const HTTP1_BYTES_MAX: f64 = 288.0;
const HTTP2_BYTES_MAX: f64 = 448.0;
/// So many that pages begun are small beside them, and few enough that each has a descriptor.
const CONNECTIONS: u32 = 10_000;
/// Those who stand before memory is looked at first: what a server makes once, whoever comes, is no memory of
/// a connection.
const FIRST_CONNECTIONS: u32 = 2_000;
/// By then ours has let go the keys of connections that rest, and given back what handshakes took.
const SETTLING_TIME: Duration = Duration::from_secs(12);
const FILE: &str = "100.txt";
const PATH: &str = "/100.txt";

/// Runs the scenario. One round: what is measured does not depend on the speed of the machine.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "tls-memory",
        "10 000 idle connections over TLS 1.3 after one request each, beside 2 000 that stood before, every \
         server fresh; over HTTP/2 with a browser's fields",
    );
    if let Err(error) = measure_all(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    for (measure, limit) in [(HTTP1, HTTP1_BYTES_MAX), (HTTP2, HTTP2_BYTES_MAX)] {
        let (best, words) = best_peer(setting, &outcome, measure);
        for kind in ServerKind::OURS {
            outcome.judge(kind.name(), measure, Direction::AtMost, limit, "B");
            let ratios = best.map_or_else(Vec::new, |best| outcome.ratios(kind.name(), best, measure));
            ratios.into_iter().for_each(|ratio| outcome.add(kind.name(), &words, "", ratio));
        }
    }
    outcome
}

fn measure_all(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let pair = Pair::make(&setting.scratch.join("secured"))?;
    let speeches =
        [(HTTP1, Speech::Http1(&pair)), (HTTP2, Speech::Http2(&pair)), (COOKIE, Speech::Http2Cookie(&pair))];
    let kinds = compared(setting);
    setting.expect_steps(kinds.len() * speeches.len());
    for kind in kinds {
        for (measure, speech) in speeches {
            setting.step(&format!("{}, {measure}", kind.name()));
            match each_bytes(kind, &pair, speech, setting, outcome) {
                Ok(bytes) => outcome.add(kind.name(), measure, "B", bytes),
                Err(error) => outcome.errors.push(format!("{}, {measure}: {error}", kind.name())),
            }
        }
    }
    Ok(())
}

/// What one server holds for each connection.
fn each_bytes(
    kind: ServerKind,
    pair: &Pair,
    speech: Speech<'_>,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<f64, String> {
    let folder = setting.scratch.join("files");
    let body = content::small_file(&folder, FILE, 100)?;
    // Some servers close idle connections when their table is nearly full.
    let connections_max = (FIRST_CONNECTIONS + CONNECTIONS) / 25 * 32;
    let limit = connections_max.to_string();
    let setup = Setup {
        pair: Some(pair),
        connections_max,
        arguments: &["--max-connections", &limit],
        ..Setup::new(kind, &folder, FILE)
    };
    let server = setting.start(&setup, PATH, &body)?;
    outcome.note(format!("{}: {}", kind.name(), server.command));
    let gather = |count| {
        Crowd::gather(server.address.port(), speech, PATH, count)
            .map_err(|error| format!("{error}; {}", server.last_words()))
    };
    let first = gather(FIRST_CONNECTIONS)?;
    sleep(SETTLING_TIME);
    let before = private_dirty_bytes(server.id());
    let crowd = gather(CONNECTIONS)?;
    sleep(SETTLING_TIME);
    let after = private_dirty_bytes(server.id());
    let alive = first.disperse() + crowd.disperse();
    if alive != FIRST_CONNECTIONS + CONNECTIONS {
        return Err(format!("only {alive} connections were still open"));
    }
    Ok(after.saturating_sub(before) as f64 / f64::from(CONNECTIONS))
}

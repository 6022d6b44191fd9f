//! The scenario of live data: updates to many readers of server-sent events, and what a delivery costs.
//!
//! The floor is `bench/fan.c`: one send for each reader and nothing else. This file owns the rows and their
//! bars.
use super::delivering::{self, FanOutRow, judge};
use super::fan_server::{FanOut, available, name};
use super::rounds::measure_all;
use crate::report::ScenarioOutcome;
use crate::setting::Setting;
use crate::setup::ServerKind;

const ROWS: [FanOutRow; 3] = [
    FanOutRow { readers: 100, rate: 100.0 },
    FanOutRow { readers: 1000, rate: 20.0 },
    FanOutRow { readers: 8000, rate: 5.0 },
];
/// The servers that can fan out: those of files by the same names are others.
const KINDS: [ServerKind; 4] = [ServerKind::Floor, ServerKind::Nginx, ServerKind::Uring, ServerKind::Epoll];
/// How much more a delivery may cost than at the floor.
const OF_FLOOR_MAX: f64 = 1.15;
/// How much of nchan a delivery may cost on io_uring and on epoll.
const OF_NCHAN_MAX: [(ServerKind, f64); 2] = [(ServerKind::Uring, 0.45), (ServerKind::Epoll, 0.8)];

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome =
        ScenarioOutcome::new("live", "updates of 200 bytes to many readers of server-sent events");
    let kinds = available(&KINDS, setting, &mut outcome);
    let word = |row: FanOutRow| format!(", {} readers", row.readers);
    measure_all(&kinds, &ROWS, word, measure, setting, &mut outcome);
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

fn measure(
    kind: ServerKind,
    row: FanOutRow,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let server = FanOut::start(kind, setting, &[])?;
    delivering::measure(&server, row, name(kind), setting, outcome)
}

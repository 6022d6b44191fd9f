//! The scenario of a great crowd: what a delivery costs and how late it is when readers are 200 000.
//!
//! The floor holds as many readers as the process may have descriptors. Where those are too few, ours is
//! judged against itself with few readers: caches are cold in a crowd, and the floor's would be as well.
use super::delivering::{self, COST, FanOutRow, P99, judge_rows};
use super::fan_server::{FanOut, available, name, readers_max};
use super::rounds::measure_all;
use crate::report::ScenarioOutcome;
use crate::setting::Setting;
use crate::setup::ServerKind;

const CROWD: FanOutRow = FanOutRow { readers: 200_000, rate: 0.25 };
const FEW: FanOutRow = FanOutRow { readers: 8000, rate: 5.0 };
const KINDS: [ServerKind; 3] = [ServerKind::Floor, ServerKind::Uring, ServerKind::Epoll];
/// How much more a delivery may cost than at the floor, and how much later the last reader may have it.
const OF_FLOOR_MAX: f64 = 1.15;
const DELAY_OF_FLOOR_MAX: f64 = 1.25;
/// How much more a delivery may cost than with few readers.
const OF_FEW_MAX: f64 = 1.5;

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new("live-crowd", "updates of 200 bytes to 200 000 readers");
    let mut kinds = available(&KINDS, setting, &mut outcome);
    kinds.retain(|kind| {
        let has_room = readers_max(*kind) >= CROWD.readers;
        if !has_room {
            let limit = readers_max(*kind);
            outcome.note(format!("{} was not run: its descriptors are enough for {limit}", name(*kind)));
        }
        has_room
    });
    let word = |row: FanOutRow| format!(", {} readers", row.readers);
    measure_all(&kinds, &[FEW, CROWD], word, measure, setting, &mut outcome);
    let has_floor = kinds.contains(&ServerKind::Floor);
    for kind in kinds.into_iter().filter(|kind| kind.is_ours()) {
        if has_floor {
            let floor = (ServerKind::Floor, CROWD);
            judge_rows((kind, CROWD, COST), floor, OF_FLOOR_MAX, &mut outcome);
            judge_rows((kind, CROWD, P99), floor, DELAY_OF_FLOOR_MAX, &mut outcome);
        } else {
            judge_rows((kind, CROWD, COST), (kind, FEW), OF_FEW_MAX, &mut outcome);
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
    let server = FanOut::of_readers(kind, row.readers, &[], setting)?;
    delivering::measure(&server, row, name(kind), setting, outcome)?;
    outcome.note(format!("{}: {}", name(kind), server.command));
    Ok(())
}

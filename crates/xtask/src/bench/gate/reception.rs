//! What a forged SYN costs the server's processor: one that is answered, and one that finds the line full.
//!
//! It owns that measurement. It must never run beside another load.

use std::thread::sleep;
use std::time::Duration;

use super::clients::Crowd;
use super::flood::Flood;
use super::stage::Stage;
use crate::bench::process::Usage;

/// Forged SYN segments a second: enough for whole batches, and half of what reception can take.
const SYN_PER_S: u32 = 100_000;
/// How many come to stand in the line of a server that does nothing, in half a second.
const LINE_PER_S: f64 = 8_000.0;

/// Seconds of the receiving thread for a SYN.
#[derive(Debug, Clone, Copy)]
pub(super) struct SynCost {
    /// That is answered with a cookie, nobody waiting.
    pub(super) answered_s: f64,
    /// That finds the line of connections full, the server doing nothing.
    pub(super) full_s: f64,
}

/// Measures both on this stage, each for so many seconds. The server does nothing for good afterwards.
///
/// # Errors
/// A flood or a crowd that cannot be begun, or packets that cannot be counted.
pub(super) fn measure(stage: &Stage, seconds: f64) -> Result<SynCost, String> {
    let answered_s = cost_s(stage, seconds)?;
    stage.subject.stop();
    stage.offer(&Crowd::regulars(LINE_PER_S, 0.5))?;
    Ok(SynCost { answered_s, full_s: cost_s(stage, seconds)? })
}

fn cost_s(stage: &Stage, seconds: f64) -> Result<f64, String> {
    let flood = Flood::begin(&stage.bed, &stage.staunch, SYN_PER_S)?;
    let receiver = stage.bed.receiver()?;
    let (before, came_before) = (Usage::of(receiver), stage.bed.came()?);
    sleep(Duration::from_secs_f64(seconds));
    let (now, came) = (Usage::of(receiver), stage.bed.came()?);
    flood.end(&stage.bed)?;
    Ok(now.since_ns(&before) as f64 / 1e9 / (came - came_before).max(1) as f64)
}

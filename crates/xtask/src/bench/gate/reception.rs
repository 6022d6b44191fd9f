//! What receiving forged SYN costs the server's processor: c0, c1 and phi of docs/overload.md, from floods
//! beside which nothing else happens.
//!
//! It owns that measurement. It must never know what is made of it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::bed::MODERATION_NS;
use super::clients::Crowd;
use super::flood::Flood;
use super::stage::Stage;
use crate::bench::process::Usage;

/// Forged SYN segments a second, from few to an interrupt to what reception can just take.
const SYN_PER_S: [u32; 4] = [25_000, 50_000, 100_000, 180_000];
/// At a full line, where a SYN costs less: whole batches.
const SYN_PER_S_FULL: u32 = 180_000;
/// How many come to stand in the line of a server that does nothing, in half a second.
const LINE_PER_S: f64 = 8_000.0;

/// Seconds of the receiving thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    /// c0, for each interrupt.
    pub(super) interrupt_s: f64,
    /// c1, for each SYN that is answered (with a cookie).
    pub(super) packet_s: f64,
    /// phi: what is left of c1 for each that is dropped because the line of connections is full.
    pub(super) full_share: f64,
}

/// Measures them on this stage, each flood for so many seconds. The server does nothing for good afterwards.
///
/// # Errors
/// A flood or a crowd that cannot be begun, packets that cannot be counted, or costs that no host can have.
pub(super) fn measure(stage: &Stage, seconds: f64) -> Result<Costs, String> {
    let answered: Vec<Flooded> =
        SYN_PER_S.iter().map(|rate| flooded(stage, *rate, seconds)).collect::<Result<_, String>>()?;
    stage.subject.stop();
    stage.offer(&Crowd::regulars(LINE_PER_S, 0.5))?;
    costs(&answered, &flooded(stage, SYN_PER_S_FULL, seconds)?)
}

/// A flood that was received.
#[derive(Debug, Clone, Copy)]
struct Flooded {
    came_per_s: f64,
    /// Of the processor.
    share: f64,
}

impl Flooded {
    /// Interrupts a second: a packet is the first of each, and then the window is waited for.
    fn interrupts_per_s(&self) -> f64 {
        self.came_per_s / (1.0 + self.came_per_s * f64::from(MODERATION_NS) / 1e9)
    }
}

fn flooded(stage: &Stage, syn_per_s: u32, seconds: f64) -> Result<Flooded, String> {
    let flood = Flood::begin(&stage.bed, &stage.staunch, syn_per_s)?;
    let receiver = stage.bed.receiver()?;
    let before = Usage::of(receiver);
    let began = Instant::now();
    let came_before = stage.bed.came()?;
    sleep(Duration::from_secs_f64(seconds));
    let (came, elapsed_s) = (stage.bed.came()? - came_before, began.elapsed().as_secs_f64());
    let share = Usage::of(receiver).since_ns(&before) as f64 / 1e9 / elapsed_s;
    flood.end(&stage.bed)?;
    Ok(Flooded { came_per_s: came as f64 / elapsed_s, share })
}

/// Least squares of `share = c1 packets + c0 interrupts`, equation (10).
fn costs(answered: &[Flooded], full: &Flooded) -> Result<Costs, String> {
    let sum = |of: fn(&Flooded) -> f64| answered.iter().map(of).sum::<f64>();
    let packets = sum(|one| one.came_per_s.powi(2));
    let interrupts = sum(|one| one.interrupts_per_s().powi(2));
    let both = sum(|one| one.came_per_s * one.interrupts_per_s());
    let packets_share = sum(|one| one.came_per_s * one.share);
    let interrupts_share = sum(|one| one.interrupts_per_s() * one.share);
    let determinant = packets * interrupts - both.powi(2);
    let packet_s = (packets_share * interrupts - interrupts_share * both) / determinant;
    let interrupt_s = (interrupts_share * packets - packets_share * both) / determinant;
    let full_share = (full.share - interrupt_s * full.interrupts_per_s()) / (packet_s * full.came_per_s);
    let costs = Costs { interrupt_s, packet_s, full_share };
    let possible = interrupt_s > 0.0 && packet_s > 0.0 && full_share > 0.0 && full_share <= 1.0;
    if possible { Ok(costs) } else { Err(format!("no host has such costs of reception: {costs:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_found_again() {
        let (c0, c1, phi) = (20e-6, 4e-6, 0.25);
        let flooded = |came_per_s: f64, c1: f64| {
            let silent = Flooded { came_per_s, share: 0.0 };
            Flooded { share: c1 * came_per_s + c0 * silent.interrupts_per_s(), ..silent }
        };
        let answered = SYN_PER_S.map(|rate| flooded(f64::from(rate), c1));
        let found = costs(&answered, &flooded(180_000.0, phi * c1)).expect("possible costs");
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-9;
        assert!(near(found.interrupt_s, c0) && near(found.packet_s, c1) && near(found.full_share, phi));
        // A full line that costs more than an empty one.
        assert!(costs(&answered, &flooded(180_000.0, 2.0 * c1)).is_err());
    }
}

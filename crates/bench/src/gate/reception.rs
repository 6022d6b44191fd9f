//! What receiving forged SYN costs the server's processor: c0, c1 and phi of docs/overload.md, from floods
//! beside which nothing else happens.
//!
//! It owns that measurement. It must never know what is made of it.

use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::bed::MODERATION_NS;
use super::clients::Crowd;
use super::flood::Flooder;
use super::stage::Stage;
use crate::process::{self, Usage};

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

/// Floods that were received with nothing beside them.
#[derive(Debug, Clone, Default)]
pub(super) struct Floods {
    answered: Vec<Flooded>,
    full: Vec<Flooded>,
}

impl Floods {
    /// Lets each flood come for so many seconds. The server of the stage does nothing for good afterwards.
    ///
    /// # Errors
    /// A flood or a crowd that cannot be begun, or packets that cannot be counted.
    pub(super) fn measure(&mut self, stage: &Stage, seconds: f64) -> Result<(), String> {
        let _busy = Busy::begin(stage)?;
        for syn_per_s in SYN_PER_S {
            self.answered.push(flooded(stage, syn_per_s, seconds)?);
        }
        stage.subject.stop();
        stage.offer(&Crowd::regulars(LINE_PER_S, 0.5))?;
        self.full.push(flooded(stage, SYN_PER_S_FULL, seconds)?);
        Ok(())
    }

    /// Least squares of `share = c1 packets + c0 interrupts`, equation (10), and of what is left of the first
    /// at a full line.
    ///
    /// # Errors
    /// Costs that no host can have.
    pub(super) fn costs(&self) -> Result<Costs, String> {
        let sum = |of: fn(&Flooded) -> f64| self.answered.iter().map(of).sum::<f64>();
        let packets = sum(|one| one.came_per_s.powi(2));
        let interrupts = sum(|one| one.interrupts_per_s().powi(2));
        let both = sum(|one| one.came_per_s * one.interrupts_per_s());
        let packets_share = sum(|one| one.came_per_s * one.share);
        let interrupts_share = sum(|one| one.interrupts_per_s() * one.share);
        let determinant = packets * interrupts - both.powi(2);
        let packet_s = (packets_share * interrupts - interrupts_share * both) / determinant;
        let interrupt_s = (interrupts_share * packets - packets_share * both) / determinant;
        let left = |full: &Flooded| full.share - interrupt_s * full.interrupts_per_s();
        let came_per_s: f64 = self.full.iter().map(|full| full.came_per_s).sum();
        let full_share = self.full.iter().map(left).sum::<f64>() / (packet_s * came_per_s);
        let costs = Costs { interrupt_s, packet_s, full_share };
        let possible = interrupt_s > 0.0 && packet_s > 0.0 && full_share > 0.0 && full_share <= 1.0;
        if possible { Ok(costs) } else { Err(format!("no host has such costs of reception: {costs:?}")) }
    }
}

/// A process that keeps the server's processor busy, as an overloaded server does: a processor that rests
/// between interrupts takes longer for each.
struct Busy(Child);

impl Busy {
    fn begin(stage: &Stage) -> Result<Self, String> {
        let mut command = stage.bed.at_server();
        command.args(["sh", "-c", "while :; do :; done"]);
        command.spawn().map(Self).map_err(|error| format!("sh: {error}"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        process::end(&[self.0.id()]);
        process::collect(&mut self.0);
    }
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
    let flood = Flooder::begin(&stage.bed, &stage.staunch, syn_per_s)?;
    let receiver = stage.bed.receiver()?;
    // To count takes a while, so everything is read right after it.
    let (came_before, began, before) = (stage.bed.came()?, Instant::now(), Usage::of(receiver));
    sleep(Duration::from_secs_f64(seconds));
    let (came, elapsed_s, now) = (stage.bed.came()?, began.elapsed().as_secs_f64(), Usage::of(receiver));
    flood.end(&stage.bed)?;
    Ok(Flooded {
        came_per_s: (came - came_before) as f64 / elapsed_s,
        share: now.since_ns(&before) as f64 / 1e9 / elapsed_s,
    })
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
        let answered = SYN_PER_S.map(|rate| flooded(f64::from(rate), c1)).to_vec();
        let mut floods = Floods { answered, full: vec![flooded(180_000.0, phi * c1)] };
        let found = floods.costs().expect("possible costs");
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-9;
        assert!(near(found.interrupt_s, c0) && near(found.packet_s, c1) && near(found.full_share, phi));
        // A full line that costs more than an empty one.
        floods.full = vec![flooded(180_000.0, 2.0 * c1)];
        assert!(floods.costs().is_err());
    }
}

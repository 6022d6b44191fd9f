//! What processors spend on the kernel and on programs (`/proc/stat`).
//!
//! The kernel counts these times by ticks, mostly 250 a second: over less than 100 ms they say nothing.

use std::path::Path;

use super::kept::{Kept, numbers};
use crate::observation::Cpu;

/// Lines of some 450 processors; they stand in front.
const TEXT_BYTES: usize = 32 * 1024;
/// The shortest time over which a share says something.
const WINDOW_NS: u64 = 100_000_000;

/// The file that tells of processors, and what it said last.
pub(super) struct Processors {
    stat: Kept,
    before: Vec<Times>,
    before_ns: u64,
    busiest: Option<Cpu>,
}

/// Ticks of one processor since the start of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    kernel: u64,
    user: u64,
    all: u64,
}

impl Processors {
    pub(super) fn open(proc: &Path) -> Result<Self, String> {
        let lost = |error| format!("{error}; the share of the processor is not seen");
        let mut stat = Kept::open(&proc.join("stat"), TEXT_BYTES).map_err(lost)?;
        let before = stat.read().map(times).unwrap_or_default();
        Ok(Self { stat, before, before_ns: 0, busiest: None })
    }

    /// The processor that spends most on the kernel, over the latest window; none before the first has
    /// passed.
    pub(super) fn read(&mut self, now_ns: u64) -> Option<Cpu> {
        if self.before_ns == 0 {
            self.before = times(self.stat.read()?);
            self.before_ns = now_ns;
        } else if now_ns >= self.before_ns + WINDOW_NS {
            let now = times(self.stat.read()?);
            self.busiest = busiest(&self.before, &now);
            (self.before, self.before_ns) = (now, now_ns);
        }
        self.busiest
    }
}

/// The times of each processor, in the order of their numbers; those that are off are not there.
fn times(text: &str) -> Vec<Times> {
    let mut times = Vec::new();
    for line in text.lines().skip(1) {
        let Some((number, rest)) = line.strip_prefix("cpu").and_then(|line| line.split_once(' ')) else {
            break;
        };
        let Ok(number) = number.parse::<usize>() else { break };
        times.resize(times.len().max(number + 1), Times::default());
        times[number] = one(rest);
    }
    times
}

/// Fields: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)); guests are in user and nice.
fn one(line: &str) -> Times {
    let mut fields = [0; 8];
    for (field, number) in fields.iter_mut().zip(numbers(line)) {
        *field = number;
    }
    let [user, nice, system, _, _, irq, softirq, _] = fields;
    Times { kernel: system + irq + softirq, user: user + nice, all: fields.iter().sum() }
}

fn busiest(before: &[Times], now: &[Times]) -> Option<Cpu> {
    let share = |(before, now): (&Times, &Times)| {
        let all = now.all.checked_sub(before.all).filter(|all| *all > 0)? as f64;
        Some(Cpu {
            kernel_share: now.kernel.saturating_sub(before.kernel) as f64 / all,
            user_share: now.user.saturating_sub(before.user) as f64 / all,
        })
    };
    let shares = before.iter().zip(now).filter_map(share);
    shares.max_by(|one, other| one.kernel_share.total_cmp(&other.kernel_share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str =
        "cpu  1 1 1 1\ncpu0 100 0 50 800 0 10 40 0 0 0\ncpu2 0 0 0 100 0 0 0 0 0 0\nintr 5 5\n";
    const LATER: &str =
        "cpu  1 1 1 1\ncpu0 110 5 60 840 0 12 73 0 0 0\ncpu2 90 0 10 100 0 0 0 0 0 0\nintr 5 5\n";

    #[test]
    fn the_processor_with_most_of_the_kernel_is_told() {
        let (before, now) = (times(BEFORE), times(LATER));
        assert_eq!(before[1], Times::default());
        assert_eq!(before.len(), 3);
        // Of 100 ticks 10 system, 2 irq, 33 softirq.
        assert_eq!(busiest(&before, &now), Some(Cpu { kernel_share: 0.45, user_share: 0.15 }));
        assert_eq!(busiest(&now, &now), None);
        assert_eq!(busiest(&now, &before), None);
    }

    #[test]
    fn a_share_is_that_of_a_whole_window() {
        let mut processors = Processors::open(Path::new("/proc")).unwrap();
        assert_eq!(processors.read(1), None);
        assert_eq!(processors.read(WINDOW_NS), None);
        while processors.read(WINDOW_NS + 1).is_none() {
            processors.before_ns = 1;
        }
        let cpu = processors.busiest.unwrap();
        assert!(cpu.kernel_share + cpu.user_share <= 1.0, "{cpu:?}");
    }
}

//! What the processors do: their time by kind, and the packets that softirqs take in.
//!
//! It owns the forms of `/proc/stat`, `/proc/softirqs` and `/proc/net/softnet_stat` (proc(5)). Text in,
//! numbers out: it must never open a file.

use serde::Serialize;

/// How processor time was spent, as shares from 0 to 1 that add up to 1. The kernel counts in clock ticks of
/// 10 ms: over 100 ms each share is right to a tenth, over a second to a hundredth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Shares {
    /// In programs, niced ones and guests included.
    pub user: f64,
    /// In the kernel for programs.
    pub system: f64,
    /// In softirqs: most of the network.
    pub softirq: f64,
    /// In interrupts.
    pub irq: f64,
    /// Nothing to do, waiting for a disk included.
    pub idle: f64,
    /// Taken by the machine below this one.
    pub steal: f64,
}

/// The use of a processor, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Processor {
    /// Its number.
    pub cpu: u32,
    /// What it did.
    #[serde(flatten)]
    pub shares: Shares,
}

/// The use of the processors, together and each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Processors {
    /// All together.
    pub all: Shares,
    /// Each, without those that were off, are new, or for which not a tick has passed.
    pub each: Vec<Processor>,
}

/// What came from network devices, of all processors together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Softnet {
    /// Packets (frames) taken from the backlog and from devices.
    pub processed: u64,
    /// Packets dropped because the backlog was full (`netdev_max_backlog`): the sign of livelock.
    pub dropped: u64,
    /// How often a softirq had to stop with work left, because its budget was used up.
    pub squeezes: u64,
}

/// Ticks of one line, by kind: user, system, softirq, irq, idle, steal.
pub(super) type Ticks = [u64; 6];

/// A line of `/proc/stat`; that of all processors has no number.
pub(super) type TimesLine = (Option<u32>, Ticks);

/// Reads the lines `cpu` and `cpuN` of `/proc/stat`.
pub(super) fn read_times(text: &str) -> Option<Vec<TimesLine>> {
    let lines = text.lines().take_while(|line| line.starts_with("cpu"));
    let times: Option<Vec<TimesLine>> = lines.map(read_time).collect();
    times.filter(|times| times.first().is_some_and(|(number, _)| number.is_none()))
}

/// Columns: user nice system idle iowait irq softirq steal; guests are in user and nice already.
fn read_time(line: &str) -> Option<TimesLine> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?.strip_prefix("cpu")?;
    let number = if name.is_empty() { None } else { Some(name.parse().ok()?) };
    let mut columns = [0; 8];
    for column in &mut columns {
        *column = words.next()?.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = columns;
    Some((number, [user + nice, system, softirq, irq, idle + iowait, steal]))
}

/// What was done between two readings. `None` when not a tick has passed.
pub(super) fn shares_between(before: &[TimesLine], now: &[TimesLine]) -> Option<Processors> {
    let all = shares(&before.first()?.1, &now.first()?.1)?;
    let each = now.iter().filter_map(|(number, ticks)| {
        let (_, before) = before.iter().find(|(before, _)| before == number)?;
        Some(Processor { cpu: (*number)?, shares: shares(before, ticks)? })
    });
    Some(Processors { all, each: each.collect() })
}

/// Idle time is known to go back by a tick at times: that counts as none.
fn shares(before: &Ticks, now: &Ticks) -> Option<Shares> {
    let mut passed = [0.0; 6];
    for (passed, (before, now)) in passed.iter_mut().zip(before.iter().zip(now)) {
        *passed = now.saturating_sub(*before) as f64;
    }
    let total: f64 = passed.iter().sum();
    let [user, system, softirq, irq, idle, steal] = passed.map(|ticks| ticks / total);
    (total > 0.0).then_some(Shares { user, system, softirq, irq, idle, steal })
}

/// Reads the line `NET_RX` of `/proc/softirqs`: how often it ran, for each processor.
pub(super) fn read_net_rx(text: &str) -> Option<Vec<u32>> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("NET_RX:"))?;
    line.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

/// Runs between two readings. Each processor's counter has 32 bits and wraps.
pub(super) fn net_rx_between(before: &[u32], now: &[u32]) -> u64 {
    before.iter().zip(now).map(|(before, now)| u64::from(now.wrapping_sub(*before))).sum()
}

/// A line of `/proc/net/softnet_stat`: the processor, then processed, dropped, squeezes.
pub(super) type SoftnetLine = (u32, [u32; 3]);

/// Reads `/proc/net/softnet_stat`: hexadecimal columns, one line per processor, whose number is the 13th
/// column (where there is none: the line's).
pub(super) fn read_softnet(text: &str) -> Option<Vec<SoftnetLine>> {
    let lines: Option<Vec<_>> = text.lines().enumerate().map(read_softnet_line).collect();
    lines.filter(|lines| !lines.is_empty())
}

fn read_softnet_line((number, line): (usize, &str)) -> Option<SoftnetLine> {
    let columns: Option<Vec<u32>> =
        line.split_ascii_whitespace().map(|word| u32::from_str_radix(word, 16).ok()).collect();
    let columns = columns?;
    let cpu = columns.get(12).copied().or_else(|| number.try_into().ok())?;
    Some((cpu, columns.get(..3)?.try_into().ok()?))
}

/// Packets between two readings. The counters have 32 bits and wrap.
pub(super) fn softnet_between(before: &[SoftnetLine], now: &[SoftnetLine]) -> Softnet {
    let mut sums = [0; 3];
    for (cpu, now) in now {
        let Some((_, before)) = before.iter().find(|(before, _)| before == cpu) else { continue };
        for (sum, (before, now)) in sums.iter_mut().zip(before.iter().zip(now)) {
            *sum += u64::from(now.wrapping_sub(*before));
        }
    }
    let [processed, dropped, squeezes] = sums;
    Softnet { processed, dropped, squeezes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_real_machine() {
        let times = read_times(include_str!("captured/stat.txt")).unwrap();
        assert_eq!(times.len(), 5);
        assert_eq!(times[0], (None, [269_528, 85_257, 24_960, 0, 995_052, 2047]));
        assert_eq!(times[4], (Some(3), [77_956, 24_745, 6123, 0, 234_951, 558]));
    }

    #[test]
    fn shares_add_up() {
        let before = [(None, [0; 6]), (Some(0), [0; 6]), (Some(1), [5; 6])];
        let now = [
            (None, [40, 20, 10, 5, 20, 5]),
            (Some(0), [1, 0, 0, 0, 3, 0]),
            // Idle time went back; a new processor has nothing to be compared with.
            (Some(1), [5, 9, 5, 5, 4, 5]),
            (Some(2), [9; 6]),
        ];
        let found = shares_between(&before, &now).unwrap();
        let all = Shares { user: 0.4, system: 0.2, softirq: 0.1, irq: 0.05, idle: 0.2, steal: 0.05 };
        assert_eq!(found.all, all);
        let first = Shares { user: 0.25, idle: 0.75, ..Shares::default() };
        let second = Shares { system: 1.0, ..Shares::default() };
        let each = [Processor { cpu: 0, shares: first }, Processor { cpu: 1, shares: second }];
        assert_eq!(found.each, each);
        assert_eq!(shares_between(&now, &now), None);
    }

    #[test]
    fn softirqs_of_a_real_machine() {
        let net_rx = read_net_rx(include_str!("captured/softirqs.txt")).unwrap();
        assert_eq!(net_rx.len(), 4);
        let more: Vec<u32> = net_rx.iter().map(|count| count + 10).collect();
        assert_eq!(net_rx_between(&net_rx, &more), 40);
        assert_eq!(net_rx_between(&[u32::MAX, 5], &[4, 5]), 5);
    }

    #[test]
    fn softnet_of_a_real_machine() {
        let lines = read_softnet(include_str!("captured/softnet_stat.txt")).unwrap();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], (0, [0x018a_9f25, 0, 0x19]));
        assert_eq!(lines[3], (3, [0x0139_ed61, 0, 0x16]));
        let before = [(0, [u32::MAX, 0, 7]), (2, [9, 9, 9])];
        let now = [(0, [1, 3, 7]), (1, [1000, 1000, 1000]), (2, [9, 9, 10])];
        let expected = Softnet { processed: 2, dropped: 3, squeezes: 1 };
        assert_eq!(softnet_between(&before, &now), expected);
    }

    #[test]
    fn an_older_kernel_does_not_number_its_lines() {
        let text = "00000007 00000001 00000002 0 0 0 0 0 0 0 0\n00000008 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(read_softnet(text).unwrap(), [(0, [7, 1, 2]), (1, [8, 0, 0])]);
    }

    #[test]
    fn other_texts_are_not_understood() {
        for text in ["", "\n", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu a b c d e f g h\n", "zz 0 0\n"] {
            assert_eq!(read_times(text), None, "{text:?}");
            assert_eq!(read_net_rx(text), None, "{text:?}");
            assert_eq!(read_softnet(text).filter(|_| !text.starts_with("cpu")), None, "{text:?}");
        }
    }
}

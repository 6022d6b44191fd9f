//! What a group of processes has used and holds, as the kernel tells it while they run.
//!
//! It must never disturb them: it reads `/proc`, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::Pid;
use staunch_netio::clock;

use crate::results::Usage;
use crate::syscall::processor_time_ns;

/// Two looks at processes that may be at rest are so far apart.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Ticks of more than so much of what was used are those of others as well,
const OTHERS_FACTOR: f64 = 1.2;
/// but for what a few ticks more or less are by chance, in seconds.
const OTHERS_S: f64 = 0.03;

/// All processes of a group, read at one moment or nearly.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UsageReading {
    /// Processor time of those that live, and of their threads that have ended.
    processor_ns: u64,
    /// The part of it of threads that have ended.
    ended_threads_ns: u64,
    /// Page faults of children that have ended and were reaped.
    reaped_faults: u64,
    /// Page faults, switches: of those that live, and of faults those of the reaped.
    counts: Usage,
    /// Threads that run, or would if there were a processor for them, or wait for a disk.
    awake: usize,
    /// Resident memory, shared pages counted in each process.
    pub(crate) resident_bytes: u64,
    /// Numbers and names of the processes.
    pub(crate) processes: BTreeMap<i32, String>,
    /// Threads: process, thread.
    pub(crate) threads: BTreeSet<(i32, i32)>,
    /// Descriptors: process and number; what they are.
    pub(crate) descriptors: BTreeMap<(i32, i32), String>,
}

/// What `/proc/PID/stat` tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stat {
    pub(crate) process: i32,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    minor_faults: u64,
    major_faults: u64,
    reaped_minor_faults: u64,
    reaped_major_faults: u64,
    resident_pages: u64,
}

impl UsageReading {
    /// Reads all processes of a group. Those that end meanwhile are left out.
    pub(crate) fn of(group: Pid) -> Self {
        let mut reading = Self::default();
        for stat in members(group) {
            reading.add(&stat);
        }
        reading
    }

    /// Waits until they rest (all sleep, and nothing of them ran between two looks) and until it is `enough`,
    /// and reads then; or as they are, if they do not come to rest in time.
    pub(crate) fn at_rest(group: Pid, patience: Duration, enough: impl Fn(&Self) -> bool) -> Self {
        let start_ns = clock::now_ns();
        let mut before = Self::of(group);
        loop {
            clock::pause(LOOK_EVERY);
            let now = Self::of(group);
            let ran = now.processor_ns != before.processor_ns || now.threads != before.threads;
            let rests = !ran && now.awake == 0;
            if (rests && enough(&now)) || clock::now_ns() - start_ns > patience.as_nanos() as u64 {
                return now;
            }
            before = now;
        }
    }

    fn add(&mut self, stat: &Stat) {
        let Some(processor_ns) = Pid::from_raw(stat.process).and_then(processor_time_ns) else { return };
        let mut living_ns = 0;
        for thread in numbers(&format!("/proc/{}/task", stat.process)) {
            let folder = format!("/proc/{}/task/{thread}", stat.process);
            self.threads.insert((stat.process, thread));
            living_ns += ran_ns(&read(&format!("{folder}/schedstat")));
            let status = read(&format!("{folder}/status"));
            self.awake += usize::from(is_awake(&status));
            self.counts.voluntary_switches += value(&status, "voluntary_ctxt_switches");
            self.counts.involuntary_switches += value(&status, "nonvoluntary_ctxt_switches");
        }
        self.processor_ns += processor_ns;
        self.ended_threads_ns += processor_ns.saturating_sub(living_ns);
        self.reaped_faults += stat.reaped_minor_faults + stat.reaped_major_faults;
        self.counts.minor_faults += stat.minor_faults + stat.reaped_minor_faults;
        self.counts.major_faults += stat.major_faults + stat.reaped_major_faults;
        self.resident_bytes += stat.resident_bytes();
        self.processes.insert(stat.process, stat.name.clone());
        for number in numbers(&format!("/proc/{}/fd", stat.process)) {
            let target = fs::read_link(format!("/proc/{}/fd/{number}", stat.process)).unwrap_or_default();
            self.descriptors.insert((stat.process, number), target.display().to_string());
        }
    }
}

impl Stat {
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_pages * page_size() as u64
    }

    /// From the file's text: the name is in brackets and may hold anything.
    fn parse(text: &str) -> Option<Self> {
        let (process, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            process: process.parse().ok()?,
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: number(1)? as i32,
            group: fields.get(2)?.parse().ok()?,
            minor_faults: number(7)?,
            reaped_minor_faults: number(8)?,
            major_faults: number(9)?,
            reaped_major_faults: number(10)?,
            resident_pages: number(21)?,
        })
    }
}

/// What was used between two readings at rest, by processes that used `whole` from their start to their end.
///
/// The measure is exact, and of the load alone: what it takes to start a server and to end it, which is much
/// with a pool of 500, stands outside of the readings. Only if children or threads have ended in between (a
/// process or thread for each client), what they used stands in no file any more but in `whole`; then it is
/// `whole` without what stood in the first reading. The end of the server is within that, but such servers
/// have no pool whose end would count.
///
/// The kernel divides processor time between user and system by looking 100 to 1 000 times a second; their
/// sum is exact. A process at which it never looked while it was in the kernel is taken to have been in user
/// mode all its life, which is wrong for all that live or work shortly. So the division is that of the
/// server's processors, `ticks`, if there are any in which nobody else had much part, else that of the whole
/// life.
pub(crate) fn between(before: &UsageReading, after: &UsageReading, whole: &Usage, ticks: &Ticks) -> Usage {
    let somebody_ended = after.ended_threads_ns != before.ended_threads_ns
        || after.reaped_faults != before.reaped_faults
        || after.processes != before.processes;
    let whole_s = whole.user_s + whole.system_s;
    let (used_s, counts) = if somebody_ended {
        (whole_s - before.processor_ns as f64 / 1e9, whole)
    } else {
        (after.processor_ns.saturating_sub(before.processor_ns) as f64 / 1e9, &after.counts)
    };
    let used_s = used_s.max(0.0);
    let of_whole = if whole_s > 0.0 { whole.user_s / whole_s } else { 0.0 };
    let user_share = ticks.user_share(used_s).unwrap_or(of_whole);
    let since = |of: fn(&Usage) -> u64| of(counts).saturating_sub(of(&before.counts));
    Usage {
        user_s: used_s * user_share,
        system_s: used_s * (1.0 - user_share),
        minor_faults: since(|usage| usage.minor_faults),
        major_faults: since(|usage| usage.major_faults),
        voluntary_switches: since(|usage| usage.voluntary_switches),
        involuntary_switches: since(|usage| usage.involuntary_switches),
    }
}

/// How often processors were found at work, since the machine started or between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    user: u64,
    system: u64,
}

impl Ticks {
    /// Of these processors until now.
    pub(crate) fn of(cpus: &[usize]) -> Self {
        Self::parse(&read("/proc/stat"), cpus)
    }

    /// Since an earlier moment.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }

    /// Columns after the name: user, nice, system, idle, waiting, interrupts, soft interrupts.
    fn parse(stat: &str, cpus: &[usize]) -> Self {
        let mut ticks = Self::default();
        for line in stat.lines() {
            let mut words = line.split_ascii_whitespace();
            let cpu = words.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            if cpu.is_some_and(|cpu| cpus.contains(&cpu)) {
                let columns: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
                let sum = |of: &[usize]| of.iter().filter_map(|index| columns.get(*index)).sum::<u64>();
                ticks.user += sum(&[0, 1]);
                ticks.system += sum(&[2, 5, 6]);
            }
        }
        ticks
    }

    /// The part of user mode, if these are the ticks of somebody who used so much, and hardly of others.
    fn user_share(self, used_s: f64) -> Option<f64> {
        let all = self.user + self.system;
        let all_s = all as f64 / clock_ticks_per_second() as f64;
        let is_ours = all > 0 && all_s < used_s * OTHERS_FACTOR + OTHERS_S;
        is_ours.then(|| self.user as f64 / all as f64)
    }
}

/// The processes of a group.
pub(crate) fn members(group: Pid) -> Vec<Stat> {
    let group = group.as_raw_nonzero().get();
    processes().filter(|stat| stat.group == group).collect()
}

/// All processes there are.
pub(crate) fn processes() -> impl Iterator<Item = Stat> {
    numbers("/proc").into_iter().filter_map(|process| Stat::parse(&read(&format!("/proc/{process}/stat"))))
}

/// Names in a folder that are numbers.
fn numbers(folder: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Nothing, if whom it was about is gone.
fn read(path: &str) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The first number of a `schedstat`: nanoseconds that a thread ran.
fn ran_ns(schedstat: &str) -> u64 {
    schedstat.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Whether the `status` of a thread is that of one that runs, is to run, or waits for a disk.
fn is_awake(status: &str) -> bool {
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_some_and(|state| matches!(state.trim().chars().next(), Some('R' | 'D')))
}

/// The number behind `name:`.
fn value(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_is_read_whatever_the_name() {
        let rest = "S 7 42 42 0 -1 4194560 11 12 13 14 15 16 17 18 20 0 1 0 5 999 33 1 1";
        for name in ["poll", "a) S 1 (b", "two words"] {
            let stat = Stat::parse(&format!("123 ({name}) {rest}")).expect("a stat");
            assert_eq!((stat.process, stat.name.as_str(), stat.state), (123, name, 'S'));
            assert_eq!((stat.parent, stat.group, stat.resident_pages), (7, 42, 33));
            assert_eq!((stat.minor_faults, stat.reaped_minor_faults), (11, 12));
            assert_eq!((stat.major_faults, stat.reaped_major_faults), (13, 14));
        }
        for text in ["", "1", "1 (a)", "1 (a) S", "x (a) S 1 1"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
    }

    #[test]
    fn values_of_files() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
        assert_eq!(value(status, "voluntary_ctxt_switches"), 5);
        assert_eq!(value(status, "nonvoluntary_ctxt_switches"), 6);
        assert_eq!(value("", "voluntary_ctxt_switches"), 0);
        for (state, awake) in [("S (sleeping)", false), ("R (running)", true), ("D (disk sleep)", true)] {
            assert_eq!(is_awake(&format!("Name:\tx\nState:\t{state}\nTgid:\t1\n")), awake);
        }
        assert_eq!((ran_ns("123 4 5\n"), ran_ns("")), (123, 0));
    }

    /// None, so that the division is that of the whole life.
    const NO_TICKS: Ticks = Ticks { user: 0, system: 0 };

    #[test]
    fn ticks_of_processors() {
        let stat = "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8\ncpu1 10 0 20 0 0 1 2\ncpu10 5 5 5 5 5 5 5\nintr 1\n";
        assert_eq!(Ticks::parse(stat, &[0]), Ticks { user: 3, system: 16 });
        assert_eq!(Ticks::parse(stat, &[0, 1]), Ticks { user: 13, system: 39 });
        assert_eq!(Ticks::parse(stat, &[2]), NO_TICKS);
        assert_eq!(Ticks::parse("cpu0 1 x", &[0]), Ticks { user: 1, system: 0 });
        let later = Ticks { user: 5, system: 30 };
        assert_eq!(later.since(Ticks { user: 3, system: 16 }), Ticks { user: 2, system: 14 });
    }

    /// Ticks of others say nothing of ours.
    #[test]
    fn user_time_is_divided_by_the_ticks_of_whoever_had_them() {
        let second = clock_ticks_per_second();
        let ticks = Ticks { user: second / 4, system: second - second / 4 };
        assert_eq!(ticks.user_share(1.0), Some(0.25));
        assert_eq!(ticks.user_share(0.5), None);
        assert_eq!(NO_TICKS.user_share(1.0), None);
        let used = between(&reading(0, 0, 0), &reading(1_000_000_000, 0, 0), &WHOLE, &ticks);
        assert_eq!((used.user_s, used.system_s), (0.25, 0.75));
    }

    fn reading(processor_ns: u64, ended_threads_ns: u64, faults: u64) -> UsageReading {
        let counts = Usage { minor_faults: faults, voluntary_switches: 10 * faults, ..Usage::default() };
        UsageReading { processor_ns, ended_threads_ns, counts, ..UsageReading::default() }
    }

    const WHOLE: Usage = Usage {
        user_s: 1.0,
        system_s: 3.0,
        minor_faults: 100,
        major_faults: 0,
        voluntary_switches: 1000,
        involuntary_switches: 4,
    };

    /// While the same processes and threads live, what the end costs is not within.
    #[test]
    fn between_readings() {
        let used = between(&reading(500_000_000, 7, 10), &reading(2_500_000_000, 7, 40), &WHOLE, &NO_TICKS);
        assert_eq!((used.user_s, used.system_s), (0.5, 1.5));
        assert_eq!((used.minor_faults, used.voluntary_switches), (30, 300));
    }

    #[test]
    fn who_has_ended_is_counted_by_the_whole() {
        let (before, after) = (reading(500_000_000, 0, 10), reading(600_000_000, 9, 20));
        let used = between(&before, &after, &WHOLE, &NO_TICKS);
        assert_eq!((used.user_s, used.system_s), (0.875, 2.625));
        assert_eq!((used.minor_faults, used.voluntary_switches, used.involuntary_switches), (90, 900, 4));
        let reaped = UsageReading { reaped_faults: 5, ..reading(600_000_000, 0, 20) };
        assert_eq!(between(&before, &reaped, &WHOLE, &NO_TICKS).user_s, 0.875);
    }

    #[test]
    fn nothing_used_is_nothing() {
        let rest = reading(0, 0, 0);
        assert_eq!(between(&rest, &rest, &Usage::default(), &NO_TICKS), Usage::default());
    }

    #[test]
    fn this_process_is_read() {
        let group = rustix::process::getpgrp();
        let reading = UsageReading::of(group);
        let this = rustix::process::getpid().as_raw_nonzero().get();
        assert!(reading.processes.contains_key(&this) && reading.processor_ns > 0);
        assert!(reading.threads.iter().any(|(process, _)| *process == this));
        assert!(reading.descriptors.contains_key(&(this, 0)) && reading.resident_bytes > 0);
    }
}

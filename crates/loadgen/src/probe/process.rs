//! What the server's process uses: processor time, memory, threads, descriptors.
//!
//! It owns the files of one process under `/proc/PID` (proc(5)). It must never go on with another process of
//! the same number: what is read by name is read only after the kept file said that the process is there.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use super::watched::{Watched, unreadable};
use crate::fault::Fault;

/// Descriptors and switches are counted in one sample of so many: that costs more than the rest together.
const SAMPLES_PER_COUNT: u64 = 10;
/// Switches of a process with more threads are not counted: each thread is a file to be opened and read.
const THREADS_MAX: u64 = 64;

/// What the process used since the last sample, and what it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Processor time of all its threads outside the kernel, in milliseconds, in steps of a tick (10 ms).
    pub cpu_user_ms: u64,
    /// Processor time in the kernel, in milliseconds.
    pub cpu_system_ms: u64,
    /// Memory that is in use (RSS), in bytes.
    pub resident_bytes: u64,
    /// How many threads it has.
    pub threads: u64,
    /// Its descriptors, without those in the tables of io_uring. In one sample of ten.
    pub descriptors: Option<u64>,
    /// How often its threads have gone to sleep, since they were counted last. In one sample of ten; not of a
    /// process with more than 64 threads.
    pub voluntary_switches: Option<u64>,
}

/// A process that is followed.
#[derive(Debug)]
pub(super) struct Followed {
    pid: u32,
    stat: Watched<Stat>,
    statm: Watched<u64>,
    descriptors: Option<File>,
    samples: u64,
    switches_before: Option<u64>,
    ticks_per_second: u64,
    page_bytes: u64,
}

impl Followed {
    /// Begins to follow; `None` with a fault when there is no such process.
    pub(super) fn open(pid: u32, faults: &mut Vec<Fault>) -> Option<Self> {
        let stat = Watched::open(format!("/proc/{pid}/stat"), read_stat, faults);
        if !stat.is_open() {
            return None;
        }
        let statm = Watched::open(format!("/proc/{pid}/statm"), read_resident_pages, faults);
        let path = format!("/proc/{pid}/fd");
        let descriptors = File::open(&path).map_err(|error| faults.push(unreadable(&path, &error))).ok();
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        let page_bytes = rustix::param::page_size() as u64;
        let mut followed = Self {
            pid,
            stat,
            statm,
            descriptors,
            samples: 0,
            switches_before: None,
            ticks_per_second,
            page_bytes,
        };
        followed.switches_before = followed.switches();
        Some(followed)
    }

    /// What it used since the last call. `None` with a fault when it has ended.
    pub(super) fn sample(&mut self, faults: &mut Vec<Fault>) -> Option<Process> {
        let used = |before: &Stat, now: &Stat| {
            let user_ticks = now.user_ticks.saturating_sub(before.user_ticks);
            let system_ticks = now.system_ticks.saturating_sub(before.system_ticks);
            Stat { user_ticks, system_ticks, ..*now }
        };
        let used = self.stat.change(faults, used)?;
        if used.has_ended {
            faults.push(Fault::new(format!("process {} has ended: its figures end here", self.pid)));
            return None;
        }
        let counts = self.samples.is_multiple_of(SAMPLES_PER_COUNT);
        self.samples += 1;
        Some(Process {
            cpu_user_ms: used.user_ticks * 1000 / self.ticks_per_second,
            cpu_system_ms: used.system_ticks * 1000 / self.ticks_per_second,
            resident_bytes: self.statm.now(faults)? * self.page_bytes,
            threads: used.threads,
            descriptors: if counts { self.count_descriptors() } else { None },
            voluntary_switches: if counts { self.count_switches(used.threads) } else { None },
        })
    }

    /// Since Linux 6.2 the size of the folder is the number of its entries; before, it is 0.
    fn count_descriptors(&self) -> Option<u64> {
        match self.descriptors.as_ref()?.metadata().ok()?.len() {
            0 => Some(fs::read_dir(format!("/proc/{}/fd", self.pid)).ok()?.count() as u64),
            count => Some(count),
        }
    }

    fn count_switches(&mut self, threads: u64) -> Option<u64> {
        if threads > THREADS_MAX {
            return None;
        }
        let now = self.switches()?;
        let before = self.switches_before.replace(now)?;
        // A thread that has ended takes its count along.
        Some(now.saturating_sub(before))
    }

    /// Of all threads together.
    fn switches(&self) -> Option<u64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?;
        let of_thread = |entry: io::Result<fs::DirEntry>| {
            let path: PathBuf = entry.ok()?.path().join("status");
            read_switches(&fs::read_to_string(path).ok()?)
        };
        // A thread that ends just now is passed over.
        Some(threads.take(THREADS_MAX as usize).filter_map(of_thread).sum())
    }
}

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    has_ended: bool,
    user_ticks: u64,
    system_ticks: u64,
    threads: u64,
}

/// The program's name stands in parentheses and may have any letters, parentheses too.
fn read_stat(text: &str) -> Option<Stat> {
    let columns: Vec<&str> = text.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let number = |column: usize| columns.get(column)?.parse().ok();
    // The first column here is the third of proc(5).
    let has_ended = matches!(*columns.first()?, "Z" | "X");
    Some(Stat { has_ended, user_ticks: number(11)?, system_ticks: number(12)?, threads: number(17)? })
}

fn read_resident_pages(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn read_switches(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn files_of_a_real_process() {
        let stat = read_stat(include_str!("captured/process_stat.txt")).unwrap();
        assert_eq!(stat, Stat { has_ended: false, user_ticks: 0, system_ticks: 0, threads: 1 });
        assert_eq!(read_resident_pages(include_str!("captured/statm.txt")), Some(452));
        assert_eq!(read_switches(include_str!("captured/status.txt")), Some(1));
        let busy = "7 (a) b) c) S 1 1 1 0 -1 4 96 0 0 0 120 35 0 0 20 0 9 0 345429 2990080 425";
        assert_eq!(
            read_stat(busy),
            Some(Stat { has_ended: false, user_ticks: 120, system_ticks: 35, threads: 9 })
        );
        assert!(read_stat(&busy.replace(" S ", " Z ")).unwrap().has_ended);
    }

    #[test]
    fn other_texts_are_not_understood() {
        for text in ["", "7 (a", "7 (a) S 1 2", "x y"] {
            assert_eq!(read_stat(text), None, "{text:?}");
            assert_eq!(read_resident_pages(text).filter(|_| text != "7 (a) S 1 2"), None, "{text:?}");
            assert_eq!(read_switches(text), None, "{text:?}");
        }
    }

    #[test]
    fn this_process_is_followed() {
        let mut faults = Vec::new();
        let mut followed = Followed::open(std::process::id(), &mut faults).unwrap();
        let thread = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_millis(20)));
        // Until the kernel has counted some ticks of this thread's own work.
        let mut used = followed.sample(&mut faults).unwrap();
        let first = used;
        while used.cpu_user_ms + used.cpu_system_ms < 30 {
            let more = followed.sample(&mut faults).unwrap();
            used.cpu_user_ms += more.cpu_user_ms;
            used.cpu_system_ms += more.cpu_system_ms;
            used.voluntary_switches = used.voluntary_switches.max(more.voluntary_switches);
        }
        thread.join().unwrap();
        assert!(first.resident_bytes > 1_000_000 && first.threads >= 2, "{first:?}");
        assert!(first.descriptors.unwrap() >= 5, "{first:?}");
        assert!(used.voluntary_switches.is_some());
        assert_eq!(faults, []);
    }

    #[test]
    fn descriptors_are_counted_in_one_sample_of_ten() {
        let mut faults = Vec::new();
        let mut followed = Followed::open(std::process::id(), &mut faults).unwrap();
        let samples: Vec<Process> = (0..20).map(|_| followed.sample(&mut faults).unwrap()).collect();
        for (number, sample) in samples.iter().enumerate() {
            assert_eq!(sample.descriptors.is_some(), number % 10 == 0, "{number}: {sample:?}");
        }
    }

    #[test]
    fn the_end_of_a_process_is_told_once() {
        for reaped in [false, true] {
            let mut child = Command::new("sleep").arg("3600").stdout(Stdio::null()).spawn().unwrap();
            let mut faults = Vec::new();
            let mut followed = Followed::open(child.id(), &mut faults).unwrap();
            assert!(followed.sample(&mut faults).is_some());
            child.kill().unwrap();
            if reaped {
                child.wait().unwrap();
            }
            while followed.sample(&mut faults).is_some() {}
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].to_string().contains("has ended"), "{faults:?}");
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let mut faults = Vec::new();
        assert!(Followed::open(u32::MAX, &mut faults).is_none());
        assert_eq!(faults.len(), 1);
        assert!(faults[0].to_string().starts_with("/proc/4294967295/stat cannot be read"), "{faults:?}");
    }
}

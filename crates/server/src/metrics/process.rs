//! What the kernel says of this process (proc(5)).
//!
//! What it does not say is 0: a figure that is missing is no reason to give none.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

/// Figures of this process, as the kernel gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessFigures {
    /// Processor time used, in seconds, by the process and in the kernel for it.
    pub cpu_seconds: f64,
    /// Memory it occupies.
    pub resident_bytes: u64,
    /// Addresses it occupies.
    pub virtual_bytes: u64,
    /// Descriptors that are open.
    pub open_descriptors: u64,
    /// Descriptors that may be open.
    pub descriptors_max: u64,
    /// When it was started, in seconds since 1970.
    pub start_unix_seconds: f64,
}

impl ProcessFigures {
    /// Reads them.
    pub(super) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            open_descriptors: open_descriptors(),
            descriptors_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            ..Self::parse(&text("/proc/self/stat"), &text("/proc/stat"))
        }
    }

    fn parse(stat: &str, system: &str) -> Self {
        // The name of the program stands in parentheses and may hold anything, so fields count from behind
        // it.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let fields: Vec<u64> = rest.split(' ').map(|word| word.trim().parse().unwrap_or(0)).collect();
        let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0);
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        let booted = system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok());
        Self {
            cpu_seconds: seconds(field(14) + field(15)),
            virtual_bytes: field(23),
            resident_bytes: field(24) * page_size() as u64,
            start_unix_seconds: booted.unwrap_or(0) as f64 + seconds(field(22)),
            ..Self::default()
        }
    }
}

/// The size of the folder is their number since Linux 6.2; before, a million had to be counted.
fn open_descriptors() -> u64 {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).map_or(0, |folder| folder.len()) {
        0 => fs::read_dir(folder).map_or(0, |entries| entries.count() as u64),
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_proc_says() {
        let stat =
            "7 (a) b) c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 4 0 1000 8192000 250 18446 1\n";
        let figures = ProcessFigures::parse(stat, "cpu 1 2\nbtime 1700000000\n");
        let ticks = clock_ticks_per_second() as f64;
        assert_eq!(figures.cpu_seconds, 200.0 / ticks);
        assert_eq!((figures.virtual_bytes, figures.resident_bytes), (8_192_000, 250 * page_size() as u64));
        assert_eq!(figures.start_unix_seconds, 1_700_000_000.0 + 1000.0 / ticks);
        assert_eq!(ProcessFigures::parse("", ""), ProcessFigures::default());
    }

    #[test]
    fn this_process_has_all_of_them() {
        let figures = ProcessFigures::read();
        assert!(figures.resident_bytes > 0 && figures.virtual_bytes > figures.resident_bytes);
        assert!(figures.open_descriptors > 2 && figures.descriptors_max >= figures.open_descriptors);
        assert!(figures.start_unix_seconds > 1e9);
    }
}

//! The machine a report was made on, from what the kernel tells about it.
//!
//! It must never fail: what cannot be read is said to be unknown.
use std::fs;

use serde::{Deserialize, Serialize};

/// What a reader has to know about a machine to compare figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many processors this program may use.
    pub processors: usize,
    /// Memory of the machine in bytes; 0: unknown.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            processor: processor(&read("/proc/cpuinfo")),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            kernel: or_unknown(read("/proc/sys/kernel/osrelease").trim()),
        }
    }
}

fn processor(cpuinfo: &str) -> String {
    or_unknown(value(cpuinfo, "model name").unwrap_or_default())
}

fn memory_bytes(meminfo: &str) -> u64 {
    let words = value(meminfo, "MemTotal").unwrap_or_default();
    words.strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

/// What stands behind `name:`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn or_unknown(words: &str) -> String {
    if words.is_empty() { "unknown".to_owned() } else { words.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmodel\t: 1\n"), "A CPU @ 2 GHz");
        assert_eq!(processor("CPU implementer: 0x41\n"), "unknown");
        assert_eq!(memory_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"), 16 << 20);
        assert_eq!(memory_bytes("MemTotal: many\n"), 0);
        assert!(Machine::here().processors > 0);
    }
}

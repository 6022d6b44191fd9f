//! Memory that can still be had, and what TCP holds of what it may (`/proc/meminfo`, `tcp_mem`).

use std::fs;
use std::path::Path;

use super::kept::{Kept, number_after, numbers};
use crate::observation::Memory;

/// The two lines stand in front.
const TEXT_BYTES: usize = 512;

/// The files that tell of memory.
pub(super) struct HostMemory {
    information: Kept,
    /// Where the kernel begins to be sparing: the middle figure, in pages.
    pressure_pages: Option<u64>,
}

impl HostMemory {
    pub(super) fn open(proc: &Path) -> Result<Self, String> {
        let information = Kept::open(&proc.join("meminfo"), TEXT_BYTES)
            .map_err(|error| format!("{error}; memory is not seen"))?;
        let limits = fs::read_to_string(proc.join("sys/net/ipv4/tcp_mem")).unwrap_or_default();
        Ok(Self { information, pressure_pages: numbers(&limits).nth(1).filter(|pages| *pages > 0) })
    }

    /// A reading; so many pages are held by TCP.
    pub(super) fn read(&mut self, tcp_pages: u64) -> Option<Memory> {
        let text = self.information.read()?;
        let (total, available) = (number_after(text, "MemTotal:")?, number_after(text, "MemAvailable:")?);
        Some(Memory {
            available_share: available as f64 / total.max(1) as f64,
            tcp_share: self.pressure_pages.map_or(0.0, |pages| tcp_pages as f64 / pages as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_whole_and_of_the_limit() {
        let root = std::env::temp_dir().join(format!("staunch-memory-{}", std::process::id()));
        fs::create_dir_all(root.join("sys/net/ipv4")).unwrap();
        let text = "MemTotal:  400 kB\nMemFree:  10 kB\nMemAvailable:   100 kB\n";
        fs::write(root.join("meminfo"), text).unwrap();
        let mut memory = HostMemory::open(&root).unwrap();
        assert_eq!(memory.read(8), Some(Memory { available_share: 0.25, tcp_share: 0.0 }));
        fs::write(root.join("sys/net/ipv4/tcp_mem"), "10\t16\t20\n").unwrap();
        let mut memory = HostMemory::open(&root).unwrap();
        assert_eq!(memory.read(8), Some(Memory { available_share: 0.25, tcp_share: 0.5 }));
        fs::remove_dir_all(&root).unwrap();
    }
}

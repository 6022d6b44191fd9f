//! How much peers may make the server hold: derived from memory, or refused with the way out.
//!
//! It must never ask the system anything: it is told what there is.

use crate::limits::{BUDGET_BYTES_MIN, BUDGET_PART};

/// The memory of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Of the machine.
    pub(crate) total_bytes: u64,
    /// What a control group allows.
    pub(crate) group_bytes: Option<u64>,
    /// What the limits of the process allow.
    pub(crate) process_bytes: Option<u64>,
}

impl Memory {
    /// What there is for sockets, which stand in the kernel, and whether a control group limits it.
    pub(crate) fn for_sockets(&self) -> (u64, bool) {
        let group_bytes = self.group_bytes.unwrap_or(u64::MAX);
        (self.total_bytes.min(group_bytes), group_bytes < self.total_bytes)
    }
}

/// How much all workers together may hold for their peers, and why so much.
///
/// # Errors
/// What cannot be, and the way out, in one sentence.
pub(crate) fn memory_budget(
    wanted: Option<u64>,
    workers: usize,
    memory: Memory,
) -> Result<(u64, String), String> {
    let (for_sockets_bytes, is_limited) = memory.for_sockets();
    let usable_bytes = for_sockets_bytes.min(memory.process_bytes.unwrap_or(u64::MAX));
    let least_bytes = BUDGET_BYTES_MIN * workers as u64;
    let is_limited = is_limited || usable_bytes < for_sockets_bytes;
    match wanted {
        Some(wanted) if wanted < least_bytes => Err(format!(
            "--memory-budget {} KiB is too little for {workers} workers, which need {} KiB each; raise it, \
             or start fewer --workers",
            wanted >> 10,
            BUDGET_BYTES_MIN >> 10
        )),
        Some(wanted) if wanted > usable_bytes => Err(format!(
            "--memory-budget {} MiB is more than the {} MiB of memory {}; lower it",
            wanted >> 20,
            usable_bytes >> 20,
            if is_limited { "this process may use" } else { "in this machine" }
        )),
        Some(wanted) => Ok((wanted, "asked for".into())),
        None if usable_bytes / BUDGET_PART < least_bytes => {
            Ok((least_bytes, format!("the least for {workers} workers")))
        }
        None => {
            let whose = if is_limited { "the memory this process may use" } else { "memory" };
            Ok((usable_bytes / BUDGET_PART, format!("an eighth of {whose}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn derived_from_what_is_scarce_or_refused() {
        let memory = |group_mib: Option<u64>, process_mib: Option<u64>| Memory {
            total_bytes: 8192 * MIB,
            group_bytes: group_mib.map(|mib| mib * MIB),
            process_bytes: process_mib.map(|mib| mib * MIB),
        };
        let cases = [
            (None, memory(None, None), Ok((1024, "an eighth of memory"))),
            (None, memory(Some(48), None), Ok((6, "an eighth of the memory this process may use"))),
            (None, memory(None, Some(400)), Ok((50, "an eighth of the memory this process may use"))),
            (None, memory(Some(8), None), Ok((2, "the least for 2 workers"))),
            (Some(100), memory(None, None), Ok((100, "asked for"))),
            (Some(1), memory(None, None), Err("raise it, or start fewer --workers")),
            (Some(100), memory(Some(48), None), Err("48 MiB of memory this process may use; lower it")),
        ];
        for (wanted, memory, expected) in cases {
            match (memory_budget(wanted.map(|mib| mib * MIB), 2, memory), expected) {
                (Ok((bytes, reason)), Ok((mib, why))) => assert_eq!((bytes, &*reason), (mib * MIB, why)),
                (Err(error), Err(way_out)) => assert!(error.contains(way_out), "{error}"),
                (got, expected) => panic!("{got:?} instead of {expected:?}"),
            }
        }
    }
}

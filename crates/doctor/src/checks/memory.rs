//! Memory: huge pages and swap.
//!
//! It must never judge how much there is: limits follow from it.

use crate::check::{Check, Judge, Verdict, Wanted};
use crate::host::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "transparent huge pages",
        rule: "madvise or always",
        reason: "The server is content with small pages and does not ask for huge ones. `always` is no \
                 harm to it, unless memory is tight: then it makes every program somewhat larger.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        judge: Judge::Host(huge_pages),
    },
    Check {
        name: "swap in use",
        rule: "below a tenth of memory",
        reason: "Prepared content that is swapped out costs a disk's wait, on a worker that serves \
                 thousands.",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        judge: Judge::Host(swap),
    },
    Check {
        name: "vm.swappiness",
        rule: "at most 60",
        reason: "How gladly the kernel swaps programs out to keep files. Above the default it takes \
                 content that was prepared for files that are read once.",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        judge: Judge::Number(|_| Wanted::within(0, 60)),
    },
];

fn huge_pages(host: &Host) -> Verdict {
    let Some(text) = host.text("sys/kernel/mm/transparent_hugepage/enabled") else {
        return Verdict::not_here();
    };
    let chosen = text.split_once('[').and_then(|(_, behind)| behind.split_once(']'));
    match chosen {
        Some((chosen, _)) => Verdict::ok(chosen),
        None => Verdict::unknown(text),
    }
}

fn swap(host: &Host) -> Verdict {
    let (Some(total), Some(free)) = (host.memory_field("SwapTotal"), host.memory_field("SwapFree")) else {
        return Verdict::not_here();
    };
    let used = total.saturating_sub(free);
    let value = format!("{} MiB of {} MiB", used >> 20, total >> 20);
    if total == 0 {
        Verdict::ok("no swap")
    } else if used.saturating_mul(10) < host.memory_bytes() {
        Verdict::ok(value)
    } else {
        Verdict::advise(value, "find out who needs so much memory, or lower --cache-size")
    }
}

//! How much memory this machine has, how much of it this process may use, and how it is given back.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Where control groups are mounted.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Physical memory in bytes.
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    #[allow(clippy::unnecessary_cast, reason = "the field's type differs between processors")]
    let total = info.totalram as u64;
    total * u64::from(info.mem_unit.max(1))
}

/// What the container or the control groups around this process allow, in bytes, the smallest of all; `None`
/// if nothing limits it.
pub fn group_limit_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(|line| limit_bytes(Path::new(CONTROL_GROUPS), line)).min()
}

/// The least of what RLIMIT_DATA and RLIMIT_AS allow (`ulimit -d`, `ulimit -v`), in bytes; `None` if neither
/// limits it.
pub fn process_limit_bytes() -> Option<u64> {
    let limits = [Resource::Data, Resource::As].map(|resource| getrlimit(resource).current);
    limits.into_iter().flatten().min()
}

/// Freed memory at the end of a heap that is kept for the next allocation, in bytes: glibc's own default,
/// which it else raises by itself to twice the largest block that was ever freed, for good.
#[cfg(target_env = "gnu")]
const HEAP_KEPT_BYTES: libc::c_int = 128 * 1024;

/// From now on memory that is freed at the end of a heap goes back to the system, whatever was freed before.
/// To be called before threads are started.
pub fn keep_little() {
    // SAFETY: mallopt(3) only sets a number; no other thread allocates meanwhile.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
    }
}

/// Heaps of all threads where the addresses of the process are limited.
#[cfg(target_env = "gnu")]
const HEAPS_WITHIN_A_LIMIT: libc::c_int = 2;

/// Where the addresses of the process are limited (`ulimit -v`), its threads share few heaps: glibc else maps
/// 64 MiB of addresses for nearly every thread, which use up a gigabyte before the first request. To be
/// called before threads are started.
pub fn share_heaps_within_a_limit() {
    #[cfg(target_env = "gnu")]
    if getrlimit(Resource::As).current.is_some() {
        // SAFETY: mallopt(3) only sets a number; no other thread allocates meanwhile.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, HEAPS_WITHIN_A_LIMIT);
        }
    }
}

/// Gives memory that was freed back to the system. For a quiet moment: it looks through all that is free,
/// some milliseconds for a gigabyte, and other threads that allocate may have to wait for it.
pub fn give_back() {
    // SAFETY: malloc_trim(3) may be called by any thread at any time; it touches only what is free.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What this process has allocated and not freed, in bytes, by the word of its allocator; `None` where that
/// cannot be asked.
pub fn allocated_bytes() -> Option<u64> {
    // SAFETY: mallinfo2(3) may be called by any thread at any time, and only counts.
    #[cfg(target_env = "gnu")]
    return Some(unsafe {
        let info = libc::mallinfo2();
        (info.uordblks + info.hblkhd) as u64
    });
    #[cfg(not(target_env = "gnu"))]
    None
}

/// The limit for a line of `/proc/self/cgroup`: `0::/GROUP` in version 2, `NUMBER:memory:/GROUP` in version
/// 1.
fn limit_bytes(root: &Path, line: &str) -> Option<u64> {
    let mut words = line.splitn(3, ':').skip(1);
    match (words.next()?, words.next()?) {
        ("", group) => smallest_limit_bytes(root, group, "memory.max"),
        ("memory", group) => smallest_limit_bytes(&root.join("memory"), group, "memory.limit_in_bytes"),
        _ => None,
    }
}

/// The smallest limit of a group, named by its path below the root, and of all those around it.
fn smallest_limit_bytes(root: &Path, group: &str, file: &str) -> Option<u64> {
    let group = root.join(group.trim_start_matches('/'));
    let around = group.ancestors().take_while(|folder| folder.starts_with(root));
    around.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_around_counts() {
        let root = std::env::temp_dir().join(format!("staunch-groups-{}", std::process::id()));
        let inner = root.join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let limit = || limit_bytes(&root, "0::/outer/inner");
        assert_eq!(limit(), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit(), None);
        fs::write(root.join("outer/memory.max"), "33554432\n").unwrap();
        assert_eq!(limit(), Some(33_554_432));
        fs::write(inner.join("memory.max"), "4096\n").unwrap();
        assert_eq!(limit(), Some(4096));
        assert_eq!(limit_bytes(&root, "0::/"), None);
        fs::create_dir_all(root.join("memory")).unwrap();
        fs::write(root.join("memory/memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        assert_eq!(limit_bytes(&root, "4:memory:/nowhere"), Some(9_223_372_036_854_771_712));
        assert_eq!(limit_bytes(&root, "3:cpuset:/"), None);
        fs::remove_dir_all(&root).unwrap();
    }
}

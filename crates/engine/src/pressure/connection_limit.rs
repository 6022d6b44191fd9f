//! How many connections there may be: derived from descriptors and memory, or refused with the way out.
//!
//! It must never change a limit of the system, nor ask it anything: it is told what there is.

use super::Pressure;
use crate::limits::{
    CONNECTION_BYTES_MAX, CONNECTIONS_MAX, DESCRIPTORS_RESERVED, DESCRIPTORS_RESERVED_PART, RINGS_PART,
    SOCKET_MEMORY_BYTES, SOCKET_MEMORY_SHARE, TABLES_PART,
};

/// What the system has for connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostResources {
    /// On io_uring a connection needs no descriptor of the process.
    pub(crate) is_uring: bool,
    /// RLIMIT_NOFILE.
    pub(crate) descriptors: u64,
    /// What there is for sockets: the memory budget is taken off.
    pub(crate) memory_bytes: u64,
    /// The memory is what a control group allows, not what the machine has.
    pub(crate) memory_is_limited: bool,
    /// What the limits of the process allow it to map, where its tables of connections stand from the start.
    pub(crate) process_bytes: Option<u64>,
}

/// How many connections may be open, and why so many.
///
/// # Errors
/// What cannot be, and the way out, in one sentence.
pub(crate) fn connection_limit(
    wanted: Option<u64>,
    pressure: &Pressure,
    resources: HostResources,
) -> Result<(u64, String), String> {
    let (number, reason) = match wanted {
        Some(wanted) => (check(wanted, resources)?, "asked for".into()),
        None => derive(resources),
    };
    match (pressure.soft_connections, pressure.reserved_connections) {
        (Some(soft), _) if soft > number && soft != u64::MAX => Err(format!(
            "--soft-connections {soft} is above the {number} connections there may be ({reason}); lower it, \
             or raise --max-connections"
        )),
        (_, Some(reserved)) if u64::from(reserved) >= number => Err(format!(
            "--reserved-connections {reserved} leaves none of the {number} connections there may be \
             ({reason}); lower it, or raise --max-connections"
        )),
        _ => Ok((number, reason)),
    }
}

fn check(wanted: u64, resources: HostResources) -> Result<u64, String> {
    let HostResources { is_uring, descriptors, memory_bytes, memory_is_limited, .. } = resources;
    let by_descriptors = by_descriptors(resources);
    if wanted == 0 {
        return Err("--max-connections 0 would serve nobody; give at least 1, or auto".into());
    }
    if wanted > by_descriptors && !is_uring {
        return Err(format!(
            "--max-connections {wanted} needs more than the {descriptors} file descriptors allowed here ({} \
             are kept for files); raise `ulimit -n` or use --io uring",
            reserved(descriptors)
        ));
    }
    if wanted > by_descriptors {
        return Err(format!(
            "--max-connections {wanted} needs more rings than {descriptors} file descriptors (ulimit -n) \
             allow; raise `ulimit -n` or ask for at most {by_descriptors}"
        ));
    }
    if wanted > CONNECTIONS_MAX {
        return Err(format!(
            "--max-connections {wanted} is more than the {CONNECTIONS_MAX} one process holds; start several"
        ));
    }
    if wanted > memory_bytes / SOCKET_MEMORY_BYTES {
        let (memory, remedy) = match memory_is_limited {
            true => ("this process may use", "raise the memory limit"),
            false => ("in this machine", "add memory"),
        };
        return Err(format!(
            "--max-connections {wanted} needs more than the {} MiB of memory {memory}, at 4 KiB for an idle \
             one, beside the memory budget; {remedy}, or ask for less",
            memory_bytes >> 20
        ));
    }
    if wanted > by_tables(resources) {
        return Err(format!(
            "--max-connections {wanted} needs tables of {} KiB, more than a sixteenth of what this process \
             may map (ulimit -v, -d); raise the limit, or ask for at most {}",
            (wanted * CONNECTION_BYTES_MAX as u64) >> 10,
            by_tables(resources)
        ));
    }
    Ok(wanted)
}

/// The most that descriptors and a share of the memory allow.
fn derive(resources: HostResources) -> (u64, String) {
    let descriptors = resources.descriptors;
    let by_memory = (resources.memory_bytes / SOCKET_MEMORY_SHARE / SOCKET_MEMORY_BYTES).max(1);
    let by_descriptors = by_descriptors(resources);
    let by_tables = by_tables(resources);
    if by_tables < by_descriptors.min(by_memory).min(CONNECTIONS_MAX) {
        let reason = format!(
            "a sixteenth of what this process may map (ulimit -v, -d), at {CONNECTION_BYTES_MAX} bytes a \
             connection in its tables"
        );
        return (by_tables, reason);
    }
    if by_descriptors < by_memory.min(CONNECTIONS_MAX) {
        let reason = match resources.is_uring {
            true => format!("as many rings as {descriptors} file descriptors (ulimit -n) allow"),
            false => {
                format!("{descriptors} file descriptors (ulimit -n) less {} for files", reserved(descriptors))
            }
        };
        return (by_descriptors, reason);
    }
    if by_memory >= CONNECTIONS_MAX {
        let reason = "the most for one process; a quarter of memory at 4 KiB each would allow more";
        return (CONNECTIONS_MAX, reason.into());
    }
    let reason = match resources.memory_is_limited {
        true => {
            "a quarter of the memory this process may use beside the memory budget, at 4 KiB a connection"
        }
        false => "a quarter of memory beside the memory budget, at 4 KiB a connection",
    };
    (by_memory, reason.into())
}

/// The tables are made at the start for as many connections as there may be.
fn by_tables(resources: HostResources) -> u64 {
    let process_bytes = resources.process_bytes.unwrap_or(u64::MAX);
    (process_bytes / TABLES_PART / CONNECTION_BYTES_MAX as u64).max(1)
}

fn by_descriptors(resources: HostResources) -> u64 {
    let descriptors = resources.descriptors;
    match resources.is_uring {
        true => descriptors.saturating_mul((descriptors / RINGS_PART).max(1)),
        false => (descriptors - reserved(descriptors)).max(1),
    }
}

/// Descriptors kept back: where there are few, half of them.
fn reserved(descriptors: u64) -> u64 {
    DESCRIPTORS_RESERVED.min(descriptors / DESCRIPTORS_RESERVED_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn resources(is_uring: bool, descriptors: u64, memory_bytes: u64) -> HostResources {
        let memory_is_limited = memory_bytes < GIB;
        HostResources { is_uring, descriptors, memory_bytes, memory_is_limited, process_bytes: None }
    }

    #[test]
    fn tables_have_room_in_what_the_process_may_map() {
        let small =
            HostResources { process_bytes: Some(100_000 << 10), ..resources(true, 1 << 20, 64 * GIB) };
        let (number, reason) = connection_limit(None, &Pressure::default(), small).unwrap();
        assert_eq!(number, 50_000);
        assert!(reason.contains("ulimit -v, -d"), "{reason}");
        assert_eq!(connection_limit(Some(50_000), &Pressure::default(), small).unwrap().0, 50_000);
        let refused = connection_limit(Some(50_001), &Pressure::default(), small).unwrap_err();
        assert!(refused.contains("at most 50000"), "{refused}");
        let tiny = HostResources { process_bytes: Some(1), ..small };
        assert_eq!(connection_limit(None, &Pressure::default(), tiny).unwrap().0, 1);
    }

    #[test]
    fn derived_from_what_is_scarce() {
        let cases = [
            (resources(false, 64, 8 * GIB), 32, "64 file descriptors (ulimit -n) less 32 for files"),
            (resources(false, 1024, 8 * GIB), 512, "1024 file descriptors (ulimit -n) less 512 for files"),
            (resources(false, 4096, 32 << 20), 2048, "this process may use"),
            (resources(true, 64, 8 * GIB), 512, "as many rings as 64 file descriptors"),
            (resources(true, 1024, 32 << 20), 2048, "this process may use"),
            (resources(true, 1024, GIB), 65_536, "a quarter of memory beside the memory budget, at 4 KiB"),
            (resources(true, 1 << 20, 64 * GIB), 1 << 20, "the most for one process"),
            (resources(false, u64::MAX, 64 * GIB), 1 << 20, "the most for one process"),
        ];
        for (resources, number, why) in cases {
            let (given, reason) = connection_limit(None, &Pressure::default(), resources).unwrap();
            assert_eq!(given, number, "{resources:?}");
            assert!(reason.contains(why), "{resources:?}: {reason}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_way_out() {
        let small = resources(true, 1024, 32 << 20);
        let cases = [
            (0, resources(false, 1024, GIB), "at least 1"),
            (513, resources(false, 1024, GIB), "raise `ulimit -n` or use --io uring"),
            (513, resources(true, 64, GIB), "at most 512"),
            (8193, small, "raise the memory limit"),
            (300_000, resources(true, 1 << 16, GIB), "add memory"),
            (2_000_000, resources(true, 1 << 16, 64 * GIB), "start several"),
        ];
        for (wanted, resources, way_out) in cases {
            let error = connection_limit(Some(wanted), &Pressure::default(), resources).unwrap_err();
            assert!(error.contains(way_out) && error.contains("--max-connections"), "{error}");
        }
        assert_eq!(connection_limit(Some(8192), &Pressure::default(), small).unwrap().0, 8192);
    }

    #[test]
    fn steps_that_cannot_be_reached_are_refused() {
        let limit = |soft, reserved| {
            let pressure =
                Pressure { soft_connections: soft, reserved_connections: reserved, ..Pressure::default() };
            connection_limit(Some(100), &pressure, resources(true, 1024, GIB))
        };
        assert!(limit(Some(100), Some(99)).is_ok());
        assert!(limit(Some(101), None).unwrap_err().contains("--soft-connections 101"));
        assert!(limit(None, Some(100)).unwrap_err().contains("--reserved-connections 100"));
    }
}

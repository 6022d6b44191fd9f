//! The filter of system calls (seccomp).
//!
//! It owns what happens to a call that is not on the list: it fails with EPERM. The process is not killed,
//! not even for calls that only an intruder would make: those fail as well, and a call forgotten on the list,
//! or made by a library of tomorrow, costs an error instead of the server and everybody it serves. clone3
//! alone fails with ENOSYS, since its flags cannot be looked at; libraries use clone then, whose flags can.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::calls::{BOUNDED, Bounded, FREE, HANDOVER, MAPS, NAMES, NOT_OF_CLIENT, OF_CLIENT, OLD, RINGS};
use crate::inherited::Inherited;
use crate::paths::Paths;

/// A filter that holds.
pub(crate) struct Filter {
    /// Of the programs the kernel runs.
    pub(crate) digest: u64,
}

/// What not every server needs.
#[derive(Debug, Clone, Copy)]
struct Extras {
    /// Reading and writing entries of BPF maps.
    maps: bool,
    /// Making rings and entering them.
    rings: bool,
    /// Taking connections that khttpd hands over.
    handover: bool,
}

/// Applies the filter, unless this process was born with it.
///
/// # Errors
/// Why there is none, in words.
pub(crate) fn apply(inherited: &Inherited, paths: &Paths) -> Result<Filter, String> {
    let extras = Extras { maps: paths.maps, rings: paths.rings, handover: !paths.devices.is_empty() };
    let programs =
        programs(arch()?, extras).map_err(|error| format!("the filter of system calls: {error}"))?;
    let digest = xxh3_64(format!("{programs:?}").as_bytes());
    if inherited.filter != Some(digest) || !is_filtered() {
        programs.iter().try_for_each(set)?;
    }
    Ok(Filter { digest })
}

/// Applies the filter of a process that asks others and serves nobody.
///
/// # Errors
/// Why there is none, in words.
pub(crate) fn apply_to_client() -> Result<(), String> {
    let programs = arch().and_then(|arch| {
        let free = FREE.iter().filter(|call| !NOT_OF_CLIENT.contains(*call)).chain(OLD).chain(OF_CLIENT);
        assemble(arch, free, BOUNDED.iter().chain(NAMES))
            .map_err(|error| format!("the filter of system calls: {error}"))
    });
    programs?.iter().try_for_each(set)
}

fn arch() -> Result<TargetArch, String> {
    TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| "the filter of system calls is not made for this processor".to_owned())
}

fn set(program: &BpfProgram) -> Result<(), String> {
    seccompiler::apply_filter(program).map_err(|error| {
        format!("no filter of system calls can be set here (seccomp, CONFIG_SECCOMP_FILTER): {error}")
    })
}

/// The list, and ENOSYS for clone3. Where two filters refuse a call, the one set last says how.
fn programs(arch: TargetArch, extras: Extras) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let rings = if extras.rings { RINGS } else { &[] };
    let maps = if extras.maps { MAPS } else { &[] };
    let handover = if extras.handover { HANDOVER } else { &[] };
    assemble(arch, FREE.iter().chain(OLD).chain(rings), BOUNDED.iter().chain(maps).chain(handover))
}

fn assemble<'a>(
    arch: TargetArch,
    free: impl Iterator<Item = &'a libc::c_long>,
    bounded: impl Iterator<Item = &'a Bounded>,
) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> = free.map(|&call| (call, Vec::new())).collect();
    for &(call, lines) in bounded {
        calls.entry(call).or_default().extend(rules(lines)?);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    [
        SeccompFilter::new(calls, refused, SeccompAction::Allow, arch)?,
        SeccompFilter::new(clone3, SeccompAction::Allow, absent, arch)?,
    ]
    .into_iter()
    .map(BpfProgram::try_from)
    .collect()
}

fn rules(lines: &[&[(u8, u64, u64)]]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let condition = |&(place, bits, value): &(u8, u64, u64)| {
        SeccompCondition::new(place, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), value)
    };
    let rule =
        |line: &&[(u8, u64, u64)]| SeccompRule::new(line.iter().map(condition).collect::<Result<_, _>>()?);
    lines.iter().map(rule).collect()
}

/// Whether some filter holds for this process.
fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do, by running a program over a call: only what the compiler emits.
    fn verdict(program: &BpfProgram, call: i64, arguments: [u64; 6]) -> u32 {
        let arch = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        let mut data: Vec<u32> = vec![call as u32, arch, 0, 0];
        data.extend(arguments.iter().flat_map(|argument| [*argument as u32, (argument >> 32) as u32]));
        let (mut accumulator, mut next) = (0u32, 0);
        loop {
            let step = &program[next];
            next += 1;
            let jump = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
            match step.code {
                0x20 => accumulator = data[step.k as usize / 4],
                0x54 => accumulator &= step.k,
                0x05 => next += step.k as usize,
                0x15 => next += jump(accumulator == step.k),
                0x25 => next += jump(accumulator > step.k),
                0x35 => next += jump(accumulator >= step.k),
                0x06 => return step.k,
                code => panic!("an instruction of code {code:#x}"),
            }
        }
    }

    const ALLOWED: u32 = 0x7fff_0000;
    const REFUSED: u32 = 0x0005_0000 | libc::EPERM as u32;
    const ABSENT: u32 = 0x0005_0000 | libc::ENOSYS as u32;

    fn of(call: i64, arguments: &[u64]) -> (u32, u32) {
        with(Extras { maps: false, rings: true, handover: false }, call, arguments)
    }

    fn with(extras: Extras, call: i64, arguments: &[u64]) -> (u32, u32) {
        let programs = programs(std::env::consts::ARCH.try_into().unwrap(), extras).unwrap();
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        (verdict(&programs[0], call, all), verdict(&programs[1], call, all))
    }

    #[test]
    fn what_a_server_does_is_allowed() {
        let inet = [libc::AF_INET as u64, (libc::SOCK_STREAM | libc::SOCK_NONBLOCK) as u64];
        let no_delay = [3, libc::IPPROTO_TCP as u64, libc::TCP_NODELAY as u64];
        let threads = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
        let calls: [(i64, &[u64]); 12] = [
            (libc::SYS_openat2, &[]),
            (libc::SYS_io_uring_enter, &[]),
            (libc::SYS_execve, &[]),
            (libc::SYS_socket, &inet),
            (libc::SYS_socket, &[inet[0], inet[1], libc::IPPROTO_TCP as u64]),
            (libc::SYS_sendto, &[3, 0, 0, libc::MSG_NOSIGNAL as u64]),
            (libc::SYS_setsockopt, &no_delay),
            (libc::SYS_setsockopt, &[3, libc::SOL_SOCKET as u64, libc::SO_REUSEPORT as u64]),
            (libc::SYS_socket, &[libc::AF_UNIX as u64, libc::SOCK_DGRAM as u64]),
            (libc::SYS_clone, &[threads]),
            (libc::SYS_ioctl, &[3, libc::TIOCOUTQ]),
            (libc::SYS_prctl, &[libc::PR_SET_NAME as u64]),
        ];
        for (call, arguments) in calls {
            assert_eq!(of(call, arguments), (ALLOWED, ALLOWED), "{call} {arguments:x?}");
        }
    }

    #[test]
    fn what_no_server_does_is_refused() {
        let (fast, tcp) = (libc::MSG_FASTOPEN as u64, libc::IPPROTO_TCP as u64);
        let calls: [(i64, &[u64]); 24] = [
            (libc::SYS_ptrace, &[]),
            (libc::SYS_process_vm_readv, &[]),
            (libc::SYS_process_vm_writev, &[]),
            (libc::SYS_mount, &[]),
            (libc::SYS_bpf, &[]),
            (libc::SYS_perf_event_open, &[]),
            (libc::SYS_keyctl, &[]),
            (libc::SYS_init_module, &[]),
            (libc::SYS_kexec_load, &[]),
            (libc::SYS_setresuid, &[]),
            (libc::SYS_unshare, &[]),
            (libc::SYS_chroot, &[]),
            (libc::SYS_socket, &[libc::AF_PACKET as u64, libc::SOCK_RAW as u64]),
            (libc::SYS_socket, &[libc::AF_INET as u64, libc::SOCK_RAW as u64]),
            (libc::SYS_socket, &[libc::AF_NETLINK as u64, libc::SOCK_RAW as u64]),
            (libc::SYS_socket, &[libc::AF_INET as u64, libc::SOCK_STREAM as u64, libc::IPPROTO_MPTCP as u64]),
            (
                libc::SYS_socket,
                &[libc::AF_INET6 as u64, libc::SOCK_STREAM as u64, libc::IPPROTO_MPTCP as u64],
            ),
            (libc::SYS_sendto, &[3, 0, 0, fast | libc::MSG_NOSIGNAL as u64]),
            (libc::SYS_sendmsg, &[3, 0, fast]),
            (libc::SYS_sendmmsg, &[3, 0, 1, fast]),
            (libc::SYS_setsockopt, &[3, tcp, libc::TCP_FASTOPEN_CONNECT as u64]),
            (libc::SYS_setsockopt, &[3, tcp, libc::TCP_ULP as u64]),
            (libc::SYS_clone, &[libc::CLONE_NEWUSER as u64]),
            (libc::SYS_ioctl, &[0, libc::TIOCSTI]),
        ];
        for (call, arguments) in calls {
            assert_eq!(of(call, arguments), (REFUSED, ALLOWED), "{call} {arguments:x?}");
        }
    }

    #[test]
    fn a_server_behind_khttpd_may_take_connections_from_its_device() {
        for handover in [true, false] {
            let extras = Extras { maps: false, rings: true, handover };
            let expected = if handover { ALLOWED } else { REFUSED };
            assert_eq!(with(extras, libc::SYS_ioctl, &[3, 0xe800]), (expected, ALLOWED));
            assert_eq!(with(extras, libc::SYS_ioctl, &[3, libc::FIONBIO]), (ALLOWED, ALLOWED));
            assert_eq!(with(extras, libc::SYS_ioctl, &[0, libc::TIOCSTI]), (REFUSED, ALLOWED));
        }
    }

    #[test]
    fn a_gate_may_use_its_maps_and_no_more_of_bpf() {
        // Commands: make a map, look up, update, delete, list the keys, load a program, open what is pinned,
        // make a link.
        for (command, allowed) in
            [(0, false), (1, true), (2, true), (3, true), (4, false), (5, false), (7, false), (28, false)]
        {
            let expected = if allowed { ALLOWED } else { REFUSED };
            let gate = Extras { maps: true, rings: true, handover: false };
            assert_eq!(with(gate, libc::SYS_bpf, &[command]), (expected, ALLOWED), "{command}");
            assert_eq!(of(libc::SYS_bpf, &[command]), (REFUSED, ALLOWED), "{command}");
        }
    }

    #[test]
    fn rings_are_made_only_where_they_are_needed() {
        for (rings, expected) in [(true, ALLOWED), (false, REFUSED)] {
            for call in RINGS {
                assert_eq!(
                    with(Extras { maps: false, rings, handover: false }, *call, &[]),
                    (expected, ALLOWED),
                    "{call}"
                );
            }
        }
    }

    #[test]
    fn the_call_whose_flags_cannot_be_seen_is_absent() {
        assert_eq!(of(libc::SYS_clone3, &[]), (ALLOWED, ABSENT));
    }

    #[test]
    fn no_call_is_on_the_list_twice() {
        let bounded = BOUNDED.iter().chain(MAPS).map(|(call, _)| call);
        let mut calls: Vec<_> = FREE.iter().chain(OLD).chain(RINGS).chain(bounded).collect();
        let count = calls.len();
        calls.sort();
        calls.dedup();
        assert_eq!(calls.len(), count);
    }
}

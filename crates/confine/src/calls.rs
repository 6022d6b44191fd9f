//! The system calls of a server: what it makes, and nothing else.
//!
//! It owns the list. Found by watching every test of the program (strace), on both engines, and completed by
//! what libraries do under other circumstances: another C library, a full pipe, a kernel that lacks
//! something, an upgrade to another binary. It must never hold a call that reaches other processes' memory,
//! the kernel's own settings, devices or namespaces.

/// Calls allowed with every argument.
pub(crate) const FREE: &[libc::c_long] = &[
    // Files.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_statfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_umask,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_memfd_create,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    // Threads and time.
    libc::SYS_clone3, // answered ENOSYS: see `filter.rs`
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_getcpu,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    // Network; which sockets is said below.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    // Signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_tkill,
    // The process, and another one in an upgrade.
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_setsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    // Giving more up, which an upgraded binary may.
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// System calls without use to a process that only asks others: those that serve, start or signal.
pub(crate) const NOT_OF_CLIENT: &[libc::c_long] = &[
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kill,
    libc::SYS_memfd_create,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_capset,
];

/// Calls that make folders of its store.
pub(crate) const OF_CLIENT: &[libc::c_long] = &[
    libc::SYS_mkdirat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
];

/// The older calls that C libraries of this processor still make.
#[cfg(target_arch = "x86_64")]
pub(crate) const OLD: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_unlink,
    libc::SYS_chmod,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_pause,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_inotify_init,
    libc::SYS_getpgrp,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_time,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_arch_prctl,
];

/// The older calls that C libraries of this processor still make, by number where the library's crate has no
/// name for them: renameat, getrlimit, setrlimit.
#[cfg(target_arch = "aarch64")]
pub(crate) const OLD: &[libc::c_long] = &[38, 163, 164];

/// The older calls that C libraries of this processor still make.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const OLD: &[libc::c_long] = &[];

/// A call, and which of its arguments (place, bits looked at, their value) allow it.
pub(crate) type Bounded = (libc::c_long, &'static [&'static [(u8, u64, u64)]]);

const ALL_BITS: u64 = 0xffff_ffff;
/// The kind of a socket, without its flags.
const KIND: u64 = 0xf;
const STREAM: u64 = libc::SOCK_STREAM as u64;
/// Flags of clone that ask for namespaces.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;
/// Options of prctl that are not in every version of the headers: the C library names its memory, and the
/// kernel is asked for what it told the program at its start.
const PR_SET_VMA: u64 = 0x5356_4d41;
const PR_GET_AUXV: u64 = 0x4155_5856;

/// `BPF_MAP_LOOKUP_ELEM`: reads an entry of a map that is open.
const MAP_LOOKUP: u64 = 1;
/// `BPF_MAP_UPDATE_ELEM`: writes one.
const MAP_UPDATE: u64 = 2;
/// `BPF_MAP_DELETE_ELEM`: takes one out, such as an address the host no longer has.
const MAP_DELETE: u64 = 3;

/// Only for a server with a gate, whose program and maps were made before.
pub(crate) const MAPS: &[Bounded] = &[(
    libc::SYS_bpf,
    &[&[(0, ALL_BITS, MAP_LOOKUP)], &[(0, ALL_BITS, MAP_UPDATE)], &[(0, ALL_BITS, MAP_DELETE)]],
)];

/// Only for a server behind khttpd: takes a connection from its device (`KHTTPD_TAKE`).
pub(crate) const HANDOVER: &[Bounded] = &[(libc::SYS_ioctl, &[&[ioctl(0xe800)]])];

/// An ioctl by its number, whose type is unsigned in glibc and signed in musl.
#[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
const fn ioctl(number: libc::Ioctl) -> (u8, u64, u64) {
    (1, ALL_BITS, number as u64)
}

/// Only where a ring may be made: what it does is not seen by any filter of system calls.
pub(crate) const RINGS: &[libc::c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Sends that open no connection by themselves, as TCP Fast Open does beside Landlock.
const NO_OPENING: u64 = libc::MSG_FASTOPEN as u64;
const TCP: u64 = libc::IPPROTO_TCP as u64;

/// Calls allowed with certain arguments: any of the lines, each of its conditions.
pub(crate) const BOUNDED: &[Bounded] = &[
    // TCP for peers, Unix for the service manager. No raw, packet, netlink or kernel crypto sockets, and no
    // MPTCP: Landlock lets that connect to any TCP server.
    (
        libc::SYS_socket,
        &[
            &[(0, ALL_BITS, libc::AF_INET as u64), (1, KIND, STREAM), (2, ALL_BITS, 0)],
            &[(0, ALL_BITS, libc::AF_INET as u64), (1, KIND, STREAM), (2, ALL_BITS, TCP)],
            &[(0, ALL_BITS, libc::AF_INET6 as u64), (1, KIND, STREAM), (2, ALL_BITS, 0)],
            &[(0, ALL_BITS, libc::AF_INET6 as u64), (1, KIND, STREAM), (2, ALL_BITS, TCP)],
            &[(0, ALL_BITS, libc::AF_UNIX as u64)],
        ],
    ),
    (libc::SYS_sendto, &[&[(3, NO_OPENING, 0)]]),
    (libc::SYS_sendmsg, &[&[(2, NO_OPENING, 0)]]),
    (libc::SYS_sendmmsg, &[&[(3, NO_OPENING, 0)]]),
    // Of TCP what a server sets, and nothing that makes another protocol of a socket or connects it later.
    (
        libc::SYS_setsockopt,
        &[
            &[(1, ALL_BITS, libc::SOL_SOCKET as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_NODELAY as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_CORK as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_KEEPIDLE as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_KEEPINTVL as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_KEEPCNT as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_DEFER_ACCEPT as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_USER_TIMEOUT as u64)],
            &[(1, ALL_BITS, TCP), (2, ALL_BITS, libc::TCP_NOTSENT_LOWAT as u64)],
            &[(1, ALL_BITS, libc::IPPROTO_IPV6 as u64), (2, ALL_BITS, libc::IPV6_V6ONLY as u64)],
        ],
    ),
    (libc::SYS_socketpair, &[&[(0, ALL_BITS, libc::AF_UNIX as u64)]]),
    (libc::SYS_clone, &[&[(0, NAMESPACES, 0)]]),
    // Nothing that types into a terminal or speaks to a device.
    (
        libc::SYS_ioctl,
        &[
            &[ioctl(libc::FIONBIO)],
            &[ioctl(libc::FIONREAD)],
            &[ioctl(libc::FIOCLEX)],
            &[ioctl(libc::FIONCLEX)],
            &[ioctl(libc::TIOCOUTQ)],
            &[ioctl(libc::TCGETS)],
            &[ioctl(libc::TIOCGWINSZ)],
        ],
    ),
    (
        libc::SYS_prctl,
        &[
            &[(0, ALL_BITS, libc::PR_SET_NAME as u64)],
            &[(0, ALL_BITS, libc::PR_GET_NAME as u64)],
            &[(0, ALL_BITS, libc::PR_SET_TIMERSLACK as u64)],
            &[(0, ALL_BITS, libc::PR_GET_TIMERSLACK as u64)],
            &[(0, ALL_BITS, libc::PR_SET_PDEATHSIG as u64)],
            &[(0, ALL_BITS, libc::PR_SET_DUMPABLE as u64)],
            &[(0, ALL_BITS, libc::PR_GET_DUMPABLE as u64)],
            &[(0, ALL_BITS, libc::PR_SET_NO_NEW_PRIVS as u64)],
            &[(0, ALL_BITS, libc::PR_GET_NO_NEW_PRIVS as u64)],
            &[(0, ALL_BITS, libc::PR_GET_SECCOMP as u64)],
            &[(0, ALL_BITS, libc::PR_CAPBSET_READ as u64)],
            &[(0, ALL_BITS, PR_SET_VMA)],
            &[(0, ALL_BITS, PR_GET_AUXV)],
        ],
    ),
];

const DATAGRAM: u64 = libc::SOCK_DGRAM as u64;

/// A process that asks others looks their names up: by UDP, whose errors it wants to hear.
pub(crate) const NAMES: &[Bounded] = &[
    (
        libc::SYS_socket,
        &[
            &[(0, ALL_BITS, libc::AF_INET as u64), (1, KIND, DATAGRAM)],
            &[(0, ALL_BITS, libc::AF_INET6 as u64), (1, KIND, DATAGRAM)],
        ],
    ),
    (
        libc::SYS_setsockopt,
        &[
            &[(1, ALL_BITS, libc::IPPROTO_IP as u64), (2, ALL_BITS, libc::IP_RECVERR as u64)],
            &[(1, ALL_BITS, libc::IPPROTO_IPV6 as u64), (2, ALL_BITS, libc::IPV6_RECVERR as u64)],
        ],
    ),
];

//! How a process of the laboratory is told to end, how its children follow it, and what else of the system
//! has no safe form: children of the client, memory that is shared, what threads and processes have used.
//!
//! It owns signals. It must never do what a model is about: accepting, reading, writing. A model starts its
//! processes in its own file.
#![allow(unsafe_code)]
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitStatus};
use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use crate::results::Usage;

/// Milliseconds until a server without descriptors or threads looks again: some must have become free.
const REST_MS: i32 = 10;

static ENDING: AtomicBool = AtomicBool::new(false);
/// What a process may be waiting for when it is told to end: its listener, and one socket more.
static WAITED_FOR: [AtomicI32; 2] = [AtomicI32::new(-1), AtomicI32::new(-1)];

/// Whether SIGTERM or SIGINT came.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// On SIGTERM and SIGINT this listener is shut down: whoever waits for it, in whatever way, is woken, and
/// `accept` fails with EINVAL from then on.
///
/// A flag alone would not do. The signal may come between the look at the flag and the call that waits, and
/// then nothing would interrupt it.
pub(crate) fn shut_down_at_the_end(listener: RawFd) {
    WAITED_FOR[0].store(listener, Ordering::SeqCst);
    handle(libc::SIGTERM, end);
    handle(libc::SIGINT, end);
}

/// As [`shut_down_at_the_end`], for the socket this process is about to wait for; -1 when it no longer does.
pub(crate) fn also_shut_down(socket: RawFd) {
    WAITED_FOR[1].store(socket, Ordering::SeqCst);
    if is_ending() {
        // SAFETY: no memory is involved.
        unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
    }
}

/// Calls that wait are interrupted (EINTR) when a child has ended.
pub(crate) fn notice_children() {
    handle(libc::SIGCHLD, nothing);
}

/// Without SA_RESTART: a call that waits fails with EINTR.
fn handle(signal: i32, handler: extern "C" fn(i32)) {
    // SAFETY: a zeroed `sigaction` is a valid one, and handlers do only what is allowed in one.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as *const () as usize;
        libc::sigaction(signal, &action, null_mut());
    }
}

extern "C" fn nothing(_signal: i32) {}

extern "C" fn end(_signal: i32) {
    ENDING.store(true, Ordering::SeqCst);
    // SAFETY: `shutdown` may be called in a handler; errno is put back for the call that was interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        for socket in &WAITED_FOR {
            libc::shutdown(socket.load(Ordering::SeqCst), libc::SHUT_RDWR);
        }
        *libc::__errno_location() = errno;
    }
}

/// Signals that wait to be asked for by [`wait_for_signal`], here and in all threads started after.
pub(crate) fn hold_signals(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: `sigemptyset` makes the set a valid one.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut());
        set
    }
}

/// Waits for one of these signals.
pub(crate) fn wait_for_signal(signals: &libc::sigset_t) -> i32 {
    loop {
        // SAFETY: the set is valid, and nothing is asked to be written.
        let signal = unsafe { libc::sigwaitinfo(signals, null_mut()) };
        if signal > 0 {
            return signal;
        }
    }
}

/// First thing in a new child: it dies of SIGTERM like any program, and with its parent. What it has open is
/// the kernel's to put away.
pub(crate) fn be_child_of(parent: libc::pid_t) {
    // SAFETY: only numbers and a valid set are handed over.
    unsafe {
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
        libc::signal(libc::SIGINT, libc::SIG_DFL);
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        // Told to end, or left alone, before all this was said.
        if is_ending() || libc::getppid() != parent {
            libc::_exit(0);
        }
    }
}

/// A number with a cache line to itself: to count must not make two processors wait for each other.
#[repr(align(64))]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts one.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were counted.
    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// So many counters at zero, in memory that a `fork` does not copy. It lasts as long as the process.
///
/// # Errors
/// Those of mmap(2).
pub(crate) fn shared_counters(count: usize) -> io::Result<&'static [Counter]> {
    // SAFETY: all zeroes are a counter at zero.
    unsafe { shared(count) }
}

/// So many words at zero, in the same kind of memory.
///
/// # Errors
/// Those of mmap(2).
pub(crate) fn shared_words(count: usize) -> io::Result<&'static [AtomicU64]> {
    // SAFETY: all zeroes are a word at zero.
    unsafe { shared(count) }
}

/// All zeroes must be a `T`, and what several processes do with it must be sound.
unsafe fn shared<T>(count: usize) -> io::Result<&'static [T]> {
    let bytes = (count * size_of::<T>()).max(1);
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: new memory, so large, aligned to a page, never unmapped.
    unsafe {
        let memory = libc::mmap(null_mut(), bytes, access, kind, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(slice::from_raw_parts(memory.cast(), count))
    }
}

/// Lets a moment pass, when descriptors or threads have run out and others are to give theirs back.
pub(crate) fn rest() {
    // SAFETY: no descriptors are handed over.
    unsafe { libc::poll(null_mut(), 0, REST_MS) };
}

/// The error number of the last call that failed.
pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Starts a child process that does this and ends. It dies with its parent, and leaves it to its parent to
/// be interrupted by the keys of a terminal.
///
/// # Errors
/// Those of fork(2); EBUSY if this process has other threads: a child would find what they were at half done.
pub(crate) fn fork(life: impl FnOnce()) -> io::Result<Pid> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "this process has threads"));
    }
    let parent = getpid().as_raw_nonzero().get();
    // SAFETY: this process has one thread, so the child finds nothing half done.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            be_child_of(parent);
            // SAFETY: only numbers are handed over.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
            // A panic must not go on in what is the parent's to do.
            let lived = catch_unwind(AssertUnwindSafe(life));
            // SAFETY: the child ends here, and nothing of the parent's is put away twice.
            unsafe { libc::_exit(i32::from(lived.is_err())) }
        }
        child => Pid::from_raw(child).ok_or(io::ErrorKind::Other.into()),
    }
}

/// What the calling thread has used.
pub(crate) fn thread_usage() -> Usage {
    let mut used = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: there is room for one; zeroed it is valid, should the call fail, which it cannot.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, used.as_mut_ptr());
        used.assume_init()
    };
    usage(&used)
}

/// What this command starts is told to end (SIGTERM) when the thread that started it has gone.
pub(crate) fn end_with_us(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: both calls may be made between fork and exec, and get numbers only.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            match libc::getppid() as u32 {
                still if still == parent => Ok(()),
                _ => Err(io::ErrorKind::Interrupted.into()), // it has gone before this was said
            }
        });
    }
}

/// Whether a child of ours has ended, and then what it used with all children that it has reaped.
///
/// # Errors
/// Those of wait4(2).
pub(crate) fn ended(child: Pid) -> io::Result<Option<(ExitStatus, Usage)>> {
    let (mut status, mut used) = (0, MaybeUninit::zeroed());
    let child = child.as_raw_nonzero().get();
    // SAFETY: there is room for both; the usage is valid if nothing is written as well.
    let (waited, used) = unsafe {
        (libc::wait4(child, &raw mut status, libc::WNOHANG, used.as_mut_ptr()), used.assume_init())
    };
    match waited {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some((ExitStatus::from_raw(status), usage(&used)))),
    }
}

fn usage(used: &libc::rusage) -> Usage {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Usage {
        user_s: seconds(used.ru_utime),
        system_s: seconds(used.ru_stime),
        minor_faults: used.ru_minflt as u64,
        major_faults: used.ru_majflt as u64,
        voluntary_switches: used.ru_nvcsw as u64,
        involuntary_switches: used.ru_nivcsw as u64,
    }
}

/// Processor time that a process has used with all its threads, those that have ended included; `None` if it
/// is gone.
pub(crate) fn processor_time_ns(process: Pid) -> Option<u64> {
    // As in the kernel's posix-timers.h: a process's number, inverted, above the kind of clock (by the
    // scheduler, exact).
    let clock = (!process.as_raw_nonzero().get() << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for one time.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (read == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// `bind` to port 0 takes no port yet: `connect` does, so that each peer has all ports of an address.
///
/// # Errors
/// Those of setsockopt(2).
pub(crate) fn choose_port_late(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let (level, option, value) = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1_i32);
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is there, and so long.
    let set =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if set == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(errno())) }
}

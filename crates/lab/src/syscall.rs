//! How a process of the laboratory is told to end, and how its children follow it; memory that they share;
//! processes and threads that do nothing, to be measured.
//!
//! It must never do what a model is about: accepting, reading, writing, starting processes that serve.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

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

/// The same for the socket this process is about to wait for beside its listener; -1 when it no longer does.
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
    let bytes = (count * size_of::<Counter>()).max(1);
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: new memory, so large, aligned to a page, never unmapped; all zeroes are counters at zero.
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

/// Processor time, user and system, of all children that were waited for, and of theirs, in nanoseconds.
pub(crate) fn processor_time_of_ended_children_ns() -> u64 {
    let nanoseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    // SAFETY: there is room for what is written; all zeroes would be valid too.
    unsafe {
        let mut usage: libc::rusage = MaybeUninit::zeroed().assume_init();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime)
    }
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

/// Copies this process, and waits until the copy, which does nothing, has ended.
///
/// # Errors
/// Those of fork(2).
pub(crate) fn fork_and_wait() -> io::Result<()> {
    // SAFETY: the child ends at once; `_exit` may be called whatever other threads were at.
    match unsafe { libc::fork() } {
        // SAFETY: as above.
        0 => unsafe { libc::_exit(0) },
        child => wait(child),
    }
}

/// Starts a process that shares this one's memory, so that nothing is copied, and waits until it has ended.
///
/// # Errors
/// Those of clone(2).
pub(crate) fn clone_and_wait(stack: &mut [u128]) -> io::Result<()> {
    extern "C" fn nothing(_argument: *mut libc::c_void) -> libc::c_int {
        0
    }
    let flags = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the stack is ours, ends at a multiple of 16 bytes, and is not touched before the child ends.
    wait(unsafe { libc::clone(nothing, stack.as_mut_ptr_range().end.cast(), flags, null_mut()) })
}

fn wait(child: libc::pid_t) -> io::Result<()> {
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nobody asks how it ended, so nothing is written.
    while unsafe { libc::waitpid(child, null_mut(), 0) } < 0 {
        if errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Starts a thread that does nothing, and waits until it has ended.
///
/// # Errors
/// Those of pthread_create(3).
pub(crate) fn thread_and_join() -> io::Result<()> {
    extern "C" fn nothing(_argument: *mut libc::c_void) -> *mut libc::c_void {
        null_mut()
    }
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the number of the thread is written before it is read, and joined once.
    unsafe {
        match libc::pthread_create(thread.as_mut_ptr(), null(), nothing, null_mut()) {
            0 => {
                libc::pthread_join(thread.assume_init(), null_mut());
                Ok(())
            }
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

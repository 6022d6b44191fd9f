//! Ending a system call that another thread is in, by a signal that does nothing else.
//!
//! It owns one real-time signal of the process. It must never be used on a thread that has other signals to
//! handle: they are all kept away from it.

use std::mem::MaybeUninit;
use std::{io, ptr};

use rustix::process::{Pid, getpid};
use rustix::thread::gettid;

/// The first real-time signals belong to the C library; debuggers and profilers like the ones after. This is
/// far from both.
const SIGNAL_OFFSET: libc::c_int = 11;

/// Ends whatever system call one thread waits in.
#[derive(Debug, Clone, Copy)]
pub struct Interrupter {
    thread: Pid,
}

impl Interrupter {
    /// For the calling thread. From now on its long system calls end with EINTR when somebody asks for it,
    /// and no other signal of the process is handled on it, so that they end for nothing else.
    ///
    /// # Errors
    /// Those of sigaction(2) and pthread_sigmask(3).
    pub fn for_current_thread() -> io::Result<Self> {
        handle_by_doing_nothing()?;
        let mut mask = MaybeUninit::uninit();
        // SAFETY: `mask` is a place for a signal set; sigfillset initialises it before the others read it.
        let result = unsafe {
            libc::sigfillset(mask.as_mut_ptr());
            libc::sigdelset(mask.as_mut_ptr(), signal());
            libc::pthread_sigmask(libc::SIG_SETMASK, mask.as_ptr(), ptr::null_mut())
        };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        Ok(Self { thread: gettid() })
    }

    /// Ends the system call the thread is in. If it is in none just now nothing happens, so ask again until
    /// the thread has taken notice. A thread that is gone is no error.
    pub fn interrupt(self) {
        let (process, thread) = (getpid().as_raw_nonzero().get(), self.thread.as_raw_nonzero().get());
        // SAFETY: tgkill takes numbers only. It reaches threads of this process alone, where the signal is
        // handled by a function that does nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal()) };
    }
}

fn signal() -> libc::c_int {
    libc::SIGRTMIN() + SIGNAL_OFFSET
}

extern "C" fn nothing(_signal: libc::c_int) {}

/// Without SA_RESTART: the system call must not begin again.
fn handle_by_doing_nothing() -> io::Result<()> {
    // SAFETY: all zeros are a valid sigaction: no flags, an empty mask. The handler does nothing, so it may
    // run at any moment.
    let result = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(signal(), &raw const action, ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_waiting_thread_is_interrupted() {
        let (report, reports) = mpsc::channel();
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || {
            report.send(Interrupter::for_current_thread().unwrap()).unwrap();
            let (nobody_writes, _writer) = rustix::pipe::pipe().unwrap();
            done.send(rustix::io::read(nobody_writes.as_fd(), &mut [0_u8; 1])).unwrap();
        });
        let interrupter = reports.recv().unwrap();
        let outcome = loop {
            interrupter.interrupt();
            if let Ok(outcome) = ended.recv_timeout(Duration::from_millis(1)) {
                break outcome;
            }
        };
        assert_eq!(outcome, Err(rustix::io::Errno::INTR));
        // A thread that is gone.
        interrupter.interrupt();
    }
}

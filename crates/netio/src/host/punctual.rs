//! A thread that runs when it wants to, whatever others do on its processor.
//!
//! It must never be used by a thread that may work for long: nothing else would run there meanwhile.

use std::io;

/// The lowest priority above every ordinary thread (sched(7)).
const PRIORITY: i32 = 1;

/// Puts the calling thread before all ordinary ones (SCHED_RR). Threads it starts are ordinary again.
///
/// # Errors
/// EPERM without CAP_SYS_NICE or a limit RLIMIT_RTPRIO that allows it.
pub fn run_first() -> io::Result<()> {
    // The kernel's sched_param is this number alone. musl refuses the call itself, so the kernel is asked.
    let priority: libc::c_int = PRIORITY;
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the number lives through the call; 0 names the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_put_first_or_told_why_not() {
        std::thread::spawn(|| match run_first() {
            Ok(()) => {
                // SAFETY: 0 names the calling thread.
                let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) } as libc::c_int;
                assert_eq!(policy & libc::SCHED_RR, libc::SCHED_RR);
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        })
        .join()
        .unwrap();
    }
}

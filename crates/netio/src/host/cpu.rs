//! On which processors a thread may run.
//!
//! It owns nothing and must never choose: which worker goes where is decided above.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors this thread may run on, in rising order: what `taskset`, a cgroup or a container left us.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn available_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Ties the calling thread to one processor.
///
/// # Errors
/// EINVAL if there is no such processor, or it is not available to this process.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(rustix::io::Errno::INVAL));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_to_each_available_processor() {
        let available = available_cpus().unwrap();
        assert!(!available.is_empty());
        for cpu in available {
            let pinned = std::thread::spawn(move || {
                pin_current_thread(cpu).unwrap();
                available_cpus().unwrap()
            });
            assert_eq!(pinned.join().unwrap(), [cpu]);
        }
    }

    #[test]
    fn a_processor_that_cannot_be_is_an_error() {
        assert!(pin_current_thread(usize::MAX).is_err());
        assert!(pin_current_thread(CpuSet::MAX_CPU).is_err());
    }
}

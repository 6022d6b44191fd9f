//! What every model is told: where to listen, how many of what, how much work.
//!
//! It must never hold anything that only one model knows.

use std::io;
use std::net::SocketAddr;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Parameters of a model.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// How many connections may wait to be accepted.
    pub backlog: i32,
    /// How many processes or threads a pool has.
    pub pool: usize,
    /// Processor time spent for each request, in nanoseconds, beside what serving costs.
    pub work_ns: u64,
    /// Processors for the models that have one thread per processor.
    pub cpus: Vec<usize>,
    /// Called once, when it listens, with the port taken.
    pub announce: fn(SocketAddr),
}

/// Ties this process, and all that it starts, to these processors.
///
/// # Errors
/// EINVAL if none of them is there for this process.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

//! How many descriptors this process may open, and the wait for one of them.
//!
//! The number must be asked for before a backend is made: rings and tables are sized after it.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one and returns the limit then in force, `u64::MAX` if there is none.
///
/// # Errors
/// Never a failure to raise, which leaves the old limit in force; the signature keeps room for one that
/// matters.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: before.maximum, maximum: before.maximum };
    // Refused for instance when the hard limit is above fs.nr_open.
    let raised = setrlimit(Resource::Nofile, wanted).is_ok();
    let in_force = if raised { wanted.current } else { before.current };
    Ok(in_force.unwrap_or(u64::MAX))
}

/// Waits until something can be written, however long that takes, or an error can be had by trying.
///
/// # Errors
/// EINVAL or ENOMEM, of poll(2).
pub fn await_room(descriptor: impl AsFd) -> io::Result<()> {
    let mut awaited = [PollFd::new(&descriptor, PollFlags::OUT)];
    rustix::io::retry_on_intr(|| poll(&mut awaited, None))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = raise_descriptor_limit().unwrap();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(limit, now.current.unwrap_or(u64::MAX));
        assert_eq!(raise_descriptor_limit().unwrap(), limit);
    }
}

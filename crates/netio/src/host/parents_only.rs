//! Descriptors that a child does not keep. fork(2) copies all of them, so what is held by a descriptor, such
//! as a name or a lock, is held until the last child has ended.
//!
//! In a child such a descriptor shows another file, which holds nothing: its number stays taken, so whoever
//! closes it closes nothing else. The handler in the child must never allocate or lock.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Once, OnceLock};

use rustix::event::{EventfdFlags, eventfd};

/// Descriptors that are looked after: a program has two for each socket of DOSTP. Those beyond are kept by
/// children, as any other.
const PLACES_COUNT: usize = 1_024;

/// The descriptors, and -1 where there is none.
static PLACES: [AtomicI32; PLACES_COUNT] = [const { AtomicI32::new(-1) }; PLACES_COUNT];

/// What children get instead.
static NOTHING: OnceLock<OwnedFd> = OnceLock::new();

/// A descriptor of this process alone.
#[derive(Debug)]
pub struct ParentsOnly {
    descriptor: OwnedFd,
    place: Option<usize>,
}

impl ParentsOnly {
    /// From now on children do not keep this descriptor.
    ///
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        prepare()?;
        let number = descriptor.as_raw_fd();
        let take = |place: &AtomicI32| {
            place.compare_exchange(-1, number, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        Ok(Self { place: PLACES.iter().position(take), descriptor })
    }
}

impl AsFd for ParentsOnly {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for ParentsOnly {
    fn drop(&mut self) {
        // Before the number is another one's. In a child the place was given up already.
        let number = self.descriptor.as_raw_fd();
        if let Some(place) = self.place {
            PLACES[place].compare_exchange(number, -1, Ordering::AcqRel, Ordering::Relaxed).ok();
        }
    }
}

/// What a child needs, once.
fn prepare() -> io::Result<()> {
    if NOTHING.get().is_none() {
        let nothing = eventfd(0, EventfdFlags::CLOEXEC)?;
        NOTHING.set(nothing).ok();
    }
    static AT_FORK: Once = Once::new();
    // SAFETY: the handler may run in a child at any time: it makes system calls and touches atomics alone.
    AT_FORK.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    });
    Ok(())
}

extern "C" fn forked() {
    let Some(nothing) = NOTHING.get() else { return };
    for place in &PLACES {
        let number = place.swap(-1, Ordering::AcqRel);
        if number >= 0 {
            // SAFETY: the number is that of an open descriptor which its owner has given to this file:
            // whoever uses it meanwhile meets a file that holds nothing.
            unsafe { libc::dup3(nothing.as_raw_fd(), number, libc::O_CLOEXEC) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_child_does_not_hold_what_its_parent_has_given_up() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (mut child_lives, child_ends) = io::pipe().unwrap();
        let kept = ParentsOnly::new(writer.into()).unwrap();
        // SAFETY: the child calls nothing but read(2), close(2) and _exit(2).
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above; the descriptors are those of the pipes, and the byte can be written.
            unsafe {
                libc::close(child_ends.as_raw_fd());
                let mut byte = 0_u8;
                libc::read(child_lives.as_raw_fd(), (&raw mut byte).cast(), 1);
                libc::_exit(0);
            }
        }
        assert!(child > 0);
        drop(kept);
        // The end of the pipe comes although the child lives: it waits for the other pipe.
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
        drop(child_ends);
        let mut status = 0;
        // SAFETY: the status lives for the length of the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((status, child_lives.read(&mut [0; 1]).unwrap()), (0, 0));
    }
}

//! Memory shared with the kernel, of a descriptor or of nothing, mapped as long as this value lives.
//!
//! It must never give out a place beyond its end.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping that is read and written by both sides.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value, not to a thread; whoever reads it agrees with the kernel about
// who may write by atomics.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps so many bytes of a descriptor, from that offset.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(super) fn of_descriptor(descriptor: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses a free address, so no other memory is touched.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                descriptor,
                offset,
            )
        }?;
        Self::at_start(start.cast(), length)
    }

    /// Maps so many bytes of fresh memory, for a kernel that is told of it later.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn anonymous(length: usize) -> io::Result<Self> {
        let (rights, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::POPULATE);
        // SAFETY: the kernel chooses a free address, so no other memory is touched.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, rights, kind) }?;
        Self::at_start(start.cast(), length)
    }

    fn at_start(start: *mut u8, length: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The place of so many bytes at an offset.
    ///
    /// # Panics
    /// If they do not lie within the mapping.
    pub(super) fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= self.length && length <= self.length - offset, "within the mapping");
        // SAFETY: the offset lies within the mapping, as was just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: these bytes were mapped when this value was made, and nobody else unmaps them.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(result.is_ok());
    }
}

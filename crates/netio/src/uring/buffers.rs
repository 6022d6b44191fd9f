//! Receive buffers that the kernel picks from by itself (a provided buffer ring).
//!
//! Owns the memory of the buffers and of the ring that lists them. It must never hand out a buffer that the
//! kernel may write to. The memory is reserved at once but touched only as far as the load needs it: the
//! kernel is given a few buffers at first, and twice as many each time it ran out, so that a worker that
//! holds only idle connections keeps next to nothing.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Size of one buffer in bytes: a request's head fits, a page is not shared.
pub(crate) const BUFFER_SIZE_BYTES: usize = 4096;

/// The only buffer group of a ring.
pub(crate) const BUFFER_GROUP: u16 = 0;

/// How many buffers are given to the kernel before it has asked for more.
const BUFFERS_AT_FIRST: u16 = 16;

/// A private anonymous mapping.
struct Mapping {
    address: NonNull<u8>,
    length_bytes: usize,
}

impl Mapping {
    fn new(length_bytes: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let address = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { address, length_bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone, and its owner drops it after the ring has gone (see `Ring`).
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length_bytes) };
    }
}

/// The buffers of one ring.
pub(crate) struct Buffers {
    entries: Mapping,
    memory: Mapping,
    mask: u16,
    tail: u16,
    /// Buffers in use at all: with the kernel or with the engine.
    provided: u16,
    /// Buffers with the engine.
    held: u16,
}

impl Buffers {
    /// Reserves at most `buffers_max` buffers (a power of two up to 32768) and registers them with the ring.
    ///
    /// # Errors
    /// When memory is short or the kernel knows no buffer rings.
    pub(crate) fn register(ring: &IoUring, buffers_max: u16) -> io::Result<Self> {
        assert!(buffers_max.is_power_of_two());
        let count = usize::from(buffers_max);
        let entries = Mapping::new(count * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(count * BUFFER_SIZE_BYTES)?;
        let address = entries.address.as_ptr() as u64;
        // SAFETY: the entries are a zeroed, page-aligned mapping of the announced length, and `Ring` drops
        // the ring before its buffers.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, buffers_max, BUFFER_GROUP, 0) }?;
        let mut buffers = Self { entries, memory, mask: buffers_max - 1, tail: 0, provided: 0, held: 0 };
        buffers.provide(BUFFERS_AT_FIRST.min(buffers_max));
        Ok(buffers)
    }

    /// The kernel ran out: gives it as many buffers again as it has, up to the reserve.
    pub(crate) fn grow(&mut self) {
        let target = self.provided.saturating_mul(2).min(self.mask + 1);
        self.provide(target);
    }

    /// Whether the kernel may have a buffer to receive into.
    #[inline]
    pub(crate) fn available(&self) -> bool {
        self.held < self.provided
    }

    /// The kernel has filled a buffer: it is with the engine until given back.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.held += 1;
    }

    /// Gives a buffer back to the kernel.
    #[inline]
    pub(crate) fn give_back(&mut self, buffer: u16) {
        assert!(self.held > 0 && buffer < self.provided);
        self.held -= 1;
        self.append(buffer);
    }

    /// The first `length` bytes of a buffer the kernel has filled.
    #[inline]
    pub(crate) fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        assert!(buffer <= self.mask && length <= BUFFER_SIZE_BYTES);
        // SAFETY: inside the mapping by the line above; the kernel does not write to a buffer between its
        // completion and `give_back`, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.address(buffer), length) }
    }

    fn provide(&mut self, target: u16) {
        while self.provided < target {
            let buffer = self.provided;
            self.provided += 1;
            self.append(buffer);
        }
    }

    #[inline]
    fn address(&self, buffer: u16) -> *mut u8 {
        // SAFETY: callers give buffers within the mask, so the offset stays within the mapping.
        unsafe { self.memory.address.as_ptr().add(usize::from(buffer) * BUFFER_SIZE_BYTES) }
    }

    #[inline]
    fn append(&mut self, buffer: u16) {
        let base = self.entries.address.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the index is masked to the registered length. There are never more entries than buffers, so
        // the place is not one the kernel still has to read. The fields are written one by one: the tail of
        // the ring lies in the reserved field of the first entry.
        unsafe {
            let entry = &mut *base.add(usize::from(self.tail & self.mask));
            entry.set_addr(self.address(buffer) as u64);
            entry.set_len(BUFFER_SIZE_BYTES as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry of our mapping, is aligned, and only we write it; the
        // kernel reads it, hence the release.
        unsafe {
            let tail = BufRingEntry::tail(base).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

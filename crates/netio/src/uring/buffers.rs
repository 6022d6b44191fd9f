//! Receive buffers that the kernel picks from by itself (a provided buffer ring).
//!
//! Owns the memory of the buffers and of the ring that lists them. It must never hand out a buffer that the
//! kernel may write to. The memory is reserved at once but touched only as far as the load needs it: the
//! kernel is given a few buffers at first, and twice as many each time it ran out, so that a worker that
//! holds only idle connections keeps next to nothing. What a burst needed is given back afterwards (see
//! bursts.rs).

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

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
    /// How many are to stay in use. Above that a buffer that comes back is put aside.
    kept: u16,
    /// Buffers with the engine.
    held: u16,
    /// Buffers that are not in use, but were.
    aside: Vec<u16>,
    /// From here on none was ever used.
    fresh: u16,
    /// The tail when it was looked at last, and by how much it has moved between two looks at most.
    tail_measured: u16,
    peak: u16,
    /// How many connections found none since the last wait, and how many buffers there were before.
    missing: u16,
    had: u16,
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
        let mut buffers = Self {
            entries,
            memory,
            mask: buffers_max - 1,
            tail: 0,
            provided: 0,
            kept: BUFFERS_AT_FIRST.min(buffers_max),
            held: 0,
            aside: Vec::new(),
            fresh: 0,
            tail_measured: 0,
            peak: 0,
            missing: 0,
            had: 0,
        };
        buffers.provide();
        Ok(buffers)
    }

    /// The kernel had none for a connection: gives it as many buffers again as it had, or as many as were
    /// missing, up to the reserve.
    pub(crate) fn grow(&mut self) {
        if self.missing == 0 {
            self.had = self.provided;
        }
        self.missing = self.missing.saturating_add(1);
        let needed = self.had.saturating_add(self.missing.max(self.had)).checked_next_power_of_two();
        self.kept = needed.unwrap_or(u16::MAX).clamp(self.provided, self.mask + 1);
        self.provide();
    }

    /// How many are to stay in use.
    pub(crate) fn kept(&self) -> u16 {
        self.kept
    }

    /// Whether there are more than at first.
    pub(crate) fn is_grown(&self) -> bool {
        self.kept > BUFFERS_AT_FIRST
    }

    /// From now on it is measured how many are needed between two waits.
    pub(crate) fn begin_measure(&mut self) {
        self.missing = 0;
        self.tail_measured = self.tail;
        self.peak = 0;
    }

    /// Called before each wait: as many were needed as have come back since.
    pub(crate) fn measure(&mut self) {
        self.peak = self.peak.max(self.tail.wrapping_sub(self.tail_measured));
        self.tail_measured = self.tail;
    }

    /// Keeps twice as many as were needed, and gives the memory of all of them back to the system: those the
    /// kernel has are mapped anew when it fills them. No completion may wait that names a buffer. Returns
    /// whether it could be done.
    pub(crate) fn give_back_unneeded(&mut self) -> bool {
        if self.held > 0 {
            return false;
        }
        let needed = self.peak.saturating_mul(2).max(BUFFERS_AT_FIRST).checked_next_power_of_two();
        if let Some(needed) = needed.filter(|needed| *needed < self.kept) {
            self.kept = needed;
            self.forget(0, usize::from(self.mask) + 1);
        }
        true
    }

    /// Gives memory back to the system.
    fn forget(&self, first: u16, count: usize) {
        // SAFETY: the range lies within our mapping, which is private and anonymous. No slice of it is lent:
        // no buffer in it is with the engine, and the kernel writes to it by its address alone.
        let _ =
            unsafe { madvise(self.address(first).cast(), count * BUFFER_SIZE_BYTES, Advice::LinuxDontNeed) };
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
        assert!(self.held > 0 && buffer < self.fresh);
        self.held -= 1;
        if self.provided > self.kept {
            return self.put_aside(buffer);
        }
        self.append(buffer);
    }

    #[cold]
    fn put_aside(&mut self, buffer: u16) {
        self.provided -= 1;
        self.aside.push(buffer);
        self.forget(buffer, 1);
    }

    /// The first `length` bytes of a buffer the kernel has filled.
    #[inline]
    pub(crate) fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        assert!(buffer <= self.mask && length <= BUFFER_SIZE_BYTES);
        // SAFETY: inside the mapping by the line above; the kernel does not write to a buffer between its
        // completion and `give_back`, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.address(buffer), length) }
    }

    /// The first `length` bytes of a buffer the kernel has filled, to be changed where they stand.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, buffer: u16, length: usize) -> &mut [u8] {
        assert!(buffer <= self.mask && length <= BUFFER_SIZE_BYTES);
        // SAFETY: as in `bytes`; and nobody else has a slice of it, since it borrows `self` alone.
        unsafe { std::slice::from_raw_parts_mut(self.address(buffer), length) }
    }

    fn provide(&mut self) {
        while self.provided < self.kept {
            let buffer = self.aside.pop().unwrap_or(self.fresh);
            self.fresh = self.fresh.max(buffer + 1);
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

#[cfg(test)]
impl Buffers {
    /// How many of the buffers have memory.
    pub(crate) fn resident(&self) -> usize {
        let count = usize::from(self.mask) + 1;
        let mut pages = vec![0u8; count];
        // SAFETY: the mapping has as many pages as there are places for the answer.
        let result =
            unsafe { libc::mincore(self.memory.address.as_ptr().cast(), count * 4096, pages.as_mut_ptr()) };
        assert_eq!(result, 0);
        pages.iter().filter(|page| **page & 1 != 0).count()
    }
}

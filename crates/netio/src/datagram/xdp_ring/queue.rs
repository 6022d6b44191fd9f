//! The queues of an AF_XDP socket: rings of entries in memory shared with the kernel, one side puts and the
//! other takes.
//!
//! It owns the order in which numbers and entries are written. It must never know what an entry means.

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::xdp::XdpRingOffset;

use super::super::mapping::Mapping;

/// A ring in shared memory. `produced` and `consumed` count without end; their low bits are the place.
#[derive(Debug)]
struct Ring<T> {
    memory: Mapping,
    produced: usize,
    consumed: usize,
    entries: usize,
    count: u32,
    entry: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Maps a ring of `count` entries, a power of two, that was made before.
    fn map(socket: BorrowedFd<'_>, page: u64, at: XdpRingOffset, count: u32) -> io::Result<Self> {
        let (produced, consumed, entries) = (at.producer as usize, at.consumer as usize, at.desc as usize);
        let memory = Mapping::of_descriptor(socket, page, entries + count as usize * size_of::<T>())?;
        Ok(Self { memory, produced, consumed, entries, count, entry: PhantomData })
    }

    fn number(&self, offset: usize) -> &AtomicU32 {
        let at = self.memory.at(offset, size_of::<AtomicU32>());
        // SAFETY: the four bytes lie within the mapping, which lives as long as this value, and the kernel
        // aligns them; both sides touch them as an atomic only.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    fn produced(&self) -> &AtomicU32 {
        self.number(self.produced)
    }

    fn consumed(&self) -> &AtomicU32 {
        self.number(self.consumed)
    }

    /// Where the entry of this number stands.
    fn entry(&self, number: u32) -> *mut T {
        let place = (number & (self.count - 1)) as usize;
        self.memory.at(self.entries + place * size_of::<T>(), size_of::<T>()).cast()
    }
}

/// A ring that this side fills: it owns the number of what was produced.
#[derive(Debug)]
pub(super) struct Giving<T> {
    ring: Ring<T>,
    next: u32,
}

impl<T: Copy> Giving<T> {
    /// Maps a ring that is empty.
    pub(super) fn map(socket: BorrowedFd<'_>, page: u64, at: XdpRingOffset, count: u32) -> io::Result<Self> {
        let ring = Ring::map(socket, page, at, count)?;
        let next = ring.produced().load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Writes an entry, which the kernel sees after [`Giving::publish`].
    ///
    /// # Panics
    /// If the ring is full: whoever gives has no more entries than the ring has places.
    pub(super) fn put(&mut self, entry: T) {
        assert!(self.untaken() < self.ring.count, "a place in the ring");
        // SAFETY: the place lies within the mapping and is aligned for the entry, as the kernel laid it out.
        // The kernel does not read it before it is published.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
    }

    /// Shows the kernel all that was put.
    pub(super) fn publish(&self) {
        self.ring.produced().store(self.next, Ordering::Release);
    }

    /// Entries that the kernel has not taken yet.
    pub(super) fn untaken(&self) -> u32 {
        self.next.wrapping_sub(self.ring.consumed().load(Ordering::Acquire))
    }
}

/// A ring that the kernel fills: this side owns the number of what was consumed.
#[derive(Debug)]
pub(super) struct Taking<T> {
    ring: Ring<T>,
    next: u32,
}

impl<T: Copy> Taking<T> {
    /// Maps a ring that is empty.
    pub(super) fn map(socket: BorrowedFd<'_>, page: u64, at: XdpRingOffset, count: u32) -> io::Result<Self> {
        let ring = Ring::map(socket, page, at, count)?;
        let next = ring.consumed().load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Entries that wait.
    pub(super) fn waiting(&self) -> u32 {
        self.ring.produced().load(Ordering::Acquire).wrapping_sub(self.next)
    }

    /// Reads the next of the entries that wait; its place is the kernel's again after [`Taking::release`].
    ///
    /// # Panics
    /// If none waits.
    pub(super) fn take(&mut self) -> T {
        assert!(self.waiting() > 0, "an entry that waits");
        // SAFETY: the place lies within the mapping and is aligned for the entry, as the kernel laid it out.
        // The kernel has written the entry before it counted it, and does not write it again before it is
        // given back.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        entry
    }

    /// Gives the places of all that was taken back to the kernel.
    pub(super) fn release(&self) {
        self.ring.consumed().store(self.next, Ordering::Release);
    }
}

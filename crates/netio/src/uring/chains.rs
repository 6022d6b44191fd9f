//! A chain that the kernel took only in part.
//!
//! The kernel may stop early, when it has no memory for the next operation. The first of two linked
//! operations then runs alone, as if nothing followed, and the second would be one of its own: a close beside
//! the send it was to follow. Owns a view of the submission queue's entries, to change that second one before
//! the kernel sees it: it becomes a cancel of the first, so that its completion says whether the first is
//! over. It must never touch an entry that was taken.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use io_uring::squeue::Entry;
use io_uring::types::{CancelBuilder, Timespec};
use io_uring::{IoUring, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::token::DIVIDED;

/// Where the kernel lets the entries be mapped (`IORING_OFF_SQES`).
const ENTRIES_OFFSET: u64 = 0x1000_0000;
/// Where the flags of an entry stand, and its user data.
const FLAGS_OFFSET: usize = 1;
const USER_DATA_OFFSET: usize = 32;
/// The next entry is linked to this one (`IOSQE_IO_LINK`).
const LINK: u8 = 1 << 2;

const _: () = assert!(size_of::<Entry>() == 64);

/// The entries of a submission queue.
pub(super) struct Entries {
    address: NonNull<Entry>,
    count: u32,
    /// How many entries the kernel has ever taken, modulo 2^32.
    taken: u32,
}

impl Entries {
    /// A further view of the ring's entries.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn of(ring: &IoUring) -> io::Result<Self> {
        let count = ring.params().sq_entries();
        assert!(count.is_power_of_two());
        // SAFETY: the ring is open for as long as it is borrowed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        // SAFETY: a new mapping at an address of the kernel's choice, of pages that the ring shares.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                count as usize * size_of::<Entry>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                descriptor,
                ENTRIES_OFFSET,
            )
        }?;
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { address, count, taken: 0 })
    }

    /// The kernel took so many.
    #[inline]
    pub(super) fn note_taken(&mut self, count: u32) {
        self.taken = self.taken.wrapping_add(count);
    }

    /// The kernel left some: if the last one it took is linked to the first one it left, that becomes a
    /// cancel of it. To be called before the kernel is entered again.
    #[cold]
    pub(super) fn mend_divided_chain(&mut self) {
        let (last, next) = (self.entry(self.taken.wrapping_sub(1)), self.entry(self.taken));
        // SAFETY: both stand within the mapping, which ends with `self`. Nothing was pushed since the kernel
        // took the last one, so its memory is unchanged, and the kernel reads the next one only when it is
        // entered again.
        unsafe {
            if last.cast::<u8>().add(FLAGS_OFFSET).read() & LINK == 0 {
                return;
            }
            let first = last.cast::<u8>().add(USER_DATA_OFFSET).cast::<u64>().read();
            let second = next.cast::<u8>().add(USER_DATA_OFFSET).cast::<u64>().read();
            next.write(cancel(first, second));
        }
    }

    fn entry(&self, position: u32) -> *mut Entry {
        // SAFETY: the index is below the number of entries, so the address is within the mapping.
        unsafe { self.address.as_ptr().add((position & (self.count - 1)) as usize) }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone: the ring has its own.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.count as usize * size_of::<Entry>()) };
    }
}

/// Cancels an operation in the place of another, as whose its completion comes.
pub(super) fn cancel(what: u64, instead_of: u64) -> Entry {
    opcode::AsyncCancel2::new(CancelBuilder::user_data(what)).build().user_data(instead_of | DIVIDED)
}

/// How long what could not be cancelled is given to end.
static MOMENT: Timespec = Timespec::new().nsec(5_000_000);

/// Lets a moment pass in the place of an operation.
pub(super) fn moment(instead_of: u64) -> Entry {
    opcode::Timeout::new(&raw const MOMENT).build().user_data(instead_of | DIVIDED)
}

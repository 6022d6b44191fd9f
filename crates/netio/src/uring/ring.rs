//! A ring of io_uring: setting it up, putting operations in, entering the kernel, taking completions out.
//!
//! Owns the ring, its table of direct descriptors (only how many are in use; the kernel picks which) and its
//! receive buffers. It must never know what an operation means. Order of calls: `push` any number of times,
//! `enter`, `take_completions` until nothing comes.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, squeue};

use super::buffers::Buffers;
use super::chains::Entries;
use super::features::Features;
use super::placement::TableSize;
use crate::shortage;

/// Entries of the submission queue. More operations in one turn are handed over in between.
const SUBMISSIONS_MAX: u32 = 256;

/// Entries of the completion queue. What does not fit is kept by the kernel, at some cost.
const COMPLETIONS_MAX: u32 = 4096;

/// Sizes of one ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingLimits {
    /// Direct descriptors; at most RLIMIT_NOFILE.
    pub(crate) table: TableSize,
    /// Receive buffers at most; a power of two.
    pub(crate) buffers: u16,
    /// The worker does not wait in this ring but is told by another that it has work.
    pub(crate) watched: bool,
}

/// A ring with its table and buffers. The fields are dropped in this order: the ring before its buffers.
pub(crate) struct Ring {
    uring: IoUring,
    /// Receive buffers.
    pub(crate) buffers: Buffers,
    registered: Option<u32>,
    flags_always: u32,
    /// Operations in the queue that the kernel has not taken.
    pushed: u32,
    entries: Entries,
    /// Chains that found no room in the queue, in order.
    waiting: VecDeque<Box<[squeue::Entry]>>,
    /// The kernel was short of something when it was entered last.
    short: bool,
    failure: Option<io::Error>,
    /// How many connections may be accepted in this ring.
    accepted_max: u32,
    /// How many are.
    pub(crate) accepted: u32,
    /// How many single accepts are with the kernel, each of which may use one more.
    pub(crate) claims: u32,
}

impl Ring {
    /// Sets a ring up. To be called on the thread that will use it.
    ///
    /// # Errors
    /// EMFILE if the table is larger than RLIMIT_NOFILE; ENOMEM; EPERM.
    pub(crate) fn new(features: &Features, limits: RingLimits) -> io::Result<Self> {
        let uring = build(features, SUBMISSIONS_MAX, COMPLETIONS_MAX, limits.watched)?;
        let TableSize { accepted, connected, .. } = limits.table;
        uring.submitter().register_files_sparse(limits.table.descriptors())?;
        if accepted > 0 && connected > 0 {
            register_file_range(uring.as_raw_fd(), accepted)?;
        }
        let buffers = Buffers::register(&uring, limits.buffers)?;
        let entries = Entries::of(&uring)?;
        let mut flags_always = EnterFlags::GETEVENTS;
        if uring.params().is_feature_no_iowait() {
            // Waiting for a peer is being idle, not waiting for a disk.
            flags_always.insert(EnterFlags::NO_IOWAIT);
        }
        let registered = register_ring_descriptor(uring.as_raw_fd()).ok();
        if registered.is_some() {
            flags_always.insert(EnterFlags::REGISTERED_RING);
        }
        Ok(Self {
            uring,
            buffers,
            registered,
            flags_always: flags_always.bits(),
            pushed: 0,
            entries,
            waiting: VecDeque::new(),
            short: false,
            failure: None,
            accepted_max: accepted,
            accepted: 0,
            claims: 0,
        })
    }

    /// How many connections may still be accepted, accepts under way counted as done.
    pub(crate) fn free(&self) -> u32 {
        (self.accepted_max - self.accepted).saturating_sub(self.claims)
    }

    /// From now on the event is signalled when this ring has work.
    ///
    /// # Errors
    /// ENOMEM.
    pub(crate) fn signal_work(&self, event: &OwnedFd) -> io::Result<()> {
        self.uring.submitter().register_eventfd(event.as_raw_fd())
    }

    /// Puts one operation into the queue; when it is full, hands the queue to the kernel first.
    ///
    /// The memory the operation points to is owned by `Uring` until its completion has come.
    #[inline]
    pub(crate) fn push(&mut self, entry: &squeue::Entry) {
        self.push_chain(std::slice::from_ref(entry));
    }

    /// Puts operations that are linked to each other into the queue, as a whole. A kernel that stops early
    /// may still divide them: see chains.rs.
    #[inline]
    pub(crate) fn push_chain(&mut self, entries: &[squeue::Entry]) {
        if !self.waiting.is_empty() || !self.push_now(entries) {
            self.push_later(entries);
        }
    }

    /// Whether operations wait to be handed over.
    #[inline]
    pub(crate) fn has_submissions(&self) -> bool {
        self.pushed > 0 || !self.waiting.is_empty()
    }

    /// Whether the ring has to be entered again soon, though nothing happens in it.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.short || self.has_submissions()
    }

    /// Hands over what was pushed, lets the kernel work, and waits for a completion until the timeout is
    /// over. Where the kernel is short of memory nothing is lost: the wait is short, and what was not taken
    /// is offered again the next time.
    ///
    /// # Errors
    /// What the worker cannot go on after: the kernel lost completions.
    pub(crate) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut entered = Ok(());
        while !self.waiting.is_empty() && entered.is_ok() {
            entered = self.system_call(0, None).and_then(|()| self.push_waiting());
        }
        entered = entered.and_then(|()| match timeout {
            Some(Duration::ZERO) => self.system_call(0, None),
            Some(timeout) => self.system_call(1, Some(timeout)),
            None => self.system_call(1, None),
        });
        match entered {
            Ok(()) => {
                self.short = false;
                Ok(())
            }
            Err(error) => self.stand(error, timeout),
        }
    }

    /// Hands over what was pushed, in the middle of a turn. What fails is reported by the next `enter`.
    pub(crate) fn hand_over(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.enter(Some(Duration::ZERO))
        {
            self.fail(error);
        }
    }

    /// Remembers what the worker cannot go on after; the next `enter` reports it.
    #[cold]
    pub(crate) fn fail(&mut self, error: io::Error) {
        self.failure = Some(error);
    }

    /// Copies completions out, as many as fit into the batch's spare room.
    #[inline]
    pub(crate) fn take_completions(&mut self, batch: &mut Vec<cqueue::Entry>) {
        let taken = self.uring.completion().fill(batch.spare_capacity_mut()).len();
        // SAFETY: `fill` has initialized so many entries at the start of the spare room.
        unsafe { batch.set_len(batch.len() + taken) };
    }

    /// Whether a watched ring has completions to be taken, or work that needs another `enter`.
    pub(crate) fn has_work(&mut self) -> bool {
        let submission = self.uring.submission();
        let pending = submission.taskrun() || submission.cq_overflow();
        drop(submission);
        pending || !self.uring.completion().is_empty()
    }

    /// Whether no completion waits that could name a receive buffer. Sure only with deferred task run, where
    /// none comes between two calls of `enter`.
    pub(crate) fn is_quiet(&mut self) -> bool {
        !self.uring.submission().cq_overflow() && self.uring.completion().is_empty()
    }

    /// Ends every operation, so that the kernel uses no memory of ours afterwards. Returns whether that is
    /// sure.
    pub(crate) fn cancel_all(&mut self) -> bool {
        let timeout = Timespec::new().sec(1);
        let _ = self.system_call(0, None);
        let cancelled =
            self.uring.submitter().register_sync_cancel(Some(timeout), CancelBuilder::any().all());
        let _ = self.system_call(0, None);
        match cancelled {
            Ok(()) => true,
            Err(error) => error.raw_os_error() == Some(libc::ENOENT),
        }
    }

    #[inline]
    fn push_now(&mut self, entries: &[squeue::Entry]) -> bool {
        // SAFETY: every buffer, header and descriptor named in an entry is kept by `Uring` (in its pool of
        // sends, its buffers, its listeners) until the completion of the entry was taken out; addresses and
        // descriptors read at the hand-over alone (in its passages) until then.
        let pushed = unsafe { self.uring.submission().push_multiple(entries) }.is_ok();
        self.pushed += if pushed { entries.len() as u32 } else { 0 };
        pushed
    }

    /// The queue is full: hands it over. What finds no room even then waits outside.
    #[cold]
    fn push_later(&mut self, entries: &[squeue::Entry]) {
        if self.waiting.is_empty() {
            self.hand_over();
            if self.push_now(entries) {
                return;
            }
        }
        self.waiting.push_back(entries.into());
    }

    /// Puts into the queue what there is room for now.
    ///
    /// # Errors
    /// ENOMEM if that is nothing.
    fn push_waiting(&mut self) -> io::Result<()> {
        let mut outcome = Err(io::Error::from_raw_os_error(libc::ENOMEM));
        while let Some(entries) = self.waiting.pop_front() {
            if !self.push_now(&entries) {
                self.waiting.push_front(entries);
                return outcome;
            }
            outcome = Ok(());
        }
        outcome
    }

    /// The kernel could not be entered. Waits a moment if it is short of something and there is nothing else
    /// to do.
    #[cold]
    fn stand(&mut self, error: io::Error, timeout: Option<Duration>) -> io::Result<()> {
        match error.raw_os_error() {
            Some(libc::EINTR | libc::ETIME) => Ok(()),
            // EAGAIN: no memory for an operation. EBUSY: completions have to be taken out first.
            Some(libc::ENOMEM | libc::EAGAIN | libc::EBUSY) => {
                self.short = true;
                if self.uring.completion().is_empty() {
                    shortage::rest(timeout);
                }
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn system_call(&mut self, wait_for: u32, timeout: Option<Duration>) -> io::Result<()> {
        self.offer(self.pushed, wait_for, timeout)
    }

    /// Enters the kernel with so many of the operations in the queue.
    pub(super) fn offer(&mut self, count: u32, wait_for: u32, timeout: Option<Duration>) -> io::Result<()> {
        let timespec = timeout.map(Timespec::from);
        let mut arguments = SubmitArgs::new();
        let mut flags = self.flags_always;
        let mut address = std::ptr::null();
        if let Some(timespec) = &timespec {
            arguments = arguments.timespec(timespec);
            flags |= EnterFlags::EXT_ARG.bits();
            address = &raw const arguments;
        }
        let descriptor = self.registered.map_or(self.uring.as_raw_fd(), |index| index as i32);
        // SAFETY: the descriptor (or its registered index) is this ring's; the argument lives through the
        // call and is of the announced length; what the queued operations point to is covered at
        // `push_chain`.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                descriptor,
                count,
                wait_for,
                flags,
                address,
                size_of::<SubmitArgs<'_, '_>>(),
            )
        };
        if taken < 0 {
            return Err(io::Error::last_os_error());
        }
        self.pushed -= taken as u32;
        self.entries.note_taken(taken as u32);
        if self.pushed > 0 && taken > 0 {
            self.entries.mend_divided_chain();
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Some(index) = self.registered {
            unregister_ring_descriptor(self.uring.as_raw_fd(), index);
        }
    }
}

/// Sets up a ring with what the features allow.
///
/// # Errors
/// EINVAL for a flag the kernel does not know, EPERM, ENOSYS, ENOMEM.
pub(crate) fn build(
    features: &Features,
    submissions: u32,
    completions: u32,
    watched: bool,
) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    if watched && features.defer_taskrun {
        builder.setup_taskrun_flag();
    }
    builder.dontfork().setup_clamp().setup_cqsize(completions);
    if features.submit_all {
        builder.setup_submit_all();
    }
    if features.coop_taskrun {
        builder.setup_coop_taskrun();
    }
    if features.single_issuer {
        builder.setup_single_issuer();
    }
    if features.defer_taskrun {
        builder.setup_defer_taskrun();
    }
    if features.no_sqarray {
        builder.setup_no_sqarray();
    }
    builder.build(submissions)
}

const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;
const REGISTER_FILE_ALLOC_RANGE: u32 = 25;

/// The kernel's `struct io_uring_file_index_range`.
#[repr(C)]
struct FileRange {
    offset: u32,
    length: u32,
    reserved: u64,
}

/// Where the kernel chooses a direct descriptor, it chooses one of the first `count` from now on.
fn register_file_range(ring: i32, count: u32) -> io::Result<()> {
    let range = FileRange { offset: 0, length: count, reserved: 0 };
    // SAFETY: the argument is one range structure that lives through the call and is only read.
    let result = unsafe {
        libc::syscall(libc::SYS_io_uring_register, ring, REGISTER_FILE_ALLOC_RANGE, &raw const range, 0u32)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The kernel's `struct io_uring_rsrc_update`.
#[repr(C)]
struct RingDescriptorUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// Saves the look-up of the descriptor in every entry into the kernel. Returns the index to use in its place.
fn register_ring_descriptor(ring: i32) -> io::Result<u32> {
    let mut update = RingDescriptorUpdate { offset: u32::MAX, reserved: 0, data: ring as u64 };
    // SAFETY: the argument is one update structure that lives through the call; the kernel writes its offset.
    let result =
        unsafe { libc::syscall(libc::SYS_io_uring_register, ring, REGISTER_RING_FDS, &raw mut update, 1u32) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(update.offset) }
}

/// Must be done before the ring is dropped: the registration keeps it, and all its connections, alive.
fn unregister_ring_descriptor(ring: i32, index: u32) {
    let update = RingDescriptorUpdate { offset: index, reserved: 0, data: 0 };
    // SAFETY: the argument is one update structure that lives through the call. A failure only delays the end
    // of the ring to the end of its thread.
    unsafe { libc::syscall(libc::SYS_io_uring_register, ring, UNREGISTER_RING_FDS, &raw const update, 1u32) };
}

//! Sending parts of files: from the page cache by steps where a normal descriptor of the connection can be
//! had, else copied through memory.
//!
//! Rule 1: one step a file a turn, so that a file never holds up the connections beside it. Rule 2: never
//! wait for a disk: a step finds cold pages out, and then the warming threads, or for copied parts the ring
//! itself, read them; where nothing tells what is cold, those threads read both, and look at the stamp. Rule
//! 3: the normal descriptor lives only as long as the send, and is non-blocking only while steps are taken.
//! Rule 4: a file that is no longer what was announced fails with ESTALE before its last byte.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::types::{Fd, TimeoutFlags, Timespec};
use rustix::io::Errno;

use super::slots::{CLOSING, NO_SEND, READING, SENDING};
use super::state::Uring;
use super::token::{Operation, unpack};
use crate::file_send::{DRAIN_RETRY_MS_MAX, FileStep, Missing, PIECE_BYTES, read};
use crate::file_stamp::stamp;
use crate::warming::Done;
use crate::{Completion, Slot};

/// Parts up to this length are copied: cheaper than a descriptor.
const COPIED_BYTES_MAX: u64 = 256 * 1024;

impl Uring {
    /// Starts with the part of a file that is next.
    pub(crate) fn start_file(&mut self, slot: Slot) {
        let send = self.connections.slots.get(slot).send;
        let in_flight = self.connections.in_flight.get(send);
        let Some(length) = in_flight.file_part().map(|part| part.length_bytes) else {
            unreachable!("a file is next");
        };
        if length == 0 {
            in_flight.finish_file_part();
            return self.go_on_sending(slot);
        }
        let job = in_flight.file.get_or_insert_default();
        if job.copies || length <= COPIED_BYTES_MAX || !self.rings.features.fixed_fd_install {
            return self.read_file(slot);
        }
        if job.socket.is_some() {
            job.start_steps();
            return self.files.ready.push_back(send);
        }
        let (ring, descriptor) = self.rings.place_of(slot);
        let install = opcode::FixedFdInstall::new(descriptor, 0).build();
        let token = self.connections.token(Operation::Install, slot);
        self.connections.slots.get(slot).set(SENDING);
        self.rings.all[ring].push(&install.user_data(token));
    }

    /// The connection has a normal descriptor now, or cannot have one.
    pub(crate) fn installed(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        state.clear(SENDING);
        let (send, closing) = (state.send, state.has(CLOSING));
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        let socket = (result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) });
        if closing {
            drop(socket);
            self.finish_send(slot, libc::ECANCELED);
            return None;
        }
        let job = self.connections.in_flight.get(send).file.get_or_insert_default();
        job.socket = socket;
        if job.socket.is_some() {
            job.start_steps();
            self.files.ready.push_back(send);
        } else {
            job.copies = true;
            self.read_file(slot);
        }
        None
    }

    /// Takes a step of the file that has waited longest. Returns whether one was to be taken in this turn.
    pub(crate) fn step_next_file(&mut self) -> bool {
        if self.files.steps_left == 0 {
            return false;
        }
        self.files.steps_left -= 1;
        let Some(send) = self.files.ready.pop_front() else { return false };
        let in_flight = self.connections.in_flight.get(send);
        let slot = in_flight.slot;
        let before_bytes = in_flight.stepped_bytes();
        match in_flight.step_file() {
            FileStep::Progress => {
                let bytes = (in_flight.stepped_bytes() - before_bytes) as u32;
                self.files.ready.push_back(send);
                if bytes > 0 {
                    self.completions.pending.push_back(Completion::Progress { slot, bytes });
                }
            }
            FileStep::WouldBlock => self.wait_writable(slot),
            FileStep::Draining => self.wait_moment(send),
            FileStep::Cold => self.warm(slot, send),
            FileStep::Done => {
                if let Some(job) = &mut in_flight.file {
                    job.finish_steps();
                }
                in_flight.finish_file_part();
                self.go_on_sending(slot);
            }
            FileStep::Failed(errno) => self.finish_send(slot, errno),
        }
        true
    }

    /// Waits until the connection takes more.
    pub(crate) fn wait_writable(&mut self, slot: Slot) {
        let (ring, descriptor) = self.rings.place_of(slot);
        let token = self.connections.token(Operation::Writable, slot);
        self.connections.slots.get(slot).set(SENDING);
        let poll = opcode::PollAdd::new(descriptor, libc::POLLOUT as u32).build();
        self.rings.all[ring].push(&poll.user_data(token));
    }

    /// The connection takes more, or has failed: the next attempt tells.
    pub(crate) fn writable(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        state.clear(SENDING);
        let (send, closing) = (state.send, state.has(CLOSING));
        if closing || result < 0 {
            self.finish_send(slot, if closing { libc::ECANCELED } else { -result });
        } else if self.connections.in_flight.get(send).file.as_ref().is_some_and(|job| job.stepping) {
            self.files.ready.push_back(send);
        } else {
            self.go_on_sending(slot);
        }
        None
    }

    /// The files that waited for a moment go on.
    pub(crate) fn drain_timer_over(&mut self) -> Option<Completion> {
        self.files.drain_timer_armed = false;
        for send in std::mem::take(&mut self.files.draining) {
            let in_flight = self.connections.in_flight.get(send);
            let slot = in_flight.slot;
            if in_flight.file.as_ref().is_some_and(|job| job.stepping) {
                self.files.ready.push_back(send);
            } else {
                self.read_file(slot);
            }
        }
        None
    }

    /// The files whose bytes the warming threads have read go on.
    pub(crate) fn resume_warmed(&mut self) {
        for Done { token, read } in self.files.warmed.take() {
            let (_, generation, slot) = unpack(token);
            let state = *self.connections.slots.get(slot);
            if state.generation() != generation || state.send == NO_SEND {
                continue;
            }
            let Some(job) = &mut self.connections.in_flight.get(state.send).file else { continue };
            if !std::mem::take(&mut job.warming) {
                continue;
            }
            match read {
                read if job.stepping => {
                    job.progress.note_warmed(read);
                    self.files.ready.push_back(state.send);
                }
                Some(Ok(bytes)) => {
                    job.buffer = bytes;
                    self.go_on_sending(slot);
                }
                Some(Err(errno)) => self.finish_send(slot, errno),
                None => unreachable!("of a copied part bytes are asked for"),
            }
        }
    }

    /// A file between two steps will not go on.
    pub(crate) fn forget_file(&mut self, send: u32) {
        self.files.ready.retain(|other| *other != send);
        self.files.draining.retain(|other| *other != send);
    }

    /// A file was read by the ring.
    pub(crate) fn file_read(&mut self, slot: Slot, result: i32) -> Option<Completion> {
        let state = self.connections.slots.get(slot);
        state.clear(SENDING | READING);
        match result {
            _ if state.has(CLOSING) => self.finish_send(slot, libc::ECANCELED),
            0.. => self.send_read_bytes(slot, result as usize),
            error => self.finish_send(slot, -error),
        }
        None
    }

    /// Reads the next piece of a copied part, by the ring if that would mean to wait.
    fn read_file(&mut self, slot: Slot) {
        let send = self.connections.slots.get(slot).send;
        let in_flight = self.connections.in_flight.get(send);
        let taken = in_flight.taken_of_file();
        let Some(part) = in_flight.file_part().cloned() else { unreachable!("a file is next") };
        let offset = part.offset_bytes + taken;
        let job = in_flight.file.get_or_insert_default();
        job.buffer_sent = 0;
        job.buffer.resize((part.length_bytes - taken).min(PIECE_BYTES) as usize, 0);
        match read(part.file.as_fd(), &mut job.buffer, offset) {
            Ok(Ok(count)) => self.send_read_bytes(slot, count),
            Ok(Err(Missing::Unknown)) => {
                job.buffer = Vec::new();
                self.read_file_aside(slot, send);
            }
            Ok(Err(Missing::Cold)) | Err(Errno::INTR) => {
                let (address, length) = (job.buffer.as_mut_ptr(), job.buffer.len() as u32);
                let read = opcode::Read::new(Fd(part.file.as_raw_fd()), address, length).offset(offset);
                let token = self.connections.token(Operation::Read, slot);
                self.connections.slots.get(slot).set(SENDING | READING);
                let (ring, _) = self.rings.place_of(slot);
                self.rings.all[ring].push(&read.build().user_data(token));
            }
            Err(errno) => self.finish_send(slot, errno.raw_os_error()),
        }
    }

    /// Has the next piece of a copied part read by a thread that may wait.
    #[cold]
    fn read_file_aside(&mut self, slot: Slot, send: u32) {
        let token = self.connections.token(Operation::Read, slot);
        if !self.connections.in_flight.get(send).read_file_aside(&self.files.warmed, token) {
            self.wait_moment(send);
        }
    }

    /// Sends what was read, if it still belongs to the version that was announced: a writer changes the stamp
    /// before it changes a byte.
    fn send_read_bytes(&mut self, slot: Slot, count: usize) {
        let send = self.connections.slots.get(slot).send;
        let in_flight = self.connections.in_flight.get(send);
        let same =
            in_flight.file_part().is_some_and(|part| stamp(&part.file).is_ok_and(|now| now == part.stamp));
        let Some(job) = &mut in_flight.file else { unreachable!("a file is being sent") };
        if count == 0 || !same {
            job.buffer.clear();
            return self.finish_send(slot, libc::ESTALE);
        }
        job.buffer.truncate(count);
        self.go_on_sending(slot);
    }

    fn warm(&mut self, slot: Slot, send: u32) {
        let token = self.connections.token(Operation::Read, slot);
        if !self.connections.in_flight.get(send).warm_file(&self.files.warmed, token) {
            self.wait_moment(send);
        }
    }

    fn wait_moment(&mut self, send: u32) {
        self.files.draining.push(send);
        if !self.files.drain_timer_armed {
            self.files.drain_timer_armed = true;
            *self.files.drain_timer = Timespec::new().nsec(DRAIN_RETRY_MS_MAX as u32 * 1_000_000 / 2);
            let timeout =
                opcode::Timeout::new(&raw const *self.files.drain_timer).flags(TimeoutFlags::empty());
            let token = super::token::pack(Operation::DrainTimer, 0, 0);
            self.rings.all[0].push(&timeout.build().user_data(token));
        }
    }
}

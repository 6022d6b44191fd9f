//! Many children in one process, as states of a loop over epoll: the client that costs least. There is such a
//! process for each processor.
//!
//! It owns the loop and its clock. It must never wait for one peer, nor allocate while all goes well. A turn:
//! wait; take what came for each child of which something is reported; let all ask who began a loop
//! meanwhile; end what has waited too long.
//!
//! To take first and to ask then is what loops of other clients do (wrk), and the server notices it: requests
//! come close together, and it need not fall asleep between them.

mod seat;

use std::io;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event};
use rustix::io::Errno;
use staunch_netio::clock;
use staunch_netio::host::cpu::pin_current_thread;

use super::child::await_begin;
use super::fault::Fault;
use super::plan::Plan;
use super::tally::Board;
use crate::results::Usage;
use crate::syscall::thread_usage;
use seat::{Seat, SeatTable};

/// What is taken at once: most of what a crowd of a thousand has, in little memory.
const EVENTS_COUNT: usize = 256;
/// How long is waited when no child waits for anything but its turn.
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Lives the lives of these children, on this processor.
///
/// # Errors
/// Those of sched_setaffinity(2), epoll_create(2) and epoll_wait(2).
pub(super) fn live(
    plan: &Plan,
    board: &Board,
    barrier: &OwnedFd,
    children: impl Iterator<Item = usize>,
    cpu: usize,
) -> io::Result<()> {
    pin_current_thread(cpu)?;
    let mut crowd = Crowd::new(plan, board, children)?;
    for _ in &crowd.seats {
        board.be_ready();
    }
    await_begin(barrier);
    crowd.begin_all();
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS_COUNT);
    while crowd.living > 0 {
        events.clear();
        match epoll::wait(&crowd.table.epoll, spare_capacity(&mut events), Some(&crowd.time_to_wait())) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        crowd.now_ns = clock::now_ns();
        for event in &events {
            crowd.go_on(event.data.u64() as usize, event.flags);
        }
        crowd.begin_again();
        crowd.ask();
        crowd.expire();
    }
    Ok(())
}

/// All children of this process.
struct Crowd<'a> {
    board: &'a Board,
    table: SeatTable,
    seats: Vec<Seat<'a>>,
    /// Those whose last loop has failed. They begin anew in the next turn: a failure may take no time, and
    /// others are to have theirs.
    failed: Vec<usize>,
    /// Those who have begun a loop in this turn.
    asking: Vec<usize>,
    /// Children that have not ended.
    living: usize,
    patience_ns: u64,
    /// The beginning of this turn.
    now_ns: u64,
    /// No deadline is before this. It is looked at deadlines no earlier.
    earliest_ns: u64,
    /// What had been used when the last of the ended children ended.
    used: Usage,
}

impl<'a> Crowd<'a> {
    fn new(plan: &Plan, board: &'a Board, children: impl Iterator<Item = usize>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let seats: Vec<Seat<'a>> = children.map(|number| Seat::new(plan, board.tally(number))).collect();
        Ok(Self {
            board,
            table: SeatTable::new(plan, epoll),
            failed: Vec::with_capacity(seats.len()),
            asking: Vec::with_capacity(seats.len()),
            living: seats.len(),
            seats,
            patience_ns: plan.patience.as_nanos().try_into().unwrap_or(u64::MAX),
            now_ns: 0,
            earliest_ns: 0,
            used: Usage::default(),
        })
    }

    fn begin_all(&mut self) {
        self.used = thread_usage();
        self.now_ns = clock::now_ns();
        self.earliest_ns = self.deadline_ns();
        for seat in &self.seats {
            seat.loops.tally.begin(self.now_ns);
        }
        for number in 0..self.seats.len() {
            self.begin(number);
        }
        self.ask();
    }

    fn deadline_ns(&self) -> u64 {
        self.now_ns.saturating_add(self.patience_ns)
    }

    fn time_to_wait(&self) -> Timespec {
        if !self.failed.is_empty() {
            return NO_TIME;
        }
        let wait_ns = self.earliest_ns.saturating_sub(self.now_ns);
        // Whole milliseconds, and none too few: they are all that epoll_wait(2) knows.
        let wait_ms = wait_ns.div_ceil(1_000_000).min(i32::MAX as u64);
        Timespec { tv_sec: (wait_ms / 1000) as i64, tv_nsec: (wait_ms % 1000 * 1_000_000) as i64 }
    }

    /// A child begins its next loop, if there is one.
    fn begin(&mut self, number: usize) {
        let deadline_ns = self.deadline_ns();
        let seat = &mut self.seats[number];
        if !seat.loops.are_left() || self.board.is_stopped() {
            return self.end(number);
        }
        seat.deadline_ns = deadline_ns;
        match seat.begin(&mut self.table) {
            Ok(()) => self.asking.push(number),
            Err(fault) => self.fail(number, fault),
        }
    }

    /// All ask who began.
    fn ask(&mut self) {
        for index in 0..self.asking.len() {
            let number = self.asking[index];
            if let Err(fault) = self.seats[number].say(number, &self.table) {
                self.fail(number, fault);
            }
        }
        self.asking.clear();
    }

    /// Something is reported of a child.
    fn go_on(&mut self, number: usize, flags: epoll::EventFlags) {
        let deadline_ns = self.deadline_ns();
        let seat = &mut self.seats[number];
        seat.deadline_ns = deadline_ns;
        match seat.go_on(number, flags, &mut self.table) {
            Ok(false) => {}
            Ok(true) => {
                seat.loops.end(Ok(()), seat.answer.bytes());
                self.begin(number);
            }
            Err(fault) => self.fail(number, fault),
        }
    }

    fn fail(&mut self, number: usize, fault: Fault) {
        let seat = &mut self.seats[number];
        seat.hang_up();
        seat.loops.end(Err(fault), seat.answer.bytes());
        self.failed.push(number);
    }

    fn begin_again(&mut self) {
        let count = self.failed.len();
        for index in 0..count {
            self.begin(self.failed[index]);
        }
        self.failed.drain(..count);
    }

    /// Ends loops whose deadline has passed. A deadline only moves away, so all of them are looked at once
    /// in a patience, or seldom more often.
    fn expire(&mut self) {
        if self.now_ns < self.earliest_ns {
            return;
        }
        // A loop that begins from now on has more time than this.
        self.earliest_ns = self.deadline_ns();
        for number in 0..self.seats.len() {
            match self.seats[number].deadline_ns {
                passed_ns if passed_ns <= self.now_ns => {
                    self.seats[number].deadline_ns = u64::MAX;
                    self.fail(number, Errno::TIMEDOUT.into());
                }
                deadline_ns => self.earliest_ns = self.earliest_ns.min(deadline_ns),
            }
        }
    }

    /// A child has no more to do. It has used what was used since the last one ended: the sum is right.
    fn end(&mut self, number: usize) {
        let seat = &mut self.seats[number];
        seat.hang_up();
        seat.deadline_ns = u64::MAX;
        let used = thread_usage();
        seat.loops.tally.end(clock::now_ns(), &used.since(&self.used));
        self.used = used;
        self.living -= 1;
    }
}

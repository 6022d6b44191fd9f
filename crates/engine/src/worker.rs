//! The loop: one turn hands operations to the kernel, waits, and deals with what was reported.
//!
//! It owns a network backend, the connections in it and their deadlines. It must never block anywhere but in
//! `submit_and_wait`, take a lock outside `deliver`, or read the clock for a request. It is read as a turn
//! begins; while there is a patience also after many completions, and at the end of a turn that was full or
//! began late (`admission_pace`); and at the end of every turn while latencies are measured.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use staunch_netio::{Completion, Input, Io, Outgoing, Slot};
use staunch_protocol::http1::RequestMemory;
use staunch_protocol::{Deadline, Timeouts};

use crate::account::Account;
use crate::admission::Admission;
use crate::admission_pace::Pace;
use crate::admission_valve::Valve;
use crate::clients::{ClientPolicy, ClientTable, Clients};
use crate::complaint::Complaints;
use crate::connection::{Connection, Phase};
use crate::desk::Desk;
use crate::doors::Doors;
use crate::draining::Draining;
use crate::handler::{Address, Context, Departure, Handler};
use crate::limits::KEEP_ALIVE_EARLY_PART;
use crate::listener::Listeners;
use crate::mailbox::Mailbox;
use crate::newcomers::Newcomers;
use crate::order::{Left, Name};
use crate::rendered::Rendered;
use crate::spare::Spare;
use crate::stats::{Standing, Stats};
use crate::time::Time;
use crate::timer_wheel::TimerWheel;

mod giving_way;
mod holding;
mod obeying;
mod sending;

/// One worker. Lives on one thread.
pub struct Worker<I, H: Handler> {
    io: I,
    handler: H,
    connections: Vec<Connection>,
    wheel: TimerWheel,
    listeners: Listeners,
    doors: Doors,
    draining: Option<Draining>,
    /// Somebody waits for all doors to be left.
    left: Option<Left>,
    mailbox: Arc<Mailbox<H::Mail>>,
    stats: Arc<Stats>,
    /// Those in force: under pressure shorter than what was asked for.
    timeouts: Timeouts,
    admission: Admission,
    account: Account,
    pace: Pace,
    newcomers: Newcomers,
    valve: Valve,
    complaints: Complaints,
    /// Where connections to be closed for others were looked for last.
    hand: Slot,
    time: Time,
    spare: Spare,
    heads: RequestMemory,
    rendered: Rendered,
    due: Vec<u32>,
    /// Connections whose send began in this turn, and after the turn those where it is not over: their nodes
    /// in the wheel do not know of it yet.
    sends_begun: Vec<Slot>,
    /// Nothing while no rule asks who is connected.
    clients: Option<Box<Clients>>,
    client_table: ClientTable,
    index: u16,
}

impl<I: Io, H: Handler> Worker<I, H> {
    /// A worker that accepts on `listeners` listeners of its backend, all known by the name 0. `index` is its
    /// place among the workers.
    pub fn new(
        io: I,
        handler: H,
        listeners: u16,
        mailbox: Arc<Mailbox<H::Mail>>,
        stats: Arc<Stats>,
        timeouts: Timeouts,
        index: u16,
    ) -> Self {
        let capacity = io.capacity();
        let now_ns = io.now_ns();
        let now_ms = now_ns / 1_000_000;
        let mut worker = Self {
            io,
            handler,
            connections: Vec::with_capacity(capacity as usize),
            wheel: TimerWheel::new(now_ms, capacity as usize),
            listeners: Listeners::new(listeners),
            doors: Doors::default(),
            draining: None,
            left: None,
            mailbox,
            stats,
            timeouts,
            admission: Admission::new(capacity, timeouts),
            account: Account::new(),
            pace: Pace::new(now_ns),
            newcomers: Newcomers::default(),
            valve: Valve::default(),
            complaints: Complaints::silent(),
            hand: 0,
            time: Time::new(now_ms),
            spare: Spare::default(),
            heads: RequestMemory::new(),
            rendered: Rendered::new(),
            due: Vec::new(),
            sends_begun: Vec::new(),
            clients: None,
            client_table: ClientTable::default(),
            index,
        };
        for listener in 0..listeners {
            worker.doors.add(0, listener);
            worker.io.open_door(listener);
            worker.io.accept(listener);
        }
        worker
    }

    /// Gives its listeners names, in their order, in place of the common one.
    pub(crate) fn name_listeners(&mut self, names: &[Name]) {
        self.doors = Doors::default();
        for (listener, name) in names.iter().enumerate() {
            self.doors.add(*name, listener as u16);
        }
    }

    /// Counts clients together with the other workers of this table. To be called before `set_clients`.
    pub fn share_clients(&mut self, table: ClientTable) {
        self.client_table = table;
    }

    /// Other rules for clients from now on. Connections that are there and were not counted stay so.
    pub fn set_clients(&mut self, policy: ClientPolicy) {
        match &mut self.clients {
            Some(clients) => clients.set_policy(policy),
            None if policy.needs_addresses() => {
                self.io.learn_peers();
                self.clients = Some(Box::new(Clients::new(policy, self.client_table.clone())));
            }
            None => {}
        }
    }

    /// Turns until it has drained.
    ///
    /// # Errors
    /// What the backend cannot go on after.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.is_over() {
            self.turn()?;
        }
        Ok(())
    }

    /// Whether it was told to drain and has nothing left.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.draining.is_some()
            && self.doors.are_gone()
            && self.stats.accepted.get() == self.stats.closed.get()
    }

    /// One turn.
    ///
    /// # Errors
    /// What the backend cannot go on after.
    pub fn turn(&mut self) -> io::Result<()> {
        let in_line_ns = self.attend_newcomers();
        self.io.submit_and_wait(self.timeout())?;
        self.time.read(&self.io);
        self.pace.begin_turn(self.time.now_ns, self.stats.requests.get());
        self.stats.turns.add(1);
        let begun_before = self.sends_begun.len();
        let before = self.stats.standing();
        while let Some(completion) = self.io.next_completion() {
            if self.pace.step() {
                self.look_at_the_clock();
            }
            match completion {
                Completion::Received { slot, input } => self.received(slot, input),
                Completion::Sent { slot, outgoing, errno } => self.sent(slot, outgoing, errno),
                Completion::Accepted { slot, .. } => self.admit(slot),
                Completion::Ended { slot, errno } => self.ended(slot, errno),
                Completion::Progress { slot, bytes } => self.progressed(slot, bytes),
                Completion::Closed { slot } => self.retire(slot),
                Completion::AcceptStopped { listener, errno } => self.accept_stopped(listener, errno),
                Completion::Woken => {
                    self.pace.hear_knock();
                    self.deliver();
                }
                Completion::Connected { .. } | Completion::Inspected { .. } => {
                    unreachable!("a server does not connect")
                }
            }
        }
        self.expire();
        self.watch_sends(begun_before);
        self.doors.look(&mut self.io, |listener| self.listeners.rests(listener), self.time.now_ms);
        if self.draining.is_some() {
            self.go_on_draining();
        }
        self.stats.sending.set(self.sends_begun.len() as u64);
        if self.stats.is_measuring() {
            self.measure_turn(before, in_line_ns);
        }
        self.end_turn();
        self.settle();
        Ok(())
    }

    /// What each request of this turn took, at most: what the whole turn took. And how long it waited, at
    /// most: the turn before, or so long in line.
    fn measure_turn(&mut self, before: Standing, in_line_ns: u64) {
        let turn_ns = self.io.now_ns().saturating_sub(self.time.now_ns);
        let now = self.stats.standing();
        if now.looked_at > before.looked_at {
            self.stats.latency.add(turn_ns, now.answered_at_once - before.answered_at_once);
            let age_ns = self.time.last_turn_ns.max(in_line_ns);
            self.stats.queue_age.add(age_ns, now.looked_at - before.looked_at);
        }
        self.time.last_turn_ns = turn_ns;
    }

    /// The backend, for a simulation that has to look into it.
    pub fn io(&mut self) -> &mut I {
        &mut self.io
    }

    /// How long the worker may sleep.
    fn timeout(&self) -> Option<Duration> {
        if self.newcomers.count() > 0 {
            return Some(Duration::ZERO);
        }
        let sending = !self.sends_begun.is_empty();
        let send_ms = sending.then(|| self.time.now_ms + u64::from(self.timeouts.send_ms));
        let draining_ms = self.draining.map(|draining| draining.next_ms());
        let doors_ms = self.doors.next_ms(self.time.now_ms);
        let valve_ms = self.valve.deadline_ms();
        let quiet_ms = self.account.quiet_ms();
        let times_ms = [
            self.wheel.next_ms(),
            self.listeners.next_ms(),
            send_ms,
            draining_ms,
            doors_ms,
            valve_ms,
            quiet_ms,
        ];
        let next_ms = times_ms.into_iter().flatten().min()?;
        Some(Duration::from_millis(next_ms.saturating_sub(self.time.now_ms)))
    }

    fn admit(&mut self, slot: Slot) {
        let index = slot as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, Connection::free);
        }
        self.count_opened();
        self.connections[index].open(self.time.now_ms, self.admission.is_full());
        self.stats.accepted.add(1);
        if self.is_welcome(slot) {
            self.welcome(slot);
        } else {
            self.attend(slot);
            self.flush(slot);
        }
        self.set_deadline(slot);
    }

    #[inline]
    fn received(&mut self, slot: Slot, input: Input) {
        self.hear(slot);
        if self.has_no_memory_for(slot) {
            return self.io.release(input);
        }
        let (connection, mut desk, io) = self.desk(slot);
        connection.receive(io.input(&input), &mut desk);
        connection.late = false;
        self.io.release(input);
        self.flush(slot);
    }

    #[inline]
    fn sent(&mut self, slot: Slot, outgoing: Box<Outgoing>, errno: i32) {
        self.spare.put(outgoing);
        self.connections[slot as usize].end_send();
        if errno != 0 {
            self.stats.sends_failed.add(1);
            self.close(slot);
            return self.count(slot);
        }
        let (connection, mut desk, _) = self.desk(slot);
        connection.catch_up(&mut desk);
        self.flush(slot);
    }

    fn progressed(&mut self, slot: Slot, bytes: u32) {
        let rate_min = self.admission.pressure().send_rate_min;
        self.connections[slot as usize].progress(bytes, rate_min, self.time.now_ms, &self.timeouts);
    }

    fn ended(&mut self, slot: Slot, errno: i32) {
        let (connection, mut desk, _) = self.desk(slot);
        if errno != 0 || connection.phase == Phase::Lingering {
            return self.close(slot);
        }
        connection.end(&mut desk);
        self.flush(slot);
    }

    fn retire(&mut self, slot: Slot) {
        self.hear(slot);
        self.count_gone(slot);
        self.connections[slot as usize].retire(&mut self.spare);
        if let Some(clients) = &mut self.clients {
            clients.leave(slot);
        }
        self.wheel.clear(slot);
        self.stats.closed.add(1);
        self.count_closed();
    }

    fn deliver(&mut self) {
        for (address, letter) in self.mailbox.take() {
            let slot = address.slot;
            let Some(connection) = self.connections.get(slot as usize) else { continue };
            if connection.generation != address.generation || connection.phase != Phase::Waiting {
                continue;
            }
            if self.has_no_memory_for(slot) {
                continue;
            }
            let (connection, mut desk, _) = self.desk(slot);
            connection.resume(letter, &mut desk);
            self.flush(slot);
        }
        for order in self.mailbox.take_orders() {
            self.obey(order);
        }
    }

    /// Pauses a peer that sends faster than it is answered, and lets it go on.
    #[inline]
    fn regulate(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if connection.is_full() != connection.paused && connection.phase != Phase::Closing {
            connection.paused = !connection.paused;
            if connection.paused {
                self.io.pause(slot);
            } else if !connection.has_ended() {
                self.io.receive(slot);
            }
        }
    }

    /// Deadlines come again and again, so the wheel's node is left where it is while it comes up in time;
    /// only one that would come up much before a long idle time is over is moved, so that nobody wakes for
    /// it.
    #[inline]
    fn set_deadline(&mut self, slot: Slot) {
        let Some((deadline_ms, deadline)) = self.connections[slot as usize].due(&self.timeouts) else {
            return;
        };
        let early_ms = match deadline {
            Deadline::KeepAlive => u64::from(self.timeouts.keep_alive_ms / KEEP_ALIVE_EARLY_PART),
            _ => deadline_ms,
        };
        self.wheel.set_between(slot, deadline_ms - early_ms, deadline_ms);
    }

    fn close(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if connection.phase == Phase::Waiting {
            self.stats.waits_lost.add(1);
            let address = Address { worker: self.index, slot, generation: connection.generation };
            self.handler.left(address, Departure::Gone);
        }
        connection.phase = Phase::Closing;
        self.count_leaving(slot);
        self.io.close(slot);
    }

    /// Deals with every deadline that has passed. A deadline that was pushed back meanwhile is only set
    /// again.
    fn expire(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.expire(self.time.now_ms, &mut due);
        for slot in due.drain(..) {
            match self.connections[slot as usize].due(&self.timeouts) {
                Some((deadline_ms, _)) if deadline_ms > self.time.now_ms => {
                    self.wheel.set(slot, deadline_ms);
                }
                Some((_, deadline)) => self.time_out(slot, deadline),
                None => {}
            }
        }
        self.due = due;
        while let Some(listener) = self.listeners.take_due(self.time.now_ms) {
            self.io.accept(listener);
        }
    }

    fn time_out(&mut self, slot: Slot, deadline: Deadline) {
        self.stats.count_timeout(deadline);
        if matches!(deadline, Deadline::Send | Deadline::Linger) {
            return self.close(slot);
        }
        let (connection, mut desk, _) = self.desk(slot);
        connection.time_out(&mut desk);
        self.flush(slot);
    }

    /// A connection with what it needs to handle something.
    #[inline]
    fn desk(&mut self, slot: Slot) -> (&mut Connection, Desk<'_, H>, &I) {
        let mut strain = self.strain();
        let written_bytes_max = self.written_bytes_max();
        let connection = &mut self.connections[slot as usize];
        strain.late |= connection.late;
        let address = Address { worker: self.index, slot, generation: connection.generation };
        let context = Context {
            stats: &self.stats,
            date: &self.time.date,
            address,
            unix_ms: self.time.now_ms.wrapping_sub(self.time.epoch_ms),
            second: self.time.date_until_ms,
            clients: self.clients.as_deref_mut(),
            guarded: Default::default(),
        };
        let desk = Desk {
            handler: &mut self.handler,
            spare: &mut self.spare,
            context,
            now_ms: self.time.now_ms,
            heads: &mut self.heads,
            rendered: &mut self.rendered,
            draining: self.draining.is_some(),
            strain,
            written_bytes_max,
            came_ms: self.pace.came_ms(self.time.now_ms),
        };
        (connection, desk, &self.io)
    }
}
